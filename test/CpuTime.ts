/** CPU time that this process has used, in milliseconds. A busy machine changes it less than the elapsed time. */
export const cpuMillis = (): number => {
  const { system, user } = process.cpuUsage()
  return (user + system) / 1_000
}
