/** OpenAI's `POST /embeddings` on the wire: what is asked, and what of the answer and of failures goes on. */
import * as Headers from "@effect/platform/Headers"
import type * as HttpClient from "@effect/platform/HttpClient"
import type * as HttpClientError from "@effect/platform/HttpClientError"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type * as Redacted from "effect/Redacted"

export interface Asked {
  readonly model: string
  readonly input: ReadonlyArray<string>
  /** Left to the model when left out. */
  readonly dimensions?: number
}

/** The embedding of the text with this place in the request. */
export interface Embedding {
  readonly index: number
  readonly embedding: ReadonlyArray<number>
}

/** A failure without the request, which holds the key and the texts; `status` is 0 where there was no answer. */
export type WireFailure =
  | {
      readonly kind: "status"
      readonly status: number
      readonly headers: Headers.Headers
      readonly now: number
    }
  | { readonly kind: "unreachable" | "broken" | "unreadable"; readonly status: 0 }

const unreadable: WireFailure = { kind: "unreadable", status: 0 }
/** Repeated, it comes whole. */
const broken: WireFailure = { kind: "broken", status: 0 }
const unreachable: WireFailure = { kind: "unreachable", status: 0 }

const isNumbers = (value: unknown): value is ReadonlyArray<number> =>
  Array.isArray(value) && value.every(Predicate.isNumber)

const isEmbedding = (value: unknown): value is Embedding =>
  Predicate.isRecord(value) && Predicate.isNumber(value["index"]) && isNumbers(value["embedding"])

/** Looked at by hand: for thousands of numbers a schema takes longer than the search that needs them. */
const embeddingsOf = (text: string): Effect.Effect<ReadonlyArray<Embedding>, WireFailure> =>
  Effect.flatMap(
    Effect.try({ try: (): unknown => JSON.parse(text), catch: () => broken }),
    (body): Effect.Effect<ReadonlyArray<Embedding>, WireFailure> => {
      const data = Predicate.isRecord(body) ? body["data"] : undefined
      return Array.isArray(data) && data.every(isEmbedding) ? Effect.succeed(data) : Effect.fail(unreadable)
    }
  )

const failed = (error: HttpClientError.HttpClientError): WireFailure =>
  error._tag === "ResponseError" ? broken : error.reason === "Transport" ? unreachable : unreadable

/** Calls the provider at `baseUrl`, such as `https://api.openai.com/v1`. */
export const makeAsk = (http: HttpClient.HttpClient, baseUrl: string, apiKey: Redacted.Redacted) => {
  const request = HttpClientRequest.post(`${baseUrl.replace(/\/+$/, "")}/embeddings`).pipe(
    HttpClientRequest.bearerToken(apiKey),
    HttpClientRequest.acceptJson
  )
  return (asked: Asked): Effect.Effect<ReadonlyArray<Embedding>, WireFailure> =>
    http
      .execute(
        HttpClientRequest.bodyText(
          request,
          JSON.stringify({ ...asked, encoding_format: "float" }),
          "application/json"
        )
      )
      .pipe(
        Effect.flatMap((response) =>
          response.status >= 200 && response.status < 300
            ? Effect.flatMap(Effect.mapError(response.text, failed), embeddingsOf)
            : Effect.flatMap(Clock.currentTimeMillis, (now) =>
                Effect.fail<WireFailure>({
                  kind: "status",
                  status: response.status,
                  headers: response.headers,
                  now
                })
              )
        ),
        Effect.mapError((error) => ("kind" in error ? error : failed(error)))
      )
}
