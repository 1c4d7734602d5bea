/**
 * Adds vectors to live chunks that have none. Each batch is stored before the next ones begin, so that a stopped job
 * can be resumed. Vectors are made for the target profile and, until the agent has moved to it, for the profile that it
 * answers with. A text that the provider refuses is shortened, and does not keep others from getting a vector.
 */
import * as Arr from "effect/Array"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import {
  Embedder,
  type EmbedderError,
  embedderOf,
  type EmbedderService
} from "../../capabilities/Embedder.ts"
import { JobFailure, JobQueue, type QueueJob } from "../../capabilities/JobQueue.ts"
import { type ChunkId, SourceId, TenantId } from "../../domain/Ids.ts"
import { embeddingText } from "../../search/Packer.ts"
import { EmbeddingProfileStore } from "../../store/knowledge/EmbeddingProfiles.ts"
import { EmbeddingStore, type UnembeddedChunk } from "../../store/knowledge/Embeddings.ts"

const Payload = Schema.Struct({ tenantId: TenantId, sourceId: SourceId })
type SourceRef = typeof Payload.Type
type Batch = Arr.NonEmptyReadonlyArray<UnembeddedChunk>

/** Maximum concurrent batches of one source. */
const maxConcurrentBatches = 4
/** Pause before a job with partial progress continues, when the provider names no pause. */
const partialRetryDelay = Duration.seconds(2)

/** A refused text is not shortened to less than this, in UTF-16 units. */
const minTextLength = 200
/** After this many refusals in a row, a plain text is sent, to tell refused texts from wrong settings. */
const maxRefusals = 32
const plainText = "a"
/** Maximum refused chunks of a source in one run. The run ends after them. */
const maxRefusedChunks = 256

const brokenJob = "An unexpected error stopped the job."
const workerStopped = "The worker stopped before the vectors were made, each time it was tried."

/** What one run of a job has done so far. */
interface Run {
  /** Number of batches whose vectors are stored. */
  stored: number
  /** Number of refusals since the provider last accepted a batch. */
  refusals: number
  /** True once the provider has accepted a plain text after many refusals: the settings are right. */
  acceptsPlainText: boolean
  /** Chunks that the provider refuses however short, and its last error about one. */
  readonly refused: Set<ChunkId>
  error: EmbedderError | null
  /** Parts of refused batches are sent one at a time, so that the refusals in a row are those of one text. */
  readonly oneAtATime: Effect.Semaphore
}

