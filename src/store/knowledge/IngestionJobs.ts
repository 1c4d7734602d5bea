/** Ingestion jobs as the API shows them, and the status changes of their sources. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { AgentId, IngestionJobId, SourceId, TenantId } from "../../domain/Ids.ts"
import { IngestionJob, IngestionJobType, SourceType } from "../../domain/knowledge/Source.ts"
import { eventWrites } from "../events/ReportedEvents.ts"
import { isoTime } from "../Jsonb.ts"
import * as Rows from "../Rows.ts"

const Row = Schema.Struct({
  ...IngestionJob.fields,
  startedAt: Schema.NullOr(Schema.DateTimeUtcFromDate),
  completedAt: Schema.NullOr(Schema.DateTimeUtcFromDate)
})

/** The data that a worker needs to run a job. */
export const IngestionTask = Schema.Struct({
  jobId: IngestionJobId,
  jobType: IngestionJobType,
  /** Number of attempts that have begun. */
  attempt: Schema.Int,
  generation: Schema.NumberFromString,
  tenantId: TenantId,
  agentId: AgentId,
  sourceId: SourceId,
  sourceType: SourceType,
  config: Schema.Unknown
})
export type IngestionTask = typeof IngestionTask.Type

/** Another attempt has begun, or the job has ended: this attempt changes no documents and no job any more. */
export class AttemptSuperseded extends Data.TaggedError("AttemptSuperseded")<{}> {}

/**
 * Locks the source until the end of the caller's transaction, so that no other attempt begins before it. The check is a
 * statement of its own: one that waits for a lock reads other rows as they were before.
 */
export const holdAttempt = (
  sql: SqlClient.SqlClient,
  { attempt, jobId, sourceId, tenantId }: IngestionTask
) =>
  Effect.zipRight(
    sql`select id from sources where tenant_id = ${tenantId} and id = ${sourceId} for key share`,
    sql`
      select id from ingestion_jobs
      where tenant_id = ${tenantId} and id = ${jobId} and status = 'RUNNING' and attempt = ${attempt}`
  ).pipe(
    Effect.filterOrFail(
      ({ length }) => length === 1,
      () => new AttemptSuperseded()
    )
  )

const NewJob = Schema.Struct({ id: IngestionJobId, inserted: Schema.Boolean })

