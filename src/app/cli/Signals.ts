/**
 * A terminal signals every process that runs in it, and npm passes on to its command what it is sent itself: one Ctrl+C under
 * `npm start` comes twice. The runtime takes the first to end in order and leaves the next to the system, which would end
 * the process in the middle of that.
 */
import * as Effect from "effect/Effect"
import * as Output from "./Output.ts"

/** Milliseconds in which a signal is a repetition of the first; a later one asks to end at once. */
const echo = 1_000

/** With the exit codes by which shells know them. */
const signals = { SIGINT: 130, SIGTERM: 143 } as const

let interruptedCode = 0
let isServer = false

/** This command ends well by a signal: nothing else ends it. */
export const endsBySignal = Effect.sync(() => {
  isServer = true
})

/** Tells the person whose signal has ended the command what becomes of what it was doing. */
export const explain = (text: string) =>
  Effect.suspend(() => (interruptedCode === 0 ? Effect.void : Output.note(`\nInterrupted. ${text}`)))

/** How a command that was interrupted exits. */
export const exitCode = (): number => (isServer ? 0 : interruptedCode)

const heedOne = (signal: keyof typeof signals, first: { at?: number }) => {
  const take = () => {
    const now = performance.now()
    if (first.at === undefined) interruptedCode = signals[signal]
    first.at ??= now
    if (now - first.at <= echo) return
    process.off(signal, take)
    process.kill(process.pid, signal)
  }
  process.on(signal, take)
}

export const heed = (): void => {
  const first = {}
  heedOne("SIGINT", first)
  heedOne("SIGTERM", first)
}
