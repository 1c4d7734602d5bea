/**
 * Adds vectors to live chunks that have none. Each batch is stored before the next ones begin, so that a stopped job
 * can be resumed. Vectors are made for the target profile and, until the agent has moved to it, for the profile that it
 * answers with.
 */
import * as Arr from "effect/Array"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import {
  Embedder,
  type EmbedderError,
  embedderOf,
  type EmbedderService
} from "../../capabilities/Embedder.ts"
import { JobFailure, JobQueue, type QueueJob } from "../../capabilities/JobQueue.ts"
import { SourceId, TenantId } from "../../domain/Ids.ts"
import { embeddingText } from "../../search/Packer.ts"
import { EmbeddingProfileStore } from "../../store/knowledge/EmbeddingProfiles.ts"
import { EmbeddingStore, type UnembeddedChunk } from "../../store/knowledge/Embeddings.ts"

const Payload = Schema.Struct({ tenantId: TenantId, sourceId: SourceId })
type SourceRef = typeof Payload.Type

/** Maximum concurrent batches of one source. */
const maxConcurrentBatches = 4
/** Pause before a job with partial progress continues, when the provider names no pause. */
const partialRetryDelay = Duration.seconds(2)

const embeddedChunks = Metric.counter("spoke_embedded_chunks_total", {
  description: "Chunks that were given a vector",
  incremental: true
})

export class Embed extends Effect.Service<Embed>()("usecases/knowledge/Embed", {
  effect: Effect.gen(function* () {
    const embeddings = yield* EmbeddingStore
    embeddedChunks.unsafeUpdate(0, [])
    const profiles = yield* EmbeddingProfileStore
    const queue = yield* JobQueue
    const current = yield* Embedder
    const embedders = yield* embedderOf

    const embedBatch = Effect.fn("Embed.batch")(function* (
      { embedAll, profile }: EmbedderService,
      { tenantId }: SourceRef,
      chunks: Arr.NonEmptyReadonlyArray<UnembeddedChunk>
    ) {
      const vectors = yield* embedAll(chunks.map(embeddingText))
      yield* embeddings.addVectors(
        { tenantId, agentId: chunks[0].agentId },
        profile,
        vectors.flatMap((vector, place) => {
          const chunk = chunks[place]
          return chunk === undefined ? [] : [{ id: chunk.id, vector }]
        })
      )
      yield* Metric.incrementBy(embeddedChunks, chunks.length)
    })

    /** Embeds the batches of `chunks`. A failed batch does not keep the others from being stored. */
    const embedTogether = (
      embedder: EmbedderService,
      place: SourceRef,
      chunks: ReadonlyArray<UnembeddedChunk>,
      stored: Ref.Ref<number>
    ) =>
      Effect.gen(function* () {
        const ends = yield* Effect.forEach(
          Arr.chunksOf(chunks, embedder.maxBatch).filter(Arr.isNonEmptyReadonlyArray),
          (batch) =>
            embedBatch(embedder, place, batch).pipe(
              Effect.zipRight(Ref.update(stored, (count) => count + 1)),
              Effect.either
            ),
          { concurrency: maxConcurrentBatches }
        )
        yield* Effect.all(ends, { discard: true })
      })

    /** Adds every missing vector of the source. `stored` counts batches. */
    const complete = (embedder: EmbedderService, place: SourceRef, stored: Ref.Ref<number>) =>
      embeddings
        .chunksWithoutVector(place, place.sourceId, embedder, embedder.maxBatch * maxConcurrentBatches)
        .pipe(
          Effect.tap((chunks) => embedTogether(embedder, place, chunks, stored)),
          Effect.repeat({ while: (chunks) => chunks.length > 0 }),
          Effect.asVoid
        )

    /**
     * After partial progress the rest goes to a new job, so that a provider that often requests pauses does not use up
     * the attempts of a large source.
     */
    const stop = (place: SourceRef, profile: string, error: EmbedderError, stored: number) =>
      Effect.gen(function* () {
        const { message, retryable, retryAfter } = error
        yield* profiles.noteFailure(place, place.sourceId, profile, message)
        if (!retryable || stored === 0) {
          return yield* new JobFailure({
            message,
            fatal: !retryable,
            ...(retryAfter === undefined ? {} : { retryAfter })
          })
        }
        yield* queue
          .enqueue("embedding", place, { serialKey: place.sourceId, delay: retryAfter ?? partialRetryDelay })
          .pipe(Effect.mapError(() => new JobFailure({ message, fatal: false })))
      })

    /** True when every chunk of the source has a vector of `embedder`'s profile. */
    const build = (embedder: EmbedderService, place: SourceRef) =>
      Effect.gen(function* () {
        const stored = yield* Ref.make(0)
        return yield* complete(embedder, place, stored).pipe(
          Effect.as(true),
          Effect.catchTag("EmbedderError", (error) =>
            Effect.flatMap(Ref.get(stored), (count) =>
              Effect.as(stop(place, embedder.profile, error, count), false)
            )
          )
        )
      })

    /**
     * Adds vectors of the profile that still answers, so that new chunks of an agent that has not moved are found by
     * meaning. A failure is logged: those chunks are then found by words.
     */
    const keepUp = (active: string, place: SourceRef) =>
      Effect.gen(function* () {
        const embedder = yield* embedders(active)
        if (Option.isNone(embedder)) return
        const stored = yield* Ref.make(0)
        yield* complete(embedder.value, place, stored).pipe(
          Effect.catchTag("EmbedderError", ({ message }) =>
            Effect.logWarning("New chunks have no vector of the profile that still answers", message)
          )
        )
      })

    /** Handler of queue `embedding`. Resumes where an earlier attempt stopped. */
    const process = Effect.fn("Embed.process")(function* (job: QueueJob) {
      const place = yield* Effect.orDie(Schema.decodeUnknown(Payload)(job.payload))
      const { sourceId, tenantId } = place
      const found = yield* profiles.place(place, sourceId)
      if (Option.isNone(found)) return
      const { agentId, active, target } = found.value
      // Another process was started with another model. This one uses that model if it can, else its own.
      const wanted = Option.getOrElse(yield* embedders(target ?? current.profile), () => current)
      const built = yield* build(wanted, place)
      if (active !== null && active !== wanted.profile) yield* keepUp(active, place)
      if (!built) return
      yield* profiles.clearFailure(place, sourceId)
      if (wanted.profile === target) yield* profiles.move({ tenantId, agentId }, wanted)
    })

    return { process } as const
  })
}) {}
