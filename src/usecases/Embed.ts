/** Adds vectors to live chunks that have none: batch by batch, each stored before the next begins (guarantee G5). */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Embedder, type EmbedderError } from "../capabilities/Embedder.ts"
import { JobFailure, type QueueJob } from "../capabilities/JobQueue.ts"
import { SourceId } from "../domain/Ids.ts"
import { embeddingText } from "../search/Packer.ts"
import { EmbeddingStore, type UnembeddedChunk } from "../store/Embeddings.ts"

const Payload = Schema.Struct({ sourceId: SourceId })

const toFailure = ({ message, retryable, retryAfter }: EmbedderError) =>
  new JobFailure({ message, fatal: !retryable, ...(retryAfter === undefined ? {} : { retryAfter }) })

export class Embed extends Effect.Service<Embed>()("usecases/Embed", {
  effect: Effect.gen(function* () {
    const embeddings = yield* EmbeddingStore
    const embedder = yield* Embedder

    const embedBatch = Effect.fn("Embed.batch")(function* (chunks: ReadonlyArray<UnembeddedChunk>) {
      const [first] = chunks
      if (first === undefined) return
      const vectors = yield* embedder.embedAll(chunks.map(embeddingText)).pipe(Effect.mapError(toFailure))
      yield* embeddings.addVectors(
        first.agentId,
        embedder.profile,
        vectors.flatMap((vector, place) => {
          const chunk = chunks[place]
          return chunk === undefined ? [] : [{ id: chunk.id, vector }]
        })
      )
    })

    /** Handler of queue `embedding`: resumes where an earlier attempt stopped. */
    const process = Effect.fn("Embed.process")(function* (job: QueueJob) {
      const { sourceId } = yield* Effect.orDie(Schema.decodeUnknown(Payload)(job.payload))
      const next = embeddings.unembedded(sourceId, embedder.profile, embedder.maxBatch)
      yield* next.pipe(Effect.tap(embedBatch), Effect.repeat({ while: (chunks) => chunks.length > 0 }))
    })

    return { process } as const
  })
}) {}
