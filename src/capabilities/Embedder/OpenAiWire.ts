/** OpenAI's `POST /embeddings` on the wire: what is asked, and what of the answer and of failures goes on. */
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import type { Answered, ExchangeError, ExchangeService } from "../Exchange.ts"

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
      readonly headers: Readonly<Record<string, string | undefined>>
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

const failed = ({ reason }: ExchangeError): WireFailure => (reason === "Invalid" ? unreadable : unreachable)

/** The whole answer, which cannot be longer than what was asked for. */
const textOf = ({ read }: Answered): Effect.Effect<string, WireFailure> => {
  const chunks: Array<Uint8Array> = []
  const next: Effect.Effect<string, WireFailure> = Effect.matchEffect(read, {
    onFailure: () => Effect.fail(broken),
    onSuccess: (come) => {
      if (come === null) return Effect.sync(() => Buffer.concat(chunks).toString())
      for (const chunk of come) chunks.push(chunk)
      return next
    }
  })
  return next
}

/** Calls the provider at `baseUrl`, such as `https://api.openai.com/v1`; `timeout` is for each part of the answer. */
export const makeAsk = (
  exchange: ExchangeService,
  baseUrl: string,
  apiKey: Redacted.Redacted,
  timeout: Duration.Duration
) => {
  const url = `${baseUrl.replace(/\/+$/, "")}/embeddings`
  return (asked: Asked): Effect.Effect<ReadonlyArray<Embedding>, WireFailure> =>
    Effect.catchTag(
      exchange.post(
        {
          url,
          headers: { authorization: `Bearer ${Redacted.value(apiKey)}`, accept: "application/json" },
          body: JSON.stringify({ ...asked, encoding_format: "float" }),
          first: timeout,
          next: timeout
        },
        (answer) =>
          answer.status >= 200 && answer.status < 300
            ? Effect.flatMap(textOf(answer), embeddingsOf)
            : Effect.flatMap(Clock.currentTimeMillis, (now) =>
                Effect.fail<WireFailure>({
                  kind: "status",
                  status: answer.status,
                  headers: answer.headers,
                  now
                })
              )
      ),
      "ExchangeError",
      (error) => Effect.fail(failed(error))
    )
}
