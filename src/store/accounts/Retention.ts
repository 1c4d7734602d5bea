/** Retention periods of tenants, in `tenant_retention`, and the removal of older rows in bounded batches. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as SqlSchema from "@effect/sql/SqlSchema"
import type { Fragment } from "@effect/sql/Statement"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { type PatchRetention, Retention } from "../../domain/accounts/Retention.ts"
import { forgetAnswers } from "../events/ReportedEvents.ts"
import { TenantId } from "../../domain/Ids.ts"

/** Maximum number of rows of one kind that a batch examines and removes. */
const batch = 200
/** How long a process holds a tenant. After a crash, another process can take it then. */
const lease = Duration.minutes(10)
/** Time between two rounds of a tenant. */
const pause = Duration.hours(1)

const keepsAll: Retention = {
  conversations: null,
  runs: null,
  auditEntries: null,
  emailLogs: null,
  eventDeliveries: null,
  ingestionJobs: null
}

const Claimed = Schema.Struct({ tenantId: TenantId, seen: Schema.String, ...Retention.fields })
type Claimed = typeof Claimed.Type

const Ids = Schema.Struct({ id: Schema.String })

export class RetentionStore extends Effect.Service<RetentionStore>()("store/accounts/Retention", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const columns = sql`conversations, runs, audit_entries as "auditEntries", email_logs as "emailLogs",
      event_deliveries as "eventDeliveries", ingestion_jobs as "ingestionJobs"`

    const select = SqlSchema.findOne({
      Request: TenantId,
      Result: Retention,
      execute: (tenantId) => sql`select ${columns} from tenant_retention where tenant_id = ${tenantId}`
    })

    /** The limits of a tenant. */
    const find = ({ tenantId }: TenantScope) =>
      select(tenantId).pipe(
        Effect.orDie,
        Effect.map(Option.getOrElse(() => keepsAll)),
        Effect.withSpan("RetentionStore.find")
      )

    /** Changes the given limits. The next sweep removes what is then too old. */
    const patch = Effect.fn("RetentionStore.patch")(function* (
      { tenantId }: TenantScope,
      change: PatchRetention
    ) {
      const changed = sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`insert into tenant_retention (tenant_id) values (${tenantId}) on conflict do nothing`
          yield* sql`select tenant_id from tenant_retention where tenant_id = ${tenantId} for update`
          const next = { ...(yield* find({ tenantId })), ...change }
          yield* sql`
            update tenant_retention set conversations = ${next.conversations}, runs = ${next.runs},
              audit_entries = ${next.auditEntries}, email_logs = ${next.emailLogs},
              event_deliveries = ${next.eventDeliveries}, ingestion_jobs = ${next.ingestionJobs},
              conversations_seen = '', updated_at = now(),
              -- Not before a process that is at it has ended.
              due_at = least(due_at, now() + make_interval(secs => ${Duration.toSeconds(lease)}))
            where tenant_id = ${tenantId}`
          return next
        })
      )
      return yield* changed
    }, Effect.orDie)

    const claimRow = SqlSchema.findOne({
      Request: Schema.Void,
      Result: Claimed,
      execute: () => sql`/* every tenant: sweep */
        update tenant_retention set due_at = now() + make_interval(secs => ${Duration.toSeconds(lease)})
        where tenant_id = (
          select tenant_id from tenant_retention where due_at <= now() order by due_at limit 1 for update skip locked)
        returning tenant_id as "tenantId", conversations_seen as seen, ${columns}`
    })

    /** Claims the tenant that has waited longest. */
    const claim = claimRow(undefined).pipe(Effect.orDie, Effect.withSpan("RetentionStore.claim"))

    const before = (days: number) => sql`now() - make_interval(days => ${days}::int)`
    const removed = (statement: Effect.Effect<ReadonlyArray<unknown>, unknown>) =>
      Effect.map(Effect.orDie(statement), (rows) => rows.length === batch)

    /** Conditions under which a conversation may be removed. */
    const isOver = (days: number) => sql`
      c.updated_at < ${before(days)} and c.state in ('AI_ACTIVE', 'CLOSED')
        and not exists (select from messages m
          where m.tenant_id = c.tenant_id and m.conversation_id = c.id and m.created_at >= ${before(days)})
        and not exists (select from agent_runs r
          where r.tenant_id = c.tenant_id and r.conversation_id = c.id and r.status = 'running')
        and not exists (select from channel_outbox o
          where o.tenant_id = c.tenant_id and o.conversation_id = c.id and o.state in ('pending', 'sending'))`

    const window = SqlSchema.findAll({
      Request: Schema.Struct({ tenantId: TenantId, after: Schema.String, days: Schema.Int }),
      Result: Ids,
      execute: ({ tenantId, after, days }) => sql`
        select id from conversations c
        where c.tenant_id = ${tenantId} and id > ${after} and created_at < ${before(days)}
        order by id limit ${batch}`
    })

    const locked = SqlSchema.findAll({
      Request: Schema.Struct({ tenantId: TenantId, ids: Schema.Array(Schema.String), days: Schema.Int }),
      Result: Ids,
      execute: ({ tenantId, ids, days }) => sql`
        select id from conversations c
        where c.tenant_id = ${tenantId} and id = any(${ids}::text[]) and ${isOver(days)}
        order by id for update skip locked`
    })

    /** Removes conversations of the tenant in the order of their ids. True when there are more. */
    const conversations = ({ conversations: days, seen, tenantId }: Claimed) =>
      days === null
        ? Effect.succeed(false)
        : Effect.gen(function* () {
            const ids = (yield* window({ tenantId, after: seen, days })).map(({ id }) => id)
            // No turn can begin in a conversation whose row is locked. The second statement sees the turns that began
            // before.
            const over = (yield* locked({ tenantId, ids, days })).map(({ id }) => id)
            yield* forgetAnswers(sql, tenantId, sql`conversation_id = any(${over}::text[])`)
            yield* sql`
              delete from conversations c
              where c.tenant_id = ${tenantId} and id = any(${over}::text[]) and ${isOver(days)}`
            const last = ids.length === batch ? (ids.at(-1) ?? "") : ""
            yield* sql`
              update tenant_retention set conversations_seen = ${last}
              where tenant_id = ${tenantId} and conversations_seen = ${seen}`
            return last !== ""
          }).pipe(sql.withTransaction, Effect.orDie)

    /** Examines the oldest runs of each agent. Ids are in the order of time, so expired runs come first. */
    const runs = ({ runs: days, tenantId }: Claimed) =>
      days === null
        ? Effect.succeed(false)
        : removed(sql`
            delete from agent_runs where tenant_id = ${tenantId} and id in (
              select r.id from agents a
              cross join lateral (
                select id, status, completed_at from agent_runs
                where tenant_id = a.tenant_id and agent_id = a.id order by id limit ${batch}
              ) r
              where a.tenant_id = ${tenantId} and r.status <> 'running' and r.completed_at < ${before(days)}
              limit ${batch}
            ) returning id`)

    const oldest = (table: Fragment, at: Fragment, { tenantId }: Claimed, days: number | null) =>
      days === null
        ? Effect.succeed(false)
        : removed(sql`
            delete from ${table} where tenant_id = ${tenantId} and id in (
              select id from (
                select id, ${at} as at from ${table} where tenant_id = ${tenantId} order by id limit ${batch}
              ) oldest where at < ${before(days)}
            ) returning id`)

    const deliveries = ({ eventDeliveries: days, tenantId }: Claimed) =>
      days === null
        ? Effect.succeed(false)
        : removed(sql`
            delete from webhook_deliveries where tenant_id = ${tenantId} and (event_id, endpoint_id) in (
              select d.event_id, d.endpoint_id from webhook_endpoints e
              join webhook_deliveries d on d.tenant_id = e.tenant_id and d.endpoint_id = e.id
              where e.tenant_id = ${tenantId} and d.status <> 'pending' and d.created_at < ${before(days)}
              limit ${batch}
            ) returning event_id`)

    /** Keeps the last job of a source and the one that made its live generation. */
    const jobs = ({ ingestionJobs: days, tenantId }: Claimed) =>
      days === null
        ? Effect.succeed(false)
        : removed(sql`
            delete from ingestion_jobs where tenant_id = ${tenantId} and id in (
              select j.id from sources s join ingestion_jobs j on j.tenant_id = s.tenant_id and j.source_id = s.id
              where s.tenant_id = ${tenantId} and j.status in ('SUCCEEDED', 'FAILED', 'CANCELLED')
                and j.completed_at < ${before(days)} and j.generation <> s.live_generation
                and exists (select from ingestion_jobs n
                  where n.tenant_id = s.tenant_id and n.source_id = s.id and n.generation > j.generation)
              limit ${batch}
            ) returning id`)

    /** One batch of each kind; true when there is more to remove. */
    const remove = Effect.fn("RetentionStore.remove")(function* (claimed: Claimed) {
      const more = yield* Effect.all([
        conversations(claimed),
        runs(claimed),
        oldest(sql`audit_entries`, sql`at`, claimed, claimed.auditEntries),
        oldest(sql`email_logs`, sql`created_at`, claimed, claimed.emailLogs),
        deliveries(claimed),
        jobs(claimed)
      ])
      return more.includes(true)
    })

    /** Releases a claimed tenant: to the end of the line when there is more to remove, else for an hour. */
    const release = Effect.fn("RetentionStore.release")(function* ({ tenantId }: Claimed, more: boolean) {
      const due = more ? sql`now()` : sql`now() + make_interval(secs => ${Duration.toSeconds(pause)})`
      yield* sql`update tenant_retention set due_at = ${due} where tenant_id = ${tenantId}`
    }, Effect.orDie)

    return { find, patch, claim, remove, release } as const
  })
}) {}
