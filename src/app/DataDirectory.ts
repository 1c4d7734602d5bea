/**
 * Small files of the data directory: generated secrets, and the server's address and key for the command line. Their
 * mode is 0600.
 */
import * as fs from "node:fs/promises"
import * as path from "node:path"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { codeOf } from "../domain/ThrownErrors.ts"
import { makeFolder, sync } from "../store/database/Folder.ts"

/** A file of the data directory cannot be read or written. */
export class DataDirectoryError extends Schema.TaggedError<DataDirectoryError>()("DataDirectoryError", {
  message: Schema.String,
  /** True when the file can be read and its content is invalid. */
  malformed: Schema.optionalWith(Schema.Boolean, { exact: true })
}) {}

const failed = (file: string, doing: string) => (cause: unknown) =>
  new DataDirectoryError({
    message: `${file} could not be ${doing}${codeOf(cause) === "" ? "" : ` (${codeOf(cause)})`}.`
  })

const isMissing = (cause: unknown): boolean => codeOf(cause) === "ENOENT"

const readText = (file: string) =>
  Effect.tryPromise({ try: () => fs.readFile(file, "utf8"), catch: (cause) => cause }).pipe(
    Effect.catchIf(isMissing, () => Effect.succeed(null)),
    Effect.mapError(failed(file, "read"))
  )

/** Creates the directory with mode 0700 if it is missing. */
export const make = (dataDir: string) =>
  Effect.tryPromise({ try: () => makeFolder(dataDir), catch: failed(dataDir, "made") })

/** Replaces the file atomically: a crash leaves the old file or the new one. */
const writeText = (file: string, text: string) =>
  Effect.tryPromise({
    try: async () => {
      await makeFolder(path.dirname(file))
      const temporary = `${file}.${process.pid}.tmp`
      await fs.writeFile(temporary, text, { mode: 0o600, flush: true })
      await fs.rename(temporary, file)
      // Some file systems do not support this.
      await sync(path.dirname(file)).catch(() => undefined)
    },
    catch: failed(file, "written")
  })

/** A typed JSON file in the data directory. */
const jsonFile = <A, I>(name: string, schema: Schema.Schema<A, I>) => {
  const codec = Schema.parseJson(schema, { space: 2 })
  return {
    /** None when the file does not exist. */
    read: (dataDir: string) =>
      Effect.gen(function* () {
        const file = path.join(dataDir, name)
        const text = yield* readText(file)
        if (text === null) return Option.none<A>()
        return Option.some(
          yield* Schema.decode(codec)(text).pipe(
            Effect.mapError(
              () =>
                new DataDirectoryError({
                  message: `${file} does not have the expected form.`,
                  malformed: true
                })
            )
          )
        )
      }),
    /** Keeps the file under another name, with the time in it, if it exists. */
    setAside: (dataDir: string) =>
      Effect.gen(function* () {
        const file = path.join(dataDir, name)
        const now = yield* Clock.currentTimeMillis
        yield* Effect.tryPromise({
          try: () => fs.rename(file, `${file}.${now}.old`),
          catch: (cause) => cause
        }).pipe(
          Effect.catchIf(isMissing, () => Effect.void),
          Effect.mapError(failed(file, "set aside"))
        )
      }),
    write: (dataDir: string, value: A) =>
      Schema.encode(codec)(value).pipe(
        Effect.orDie,
        Effect.flatMap((text) => writeText(path.join(dataDir, name), `${text}\n`))
      )
  }
}

export const secretsFile = "secrets.json"

/** Secrets that the configuration leaves out. */
export const secrets = jsonFile(
  secretsFile,
  Schema.Struct({
    secret: Schema.Redacted(Schema.String),
    operatorToken: Schema.Redacted(Schema.String)
  })
)

/** Address of this data directory's server, and the key that its first start created. */
export const credentials = jsonFile(
  "credentials.json",
  Schema.Struct({ url: Schema.String, apiKey: Schema.Redacted(Schema.String) })
)
