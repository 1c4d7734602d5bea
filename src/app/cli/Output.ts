/**
 * Output of commands: results on standard output, everything else on standard error, so that a pipe gets only results.
 */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { withoutControls } from "../../domain/Text.ts"
import { codeOf } from "../../domain/ThrownErrors.ts"

/** Replies, passages and names may have escape sequences. Files and pipes get them as they are. */
const textFor = ({ isTTY }: NodeJS.WriteStream, text: string): string =>
  isTTY ? withoutControls(text) : text

/** Writes part of the result, without a line break. */
export const write = (text: string) =>
  Effect.sync(() => void process.stdout.write(textFor(process.stdout, text)))

/** Writes a line of the result. */
export const line = (text: string): Effect.Effect<void> =>
  Effect.suspend(() => Console.log(textFor(process.stdout, text)))

/** At most 100 characters of `text`, for a list. */
export const shortened = (text: string): string => (text.length > 100 ? `${text.slice(0, 99)}…` : text)

/** Writes the result as JSON. */
export const asJson = (value: unknown) => line(JSON.stringify(value, null, 2))

/** Writes a line for the user to standard error. */
export const note = (text: string): Effect.Effect<void> =>
  Effect.suspend(() => Console.error(textFor(process.stderr, text)))

/** Redraws one line on a terminal. Does nothing elsewhere, where lines would accumulate. */
export const draw = (text: string) =>
  Effect.sync(() => {
    if (process.stderr.isTTY) process.stderr.write(`\r\u001b[2K${withoutControls(text)}`)
  })

const streams = [process.stdout, process.stderr]

/** Longest time for which the end of the process waits for a reader of its output. */
const flushTimeout = "5 seconds"

/** Ends when everything is written. Writes to a pipe would otherwise be lost with the process. */
export const flushed = Effect.forEach(
  streams,
  (stream) =>
    Effect.async<void>((resume) => {
      if (stream.destroyed) resume(Effect.void)
      else stream.write("", () => resume(Effect.void))
    }),
  { concurrency: "unbounded", discard: true }
).pipe(Effect.timeout(flushTimeout), Effect.ignore)

/** The disk of the file that standard output is written to has no room. */
const isFull = (error: unknown) => /^(?:ENOSPC|EDQUOT|EFBIG)$/u.test(codeOf(error))

let isIncomplete = false

/** True if part of the result could not be stored. */
export const incomplete = Effect.sync(() => isIncomplete)

/** Ignores errors of closed output streams, so that a reader that exits, like `head`, does not end the process. */
export const ignoreClosedOutput = (): void => {
  for (const stream of streams) {
    stream.on("error", (error) => {
      if (stream === process.stdout && isFull(error)) isIncomplete = true
    })
  }
}

/** Ends when the reader of the results has exited. */
export const readerClosed = Effect.async<void>((resume) => {
  const onError = (error: unknown) => {
    if (codeOf(error) === "EPIPE") resume(Effect.void)
  }
  process.stdout.on("error", onError)
  return Effect.sync(() => void process.stdout.off("error", onError))
})
