/**
 * Jobs of a tenant that is being moved. While the tenant is not served, they wait in a separate table, also those that
 * are queued meanwhile (by the trigger of tenant_moves_hold). They are transferred once: a job that arrives again is
 * ignored.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import * as Effect from "effect/Effect"
import type { HeldJob } from "../../domain/accounts/TenantMove.ts"
import type { TenantId } from "../../domain/Ids.ts"
import { isOfMessage, isOwnEvent } from "../channels/EventOwners.ts"
import { toJsonb } from "../Jsonb.ts"
import * as Rows from "../Rows.ts"

/** Maximum jobs, and events, of one statement. */
const pageSize = 100

export class HeldJobs extends Effect.Service<HeldJobs>()("store/moves/HeldJobs", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    /** Accounts of the tenant's channels: those when it was last served; the current ones if it is not being moved. */
    const accountsOf = (tenantId: TenantId) => sql`coalesce(
      (select accounts from tenant_moves where tenant = ${tenantId} and state <> 'serving'),
      array(select channel || ':' || external_id from channels where tenant_id = ${tenantId} and active)
    )`

    /**
     * True if another tenant may have had the account at the time `at`: its configuration is active, or was changed
     * since.
     */
    const hadOther = (tenantId: TenantId, account: Fragment, at: Fragment) => sql`exists (
      select from channels o
      where o.channel || ':' || o.external_id = ${account} and o.tenant_id <> ${tenantId}
        and (o.active or o.updated_at > ${at})
    )`

    /** True for a job `j` of the tenant. An account may have been another tenant's when a job of it was queued. */
    const isOfTenant = (tenantId: TenantId) => sql`(
      j.payload ->> 'tenantId' = ${tenantId} or split_part(j.owner, '/', 1) = ${tenantId}
        or j.owner = any(${accountsOf(tenantId)}) and not exists (
          select from channels own
          where own.tenant_id = ${tenantId} and own.active and own.channel || ':' || own.external_id = j.owner
            and own.created_at > j.created_at)
    )`

    /** True for a job `j` that moves with the tenant: not for one that failed when another tenant had its account. */
    const isMoved = (tenantId: TenantId) => sql`${isOfTenant(tenantId)}
      and not (j.state = 'failed' and ${hadOther(tenantId, sql`j.owner`, sql`j.created_at`)})`

    const eventOf = sql`(select to_jsonb(i) from channel_inbox i where i.id = gone.payload ->> 'inboxId')`

    /**
     * Takes the tenant's jobs out of the queue: those that wait or have failed, and with `running` also those that run,
     * which then wait as if they had not begun.
     */
    const take = (tenantId: TenantId, { running }: { readonly running: boolean }) =>
      sql`/* every tenant: directory */
        with gone as (
          delete from queue_jobs j
          where ${isMoved(tenantId)} and j.state in ${sql.in(running ? ["waiting", "failed", "active"] : ["waiting", "failed"])}
          returning j.*
        )
        insert into tenant_moves_jobs (tenant, id, job, event)
        select ${tenantId}, gone.id, case when gone.state = 'active'
          then to_jsonb(gone) || jsonb_build_object('state', 'waiting', 'attempts', greatest(gone.attempts - 1, 0))
          else to_jsonb(gone) end, ${eventOf}
        from gone
        on conflict (tenant, id) do update set job = excluded.job, event = excluded.event, queued = false`.pipe(
        Rows.none
      )

    /** The number of the tenant's running jobs. */
    const countRunning = (tenantId: TenantId) =>
      sql<{ readonly count: number }>`
        select count(*)::int as count from queue_jobs j where j.state = 'active' and ${isOfTenant(tenantId)}`.pipe(
        Effect.orDie,
        Effect.map(([row]) => row?.count ?? 0)
      )

    /** The number of jobs that wait to be transferred. */
    const countHeld = (tenantId: TenantId) =>
      sql<{ readonly count: number }>`
        select count(*)::int as count from tenant_moves_jobs where tenant = ${tenantId} and not queued`.pipe(
        Effect.orDie,
        Effect.map(([row]) => row?.count ?? 0)
      )

    /** Puts the waiting jobs into the queue. Joins the caller's transaction, in which the tenant is served again. */
    const requeue = (tenantId: TenantId) =>
      sql`
        with back as (
          update tenant_moves_jobs set queued = true where tenant = ${tenantId} and not queued returning job
        ), put as (
          insert into queue_jobs (id, queue, owner, payload, state, serial_key, attempts, max_attempts, run_at, last_error, errors,
            finished_at, created_at)
          select j.id, j.queue, j.owner, j.payload, j.state, j.serial_key, j.attempts, j.max_attempts, j.run_at, j.last_error, j.errors,
            j.finished_at, j.created_at
          from back cross join lateral jsonb_populate_record(null::queue_jobs, back.job) j order by j.seq
          on conflict (id) do nothing
          returning queue
        )
        select pg_notify('queue_jobs', queue) from (select distinct queue from put) queues`.pipe(
        Effect.asVoid
      )

    /** The oldest waiting jobs. */
    const read = (tenantId: TenantId) =>
      sql<HeldJob>`
        select id, job, event from tenant_moves_jobs where tenant = ${tenantId} and not queued
        order by (job ->> 'seq')::bigint limit ${pageSize}::int`.pipe(Effect.orDie)

    /**
     * Stores events of channels, and claims their messages as deliveries do. An event that exists already gets the
     * given outcome.
     */
    const storeEvents = (events: ReadonlyArray<unknown>) =>
      events.length === 0
        ? Effect.void
        : Effect.gen(function* () {
            const given = sql`jsonb_populate_recordset(null::channel_inbox, ${toJsonb(events)}::jsonb)`
            yield* sql`
              insert into channel_inbox select * from ${given} g
              on conflict (id) do update set state = excluded.state, outcome = excluded.outcome,
                processed_at = excluded.processed_at, event = excluded.event
              where excluded.state <> 'queued'`
            yield* sql`
              insert into dedupe_keys (key, expires_at)
              select 'inbound:' || g.channel || ':' || g.message_id, g.received_at + interval '24 hours' from ${given} g
              where g.message_id is not null and g.received_at > now() - interval '24 hours'
              order by 1 on conflict do nothing`
          }).pipe(Effect.asVoid, Effect.orDie)

    /** Stores jobs, with the events that they process. Jobs that have arrived before are not changed. */
    const store = (tenantId: TenantId, jobs: ReadonlyArray<HeldJob>) =>
      Effect.gen(function* () {
        yield* sql`
          insert into tenant_moves_jobs (tenant, id, job, event)
          select ${tenantId}, id, job, event
          from jsonb_to_recordset(${toJsonb(jobs)}::jsonb) as given (id text, job jsonb, event jsonb)
          on conflict (tenant, id) do nothing`
        yield* storeEvents(jobs.flatMap(({ event }) => (event === null ? [] : [event])))
      }).pipe(sql.withTransaction, Effect.orDie)

    /** Jobs of a tenant that is not being moved: those that wait, run or have failed, in the form of {@link read}. */
    const ofTenant = (tenantId: TenantId, after: string) =>
      sql<HeldJob>`/* every tenant: directory */
        select gone.id, gone.job, ${eventOf} as event from (
          select j.id, j.payload, case when j.state = 'active' then to_jsonb(j) || '{"state": "waiting"}' else to_jsonb(j) end as job
          from queue_jobs j
          where j.id > ${after} and j.state <> 'completed' and ${isMoved(tenantId)} order by j.id limit ${pageSize}::int
        ) gone order by gone.id`.pipe(
        Effect.orDie,
        Effect.map((jobs) => ({ jobs, next: jobs.length === pageSize ? (jobs.at(-1)?.id ?? null) : null }))
      )

    const acknowledge = (tenantId: TenantId, ids: ReadonlyArray<string>) =>
      sql`
        delete from tenant_moves_jobs where tenant = ${tenantId} and not queued and id in ${sql.in(ids)}`.pipe(
        Rows.none
      )

    const isOfAccounts = (tenantId: TenantId) =>
      sql`i.channel || ':' || i.account_id = any(${accountsOf(tenantId)})`

    /** Own events of the tenant's accounts that have been processed, in the order of their ids. */
    const readEvents = (tenantId: TenantId, after: string) =>
      sql<{ readonly id: string; readonly event: unknown }>`/* every tenant: directory */
        select i.id, to_jsonb(i) as event from channel_inbox i
        where i.id > ${after} and i.state <> 'queued' and ${isOfAccounts(tenantId)} and ${isOwnEvent(sql, { tenantId })}
        order by i.id limit ${pageSize}::int`.pipe(
        Effect.orDie,
        Effect.map((found) => ({
          events: found.map(({ event }) => event),
          next: found.length === pageSize ? (found.at(-1)?.id ?? null) : null
        }))
      )

    /** Removes some own events of the tenant's accounts, before their rows are removed. True when there may be more. */
    const removeEvents = (tenantId: TenantId) =>
      sql`/* every tenant: directory */
        delete from channel_inbox where id in (
          select i.id from channel_inbox i where ${isOfAccounts(tenantId)} and (
            exists (
              select from channels own
              where own.channel = i.channel and own.external_id = i.account_id and own.tenant_id = ${tenantId} and own.active
                and own.created_at <= i.received_at
            ) and not ${hadOther(tenantId, sql`i.channel || ':' || i.account_id`, sql`i.received_at`)}
            or ${isOfMessage(sql, { tenantId })}
          )
          limit ${pageSize}::int
        ) returning id`.pipe(
        Effect.orDie,
        Effect.map((rows) => rows.length === pageSize)
      )

    /** Removes the tenant's jobs that have ended. */
    const removeEnded = (tenantId: TenantId) =>
      sql`delete from queue_jobs j where j.state = 'completed' and ${isOfTenant(tenantId)}`.pipe(Rows.none)

    return {
      take,
      countRunning,
      ofTenant,
      countHeld,
      requeue,
      read,
      store,
      storeEvents,
      acknowledge,
      readEvents,
      removeEvents,
      removeEnded
    } as const
  })
}) {}
