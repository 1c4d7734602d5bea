/** CPU time that this process has used, in milliseconds. Unlike the time on a clock, a busy machine does not raise it much. */
export const cpuMillis = (): number => {
  const { system, user } = process.cpuUsage()
  return (user + system) / 1_000
}
