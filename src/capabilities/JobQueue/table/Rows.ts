/**
 * The statements on `queue_jobs`. Each is its own transaction, or joins the caller's. Times are the database's, so that
 * the clocks of processes do not matter.
 */
import type { PgClient } from "@effect/sql-pg/PgClient"
import * as SqlSchema from "@effect/sql/SqlSchema"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { QueueJobId } from "../../../domain/Ids.ts"
import { JsonObject, sanitize } from "../../../domain/Text.ts"
import { JobSummary, QueueCounts, QueueName } from "../../../domain/knowledge/Job.ts"
import type { JobListing, QueuePolicy } from "../../JobQueue.ts"
import { makeClaim } from "./Claim.ts"
import { timeAfter } from "../../../concurrency/DatabaseTime.ts"

/** Channel of notifications about new jobs. The payload is the queue's name. */
export const channel = "queue_jobs"

const maxErrorCharacters = 2_000

/** A claim: the holder of `token` owns the row `id`. */
export interface Lease {
  readonly id: QueueJobId
  readonly token: string
}

/** A unique key of a claim. A worker may hold a job twice, if it lost the lease and claimed the job again. */
export const claimKey = ({ id, token }: { readonly id: string; readonly token: string }) => `${id} ${token}`

export interface NewJob {
  readonly id: QueueJobId
  readonly payload: JsonObject
  readonly owner: string
  readonly serialKey: string | null
  readonly delay: Duration.Duration
}

const Summary = Schema.Struct({
  ...JobSummary.fields,
  createdAt: Schema.DateTimeUtcFromDate,
  cursor: Schema.String
})

