/** The files of a folder of migrations: `NNNN_name.sql`, numbered from 1 without gaps and duplicates. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { createHash } from "node:crypto"
import * as Fs from "node:fs/promises"
import * as Path from "node:path"
import { statementsOf, wordsOf } from "./SqlText.ts"

/**
 * `state`: files and database do not match. `failed`: a statement failed. `locked`: other sessions held a lock for too
 * long.
 */
export class MigrationError extends Schema.TaggedError<MigrationError>()("MigrationError", {
  reason: Schema.Literal("state", "failed", "locked"),
  message: Schema.String,
  cause: Schema.optionalWith(Schema.Defect, { exact: true })
}) {}

export const stateError = (message: string) => new MigrationError({ reason: "state", message })

export interface MigrationFile {
  readonly id: number
  readonly name: string
  /** Its name in the folder. */
  readonly file: string
  readonly text: string
  /** SHA-256 of the text with normalized line ends, in hexadecimal. */
  readonly checksum: string
  /** False if the first line says `no transaction`. Each statement is then a separate step. */
  readonly transaction: boolean
  /** It shares its step with no other file: without a transaction, or if the first line says `own transaction`. */
  readonly alone: boolean
}

const pattern = /^(\d{4})_(\w+)\.sql$/u
const headerLine = /^-- spoke: (?<kind>no|own) transaction[ \t]*\r?\n/u

const checksumOf = (text: string): string =>
  createHash("sha256").update(text.replaceAll("\r\n", "\n")).digest("hex")

const concurrentIndexBuild =
  /^create (?:unique )?index concurrently (?:if not exists )?(?<index>"(?:[^"]|"")+"|[a-z_]\w*) on /u

/** Statements that are allowed outside a transaction: those that can be repeated after a crash. */
const repeatable = [
  concurrentIndexBuild,
  /^drop index concurrently if exists /u,
  /^alter table (?:only )?\S+ validate constraint \S+$/u
]

/** The index that a statement builds concurrently; null for any other statement. */
export const concurrentIndex = (statement: string): string | null =>
  concurrentIndexBuild.exec(wordsOf(statement))?.groups?.["index"] ?? null

const fileOf = (file: string, index: number, text: string) => {
  const [, number, name] = pattern.exec(file) ?? []
  if (number === undefined || name === undefined)
    return stateError(`${file} is not named like 0001_name.sql.`)
  if (Number(number) !== index + 1) {
    return stateError(
      `Migration ${file} stands where number ${index + 1} is due: a number is missing or used twice.`
    )
  }
  const kind = headerLine.exec(text)?.groups?.["kind"]
  const transaction = kind !== "no"
  const notRepeatable = transaction
    ? undefined
    : statementsOf(text).find((statement) => !repeatable.some((form) => form.test(wordsOf(statement))))
  if (notRepeatable !== undefined) {
    return stateError(
      `${file} runs outside a transaction, where only create index concurrently (with a name), drop index concurrently if ` +
        `exists and validate constraint may stand, each able to be repeated. Another file is the place for: ${notRepeatable.slice(0, 100)}`
    )
  }
  const found: MigrationFile = {
    id: index + 1,
    name,
    file,
    text,
    checksum: checksumOf(text),
    transaction,
    alone: kind !== undefined
  }
  return Effect.succeed(found)
}

/** All files of a folder, in order. Subfolders and files of other kinds are ignored. */
export const load = (directory: string) =>
  Effect.gen(function* () {
    const unreadable = () => stateError(`The migrations directory ${directory} cannot be read.`)
    const names = yield* Effect.tryPromise({ try: () => Fs.readdir(directory), catch: unreadable })
    const files = names.filter((name) => name.endsWith(".sql")).sort()
    return yield* Effect.forEach(files, (file, index) =>
      Effect.tryPromise({
        try: () => Fs.readFile(Path.join(directory, file), "utf8"),
        catch: unreadable
      }).pipe(Effect.flatMap((text) => fileOf(file, index, text)))
    )
  })
