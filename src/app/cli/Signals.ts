/**
 * A terminal signals everybody who runs in it, and npm passes on to its command what it is sent itself: one Ctrl+C under
 * `npm start` comes twice. The runtime takes the first to end in order and leaves the next to the system, which would end
 * the process in the middle of that.
 */
/** Milliseconds in which a signal is the echo of the first; whoever sends one later does not want to wait. */
const echo = 1_000

const signals = ["SIGINT", "SIGTERM"] as const

export const heed = (): void => {
  let first: number | undefined
  for (const signal of signals) {
    const take = () => {
      const now = performance.now()
      first ??= now
      if (now - first <= echo) return
      process.off(signal, take)
      process.kill(process.pid, signal)
    }
    process.on(signal, take)
  }
}