export const makeRows = (sql: PgClient) => {
  const attemptError = (message: string) => sql`
    errors || jsonb_build_array(jsonb_build_object('attempt', attempts, 'at', clock_timestamp(), 'message', ${message}::text))`

  /** Inserts jobs in this order. Workers are notified when the caller's transaction commits. */
  const insert = (queue: QueueName, jobs: ReadonlyArray<NewJob>, policy: QueuePolicy) => {
    const given = jobs.map((job) => ({ ...job, delay: Duration.toMillis(job.delay) }))
    return sql`
      with jobs as (
        insert into queue_jobs (id, queue, payload, owner, serial_key, max_attempts, run_at)
        select id, ${queue}, payload, owner, serial_key, ${policy.attempts}::int,
          clock_timestamp() + delay * interval '1 millisecond'
        from rows from (
          jsonb_to_recordset(${JSON.stringify(given)}::jsonb)
            as (id text, payload jsonb, owner text, "serialKey" text, delay float8)
        ) with ordinality as given (id, payload, owner, serial_key, delay, place)
        order by place
        returning id
      )
      select pg_notify(${channel}, ${queue}) where exists (select from jobs)`
  }

  /** Milliseconds until the next job becomes due or a lease expires, if any. */
  const nextDue = (queue: QueueName) =>
    sql<{ wait: number | null }>`
      select extract(epoch from least(
        (select min(run_at) from queue_jobs
          where queue = ${queue} and state = 'waiting' and run_at > statement_timestamp()),
        (select min(lease_until) from queue_jobs where queue = ${queue} and state = 'active')
      ) - clock_timestamp())::float8 * 1000 as wait`.pipe(
      Effect.map(([row]) => Option.fromNullable(row?.wait))
    )

  /** Returns the leases that are still held. */
  const renew = (leases: ReadonlyArray<Lease>, lease: Duration.Duration) =>
    sql<{ id: string; token: string }>`
      update queue_jobs j set lease_until = ${timeAfter(sql, lease)}
      from unnest(${leases.map(({ id }) => id)}::text[], ${leases.map(({ token }) => token)}::text[]) as held (id, token)
      where j.id = held.id and j.lease_token = held.token and j.state = 'active'
      returning j.id, j.lease_token as token`.pipe(Effect.map((rows) => new Set(rows.map(claimKey))))

  /** Each of these returns false, without a change, when the lease is no longer held. */
  const affectsRow = (statement: Effect.Effect<ReadonlyArray<unknown>, unknown>) =>
    Effect.map(statement, (rows) => rows.length > 0)

  /** The serial key, which may contain a person's alias, is not needed any more. */
  const complete = ({ id, token }: Lease) =>
    affectsRow(sql`
      update queue_jobs set state = 'completed', finished_at = clock_timestamp(), lease_token = null, lease_until = null,
        serial_key = null
      where id = ${id} and lease_token = ${token} and state = 'active' returning id`)

  const fail = ({ id, token }: Lease, message: string) => {
    const error = sanitize(message).slice(0, maxErrorCharacters)
    return affectsRow(sql`
      update queue_jobs set state = 'failed', finished_at = clock_timestamp(), lease_token = null, lease_until = null,
        last_error = ${error}, errors = ${attemptError(error)}
      where id = ${id} and lease_token = ${token} and state = 'active' returning id`)
  }

  /** {@link fail} for a job that was claimed dead. Its last error is already written. */
  const failDead = ({ id, token }: Lease) =>
    affectsRow(sql`
      update queue_jobs set state = 'failed', finished_at = clock_timestamp(), lease_token = null, lease_until = null
      where id = ${id} and lease_token = ${token} and state = 'active' returning id`)

  const retry = ({ id, token }: Lease, message: string, delay: Duration.Duration) => {
    const error = sanitize(message).slice(0, maxErrorCharacters)
    return affectsRow(sql`
      update queue_jobs set state = 'waiting', run_at = ${timeAfter(sql, delay)}, lease_token = null, lease_until = null,
        last_error = ${error}, errors = ${attemptError(error)}
      where id = ${id} and lease_token = ${token} and state = 'active' returning id`)
  }

  /** Releases a job as if it had not been claimed, and notifies other workers. */
  const release = ({ id, token }: Lease) =>
    affectsRow(sql`
      with job as (
        update queue_jobs set state = 'waiting', attempts = greatest(attempts - 1, 0), lease_token = null, lease_until = null
        where id = ${id} and lease_token = ${token} and state = 'active' returning queue
      )
      select pg_notify(${channel}, queue) from job`)

  /**
   * Repairs rows after the database clock was set back, while workers run: jobs with a later time become due, and no
   * lease lasts longer than its length.
   */
  const repairAfterClockSetBack = (queue: QueueName, lease: Duration.Duration) =>
    Effect.zipRight(
      sql`
        update queue_jobs set run_at = clock_timestamp()
        where queue = ${queue} and state = 'waiting' and run_at > clock_timestamp() + interval '1 minute'
          and (created_at > clock_timestamp() + interval '1 minute'
            or run_at > clock_timestamp() + interval '61 minutes')`,
      sql`
        update queue_jobs set lease_until = ${timeAfter(sql, lease)}
        where queue = ${queue} and state = 'active' and lease_until > ${timeAfter(sql, lease)} + interval '1 minute'`
    )

  /**
   * Keeps the newest finished jobs of a queue. False when another process prunes, because two at once would deadlock.
   */
  const prune = (queue: QueueName, policy: QueuePolicy) => {
    const surplusJobs = (state: "completed" | "failed", keep: number) => sql`
      select id from queue_jobs where queue = ${queue} and state = ${state}
      order by finished_at desc, seq desc offset ${keep}::int`
    return sql<{ locked: boolean }>`
      with pruning as materialized (
        select pg_try_advisory_xact_lock(hashtextextended(${`queue_jobs prune ${queue}`}, 0)) as locked
      ), deleted as (
        delete from queue_jobs where (select locked from pruning) and state in ('completed', 'failed')
          and id = any (
            array(${surplusJobs("completed", policy.keepCompleted)}) || array(${surplusJobs("failed", policy.keepFailed)})
          )
      )
      select locked from pruning`.pipe(Effect.map(([row]) => row?.locked === true))
  }

  const counts: Effect.Effect<ReadonlyArray<QueueCounts>, unknown> = SqlSchema.findAll({
    Request: Schema.Void,
    Result: QueueCounts,
    execute: () => sql`
      select name,
        (count(*) filter (where state = 'waiting' and run_at <= clock_timestamp()))::int as waiting,
        (count(*) filter (where state = 'active'))::int as active,
        (count(*) filter (where state = 'waiting' and run_at > clock_timestamp()))::int as delayed,
        (count(*) filter (where state = 'completed'))::int as completed,
        (count(*) filter (where state = 'failed'))::int as failed
      from unnest(${[...QueueName.literals]}::text[]) with ordinality as queues (name, place)
        left join queue_jobs on queue = name
      group by name, place order by place`
  })(undefined)

  const publicState = sql`
    case when state = 'waiting' and run_at > clock_timestamp() then 'delayed' else state end`
  const summary = sql`
    id, ${publicState} as state, attempts, last_error as "lastError", created_at as "createdAt", seq::text as cursor`

  /** Newest first, those before `before`, which is the `cursor` of a row. */
  const list = (queue: QueueName, { state, limit, before }: JobListing) =>
    SqlSchema.findAll({
      Request: Schema.Void,
      Result: Summary,
      execute: () => sql`
        select ${summary} from queue_jobs
        where queue = ${queue} and (${before ?? null}::bigint is null or seq < ${before ?? null}::bigint)
          and (${state ?? null}::text is null or ${publicState} = ${state ?? null}::text)
        order by seq desc limit ${limit}::int`
    })(undefined)

  const find = (queue: QueueName, id: QueueJobId) =>
    SqlSchema.findOne({
      Request: Schema.Void,
      Result: Summary,
      execute: () => sql`select ${summary} from queue_jobs where queue = ${queue} and id = ${id}`
    })(undefined)

  /** Makes a failed job wait again, with all its attempts. Earlier errors stay in `errors`. */
  const retryFailed = (queue: QueueName, id: QueueJobId) =>
    SqlSchema.findOne({
      Request: Schema.Void,
      Result: Summary,
      execute: () => sql`
        with job as (
          update queue_jobs set state = 'waiting', attempts = 0, run_at = clock_timestamp(), finished_at = null
          where queue = ${queue} and id = ${id} and state = 'failed' returning *
        )
        select ${summary}, pg_notify(${channel}, ${queue})::text from job`
    })(undefined)

  return {
    insert,
    list,
    find,
    retryFailed,
    claim: makeClaim(sql),
    nextDue,
    renew,
    complete,
    fail,
    failDead,
    retry,
    release,
    prune,
    repairAfterClockSetBack,
    counts
  } as const
}

export type Rows = ReturnType<typeof makeRows>
