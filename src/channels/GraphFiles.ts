/** Files at the providers: locate, download and upload. Errors are those of {@link Graph}. */
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Option from "effect/Option"
import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import type { ChannelError } from "../capabilities/ChannelAdapters.ts"
import { urlOf } from "../domain/Address.ts"
import { WholeNumber } from "../domain/Page.ts"
import { download, requestJson, type NewFile, unreadableAnswer, multipartBody } from "./ProviderRequest.ts"
import { toChannelError } from "./Graph.ts"

const locateTimeout = Duration.seconds(10)
const transferTimeout = Duration.seconds(30)

const Located = Schema.Struct({
  url: Schema.NonEmptyString,
  mime_type: Schema.optional(Schema.NullOr(Schema.String)),
  /** Bytes. */
  file_size: Schema.optional(Schema.NullOr(Schema.Union(Schema.NonNegativeInt, WholeNumber)))
})
type Located = typeof Located.Type
const decode = Schema.decodeUnknown(Located)

export class GraphFiles extends Context.Tag("channels/GraphFiles")<
  GraphFiles,
  {
    /** The address of a file in a message. */
    readonly locate: (id: string, token: Redacted.Redacted) => Effect.Effect<Located, ChannelError>
    /** The bytes of a file at the configured address; none for a file elsewhere. */
    readonly read: (
      url: string,
      token: Redacted.Redacted,
      maxBytes: number
    ) => Effect.Effect<Option.Option<Uint8Array>, ChannelError>
    /** POSTs a form with the file to `{base}/{path}`. Returns the JSON of a 2xx answer. */
    readonly upload: (
      path: string,
      token: Redacted.Redacted,
      fields: Readonly<Record<string, string>>,
      file: NewFile
    ) => Effect.Effect<unknown, ChannelError>
  }
>() {}

/** Null for an invalid address. */
const originOf = (url: string) => urlOf(url)?.origin ?? null

/** `base` is the configured address. */
export const layerHttp = (base: string): Layer.Layer<GraphFiles, never, HttpClient.HttpClient> =>
  Layer.effect(
    GraphFiles,
    Effect.map(HttpClient.HttpClient, (http) => ({
      locate: (id, token) =>
        requestJson(
          http,
          HttpClientRequest.get(`${base}/${encodeURIComponent(id)}`, { acceptJson: true }).pipe(
            HttpClientRequest.bearerToken(token)
          ),
          locateTimeout,
          toChannelError
        ).pipe(
          Effect.flatMap((answer) => Effect.mapError(decode(answer), unreadableAnswer)),
          Effect.withSpan("GraphFiles.locate")
        ),
      upload: (path, token, fields, file) =>
        Effect.flatMap(multipartBody(fields, file), (withBody) =>
          requestJson(
            http,
            HttpClientRequest.post(`${base}/${path}`, { acceptJson: true }).pipe(
              HttpClientRequest.bearerToken(token),
              withBody
            ),
            transferTimeout,
            toChannelError
          )
        ).pipe(Effect.withSpan("GraphFiles.upload")),
      read: (url, token, maxBytes) =>
        originOf(url) === originOf(base)
          ? download(
              http,
              HttpClientRequest.get(url).pipe(HttpClientRequest.bearerToken(token)),
              maxBytes,
              transferTimeout
            ).pipe(Effect.asSome, Effect.withSpan("GraphFiles.read"))
          : Effect.succeedNone
    }))
  )
