/** Reads files of test cases and results. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { parse } from "../../../domain/agents/TestCaseFile.ts"
import { CommandFailed } from "../Connection.ts"
import * as Files from "../input/Files.ts"
import { MiB } from "../../../domain/Bytes.ts"

const maxFileBytes = 64 * MiB

/** Invalid input: exit code 2. */
export const badInput = (message: string) => new CommandFailed({ message, exitCode: 2 })

/** The text of a file; exit code 2 when it cannot be read. */
export const readText = (file: string) => Files.readText(file, maxFileBytes, badInput)

export const read = (file: string) =>
  Effect.flatMap(readText(file), (text) =>
    Either.match(parse(text, /\.csv$/i.test(file) ? "csv" : "jsonl"), {
      onLeft: (problem) => Effect.fail(badInput(`${file}, ${problem}`)),
      onRight: Effect.succeed
    })
  )
