/**
 * Masks secrets in the process list: every user of the machine can read a command's arguments, so secrets among them
 * are masked as soon as the command starts.
 */

const secretOptions = ["--key", "--operator-token", "--to-token", "--token"]

/** `args` with the values of secret options masked; null when there are none. */
export const maskArguments = (args: ReadonlyArray<string>): ReadonlyArray<string> | null => {
  const masked = args.map((arg, place) => {
    if (secretOptions.includes(args[place - 1] ?? "")) return "***"
    const name = secretOptions.find((option) => arg.startsWith(`${option}=`))
    return name === undefined ? arg : `${name}=***`
  })
  return masked.some((arg, place) => arg !== args[place]) ? masked : null
}

/** Masks the arguments of this process. */
export const maskProcessTitle = (): void => {
  const masked = maskArguments(process.argv)
  // Setting the title overwrites the arguments.
  if (masked !== null) process.title = masked.join(" ")
}
