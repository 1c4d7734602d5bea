/**
 * Runs an ingestion job: reads the source, packs its documents into chunks aside, and swaps them in with one transaction.
 * Chunks answer by their words from then on; an `embedding` job adds their vectors. An attempt that dies leaves nothing
 * that the next one does not clear, so the job can be repeated at any point.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Sink from "effect/Sink"
import * as Stream from "effect/Stream"
import * as Tracer from "effect/Tracer"
import { ArtifactStore } from "../../capabilities/ArtifactStore.ts"
import { DocumentParser } from "../../capabilities/DocumentParser.ts"
import { Embedder } from "../../capabilities/Embedder.ts"
import { ModelRuntime } from "../../capabilities/ModelRuntime.ts"
import { OutboundHttp } from "../../capabilities/OutboundHttp.ts"
import { JobFailure, JobQueue, type QueueJob } from "../../capabilities/JobQueue.ts"
import { TextRecognition } from "../../capabilities/TextRecognition.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { IngestionJobId, TenantId } from "../../domain/Ids.ts"
import { StoredSourceConfig } from "../../domain/knowledge/Source.ts"
import { uploadUri } from "../../readers/File.ts"
import { HostLimiter } from "../../readers/HostLimiter.ts"
import { type OwnType, read } from "../../readers/Readers.ts"
import { ReaderError } from "../../capabilities/SourceReaders.ts"
import type { ReaderServices } from "../../readers/Reader.ts"
import { CrawlEntryStore } from "../../store/knowledge/CrawlEntries.ts"
import { type IngestionTask, IngestionJobStore } from "../../store/knowledge/IngestionJobs.ts"
import { KnowledgeStore, type NewDocument } from "../../store/knowledge/Knowledge.ts"
import { ConnectorPass, type Pass } from "./ConnectorPass.ts"
import { makeCrawlLedger } from "./CrawlLedger.ts"
import { toDocument } from "./NewDocuments.ts"

/** Most documents of one source: as many as a ZIP may hold. A crawl stops at 1,000 pages by itself. */
const maxDocuments = 2_000
/** A job that takes longer fails. */
const deadline: Duration.DurationInput = "2 hours"
/** A site that asks for a longer yieldToEventLoop waits no longer for the next attempt: until it has ended the source stays as it is. */
const maxRetryDelay = Duration.minutes(1)

/**
 * Documents that are written with one transaction, by their chunks and one for each; a longer one goes alone. The first of
 * them waits no longer than `batchDelay` for the others.
 */
const maxBatchCost = 400
const batchDelay: Duration.DurationInput = "250 millis"
const together = Sink.foldWeighted<ReadonlyArray<NewDocument>, NewDocument>({
  initial: [],
  maxCost: maxBatchCost,
  cost: (_, { chunks }) => chunks.length + 1,
  body: (documents, document) => [...documents, document]
})

const queueUnavailable = new ReaderError({
  code: "queue_unavailable",
  message: "The vectors could not be queued.",
  retryable: true
})
const unexpected = new ReaderError({
  code: "unexpected",
  message: "An unexpected error stopped the ingestion.",
  retryable: true
})

const workerStopped = "worker_stopped: The worker stopped before the job ended, each time it was tried."
/** Jobs that one sweep ends. */
const maxAbandonedPerSweep = 100

/**
 * What reading needs of all that the service is made of: a context is copied for each span and compared for each fiber, a
 * dozen times a page.
 */
const needed = Context.pick(
  OutboundHttp,
  DocumentParser,
  TextRecognition,
  ModelRuntime,
  ArtifactStore,
  HostLimiter,
  Tracer.ParentSpan
)

const Payload = Schema.Struct({ tenantId: TenantId, jobId: IngestionJobId })

type OwnConfig = Extract<StoredSourceConfig, { readonly type: OwnType }>

const isOwn = (source: StoredSourceConfig): source is OwnConfig => source.type !== "CONNECTOR"

const invalidConfig = new ReaderError({
  code: "invalid_config",
  message: "The source's config is incomplete.",
  retryable: false
})

/** What the ledger calls a source of which nothing could be read. */
const addressOf = ({ config }: OwnConfig): string => {
  if ("sitemapUrl" in config && config.sitemapUrl !== undefined) return config.sitemapUrl
  if ("url" in config && config.url !== undefined) return config.url
  if ("fileUrl" in config) return config.fileUrl
  return "fileName" in config && config.fileName !== undefined ? uploadUri(config.fileName) : "upload:"
}

const isConnector = ({ sourceType }: IngestionTask) => sourceType === "CONNECTOR"

