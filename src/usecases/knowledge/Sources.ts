/** Knowledge sources: list, create, fetch, sync, and the jobs that ingest them. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { Staged } from "../../capabilities/ArtifactStore.ts"
import { JobQueue, JobQueueError } from "../../capabilities/JobQueue.ts"
import type { AgentKey, AgentScope } from "../../domain/accounts/Access.ts"
import {
  ArtifactDeleteConflict,
  ArtifactDeleteUnavailable,
  LimitExceeded,
  ServiceUnavailable,
  noSuch,
  orNoSuch
} from "../../domain/Errors.ts"
import { type IngestionJobId, newId, type SourceId } from "../../domain/Ids.ts"
import { canonical } from "../../domain/Json.ts"
import {
  type CreateSource,
  hasContent,
  IngestionJob,
  type IngestionJobType,
  type PatchSource,
  Source,
  type SourceType
} from "../../domain/knowledge/Source.ts"
import { artifactOf } from "../../store/knowledge/ArtifactRows.ts"
import { EntitlementStore } from "../../store/billing/Entitlements.ts"
import { IdempotencyKeyStore } from "../../store/IdempotencyKeys.ts"
import { IngestionJobStore } from "../../store/knowledge/IngestionJobs.ts"
import { isDeadlock } from "../../store/Deadlock.ts"
import { isSqlError, SourceStore } from "../../store/knowledge/Sources.ts"
import type { ModelCaller } from "../billing/OtherModelCalls.ts"
import { Artifacts } from "./Artifacts.ts"
import { ConnectorSettings } from "./ConnectorSettings.ts"
import * as SourceConfig from "./SourceConfig.ts"

/** A new source and its first job; null when `autoSync` is false. */
export const Created = Schema.Struct({ source: Source, ingestionJob: Schema.NullOr(IngestionJob) })
export type Created = typeof Created.Type

/** A document that was uploaded with the request. */
export interface Upload {
  readonly name: string
  readonly fileName: string
  readonly labels?: ReadonlyArray<string>
  /** The whole content, or a staged stream. */
  readonly bytes: Uint8Array | Staged
}

interface NewSource {
  readonly type: SourceType
  readonly name: string
  readonly labels: ReadonlyArray<string>
  readonly config: unknown
  /** Sealed secret settings. */
  readonly sealed?: string | null
  readonly autoSync: boolean
}

/**
 * The part of a config that decides what is read, in one form: everything but the metadata. The database does not keep
 * the order of keys.
 */
const contentOf = ({ metadata: _, ...config }: Readonly<Record<string, unknown>>) => canonical(config)

const encodeCreated = Schema.encode(Created)
const decodeCreated = Schema.decodeUnknown(Created)

