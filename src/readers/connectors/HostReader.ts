/** Makes a reader of a function of the host program. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Runtime from "effect/Runtime"
import * as Schema from "effect/Schema"
import type { OutboundHttp } from "../../capabilities/OutboundHttp.ts"
import { ReaderError, setting, type SourceReader, sourceReader } from "../../capabilities/SourceReaders.ts"
import { optional } from "../../domain/Optional.ts"
import type {
  HostReader,
  ReaderResponse,
  ReaderSetting,
  ReaderWords
} from "../../domain/knowledge/HostReader.ts"
import { isError } from "../../domain/ThrownErrors.ts"
import { Text } from "../../domain/Text.ts"
import { request } from "./Requests.ts"

const stepTimeout = Duration.minutes(10)

const localized = (text: ReaderWords) => (typeof text === "string" ? { en: text } : text)

const schemas = {
  text: Text.pipe(Schema.minLength(1), Schema.maxLength(4_000)),
  secret: Text.pipe(Schema.minLength(1), Schema.maxLength(4_000)),
  number: Schema.JsonNumber,
  switch: Schema.Boolean,
  list: Schema.Array(Text.pipe(Schema.minLength(1), Schema.maxLength(1_000))).pipe(Schema.maxItems(100))
} as const

const fieldOf = ({
  address = false,
  hint,
  kind = "text",
  label,
  optional: isOptional = false
}: ReaderSetting) => {
  const annotation = setting({
    label: localized(label),
    ...(hint === undefined ? {} : { hint: localized(hint) }),
    secret: kind === "secret",
    address
  })
  const schema: Schema.Schema<unknown> = Schema.make(schemas[kind].annotations(annotation).ast)
  return isOptional ? optional(schema) : schema
}

const Step = Schema.Struct({
  documents: Schema.Array(
    Schema.Struct({
      uri: Schema.NonEmptyString,
      title: Schema.String,
      content: Schema.String,
      format: Schema.optionalWith(Schema.Literal("markdown", "text"), { default: () => "markdown" as const }),
      revision: optional(Schema.String),
      labels: optional(Schema.Array(Schema.String))
    })
  ),
  unchanged: optional(Schema.Array(Schema.String)),
  removed: optional(Schema.Array(Schema.String)),
  next: Schema.optional(Schema.Unknown),
  cursor: Schema.optional(Schema.Unknown),
  complete: Schema.optionalWith(Schema.Boolean, { default: () => true })
})
const decodeStep = Schema.decodeUnknown(Step)

const failed = (message: string, retryable: boolean) =>
  new ReaderError({ code: "reader_failed", message, retryable })

const timedOut = () => failed("The reader took longer than ten minutes for one step.", true)

const makeFetch =
  (service: string, runtime: Runtime.Runtime<OutboundHttp>, signal: AbortSignal) =>
  async (url: string, given: Parameters<Parameters<HostReader["read"]>[0]["fetch"]>[1] = {}) => {
    const { body, headers, maxBytes, method } = given
    const result = await Runtime.runPromise(runtime)(
      request({
        service,
        url,
        acceptedStatuses: [304, 404, 410],
        ...(headers === undefined ? {} : { headers }),
        ...(maxBytes === undefined ? {} : { maxBytes }),
        ...(method === undefined ? {} : { method }),
        ...(body === undefined ? {} : { body })
      }).pipe(Effect.either),
      { signal }
    )
    if (result._tag === "Left") throw result.left
    const response: ReaderResponse = {
      url: result.right.url,
      status: result.right.status,
      headers: result.right.headers,
      text: () => new TextDecoder().decode(result.right.body),
      bytes: () => result.right.body
    }
    return response
  }

/** `name` is the reader's name in sources. */
export const hostReader = (
  name: string,
  { description, read, settings, title }: HostReader
): SourceReader => {
  const fields = Object.fromEntries(
    Object.entries(settings).map(([field, given]) => [field, fieldOf(given)] as const)
  )
  const service = localized(title).en
  return sourceReader({
    name,
    title: localized(title),
    description: localized(description),
    settings: Schema.Struct(fields),
    cursor: Schema.Unknown,
    position: Schema.Unknown,
    step: (given, { cursor, known, position }) =>
      Effect.flatMap(Effect.runtime<OutboundHttp>(), (runtime) =>
        Effect.tryPromise({
          try: (signal) =>
            read({
              settings: given,
              cursor,
              position,
              known,
              signal,
              fetch: makeFetch(service, runtime, signal)
            }),
          catch: (thrown) =>
            thrown instanceof ReaderError
              ? thrown
              : failed(isError(thrown) ? thrown.message : "The reader failed without saying why.", true)
        })
      ).pipe(
        Effect.timeoutFail({ duration: stepTimeout, onTimeout: timedOut }),
        Effect.flatMap((step) =>
          Effect.mapError(decodeStep(step), () =>
            failed("The reader returned something else than a step.", false)
          )
        ),
        Effect.map(({ complete, cursor: done = null, next, ...rest }) => ({
          ...rest,
          next: next === undefined ? { done, complete } : { more: next }
        })),
        Effect.withSpan("SourceReader.read", { attributes: { reader: name } })
      )
  })
}
