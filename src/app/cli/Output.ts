/** Output of commands: results on standard output, everything else on standard error, so that a pipe gets only results. */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { codeOf } from "../../domain/Thrown.ts"

/** Part of the result, without a line break of its own. */
export const write = (text: string) => Effect.sync(() => void process.stdout.write(text))

/** A line of the result. */
export const line: (text: string) => Effect.Effect<void> = Console.log

/** The result as a program reads it. */
export const asJson = (value: unknown) => line(JSON.stringify(value, null, 2))

/** A line for the person at the terminal. */
export const note: (text: string) => Effect.Effect<void> = Console.error

/** Redraws one line for the person at the terminal; elsewhere a log would only grow. */
export const draw = (text: string) =>
  Effect.sync(() => {
    if (process.stderr.isTTY) process.stderr.write(`\r\u001b[2K${text}`)
  })

const streams = [process.stdout, process.stderr]

/** Keeps a reader that goes, like `head`, from ending the process in the middle of something. */
export const outliveReaders = (): void => {
  for (const stream of streams) stream.on("error", () => {})
}

/** Ends once the reader of the results has gone. */
export const unread = Effect.async<void>((resume) => {
  const onError = (error: unknown) => {
    if (codeOf(error) === "EPIPE") resume(Effect.void)
  }
  process.stdout.on("error", onError)
  return Effect.sync(() => void process.stdout.off("error", onError))
})
