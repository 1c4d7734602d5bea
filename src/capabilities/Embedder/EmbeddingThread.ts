/** The thread of the offline model. */
import { Worker } from "node:worker_threads"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { isolated, makeThread } from "../../concurrency/Thread.ts"
import { EmbedderError } from "../Embedder.ts"
import { Answer, type Job } from "./Messages.ts"

export interface EmbeddingThreadOptions {
  /** The built `workers/embed.ts`. */
  readonly script: URL
  /** An unused thread ends after this time, which frees about 185 MB. */
  readonly idleTimeout: Duration.DurationInput
  /** Time-out of one exchange, including the start of the thread. */
  readonly timeout: Duration.DurationInput
}

const heapMb = 512

const threadStopped = () =>
  new EmbedderError({ message: "The offline embedding model stopped.", retryable: true })
const tooSlow = () =>
  new EmbedderError({ message: "The offline embedding model did not answer in time.", retryable: true })
const unreadable = () =>
  new EmbedderError({ message: "The offline embedding model could not read the text.", retryable: false })

const start = (script: URL): Worker =>
  new Worker(script, {
    ...isolated,
    resourceLimits: { maxOldGenerationSizeMb: heapMb }
  })

const isAnswer = Schema.is(Answer)

/**
 * Exchanges with the thread, one at a time. Returns the concatenated vectors of all texts. The thread outlives a caller
 * that is interrupted, because it takes long to load the model.
 */
export const makeEmbeddingThread = ({ idleTimeout, script, timeout }: EmbeddingThreadOptions) =>
  Effect.gen(function* () {
    const thread = yield* makeThread({ start: () => start(script), idleTimeout, outlivesCaller: true })
    let lastId = 0

    return (texts: ReadonlyArray<string>): Effect.Effect<Float32Array, EmbedderError> =>
      Effect.suspend(() => {
        const job: Job = { id: ++lastId, texts }
        // The answer to an interrupted request may still arrive.
        const ignores = (message: unknown) => isAnswer(message) && message.id !== job.id
        return thread.use((ask) =>
          ask(job, { ignores }).pipe(
            Effect.filterOrFail(isAnswer, threadStopped),
            Effect.timeoutFail({ duration: timeout, onTimeout: tooSlow })
          )
        )
      }).pipe(
        Effect.catchTag("ThreadEnded", () => Effect.failSync(threadStopped)),
        Effect.flatMap((answer) =>
          answer._tag === "Embedded" ? Effect.succeed(answer.vectors) : Effect.failSync(unreadable)
        )
      )
  })
