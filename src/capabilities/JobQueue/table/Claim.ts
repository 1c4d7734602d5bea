/** Selects the next jobs of a worker. */
import type { PgClient } from "@effect/sql-pg/PgClient"
import * as SqlSchema from "@effect/sql/SqlSchema"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { QueueJobId } from "../../../domain/Ids.ts"
import type { QueueName } from "../../../domain/knowledge/Job.ts"
import { JsonObject } from "../../../domain/Text.ts"
import { timeAfter } from "../../../concurrency/DatabaseTime.ts"

/** The error of an attempt whose worker was lost. */
const workerDied = "worker died"

/** A limit as a part of the SQL text: for a parameter, the planner assumes a tenth of the table. */
const literalLimit = (sql: PgClient, rows: number) => sql.literal(`limit ${Math.trunc(rows)}`)

/** Maximum number of owners that one claim examines. */
const maxOwners = 8

export const Claimed = Schema.Struct({
  id: QueueJobId,
  payload: JsonObject,
  attempts: Schema.Int,
  maxAttempts: Schema.Int,
  /** The worker of the last attempt died. No attempt is left. */
  dead: Schema.Boolean,
  owner: Schema.String,
  /** Milliseconds since it was due; null for a job taken from a lost worker. */
  waitedMillis: Schema.NullOr(Schema.Number)
})
export type Claimed = typeof Claimed.Type

/** A claimed job, if any, and the position of the claim among the owners. */
const ClaimRow = Schema.Union(
  Schema.Struct({
    ...Claimed.fields,
    turn: Schema.NullOr(Schema.Int),
    examinedOwners: Schema.NullOr(Schema.Array(Schema.String)),
    isPartial: Schema.Boolean
  }),
  Schema.Struct({
    id: Schema.Null,
    examinedOwners: Schema.NullOr(Schema.Array(Schema.String)),
    isPartial: Schema.Boolean
  })
)

export interface Claim {
  readonly jobs: ReadonlyArray<Claimed>
  /** The owner after which the next claim continues. */
  readonly cursor: string
  /** The examined owners, in their order. */
  readonly examinedOwners: ReadonlyArray<string>
  /** True when some owners were not examined. */
  readonly isPartial: boolean
}

/** Continues after the last served owner, or after the last examined one if none was served. */
const claimOf = (rows: ReadonlyArray<typeof ClaimRow.Type>, previousCursor: string): Claim => {
  const jobs = rows.filter((row) => row.id !== null)
  const [last] = jobs
    .filter(({ turn }) => turn !== null)
    .toSorted((one, other) => (other.turn ?? 0) - (one.turn ?? 0))
  const [first] = rows
  const examinedOwners = first?.examinedOwners ?? []
  return {
    jobs: jobs.map(({ isPartial: _, examinedOwners: __, turn: ___, ...job }) => job),
    cursor: last?.owner ?? examinedOwners.at(-1) ?? previousCursor,
    examinedOwners,
    isPartial: first?.isPartial ?? false
  }
}

/** The group of an owner: its name up to the first slash. */
export const groupOf = (owner: string): string => owner.split("/", 1)[0] ?? owner

/** Numbers of running jobs. */
export interface Running {
  readonly owners: Readonly<Record<string, number>>
  readonly groups: Readonly<Record<string, number>>
}

export interface ClaimRequest {
  /** Maximum number of jobs to claim. */
  readonly limit: number
  /** The claiming worker, and the length of its lease. */
  readonly token: string
  readonly lease: Duration.Duration
  /** The last served owner. Those after it come first. */
  readonly after: string
  /** Maximum numbers of jobs of one owner, and of one group of owners, that the claimer runs at the same time. */
  readonly perOwner: number
  readonly perGroup: number
  /** Numbers of jobs that it runs now. */
  readonly running: Running
}

/**
 * Claims up to `limit` jobs: first those with an expired lease, then those that are due. Owners take turns, in the
 * order of their names after `after`: an owner's first job waits for at most one job of each other owner. Jobs of one
 * owner are ordered by due time. A job with a serial key waits for every earlier one of its key, even one that waits
 * for a retry.
 *
 * A claim examines only some owners, and returns its position, from which the next one continues.
 *
 * The limits are part of the SQL text ({@link literalLimit}). The statement is planned each time: with a plan made for an empty queue, a sudden backlog would be read
 * once for each of its jobs.
 */
