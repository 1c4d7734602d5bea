/**
 * What the list of processes shows of a command: everybody on the machine can read its arguments, so that a secret among
 * them is masked as soon as the command has started.
 */

const secret = ["--key", "--operator-token", "--token"]

/** `args` with the values of secret options masked; none when there is nothing to mask. */
export const masked = (args: ReadonlyArray<string>): ReadonlyArray<string> | null => {
  const shown = args.map((arg, place) => {
    if (secret.includes(args[place - 1] ?? "")) return "***"
    const name = secret.find((each) => arg.startsWith(`${each}=`))
    return name === undefined ? arg : `${name}=***`
  })
  return shown.some((arg, place) => arg !== args[place]) ? shown : null
}

/** Masks the arguments of this process. */
export const hide = (): void => {
  const shown = masked(process.argv)
  // Node writes the title over the arguments.
  if (shown !== null) process.title = shown.join(" ")
}
