/** Files at the providers: where one is, what it holds, and new ones for messages to name. Errors are those of {@link Graph}. */
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { urlOf } from "../domain/Address.ts"
import { collect } from "../concurrency/Collect.ts"
import { WholeNumber } from "../domain/Page.ts"
import { exchange, fromTransport, GraphError, silence, unreadable } from "./Graph.ts"

const transferTimeout = Duration.seconds(10)
const transfer = Duration.seconds(30)

const Located = Schema.Struct({
  url: Schema.NonEmptyString,
  mime_type: Schema.optional(Schema.NullOr(Schema.String)),
  /** Bytes. */
  file_size: Schema.optional(Schema.NullOr(Schema.Union(Schema.NonNegativeInt, WholeNumber)))
})
type Located = typeof Located.Type
const decode = Schema.decodeUnknown(Located)

const tooLarge = () =>
  new GraphError({ reason: "Refused", message: "The file is too large.", retryable: false })

export interface NewFile {
  readonly field: string
  readonly name: string
  readonly mimeType: string
  readonly bytes: Uint8Array
}

/** Encoded here: a form that the client is to encode broke its connection. */
const encoded = (fields: Readonly<Record<string, string>>, { bytes, field, mimeType, name }: NewFile) => {
  const form = new FormData()
  for (const [key, value] of Object.entries(fields)) form.append(key, value)
  // A copy: a view of shared memory is no part of a form.
  form.append(field, new Blob([Uint8Array.from(bytes)], { type: mimeType }), name)
  const response = new Response(form)
  return Effect.map(
    Effect.promise(() => response.arrayBuffer()),
    (body) =>
      HttpClientRequest.bodyUint8Array(new Uint8Array(body), response.headers.get("content-type") ?? "")
  )
}

export class GraphFiles extends Context.Tag("channels/GraphFiles")<
  GraphFiles,
  {
    /** Where a file that came with a message is read. */
    readonly locate: (id: string, token: Redacted.Redacted) => Effect.Effect<Located, GraphError>
    /** The bytes of a file at the configured address; none for one that is kept elsewhere. */
    readonly read: (
      url: string,
      token: Redacted.Redacted,
      maxBytes: number
    ) => Effect.Effect<Option.Option<Uint8Array>, GraphError>
    /** POSTs a form with the file to `{base}/{path}`; the answer is the JSON that came with a 2xx. */
    readonly upload: (
      path: string,
      token: Redacted.Redacted,
      fields: Readonly<Record<string, string>>,
      file: NewFile
    ) => Effect.Effect<unknown, GraphError>
  }
>() {}

/** Null for what is no address. */
const originOf = (url: string) => urlOf(url)?.origin ?? null

/** `base` is the configured address. */
export const layerHttp = (base: string): Layer.Layer<GraphFiles, never, HttpClient.HttpClient> =>
  Layer.effect(
    GraphFiles,
    Effect.map(HttpClient.HttpClient, (http) => ({
      locate: (id, token) =>
        exchange(
          http,
          HttpClientRequest.get(`${base}/${encodeURIComponent(id)}`, { acceptJson: true }).pipe(
            HttpClientRequest.bearerToken(token)
          ),
          transferTimeout
        ).pipe(
          Effect.flatMap((answer) => Effect.mapError(decode(answer), unreadable)),
          Effect.withSpan("GraphFiles.locate")
        ),
      upload: (path, token, fields, file) =>
        Effect.flatMap(encoded(fields, file), (withForm) =>
          exchange(
            http,
            HttpClientRequest.post(`${base}/${path}`, { acceptJson: true }).pipe(
              HttpClientRequest.bearerToken(token),
              withForm
            ),
            transfer
          )
        ).pipe(Effect.withSpan("GraphFiles.upload")),
      read: (url, token, maxBytes) =>
        Effect.gen(function* () {
          if (originOf(url) !== originOf(base)) return Option.none<Uint8Array>()
          const request = HttpClientRequest.get(url).pipe(HttpClientRequest.bearerToken(token))
          const response = yield* Effect.mapError(http.execute(request), fromTransport)
          const { status } = response
          if (status !== 200) {
            const retryable = status >= 500 || status === 429
            return yield* new GraphError({
              reason: "Refused",
              message: `The provider answered with status ${status}.`,
              retryable
            })
          }
          return Option.some(
            yield* collect(Stream.mapError(response.stream, fromTransport), maxBytes, tooLarge)
          )
        }).pipe(
          Effect.timeoutFail({ duration: transfer, onTimeout: silence }),
          Effect.withSpan("GraphFiles.read")
        )
    }))
  )