export const makeClaim = (sql: PgClient) => {
  const workerDiedError = sql`errors || jsonb_build_array(
    jsonb_build_object('attempt', attempts, 'at', clock_timestamp(), 'message', ${workerDied}::text))`

  return (
    queue: QueueName,
    { after: cursor, lease, limit, perGroup, perOwner, running, token }: ClaimRequest
  ) => {
    const mayRun = sql`(j.serial_key is null or not exists (
      select from queue_jobs other
      where other.queue = j.queue and other.serial_key = j.serial_key and other.id <> j.id
        and (other.state = 'active' or other.state = 'waiting' and other.seq < j.seq)
    ))`
    const firstOwner = sql`(
      select owner from queue_jobs where queue = ${queue} and state = 'waiting' order by owner limit 1)`
    const group = sql`split_part(owner, '/', 1)`
    const ofOwner = sql`coalesce((held.running -> 'owners' ->> owner)::int, 0)`
    const ofGroup = sql`coalesce((held.running -> 'groups' ->> ${group})::int, 0)`
    const isFree = sql`${ofOwner} < ${perOwner}::int and ${ofGroup} < ${perGroup}::int`
    return SqlSchema.findAll({
      Request: Schema.Void,
      Result: ClaimRow,
      execute: () =>
        sql`
        with recursive held as materialized (
          select ${JSON.stringify(running)}::jsonb as running
        ), expired as (
          select id, attempts >= max_attempts as dead from queue_jobs, held
          where queue = ${queue} and state = 'active' and lease_until < statement_timestamp() and ${isFree}
          order by lease_until ${literalLimit(sql, limit)} for update of queue_jobs skip locked
        ), turns as (
          (select owner, owner as first, 1 as turn from (
            select coalesce(
              (select owner from queue_jobs
                where queue = ${queue} and state = 'waiting' and owner > ${cursor} order by owner limit 1),
              ${firstOwner}
            ) as owner offset 0
          ) next where owner is not null)
          union all
          select next.owner, turns.first, turns.turn + 1 from turns cross join lateral (
            select coalesce(
              (select owner from queue_jobs
                where queue = ${queue} and state = 'waiting' and owner > turns.owner order by owner limit 1),
              ${firstOwner}
            ) as owner offset 0
          ) next
          where next.owner <> turns.first and turns.turn < ${sql.literal(String(maxOwners))}
        ), claimable as (
          select id, owner, round, turn from turns, held, lateral (
            select id, row_number() over (order by run_at, seq) as round from (
              select id, run_at, seq from queue_jobs j
              where queue = ${queue} and state = 'waiting' and j.owner = turns.owner
                and run_at <= statement_timestamp() and ${mayRun}
              order by run_at, seq ${literalLimit(sql, limit)}
            ) first
          ) ranked
          where round <= ${perOwner}::int - ${ofOwner}
        ), offered as (
          select id, round, turn from held, (
            select *, row_number() over (partition by ${group} order by round, turn) as place from claimable
          ) placed
          where place <= ${perGroup}::int - ${ofGroup}
        ), due as (
          select j.id from queue_jobs j join (
            select id, round, turn from offered order by round, turn ${literalLimit(sql, 4 * limit)}
          ) best using (id)
          where j.state = 'waiting'
          order by round, turn ${literalLimit(sql, limit)} for update of j skip locked
        ), picked as (
          select id, dead, true as lost from expired union all select id, false, false from due ${literalLimit(sql, limit)}
        ), claimed as (
          update queue_jobs j set state = 'active', lease_token = ${token}, lease_until = ${timeAfter(sql, lease)},
            attempts = case when dead then attempts else attempts + 1 end,
            last_error = case when lost then ${workerDied} else last_error end,
            errors = case when lost then ${workerDiedError} else errors end
          from picked where j.id = picked.id
          returning j.id, payload, attempts, max_attempts, dead, owner, run_at, seq,
            case when lost then null else extract(epoch from statement_timestamp() - run_at) * 1000 end::float8 as waited
        )
        select id, payload, attempts, max_attempts as "maxAttempts", dead, claimed.owner, turns.turn,
          claimed.waited as "waitedMillis",
          examined.owners as "examinedOwners", coalesce(cardinality(examined.owners) = ${sql.literal(String(maxOwners))}, false) as "isPartial"
        from (select array_agg(owner order by turn) as owners from turns) examined
        full join claimed on true left join turns on turns.owner = claimed.owner
        order by run_at, seq`.unprepared
    })(undefined).pipe(Effect.map((found) => claimOf(found, cursor)))
  }
}
