/**
 * Masks secrets in the process list: every user of the machine can read a command's arguments, so secrets among them
 * are masked as soon as the command starts.
 */

const secret = ["--key", "--operator-token", "--to-token", "--token"]

/** `args` with the values of secret options masked; null when there are none. */
export const maskArguments = (args: ReadonlyArray<string>): ReadonlyArray<string> | null => {
  const shown = args.map((arg, place) => {
    if (secret.includes(args[place - 1] ?? "")) return "***"
    const name = secret.find((each) => arg.startsWith(`${each}=`))
    return name === undefined ? arg : `${name}=***`
  })
  return shown.some((arg, place) => arg !== args[place]) ? shown : null
}

/** Masks the arguments of this process. */
export const maskProcessTitle = (): void => {
  const shown = maskArguments(process.argv)
  // Setting the title overwrites the arguments.
  if (shown !== null) process.title = shown.join(" ")
}
