/** Validates a changed source config by the same rules as a new one. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import * as Json from "../../domain/Json.ts"
import { ValidationError } from "../../domain/Errors.ts"
import { CreateSource, type Source, UploadedFileConfig } from "../../domain/knowledge/Source.ts"
import { artifactOf } from "../../store/knowledge/ArtifactRows.ts"

type Config = Readonly<Record<string, unknown>>

const UploadedChange = Schema.Struct({ config: Schema.partialWith(UploadedFileConfig, { exact: true }) })

const decodeCreate = Json.decodeUnknown(CreateSource)
const decodeUploaded = Json.decodeUnknown(UploadedChange, { onExcessProperty: "error" })

export const issue = (path: ReadonlyArray<PropertyKey>, message: string) => ({
  path: path.slice(0, 16).map((key) => (typeof key === "number" ? key : String(key).slice(0, 64))),
  message: message.replace(/,? actual [\s\S]*$/u, "").slice(0, 300)
})

export const invalid = (issues: ReadonlyArray<ReturnType<typeof issue>>) =>
  new ValidationError({
    message: "The request does not have the expected form.",
    details: { issues: issues.slice(0, 50) }
  })

/** The validation error, with `prefix` before each path. */
export const refused = (error: ParseResult.ParseError, prefix: ReadonlyArray<string> = []) =>
  invalid(
    ParseResult.ArrayFormatter.formatErrorSync(error).map(({ path, message }) =>
      issue([...prefix, ...path], message)
    )
  )

/**
 * The config that replaces the source's. An uploaded source keeps its document: only file name and metadata can change.
 * A config as returned by the API can be sent back.
 */
export const changeConfig = Effect.fn("SourceConfig.changeConfig")(function* (
  { type, name, config: old }: Source,
  config: Config
) {
  const stored = artifactOf(old)
  if (Option.isNone(stored)) {
    if ("artifact" in config)
      return yield* invalid([
        issue(["config", "artifact"], "Expected none: only uploading a document stores it")
      ])
    const created = yield* Effect.mapError(decodeCreate({ type, name, config }), (error) => refused(error))
    const next: Config = created.config
    return next
  }
  const decoded = yield* Effect.mapError(decodeUploaded({ config }), (error) => refused(error))
  const { artifact, ...rest } = decoded.config
  if (artifact !== undefined && artifact !== stored.value) {
    return yield* invalid([
      issue(["config", "artifact"], "The uploaded document stays: add a source for another one")
    ])
  }
  const next: Config = { artifact: stored.value, fileName: old["fileName"], ...rest }
  return next
})
