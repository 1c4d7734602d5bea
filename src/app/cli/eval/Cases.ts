/** Reads files named on the command line. */
import * as fs from "node:fs/promises"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { parse } from "../../../domain/agents/TestCaseFile.ts"
import { CommandFailed } from "../Connection.ts"
import { MiB } from "../../../domain/Bytes.ts"

const maxFileBytes = 64 * MiB

/** Invalid input: exit code 2. */
export const badInput = (message: string) => new CommandFailed({ message, exitCode: 2 })

/** The text of a file; exit code 2 when it cannot be read. */
export const readText = (file: string) =>
  Effect.gen(function* () {
    const unreadable = () => badInput(`${file} cannot be read.`)
    const { size } = yield* Effect.tryPromise({ try: () => fs.stat(file), catch: unreadable })
    if (size > maxFileBytes) return yield* badInput(`${file} is longer than ${maxFileBytes} bytes.`)
    return yield* Effect.tryPromise({ try: () => fs.readFile(file, "utf8"), catch: unreadable })
  })

export const read = (file: string) =>
  Effect.flatMap(readText(file), (text) =>
    Either.match(parse(text, /\.csv$/i.test(file) ? "csv" : "jsonl"), {
      onLeft: (problem) => Effect.fail(badInput(`${file}, ${problem}`)),
      onRight: Effect.succeed
    })
  )