export class Ingest extends Effect.Service<Ingest>()("usecases/knowledge/Ingest", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const jobs = yield* IngestionJobStore
    const knowledge = yield* KnowledgeStore
    const entries = yield* CrawlEntryStore
    const queue = yield* JobQueue
    const embedder = yield* Embedder
    const connectors = yield* ConnectorPass

    /** Builds the generation: adds what is new or changed, and returns what stays and how much there is of both. */
    const build = (task: IngestionTask) =>
      Effect.gen(function* () {
        yield* knowledge.discard(task)
        const ledger = yield* makeCrawlLedger(entries, jobs, task)
        const source = yield* Schema.decodeUnknown(StoredSourceConfig)({
          type: task.sourceType,
          config: task.config
        }).pipe(
          Effect.mapError(() => invalidConfig),
          Effect.filterOrFail(isOwn, () => invalidConfig)
        )
        const added = yield* read(source, { maxDocuments, journal: ledger.journal }).pipe(
          Stream.filterEffect(ledger.isChanged),
          Stream.mapEffect(toDocument),
          Stream.filter(({ chunks }) => chunks.length > 0),
          Stream.aggregateWithin(together, Schedule.spaced(batchDelay)),
          Stream.runFoldEffect(0, (done, documents) =>
            Effect.as(knowledge.addDocuments(task, documents), done + documents.length)
          ),
          Effect.tapError((error) => ledger.failed(addressOf(source), error)),
          // An interrupted attempt says what it saw, too: that is when one wants to know.
          Effect.ensuring(ledger.flush),
          Effect.mapInputContext((context: Context.Context<ReaderServices>) => needed(context))
        )
        const kept = ledger.kept()
        const pass: Pass = { kept, documents: added + kept.length, end: Effect.void }
        return pass
      })

    /** Makes the built generation the one that answers, ends the job and queues its vectors: one transaction. */
    const goLive = (task: IngestionTask, { end, kept }: Pass) =>
      Effect.gen(function* () {
        const { chunks, unembedded } = yield* knowledge.swap(task, embedder, kept)
        yield* jobs.succeed(task, chunks)
        yield* end
        yield* entries.prune(task)
        if (unembedded > 0) {
          const { sourceId, tenantId } = task
          yield* queue.enqueue("embedding", { tenantId, sourceId }, { serialKey: sourceId })
        }
      }).pipe(sql.withTransaction)

    const attempt = Effect.fn("Ingest.attempt")(function* (waiting: IngestionTask) {
      const task = yield* jobs.start(waiting)
      const pass = yield* (isConnector(task) ? connectors.build(task) : build(task)).pipe(
        Effect.timeoutFail({
          duration: deadline,
          onTimeout: () =>
            new ReaderError({
              code: "timed_out",
              message: "The source took too long to read.",
              retryable: false
            })
        })
      )
      if (pass.documents === 0) {
        return yield* new ReaderError({
          code: "empty",
          message: "Nothing readable was found in the source.",
          retryable: false
        })
      }
      yield* goLive(task, pass).pipe(Effect.catchTag("SqlError", Effect.die))
    })

    /**
     * Ends the attempt with a stable code and a reason the caller can act on; the last one fails job and
     * source.
     */
    const failed = (
      task: IngestionTask,
      job: QueueJob,
      { code, message: words, retryable, retryAfter }: ReaderError
    ) =>
      Effect.gen(function* () {
        const message = `${code}: ${words}`
        const final = !retryable || job.lastAttempt
        yield* final ? jobs.fail(task, task.jobId, message) : jobs.noteFailure(task, task.jobId, message)
        // What a connector's steps have stored is where the next attempt goes on.
        if (final || !isConnector(task)) yield* knowledge.discard(task)
        yield* entries.prune(task)
        const pause = retryAfter === undefined ? {} : { retryAfter: Duration.min(retryAfter, maxRetryDelay) }
        return yield* new JobFailure({ message, fatal: final, ...pause })
      })

    /** Handler of queue `ingestion`. */
    const process = Effect.fn("Ingest.process")(function* (job: QueueJob) {
      const { jobId, ...scope } = yield* Effect.orDie(Schema.decodeUnknown(Payload)(job.payload))
      const task = yield* jobs.task(scope, jobId)
      if (Option.isNone(task)) return
      yield* attempt(task.value).pipe(
        Effect.catchTags({
          ReaderError: (error) => failed(task.value, job, error),
          JobQueueError: () => failed(task.value, job, queueUnavailable)
        }),
        Effect.catchAllDefect((defect) =>
          Effect.zipRight(
            Effect.logError("An ingestion attempt broke", defect),
            failed(task.value, job, unexpected)
          )
        )
      )
    })

    const stopped = (scope: TenantScope, jobId: IngestionJobId) =>
      Effect.gen(function* () {
        const task = yield* jobs.task(scope, jobId)
        if (Option.isNone(task)) return
        yield* jobs.fail(scope, jobId, workerStopped)
        yield* knowledge.discard(task.value)
      })

    /** Ends the job whose worker died on the last attempt. */
    const abandoned = Effect.fn("Ingest.abandoned")(function* (job: QueueJob) {
      const { jobId, ...scope } = yield* Effect.orDie(Schema.decodeUnknown(Payload)(job.payload))
      yield* stopped(scope, jobId)
    })

    /**
     * Ends jobs whose last attempt could not even write that it had failed, so that their sources can be read again and
     * deleted.
     */
    const sweep = Effect.gen(function* () {
      const left = yield* jobs.forsaken(maxAbandonedPerSweep)
      yield* Effect.forEach(left, ({ id, ...scope }) => stopped(scope, id), { discard: true })
      if (left.length > 0) yield* Effect.logWarning("Ingestion jobs without a worker were ended", left.length)
      return left.length === maxAbandonedPerSweep
    }).pipe(Effect.withSpan("Ingest.sweep"))

    return { process, abandoned, sweep } as const
  })
}) {}