const newRun = Effect.map(Effect.makeSemaphore(1), (oneAtATime): Run => ({
  stored: 0,
  refusals: 0,
  acceptsPlainText: false,
  refused: new Set(),
  error: null,
  oneAtATime
}))

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

    /** Texts are cut to `length`. */
    const embedBatch = Effect.fn("Embed.batch")(function* (
      { embedAll, profile }: EmbedderService,
      { tenantId }: SourceRef,
      chunks: Batch,
      length: number
    ) {
      const vectors = yield* embedAll(chunks.map((chunk) => embeddingText(chunk).slice(0, length)))
      yield* embeddings.addVectors(
        { tenantId, agentId: chunks[0].agentId },
        profile,
        vectors.flatMap((vector, index) => {
          const chunk = chunks[index]
          return chunk === undefined ? [] : [{ id: chunk.id, vector }]
        })
      )
      yield* Metric.incrementBy(embeddedChunks, chunks.length)
    })

    /** Embeds a batch. `whenRefused` continues when the provider refuses one of its texts. */
    const embedUnlessRefused = (
      embedder: EmbedderService,
      source: SourceRef,
      chunks: Batch,
      run: Run,
      length: number,
      whenRefused: (error: EmbedderError) => Effect.Effect<void, EmbedderError>
    ) =>
      embedBatch(embedder, source, chunks, length).pipe(
        Effect.tap(() => {
          run.stored++
          run.refusals = 0
        }),
        Effect.catchIf(
          ({ dependsOnInput }) => dependsOnInput === true,
          (error) => {
            if (run.acceptsPlainText || ++run.refusals < maxRefusals) return whenRefused(error)
            const tryPlainText = Effect.tap(embedder.embedAll([plainText]), () => {
              run.acceptsPlainText = true
            })
            return Effect.zipRight(tryPlainText, whenRefused(error))
          }
        )
      )

    /** Sends what the provider refused again: several texts in halves, a single one at half its length. */
    const embedParts = (
      embedder: EmbedderService,
      source: SourceRef,
      chunks: Batch,
      run: Run,
      length: number,
      error: EmbedderError
    ): Effect.Effect<void, EmbedderError> => {
      const again = (part: Batch, maxLength: number) =>
        embedUnlessRefused(embedder, source, part, run, maxLength, (next) =>
          embedParts(embedder, source, part, run, maxLength, next)
        )
      if (chunks.length > 1) {
        const halves = Arr.chunksOf(chunks, Math.ceil(chunks.length / 2))
        return Effect.forEach(halves, (half) => again(half, length), { discard: true })
      }
      const shorter = Math.floor(Math.min(length, embeddingText(chunks[0]).length) / 2)
      if (shorter >= minTextLength) return again(chunks, shorter)
      run.error = error
      run.refused.add(chunks[0].id)
      return Effect.void
    }

    const embedAccepted = (embedder: EmbedderService, source: SourceRef, chunks: Batch, run: Run) => {
      const noLimit = Number.POSITIVE_INFINITY
      return embedUnlessRefused(embedder, source, chunks, run, noLimit, (error) =>
        run.oneAtATime.withPermits(1)(embedParts(embedder, source, chunks, run, noLimit, error))
      )
    }

    /** Embeds the batches of `chunks`. A failed batch does not keep the others from being stored. */
    const embedTogether = (
      embedder: EmbedderService,
      source: SourceRef,
      chunks: ReadonlyArray<UnembeddedChunk>,
      run: Run
    ) =>
      Effect.gen(function* () {
        const results = yield* Effect.forEach(
          Arr.chunksOf(chunks, embedder.maxBatch).filter(Arr.isNonEmptyReadonlyArray),
          (batch) => Effect.either(embedAccepted(embedder, source, batch, run)),
          { concurrency: maxConcurrentBatches }
        )
        yield* Effect.all(results, { discard: true })
      })

    /** Adds every missing vector of the source. Fails in the end when the provider refused some of the texts. */
    const embedMissing = (embedder: EmbedderService, source: SourceRef, run: Run) =>
      Effect.suspend(() =>
        embeddings.chunksWithoutVector(
          source,
          source.sourceId,
          embedder,
          embedder.maxBatch * maxConcurrentBatches + run.refused.size
        )
      ).pipe(
        Effect.map((chunks) => chunks.filter(({ id }) => !run.refused.has(id))),
        Effect.tap((chunks) => embedTogether(embedder, source, chunks, run)),
        Effect.repeat({ while: (chunks) => chunks.length > 0 && run.refused.size <= maxRefusedChunks }),
        Effect.flatMap(() => (run.error === null ? Effect.void : Effect.fail(run.error)))
      )

    /**
     * After partial progress the rest goes to a new job, so that a provider that often requests pauses does not use up
     * the attempts of a large source.
     */
    const endRun = (source: SourceRef, profile: string, error: EmbedderError, stored: number) =>
      Effect.gen(function* () {
        const { message, retryable, retryAfter } = error
        yield* profiles.recordFailure(source, source.sourceId, profile, message)
        if (!retryable || stored === 0) {
          return yield* new JobFailure({
            message,
            fatal: !retryable,
            ...(retryAfter === undefined ? {} : { retryAfter })
          })
        }
        yield* queue
          .enqueue("embedding", source, {
            serialKey: source.sourceId,
            delay: retryAfter ?? partialRetryDelay
          })
          .pipe(Effect.mapError(() => new JobFailure({ message, fatal: false })))
      })

    /** True when every chunk of the source has a vector of `embedder`'s profile. */
    const build = (embedder: EmbedderService, source: SourceRef) =>
      Effect.gen(function* () {
        const run = yield* newRun
        return yield* embedMissing(embedder, source, run).pipe(
          Effect.as(true),
          Effect.catchTag("EmbedderError", (error) =>
            Effect.as(endRun(source, embedder.profile, error, run.stored), false)
          )
        )
      })

    /**
     * Adds vectors of the profile that still answers, so that new chunks of an agent that has not moved are found by
     * meaning. A failure is logged: those chunks are then found by words.
     */
    const embedForActiveProfile = (active: string, source: SourceRef) =>
      Effect.gen(function* () {
        const embedder = yield* embedders(active)
        if (Option.isNone(embedder)) return
        yield* embedMissing(embedder.value, source, yield* newRun).pipe(
          Effect.catchTag("EmbedderError", ({ message }) =>
            Effect.logWarning("New chunks have no vector of the profile that still answers", message)
          )
        )
      })

    /** Handler of queue `embedding`. Resumes where an earlier attempt stopped. */
    const process = Effect.fn("Embed.process")(function* (job: QueueJob) {
      const source = yield* Effect.orDie(Schema.decodeUnknown(Payload)(job.payload))
      const { sourceId, tenantId } = source
      const found = yield* profiles.place(source, sourceId)
      if (Option.isNone(found)) return
      const { agentId, active, target } = found.value
      // Another process was started with another model. This one uses that model if it can, else its own.
      const wanted = Option.getOrElse(yield* embedders(target ?? current.profile), () => current)
      const built = yield* build(wanted, source).pipe(
        Effect.tapDefect(() => profiles.recordFailure(source, sourceId, wanted.profile, brokenJob))
      )
      if (active !== null && active !== wanted.profile) yield* embedForActiveProfile(active, source)
      if (!built) return
      yield* profiles.clearFailure(source, sourceId)
      if (wanted.profile === target) yield* profiles.move({ tenantId, agentId }, wanted)
    })

    /** Records the failure of a job whose worker died at each attempt. Its vectors are retried like refused ones. */
    const failAbandoned = Effect.fn("Embed.failAbandoned")(function* (job: QueueJob) {
      const source = yield* Effect.orDie(Schema.decodeUnknown(Payload)(job.payload))
      const found = yield* profiles.place(source, source.sourceId)
      if (Option.isNone(found)) return
      const profile = found.value.target ?? current.profile
      yield* profiles.recordFailure(source, source.sourceId, profile, workerStopped)
    })

    return { process, failAbandoned } as const
  })
}) {}
