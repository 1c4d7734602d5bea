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
const repeatWindowMs = 1_000

/** Signals with the exit codes that shells use for them. */
const signals = { SIGINT: 130, SIGTERM: 143 } as const

let interruptedCode = 0
let isServer = false

/** Marks the command as a server, which a signal ends normally, with exit code 0. */
export const markAsServer = Effect.sync(() => {
  isServer = true
})

/** After an interruption, prints what happens to the work. */
export const noteIfInterrupted = (text: string) =>
  Effect.suspend(() => (interruptedCode === 0 ? Effect.void : Output.note(`\nInterrupted. ${text}`)))

/** Exit code of an interrupted command. */
export const exitCode = (): number => (isServer ? 0 : interruptedCode)

const handleSignal = (signal: keyof typeof signals, first: { at?: number }) => {
  const onSignal = () => {
    const now = performance.now()
    if (first.at === undefined) interruptedCode = signals[signal]
    first.at ??= now
    if (now - first.at <= repeatWindowMs) return
    process.off(signal, onSignal)
    process.kill(process.pid, signal)
  }
  process.on(signal, onSignal)
}

export const installSignalHandlers = (): void => {
  const first = {}
  handleSignal("SIGINT", first)
  handleSignal("SIGTERM", first)
}
