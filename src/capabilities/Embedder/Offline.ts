/**
 * The built-in embedding model: Universal Sentence Encoder lite, English, 512 dimensions. It runs in its own thread,
 * because a text takes up to 0.1 s of CPU.
 */
import * as Arr from "effect/Array"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { builtInEmbeddingProfile } from "../../domain/knowledge/Source.ts"
import { Embedder, EmbedderError } from "../Embedder.ts"
import { makeEmbeddingThread } from "./EmbeddingThread.ts"
import { type Priority, makePriorityQueue } from "./PriorityQueue.ts"
import { toUnit } from "./UnitVector.ts"

export interface OfflineOptions {
  /** The built `workers/embed.ts`. */
  readonly script: URL
  /** An unused thread ends after this time; default: ten minutes. */
  readonly idleTimeout?: Duration.DurationInput
  /** Time-out for two texts, including the start of the thread; default: one minute. */
  readonly timeout?: Duration.DurationInput
}

const dimensions = 512
/** Profile that is stored with its vectors. */
export const profile = builtInEmbeddingProfile
/**
 * Maximum number of characters that are tokenized. The model reads 128 tokens, about 500 characters, and its tokenizer
 * takes quadratic time.
 */
const maxTextLength = 2_000
/** The model is weak, and weaker for long queries. A query of six terms has the middle weight (docs/retrieval.md). */
const lexicalWeight = (terms: number): number => Math.min(0.8, Math.max(0.6, 0.7 + (terms - 6) * 0.02))
/** Number of texts of one request. A waiting query is next after it. Larger requests are not faster. */
const textsPerSlice = 2
const maxBatch = 32
/** Maximum number of waiting callers per priority. */
const maxWaitingCallers = 1_024

const tooManyTexts = () =>
  new EmbedderError({ message: "Too many texts wait for the offline embedding model.", retryable: true })
const noVector = () =>
  new EmbedderError({ message: "The offline embedding model returned no vector.", retryable: false })

/** The tokenizer finds no token in an empty text, but one in a space. */
const toInput = (text: string): string => (text === "" ? " " : text.slice(0, maxTextLength).toWellFormed())

const toVectors = (
  all: Float32Array,
  count: number
): Effect.Effect<ReadonlyArray<Float32Array>, EmbedderError> => {
  const vectors = Array.from({ length: count }, (_, index) =>
    toUnit(all.subarray(index * dimensions, (index + 1) * dimensions))
  ).filter((vector) => vector !== null)
  return vectors.length === count && all.length === count * dimensions
    ? Effect.succeed(vectors)
    : Effect.failSync(noVector)
}

const make = ({ script, idleTimeout = "10 minutes", timeout = "1 minute" }: OfflineOptions) =>
  Effect.gen(function* () {
    const exchange = yield* makeEmbeddingThread({ script, idleTimeout, timeout })
    const runInQueue = makePriorityQueue(maxWaitingCallers, tooManyTexts)

    const embedSlice = (priority: Priority, texts: ReadonlyArray<string>) =>
      runInQueue(priority, exchange(texts.map(toInput))).pipe(
        // The request is repeated once on a new thread. A text that fails twice is reported to its caller.
        Effect.retry({ times: 1, while: ({ retryable }) => retryable }),
        Effect.flatMap((all) => toVectors(all, texts.length))
      )

    return Embedder.of({
      profile,
      dimensions,
      englishOnly: true,
      lexicalWeight,
      minScore: 0.2,
      maxBatch,
      queryTimeout: "2 seconds",
      prepare: Effect.asVoid(embedSlice("background", [" "])),
      embedQuery: (text) =>
        embedSlice("urgent", [text]).pipe(
          Effect.flatMap(([vector]) =>
            vector === undefined ? Effect.failSync(noVector) : Effect.succeed(vector)
          ),
          Effect.withSpan("Embedder.embedQuery")
        ),
      embedAll: (texts) =>
        Effect.forEach(Arr.chunksOf(texts, textsPerSlice), (slice) => embedSlice("background", slice)).pipe(
          Effect.map((vectors) => vectors.flat()),
          Effect.withSpan("Embedder.embedAll", { attributes: { texts: texts.length } })
        )
    })
  })

/** Nothing is loaded before the first text, or `prepare`. Queries have priority over documents. */
export const layerUniversalSentenceEncoder = (options: OfflineOptions) =>
  Layer.scoped(Embedder, make(options))
