/**
 * Runs an ingestion job: reads the source, splits its documents into chunks of a new generation, and makes that live in
 * one transaction. From then on chunks are found by words; an `embedding` job adds their vectors. Each attempt first
 * removes what a failed one left, so the job can be repeated at any point.
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
import { IngestionJobId, KeyId, TenantId } from "../../domain/Ids.ts"
import { StoredSourceConfig } from "../../domain/knowledge/Source.ts"
import { uploadUri } from "../../readers/File.ts"
import { describeTimeout } from "../../readers/Picture.ts"
import { HostLimiter } from "../../readers/HostLimiter.ts"
import { type OwnType, read } from "../../readers/Readers.ts"
import { ReaderError, permanentError } from "../../capabilities/SourceReaders.ts"
import type { ReaderServices } from "../../readers/Reader.ts"
import { CrawlEntryStore } from "../../store/knowledge/CrawlEntries.ts"
import {
  AttemptSuperseded,
  type IngestionTask,
  IngestionJobStore
} from "../../store/knowledge/IngestionJobs.ts"
import { KnowledgeStore, type NewDocument } from "../../store/knowledge/Knowledge.ts"
import { type ModelCaller, OtherModelCalls } from "../billing/OtherModelCalls.ts"
import { ConnectorPass, type Pass, invalidConfig } from "./ConnectorPass.ts"
import { makeCrawlLedger } from "./CrawlLedger.ts"
import { toDocument } from "./NewDocuments.ts"

/** Maximum documents of one source: as many as a ZIP may hold. A crawl has its own limit of 1,000 pages. */
const maxDocuments = 2_000
/** Time-out of a job. */
const deadline: Duration.DurationInput = "2 hours"
/**
 * Maximum pause before the next attempt, when a site requests a longer one. The source stays as it is until that
 * attempt ends.
 */
const maxRetryDelay = Duration.minutes(1)

/**
 * Maximum cost of the documents that one transaction writes: one for each document and for each of its chunks. A larger
 * document is written alone. `batchDelay` limits how long the first document waits for others.
 */
