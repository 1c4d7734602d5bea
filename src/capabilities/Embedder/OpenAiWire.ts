/** OpenAI's `POST /embeddings` on the wire: requests, answers and failures. */
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import { MiB } from "../../domain/Bytes.ts"
import * as Json from "../../domain/Json.ts"
import type { Answered, StreamingPostError, StreamingPostService } from "../StreamingPost.ts"

export interface EmbeddingRequest {
  readonly model: string
  readonly input: ReadonlyArray<string>
  /** If omitted, the model decides. */
  readonly dimensions?: number
  /** Base64 takes a third of the bytes and of the time, if the server supports it. */
  readonly encoding_format: "float" | "base64"
}

/** The embedding of the text with this index in the request. */
export interface Embedding {
  readonly index: number
  readonly embedding: ArrayLike<number>
}

/**
 * A failure without the request, which contains the key and the texts. `broken`: the answer broke off or is not JSON,
 * and a retry may succeed. `unreadable`: it has another form. `status` is 0 if there was no readable answer.
 */
export type WireFailure =
  | {
      readonly kind: "status"
      readonly status: number
      readonly headers: Readonly<Record<string, string | undefined>>
      readonly now: number
    }
  | { readonly kind: "unreachable" | "broken" | "unreadable"; readonly status: 0 }

/** Enough for 8,192 dimensions as JSON numbers of the longest form. A longer answer is not read to its end. */
const maxAnswerBytesPerText = MiB / 4

const unreadable: WireFailure = { kind: "unreadable", status: 0 }
const broken: WireFailure = { kind: "broken", status: 0 }
const unreachable: WireFailure = { kind: "unreachable", status: 0 }

const isNumbers = (value: unknown): value is ReadonlyArray<number> =>
  Array.isArray(value) && value.every(Predicate.isNumber)

/** Little-endian float32 in base64, or plain numbers: servers ignore unknown parameters. */
const numbersOf = (value: unknown): ArrayLike<number> | null => {
  if (typeof value !== "string") return isNumbers(value) ? value : null
  const bytes = Buffer.from(value, "base64")
  const numbers = new Float32Array(Math.floor(bytes.length / Float32Array.BYTES_PER_ELEMENT))
  new Uint8Array(numbers.buffer).set(bytes.subarray(0, numbers.byteLength))
  return numbers
}

const embeddingOf = (value: unknown): Embedding | null => {
  if (!Predicate.isRecord(value)) return null
  const { index } = value
  const embedding = numbersOf(value["embedding"])
  return Predicate.isNumber(index) && embedding !== null ? { index, embedding } : null
}

/** Checked by hand: for thousands of numbers a schema takes longer than the search that needs them. */
const embeddingsOf = (text: string): Effect.Effect<ReadonlyArray<Embedding>, WireFailure> => {
  const parsed = Json.parsePiece(text)
  if (Either.isLeft(parsed)) return Effect.fail(broken)
  const body: unknown = parsed.right
  const data = Predicate.isRecord(body) ? body["data"] : undefined
  if (!Array.isArray(data)) return Effect.fail(unreadable)
  const embeddings: Array<Embedding> = []
  for (const item of data) {
    const embedding = embeddingOf(item)
    if (embedding === null) return Effect.fail(unreadable)
    embeddings.push(embedding)
  }
  return Effect.succeed(embeddings)
}

const failed = ({ reason }: StreamingPostError): WireFailure =>
  reason === "Invalid" ? unreadable : unreachable

/** The whole answer, up to `maxBytes`. */
const textOf = ({ read }: Answered, maxBytes: number): Effect.Effect<string, WireFailure> => {
  const chunks: Array<Uint8Array> = []
  let size = 0
  const next: Effect.Effect<string, WireFailure> = Effect.matchEffect(read, {
    onFailure: () => Effect.fail(broken),
    onSuccess: (received) => {
      if (received === null) return Effect.sync(() => Buffer.concat(chunks).toString())
      for (const chunk of received) {
        chunks.push(chunk)
        size += chunk.length
      }
      return size > maxBytes ? Effect.fail(unreadable) : next
    }
  })
  return next
}

/**
 * Calls the provider at `baseUrl`, such as `https://api.openai.com/v1`. `timeout` applies to each part of the answer.
 */
export const makeRequestEmbeddings = (
  exchange: StreamingPostService,
  baseUrl: string,
  apiKey: Redacted.Redacted,
  timeout: Duration.Duration
) => {
  const url = `${baseUrl.replace(/\/+$/, "")}/embeddings`
  return (asked: EmbeddingRequest): Effect.Effect<ReadonlyArray<Embedding>, WireFailure> =>
    exchange
      .post({
        url,
        headers: { authorization: `Bearer ${Redacted.value(apiKey)}`, accept: "application/json" },
        body: JSON.stringify(asked),
        first: timeout,
        next: timeout
      })
      .pipe(
        Effect.mapError(failed),
        Effect.flatMap((answer) =>
          answer.status >= 200 && answer.status < 300
            ? Effect.flatMap(textOf(answer, asked.input.length * maxAnswerBytesPerText), embeddingsOf)
            : Effect.flatMap(Clock.currentTimeMillis, (now) =>
                Effect.fail<WireFailure>({
                  kind: "status",
                  status: answer.status,
                  headers: answer.headers,
                  now
                })
              )
        ),
        Effect.scoped
      )
}
