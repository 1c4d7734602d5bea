/**
 * Handles repeated signals. A terminal signals every process that runs in it, and npm also forwards its own signal to
 * its command: one Ctrl+C under `npm start` arrives twice. Effect's runtime handles the first signal as a graceful end,
 * but the second would end the process at once.
 */
import * as Effect from "effect/Effect"
import * as Output from "./Output.ts"

/**
 * Milliseconds in which a further signal is treated as a repetition of the first. A later one ends the process at once.
 */
const signalEchoMs = 1_000

/** Signals with the exit codes that shells use for them. */
const signals = { SIGINT: 130, SIGTERM: 143 } as const

let interruptedCode = 0
let isServer = false

/** Marks the command as a server: a signal is its normal end. */
export const endsBySignal = Effect.sync(() => {
  isServer = true
})

/** After an interruption, prints what happens to the work. */
export const explain = (text: string) =>
  Effect.suspend(() => (interruptedCode === 0 ? Effect.void : Output.note(`\nInterrupted. ${text}`)))

/** Exit code of an interrupted command. */
export const exitCode = (): number => (isServer ? 0 : interruptedCode)

const heedOne = (signal: keyof typeof signals, first: { at?: number }) => {
  const take = () => {
    const now = performance.now()
    if (first.at === undefined) interruptedCode = signals[signal]
    first.at ??= now
    if (now - first.at <= signalEchoMs) return
    process.off(signal, take)
    process.kill(process.pid, signal)
  }
  process.on(signal, take)
}

export const installSignalHandlers = (): void => {
  const first = {}
  heedOne("SIGINT", first)
  heedOne("SIGTERM", first)
}