export class Sources extends Effect.Service<Sources>()("usecases/knowledge/Sources", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const store = yield* SourceStore
    const jobs = yield* IngestionJobStore
    const entitlements = yield* EntitlementStore
    const idempotency = yield* IdempotencyKeyStore
    const queue = yield* JobQueue
    const artifacts = yield* Artifacts
    const connectors = yield* ConnectorSettings

    const get = Effect.fn("Sources.get")(function* (scope: AgentScope, id: SourceId) {
      const found = yield* store.find(scope, id)
      if (found === null) return yield* noSuch("source")
      return found
    })

    const job = Effect.fn("Sources.job")(function* (scope: AgentScope, id: IngestionJobId) {
      return yield* jobs.find(scope, id).pipe(orNoSuch("ingestion job"))
    })

    /** A job of this source, or NOT_FOUND. */
    const jobOf = Effect.fn("Sources.jobOf")(function* (
      scope: AgentScope,
      sourceId: SourceId,
      id: IngestionJobId
    ) {
      const found = yield* job(scope, id)
      if (found.sourceId !== sourceId) return yield* noSuch("ingestion job")
      return found
    })

    /**
     * Adds a job in the caller's transaction. Returns the job that already waits instead, if that does what this one
     * would. The calls of models that the job makes count for the key of its caller.
     */
    const queueJob = Effect.fn("Sources.queueJob")(function* (
      scope: ModelCaller,
      sourceId: SourceId,
      type: IngestionJobType
    ) {
      const waiting = yield* jobs.findQueued(scope, sourceId)
      if (Option.isSome(waiting) && (type === "INGEST" || waiting.value.type === type))
        return waiting.value.id
      const { id, inserted } = yield* jobs.insert(scope, { id: yield* newId.ingestionJob, sourceId, type })
      if (!inserted) return id
      if (!(yield* entitlements.reserveIngestionJob(scope))) {
        return yield* new LimitExceeded({ message: "The ingestion jobs of this period are used up." })
      }
      const { keyId, tenantId } = scope
      const payload = keyId === undefined ? { tenantId, jobId: id } : { tenantId, jobId: id, keyId }
      yield* queue.enqueue("ingestion", payload, { serialKey: sourceId })
      return id
    })

    const unavailable = () =>
      new ServiceUnavailable({ message: "Nothing can be queued now. Try again later." })

    const insert = Effect.fn("Sources.insert")(function* (scope: ModelCaller, source: NewSource) {
      if (!(yield* store.holdAgent(scope))) return yield* noSuch("agent")
      if (!(yield* entitlements.reserveSource(scope))) {
        return yield* new LimitExceeded({ message: "The number of sources that the plan allows is reached." })
      }
      const id = yield* newId.source
      const { config, labels, name, type } = source
      yield* store.insert(scope, { id, type, name, labels, config })
      if (typeof source.sealed === "string") yield* connectors.keep(scope, id, source.sealed)
      const jobId = source.autoSync ? yield* queueJob(scope, id, "INGEST") : null
      const created: Created = {
        source: yield* Effect.orDie(get(scope, id)),
        ingestionJob: jobId === null ? null : yield* Effect.orDie(job(scope, jobId))
      }
      return created
    })

    /** Returns the earlier response for the key, else runs `make`. Both happen in one transaction. */
    const withIdempotencyKey = <E, R>(
      key: AgentKey,
      idempotencyKey: string,
      make: Effect.Effect<Created, E, R>
    ) =>
      Effect.gen(function* () {
        const earlier = yield* idempotency.claim(key, idempotencyKey)
        if (Option.isSome(earlier)) return yield* Effect.orDie(decodeCreated(earlier.value))
        const created = yield* make
        const answer = yield* Effect.orDie(encodeCreated(created))
        yield* idempotency.answer(key, idempotencyKey, answer)
        return created
      })

    const inTransaction = <A, E, R>(write: Effect.Effect<A, E | JobQueueError, R>) =>
      write.pipe(
        sql.withTransaction,
        Effect.catchIf(isSqlError, Effect.die),
        Effect.catchIf((error): error is JobQueueError => error instanceof JobQueueError, unavailable)
      )

    /** Adds a source, with its first job unless `autoSync` is false. */
    const add = Effect.fn("Sources.add")(function* (
      scope: ModelCaller,
      { name, labels = [], autoSync = true, ...given }: CreateSource
    ) {
      const settings = given.type === "CONNECTOR" ? yield* connectors.validateNew(given.config) : given
      return yield* inTransaction(insert(scope, { type: given.type, name, labels, autoSync, ...settings }))
    })

    /** A repeat with the same `idempotencyKey` from the same API key returns the first response for 24 hours. */
    const create = Effect.fn("Sources.create")(function* (
      key: AgentKey,
      source: CreateSource,
      idempotencyKey?: string
    ) {
      const make = add(key, source)
      return yield* idempotencyKey === undefined
        ? make
        : inTransaction(withIdempotencyKey(key, idempotencyKey, make))
    })

    /** Stores the original and adds its source: a document, or a ZIP of documents. */
    const upload = Effect.fn("Sources.upload")(function* (
      scope: ModelCaller,
      type: "FILE" | "BULK_UPLOAD",
      { name, fileName, labels = [], bytes }: Upload
    ) {
      const kept = yield* ArrayBuffer.isView(bytes) ? artifacts.keep(bytes) : artifacts.keepStaged(bytes)
      const config = { artifact: kept.ref, fileName }
      return yield* artifacts.settle(kept).pipe(
        Effect.zipRight(insert(scope, { type, name, labels, config, autoSync: true })),
        inTransaction,
        Effect.onError(() => artifacts.abandon(kept))
      )
    })

    /**
     * Changes name, labels or config. Labels apply at once, but for those of a connector with which more people may read
     * it. These and a new config apply at the next sync. That sync is queued here for new labels of a connector, and when
     * the config contains the content itself.
     */
    const patch = Effect.fn("Sources.patch")(function* (
      scope: ModelCaller,
      id: SourceId,
      { name, labels, config }: PatchSource
    ) {
      const found = yield* get(scope, id)
      const isConnector = found.type === "CONNECTOR"
      const settings =
        isConnector && config !== undefined
          ? yield* connectors.validateChange(scope, found, config)
          : undefined
      const checked =
        settings?.config ??
        (config === undefined ? undefined : yield* SourceConfig.changeConfig(found, config))
      const isNew = checked !== undefined && contentOf(checked) !== contentOf(found.config)
      // Which documents a connector reads depends on the labels of the source.
      const isRelabelled = labels !== undefined && labels.join("\n") !== (found.labels ?? []).join("\n")
      const rereads = (hasContent(found.type) && isNew) || (isConnector && isRelabelled)
      yield* Effect.gen(function* () {
        if (!(yield* store.update(scope, id, { name, labels, config: checked })))
          return yield* noSuch("source")
        if (settings !== undefined) yield* connectors.keep(scope, id, settings.sealed)
        if (rereads) yield* queueJob(scope, id, "INGEST")
      }).pipe(inTransaction)
      return yield* get(scope, id)
    })

    /**
     * Removes the source with its documents and queues the removal of its original. Fails with ARTIFACT_DELETE_CONFLICT
     * while a job of the source runs.
     */
    const remove = Effect.fn("Sources.remove")(function* (scope: AgentScope, id: SourceId) {
      const { config } = yield* get(scope, id)
      const artifact = artifactOf(config)
      yield* Effect.gen(function* () {
        const seized = yield* store.seize(scope, id).pipe(orNoSuch("source"))
        if (seized.running) {
          return yield* new ArtifactDeleteConflict({
            message: "An ingestion job of the source is running. Try again when it has ended."
          })
        }
        if (Option.isSome(artifact)) yield* artifacts.release(artifact.value)
        yield* store.remove(scope, id)
      }).pipe(
        sql.withTransaction,
        Effect.retry({ times: 5, while: (error) => isDeadlock(error) }),
        Effect.catchTags({
          SqlError: Effect.die,
          JobQueueError: () =>
            new ArtifactDeleteUnavailable({
              message: "The removal of the stored file cannot be queued now. Try again later."
            })
        })
      )
    })

    /** Queues ingestion, or a full re-index with `force`. Returns the job that already waits, if there is one. */
    const sync = Effect.fn("Sources.sync")(function* (
      scope: ModelCaller,
      id: SourceId,
      { force }: { readonly force: boolean }
    ) {
      const { id: jobId, status } = yield* Effect.gen(function* () {
        if (!(yield* store.hold(scope, id))) return yield* noSuch("source")
        const queued = yield* queueJob(scope, id, force ? "REINDEX" : "INGEST")
        return yield* Effect.orDie(job(scope, queued))
      }).pipe(inTransaction)
      return { jobId, status, sourceId: id }
    })

    return {
      readers: connectors.forms,
      get,
      list: store.list,
      job,
      jobOf,
      add,
      create,
      stage: artifacts.stage,
      upload,
      patch,
      remove,
      sync
    } as const
  })
}) {}