const maxBatchCost = 400
const batchDelay: Duration.DurationInput = "250 millis"
const documentBatches = Sink.foldWeighted<ReadonlyArray<NewDocument>, NewDocument>({
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
/** Maximum jobs that one sweep ends. */
const maxAbandonedPerSweep = 100

/**
 * The services that reading needs. A smaller context is faster: it is copied for each span and compared for each fiber,
 * about a dozen times a page.
 */
const pickReaderServices = Context.pick(
  OutboundHttp,
  DocumentParser,
  TextRecognition,
  ModelRuntime,
  ArtifactStore,
  HostLimiter,
  Tracer.ParentSpan
)

/** A job. Its calls of models count for the key, if it has one. */
const Payload = Schema.Struct({
  tenantId: TenantId,
  jobId: IngestionJobId,
  keyId: Schema.optionalWith(KeyId, { exact: true })
})

type BuiltInConfig = Extract<StoredSourceConfig, { readonly type: OwnType }>

const isBuiltIn = (source: StoredSourceConfig): source is BuiltInConfig => source.type !== "CONNECTOR"

/** The address of the crawl entry of a source of which nothing could be read. */
const addressOf = ({ config }: BuiltInConfig): string => {
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
    const { model } = yield* OtherModelCalls

    /** Builds the generation: adds new and changed documents, and returns the unchanged ones and the number of both. */
    const build = (task: IngestionTask & ModelCaller) =>
      Effect.gen(function* () {
        yield* knowledge.discard(task)
        const ledger = yield* makeCrawlLedger(entries, jobs, task)
        const source = yield* Schema.decodeUnknown(StoredSourceConfig)({
          type: task.sourceType,
          config: task.config
        }).pipe(
          Effect.mapError(() => invalidConfig),
          Effect.filterOrFail(isBuiltIn, () => invalidConfig)
        )
        const added = yield* read(source, { maxDocuments, journal: ledger.journal }).pipe(
          Stream.filterEffect(ledger.isChanged),
          Stream.mapEffect(toDocument),
          Stream.filter(({ chunks }) => chunks.length > 0),
          Stream.aggregateWithin(documentBatches, Schedule.spaced(batchDelay)),
          Stream.runFoldEffect(0, (done, documents) =>
            Effect.as(knowledge.addDocuments(task, documents), done + documents.length)
          ),
          Effect.tapErrorTag("ReaderError", (error) => ledger.recordFailure(addressOf(source), error)),
          // The entries of an interrupted attempt are stored too, because they help to find the cause.
          Effect.ensuring(ledger.flush),
          Effect.mapInputContext((context: Context.Context<ReaderServices>) => pickReaderServices(context)),
          Effect.provideService(ModelRuntime, model(task, "image", describeTimeout))
        )
        const kept = ledger.kept()
        const pass: Pass = { kept, documents: added + kept.length, end: Effect.void }
        return pass
      })

    /** Makes the built generation live, ends the job and queues its missing vectors in one transaction. */
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

    const attempt = Effect.fn("Ingest.attempt")(function* (task: IngestionTask & ModelCaller) {
      const pass = yield* (isConnector(task) ? connectors.build(task) : build(task)).pipe(
        Effect.timeoutFail({
          duration: deadline,
          onTimeout: () => permanentError("timed_out", "The source took too long to read.")
        })
      )
      if (pass.documents === 0) {
        return yield* permanentError("empty", "Nothing readable was found in the source.")
      }
      yield* goLive(task, pass).pipe(Effect.catchTag("SqlError", Effect.die))
    })

    /**
     * Ends the attempt with a stable code and a reason for the caller. The last attempt fails the job and the source.
     */
    const failAttempt = (
      task: IngestionTask,
      job: QueueJob,
      { code, message: words, retryable, retryAfter }: ReaderError
    ) =>
      Effect.gen(function* () {
        const message = `${code}: ${words}`
        const final = !retryable || job.lastAttempt
        const isNoted = yield* final ? jobs.fail(task, message) : jobs.recordFailure(task, message)
        if (!isNoted) return yield* new AttemptSuperseded()
        // A connector's next attempt continues after the stored steps, so they are kept.
        if (final || !isConnector(task)) yield* knowledge.discard(task)
        yield* entries.prune(task)
        const pause = retryAfter === undefined ? {} : { retryAfter: Duration.min(retryAfter, maxRetryDelay) }
        return yield* new JobFailure({ message, fatal: final, ...pause })
      })

    /** Handler of queue `ingestion`. */
    const process = Effect.fn("Ingest.process")(function* (job: QueueJob) {
      const { jobId, tenantId, ...caller } = yield* Effect.orDie(Schema.decodeUnknown(Payload)(job.payload))
      const waiting = yield* jobs.task({ tenantId }, jobId)
      if (Option.isNone(waiting)) return
      const started = yield* jobs.start(waiting.value)
      if (Option.isNone(started)) return
      const task = started.value
      yield* attempt({ ...task, ...caller }).pipe(
        Effect.catchTags({
          ReaderError: (error) => failAttempt(task, job, error),
          JobQueueError: () => failAttempt(task, job, queueUnavailable)
        }),
        Effect.catchAllDefect((defect) =>
          Effect.zipRight(
            Effect.logError("An ingestion attempt broke", defect),
            failAttempt(task, job, unexpected)
          )
        ),
        // The worker had lost its lease.
        Effect.catchTag("AttemptSuperseded", () =>
          Effect.logWarning("An ingestion attempt ended, because another has begun")
        )
      )
    })

    const failStopped = (scope: TenantScope, jobId: IngestionJobId) =>
      Effect.gen(function* () {
        const task = yield* jobs.task(scope, jobId)
        if (Option.isNone(task)) return
        if (yield* jobs.fail(task.value, workerStopped)) yield* knowledge.discard(task.value)
      })

    /** Fails the job whose worker died on its last attempt. */
    const failAbandoned = Effect.fn("Ingest.failAbandoned")(function* (job: QueueJob) {
      const { jobId, tenantId } = yield* Effect.orDie(Schema.decodeUnknown(Payload)(job.payload))
      yield* failStopped({ tenantId }, jobId)
    })

    /**
     * Fails jobs whose last attempt could not store its failure, so that their sources can be synced and deleted again.
     * Returns true when there may be more.
     */
    const sweep = Effect.gen(function* () {
      const abandoned = yield* jobs.withoutQueueJob(maxAbandonedPerSweep)
      yield* Effect.forEach(abandoned, ({ id, ...scope }) => failStopped(scope, id), { discard: true })
      if (abandoned.length > 0)
        yield* Effect.logWarning("Ingestion jobs without a worker were ended", abandoned.length)
      return abandoned.length === maxAbandonedPerSweep
    }).pipe(Effect.withSpan("Ingest.sweep"))

    return { process, failAbandoned, sweep } as const
  })
}) {}
