/**
 * The embedding model that ships with the package: Universal Sentence Encoder lite, English, 512 dimensions, in a thread
 * of its own, for a text takes up to 0.1 s of CPU.
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { builtInEmbeddingProfile } from "../../domain/knowledge/Source.ts"
import { Embedder, EmbedderError } from "../Embedder.ts"
import { makeThread } from "./EmbeddingThread.ts"
import { type Priority, makePriorityQueue } from "./PriorityQueue.ts"
import { toUnit } from "./UnitVector.ts"

export interface OfflineOptions {
  /** The built `workers/embed.ts`. */
  readonly script: URL
  /** An unused thread ends after this long; ten minutes by default. */
  readonly idleTimeout?: Duration.DurationInput
  /** For two texts, the start of the thread included; one minute by default. */
  readonly timeout?: Duration.DurationInput
}

const dimensions = 512
/** Names the model beside its vectors. */
export const profile = builtInEmbeddingProfile
/** The model reads 128 tokens, about 500 characters, and its tokenizer takes quadratic time. */
const readable = 2_000
/** Texts between which a query may overtake; more at a time save nothing. */
const slice = 2
const maxBatch = 32
/** Callers in one line. */
const waiting = 1_024

const busy = () =>
  new EmbedderError({ message: "Too many texts wait for the offline embedding model.", retryable: true })
const wrong = () =>
  new EmbedderError({ message: "The offline embedding model gave no vector.", retryable: false })

/** The tokenizer finds no token in nothing at all, but one in a space. */
const toReadable = (text: string): string => (text === "" ? " " : text.slice(0, readable).toWellFormed())

const slicesOf = (texts: ReadonlyArray<string>): ReadonlyArray<ReadonlyArray<string>> =>
  Array.from({ length: Math.ceil(texts.length / slice) }, (_, place) =>
    texts.slice(place * slice, (place + 1) * slice)
  )

const toVectors = (
  all: Float32Array,
  count: number
): Effect.Effect<ReadonlyArray<Float32Array>, EmbedderError> => {
  const vectors = Array.from({ length: count }, (_, place) =>
    toUnit(all.subarray(place * dimensions, (place + 1) * dimensions))
  ).filter((vector) => vector !== null)
  return vectors.length === count && all.length === count * dimensions
    ? Effect.succeed(vectors)
    : Effect.failSync(wrong)
}

const make = ({ script, idleTimeout = "10 minutes", timeout = "1 minute" }: OfflineOptions) =>
  Effect.gen(function* () {
    const exchange = yield* makeThread({ script, idleTimeout, timeout })
    const inTurn = makePriorityQueue(waiting, busy)

    const embedSlice = (priority: Priority, texts: ReadonlyArray<string>) =>
      inTurn(priority, exchange(texts.map(toReadable))).pipe(
        // A thread that broke is replaced; the text that breaks it twice is its caller's affair.
        Effect.retry({ times: 1, while: ({ retryable }) => retryable }),
        Effect.flatMap((all) => toVectors(all, texts.length))
      )

    return Embedder.of({
      profile,
      dimensions,
      englishOnly: true,
      lexicalWeight: 0.7,
      minScore: 0.25,
      maxBatch,
      queryTimeout: "2 seconds",
      embedQuery: (text) =>
        embedSlice("urgent", [text]).pipe(
          Effect.flatMap(([vector]) =>
            vector === undefined ? Effect.failSync(wrong) : Effect.succeed(vector)
          ),
          Effect.withSpan("Embedder.embedQuery")
        ),
      embedAll: (texts) =>
        Effect.forEach(slicesOf(texts), (some) => embedSlice("background", some)).pipe(
          Effect.map((vectors) => vectors.flat()),
          Effect.withSpan("Embedder.embedAll", { attributes: { texts: texts.length } })
        )
    })
  })

/** Nothing is loaded before the first text. Queries overtake documents. */
export const layerUniversalSentenceEncoder = (options: OfflineOptions) =>
  Layer.scoped(Embedder, make(options))