export class IngestionJobStore extends Effect.Service<IngestionJobStore>()("store/knowledge/IngestionJobs", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const columns = sql`
      j.id, j.source_id as "sourceId", j.type, j.status, j.progress, j.chunks_created as "chunksCreated", j.error,
      j.started_at as "startedAt", j.completed_at as "completedAt"`

    const findBy = ({ tenantId }: TenantScope, condition: ReturnType<typeof sql.and>) =>
      sql`
        select ${columns} from ingestion_jobs j join sources s on s.tenant_id = j.tenant_id and s.id = j.source_id
        where j.tenant_id = ${tenantId} and ${condition}`.pipe(
        Rows.first(Row),
        Effect.map(Option.map((row) => IngestionJob.make(row)))
      )

    const find = (scope: AgentScope, id: IngestionJobId) =>
      findBy(scope, sql.and([sql`s.agent_id = ${scope.agentId}`, sql`j.id = ${id}`])).pipe(
        Effect.withSpan("IngestionJobStore.find")
      )

    /** The waiting job of the source, if there is one. */
    const findQueued = (scope: AgentScope, sourceId: SourceId) =>
      findBy(
        scope,
        sql.and([
          sql`s.agent_id = ${scope.agentId}`,
          sql`j.source_id = ${sourceId}`,
          sql`j.status = 'QUEUED'`
        ])
      )

    /**
     * Adds a `QUEUED` job. If the source already has one, that one is returned; it then also reads everything again if
     * this one would have.
     */
    const insert = (
      scope: AgentScope,
      job: { readonly id: IngestionJobId; readonly sourceId: SourceId; readonly type: IngestionJobType }
    ) =>
      sql`
        insert into ingestion_jobs (id, tenant_id, source_id, agent_id, type)
        values (${job.id}, ${scope.tenantId}, ${job.sourceId}, ${scope.agentId}, ${job.type})
        on conflict (tenant_id, source_id) where status = 'QUEUED' do update
          set type = case when excluded.type = 'REINDEX' then excluded.type else ingestion_jobs.type end
        returning id, id = ${job.id} as inserted`.pipe(Rows.one(NewJob))

    /** None when the job or its source does not exist, or the job has ended. */
    const task = ({ tenantId }: TenantScope, id: IngestionJobId) =>
      sql`
        select j.id as "jobId", j.type as "jobType", j.attempt, j.generation, s.tenant_id as "tenantId", s.agent_id as "agentId",
          s.id as "sourceId", s.type as "sourceType", s.config
        from ingestion_jobs j join sources s on s.tenant_id = j.tenant_id and s.id = j.source_id
        where j.tenant_id = ${tenantId} and j.id = ${id} and j.status in ('QUEUED', 'RUNNING')`.pipe(
        Rows.first(IngestionTask)
      )

    /** Open jobs that no queue job would run any more. */
    const withoutQueueJob = (limit: number) =>
      sql`/* every tenant: sweep */
        select j.tenant_id as "tenantId", j.id from (
          -- Each by its own index of open jobs: together they would be a scan of all jobs.
          select tenant_id, id, source_id, generation from ingestion_jobs where status = 'QUEUED'
          union all
          select tenant_id, id, source_id, generation from ingestion_jobs where status = 'RUNNING'
        ) j
        where tenant_is_swept(j.tenant_id) and not exists (
          select from queue_jobs q
          where q.queue = 'ingestion' and q.serial_key = j.source_id and q.state in ('waiting', 'active')
            and q.payload ->> 'jobId' = j.id
        )
        order by j.generation limit ${limit}::int`.pipe(
        Rows.all(Schema.Struct({ tenantId: TenantId, id: IngestionJobId })),
        Effect.withSpan("IngestionJobStore.withoutQueueJob")
      )

    /**
     * Makes the job `RUNNING`, and the source `PROCESSING`. A source has one running job, so an older one has died. The
     * source is locked first: a concurrent removal either sees the job running, or has removed both. Returns the task
     * as it is then, because until now a change of the source relied on the waiting job to read it. None, without a
     * change, when the job has ended: an earlier attempt may have done it after its worker had lost the lease.
     */
    const start = Effect.fn("IngestionJobStore.start")(
      function* (waiting: IngestionTask) {
        const { jobId, sourceId, tenantId } = waiting
        yield* sql`select id from sources where tenant_id = ${tenantId} and id = ${sourceId} for update`
        if (Option.isNone(yield* task({ tenantId }, jobId))) return Option.none<IngestionTask>()
        yield* sql`
          update ingestion_jobs set status = 'FAILED', completed_at = now(), error = 'worker_stopped: The worker stopped before the job ended.'
          where tenant_id = ${tenantId} and source_id = ${sourceId} and status = 'RUNNING' and id <> ${jobId}`
        yield* sql`
          with job as (
            update ingestion_jobs set status = 'RUNNING', started_at = coalesce(started_at, now()),
              progress = greatest(progress, 1), attempt = attempt + 1
            where tenant_id = ${tenantId} and id = ${jobId} returning tenant_id, source_id
          )
          update sources s set status = 'PROCESSING', updated_at = now()
          from job where s.tenant_id = job.tenant_id and s.id = job.source_id`
        return yield* task({ tenantId }, jobId)
      },
      sql.withTransaction,
      Effect.orDie
    )

    /** Progress never decreases. */
    const progress = ({ tenantId }: TenantScope, id: IngestionJobId, percent: number) =>
      sql`
        update ingestion_jobs set progress = greatest(progress, ${percent}::int)
        where tenant_id = ${tenantId} and id = ${id} and status = 'RUNNING' and progress < ${percent}::int`.pipe(
        Rows.none
      )

    /** Reports on the CTE `source`, which the job has just changed. */
    const reportOf = (type: "source.ready" | "source.failed", jobId: IngestionJobId) =>
      eventWrites(sql, {
        type,
        key: sql`${jobId}`,
        tenantId: sql`source.tenant_id`,
        agentId: sql`source.agent_id`,
        conversationId: sql`null`,
        ids: sql`jsonb_build_object('sourceId', source.id, 'ingestionJobId', ${jobId}::text)`,
        from: sql`source`
      })

    /**
     * Makes the job `SUCCEEDED`, and the source `READY`. Part of the transaction that makes the new generation live,
     * and that begins with {@link holdAttempt}.
     */
    const succeed = (task: IngestionTask, chunksCreated: number) =>
      sql`
        with job as (
          update ingestion_jobs set status = 'SUCCEEDED', progress = 100, chunks_created = ${chunksCreated}::int,
            error = null, completed_at = now()
          where tenant_id = ${task.tenantId} and id = ${task.jobId} returning tenant_id, source_id
        ),
        source as (
          update sources s set status = 'READY', live_generation = ${task.generation}, last_synced_at = now(),
            last_error = null, updated_at = now()
          from job where s.tenant_id = job.tenant_id and s.id = job.source_id returning s.id, s.tenant_id, s.agent_id
        ),
        ${reportOf("source.ready", task.jobId)}
        select id from source`.pipe(Rows.none)

    /** An entry of the list of failed attempts. */
    const attemptError = (reason: string) =>
      sql`jsonb_build_array(jsonb_build_object('at', ${isoTime(sql, sql`now()`)},
        'error', ${reason}::text))`

    /**
     * Makes the job `FAILED` with the reason. Chunks of an earlier generation stay live. False when another attempt has
     * begun or the job has ended.
     */
    const fail = ({ attempt, jobId, tenantId }: IngestionTask, reason: string) =>
      sql`
        with job as (
          update ingestion_jobs set status = 'FAILED', error = ${reason}, completed_at = now(),
            attempt_errors = attempt_errors || ${attemptError(reason)}
          where tenant_id = ${tenantId} and id = ${jobId} and attempt = ${attempt} and status in ('QUEUED', 'RUNNING')
          returning tenant_id, source_id
        ),
        source as (
          update sources s set status = 'FAILED', last_error = ${reason}, updated_at = now()
          from job where s.tenant_id = job.tenant_id and s.id = job.source_id returning s.id, s.tenant_id, s.agent_id
        ),
        ${reportOf("source.failed", jobId)}
        select id from source`.pipe(Rows.any)

    /** Records the failure of an attempt that will be retried. False as for {@link fail}. */
    const recordFailure = ({ attempt, jobId, tenantId }: IngestionTask, reason: string) =>
      sql`
        update ingestion_jobs set error = ${reason}, attempt_errors = attempt_errors || ${attemptError(reason)}
        where tenant_id = ${tenantId} and id = ${jobId} and attempt = ${attempt} and status = 'RUNNING'
        returning id`.pipe(Rows.any)

    return {
      find,
      findQueued,
      insert,
      task,
      withoutQueueJob,
      start,
      progress,
      succeed,
      fail,
      recordFailure
    } as const
  })
}) {}
