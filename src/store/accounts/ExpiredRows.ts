/** Removes rows that are older than the limits of their tenant or the installation, in bounded batches of each kind. */
import * as SqlClient from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { type Retention, shorter } from "../../domain/accounts/Retention.ts"
import { EndUserId, TenantId, typeId } from "../../domain/Ids.ts"
import { deleteEventsOf } from "../channels/EventsOfConversations.ts"
import { removeUnreachable } from "../conversations/AnonymousPeople.ts"
import { clearAnswers } from "../events/ReportedEvents.ts"
import { lastChange } from "../conversations/Activity.ts"
import * as Rows from "../Rows.ts"

/** Maximum number of rows of one kind that a batch examines and removes. */
const batchSize = 200

/** A tenant with the limits that apply to it. */
export interface Expiry extends Retention {
  readonly tenantId: TenantId
  /** The last conversation that was examined; empty at the beginning of a round. */
  readonly seen: string
}

const Ids = Schema.Struct({ id: Schema.String })
const ExpiredConversation = Schema.Struct({ id: Schema.String, endUserId: EndUserId })

export class ExpiredRows extends Effect.Service<ExpiredRows>()("store/accounts/ExpiredRows", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const daysAgo = (days: number | Fragment) => sql`now() - make_interval(days => ${days}::int)`
    const removesFullBatch = (statement: Effect.Effect<ReadonlyArray<unknown>, unknown>) =>
      Effect.map(Effect.orDie(statement), (rows) => rows.length === batchSize)

    /** The limit of the conversation `c`: that of anonymous people may be shorter. */
    const limitOf = ({ anonymousPeople, conversations }: Expiry) =>
      anonymousPeople === null
        ? sql`${conversations}::int`
        : sql`
          case when exists (
              select from end_users e
              where e.tenant_id = c.tenant_id and e.id = c.end_user_id and e.external_id is null
            ) and not exists (
              select from end_user_aliases a where a.tenant_id = c.tenant_id and a.end_user_id = c.end_user_id
            )
          then least(${conversations}::int, ${anonymousPeople}::int) else ${conversations}::int end`

    /** Whether the conversation `c` may be removed. */
    const isExpired = (expiry: Expiry) => sql`
      ${lastChange(sql)} < ${daysAgo(sql`(${limitOf(expiry)})`)} and c.state in ('AI_ACTIVE', 'CLOSED')
        and not exists (select from messages m
          where m.tenant_id = c.tenant_id and m.conversation_id = c.id
            and m.created_at >= ${daysAgo(sql`(${limitOf(expiry)})`)})
        and not exists (select from agent_runs r
          where r.tenant_id = c.tenant_id and r.conversation_id = c.id and r.status = 'running')
        and not exists (select from channel_outbox o
          where o.tenant_id = c.tenant_id and o.conversation_id = c.id and o.state in ('pending', 'sending'))`

    const lockExpired = (expiry: Expiry, ids: ReadonlyArray<string>) =>
      sql`
        select id, end_user_id as "endUserId" from conversations c
        where c.tenant_id = ${expiry.tenantId} and id = any(${ids}::text[]) and ${isExpired(expiry)}
        order by id for update of c skip locked`.pipe(Rows.all(ExpiredConversation))

    /** Removes conversations of the tenant in the order of their ids. True when there are more. */
    const conversations = (expiry: Expiry) =>
      Effect.gen(function* () {
        const { seen, tenantId } = expiry
        const days = shorter(expiry.conversations, expiry.anonymousPeople)
        if (days === null) return false
        const found = yield* sql`
          select id from conversations c
          where c.tenant_id = ${tenantId} and id > ${seen} and created_at < ${daysAgo(days)}
          order by id limit ${batchSize}`.pipe(Rows.all(Ids))
        const ids = found.map(({ id }) => id)
        // No turn can begin in a conversation whose row is locked. The second statement sees the turns that began
        // before.
        const rows = yield* lockExpired(expiry, ids)
        const expired = rows.map(({ id }) => id)
        yield* clearAnswers(sql, tenantId, sql`conversation_id = any(${expired}::text[])`)
        // The events arrived before the last change of their conversation, so newer ones are not read. Ids begin with
        // their creation time.
        const minAge = Duration.toMillis(Duration.days(days - 1))
        const endId = typeId("inb", (yield* Clock.currentTimeMillis) - minAge)
        yield* deleteEventsOf(sql, expiry, sql`i.id < ${endId} and c.id = any(${expired}::text[])`)
        yield* sql`
          delete from conversations c
          where c.tenant_id = ${tenantId} and id = any(${expired}::text[]) and ${isExpired(expiry)}`
        const people = [...new Set(rows.map(({ endUserId }) => endUserId))]
        yield* removeUnreachable(
          sql,
          people.map((id) => ({ tenantId, id }))
        )
        const last = ids.length === batchSize ? (ids.at(-1) ?? "") : ""
        yield* sql`
          update tenant_retention set conversations_seen = ${last}
          where tenant_id = ${tenantId} and conversations_seen = ${seen}`
        return last !== ""
      }).pipe(sql.withTransaction, Effect.orDie)

    /** Examines the oldest runs of each agent. Ids are in the order of time, so expired runs come first. */
    const runs = ({ runs: days, tenantId }: Expiry) =>
      days === null
        ? Effect.succeed(false)
        : removesFullBatch(sql`
            delete from agent_runs where tenant_id = ${tenantId} and id in (
              select r.id from agents a
              cross join lateral (
                select id, status, completed_at from agent_runs
                where tenant_id = a.tenant_id and agent_id = a.id order by id limit ${batchSize}
              ) r
              where a.tenant_id = ${tenantId} and r.status <> 'running' and r.completed_at < ${daysAgo(days)}
              limit ${batchSize}
            ) returning id`)

    const oldestRows = (table: Fragment, at: Fragment, { tenantId }: Expiry, days: number | null) =>
      days === null
        ? Effect.succeed(false)
        : removesFullBatch(sql`
            delete from ${table} where tenant_id = ${tenantId} and id in (
              select id from (
                select id, ${at} as at from ${table} where tenant_id = ${tenantId} order by id limit ${batchSize}
              ) oldest where at < ${daysAgo(days)}
            ) returning id`)

    const deliveries = ({ eventDeliveries: days, tenantId }: Expiry) =>
      days === null
        ? Effect.succeed(false)
        : removesFullBatch(sql`
            delete from webhook_deliveries where tenant_id = ${tenantId} and (event_id, endpoint_id) in (
              select d.event_id, d.endpoint_id from webhook_endpoints e
              join webhook_deliveries d on d.tenant_id = e.tenant_id and d.endpoint_id = e.id
              where e.tenant_id = ${tenantId} and d.status <> 'pending' and d.created_at < ${daysAgo(days)}
              limit ${batchSize}
            ) returning event_id`)

    /** Keeps the last job of a source and the one that made its live generation. */
    const jobs = ({ ingestionJobs: days, tenantId }: Expiry) =>
      days === null
        ? Effect.succeed(false)
        : removesFullBatch(sql`
            delete from ingestion_jobs where tenant_id = ${tenantId} and id in (
              select j.id from sources s join ingestion_jobs j on j.tenant_id = s.tenant_id and j.source_id = s.id
              where s.tenant_id = ${tenantId} and j.status in ('SUCCEEDED', 'FAILED', 'CANCELLED')
                and j.completed_at < ${daysAgo(days)} and j.generation <> s.live_generation
                and exists (select from ingestion_jobs n
                  where n.tenant_id = s.tenant_id and n.source_id = s.id and n.generation > j.generation)
              limit ${batchSize}
            ) returning id`)

    /** One batch of each kind; true when there is more to remove. */
    const remove = Effect.fn("ExpiredRows.remove")(function* (expiry: Expiry) {
      const more = yield* Effect.all([
        conversations(expiry),
        runs(expiry),
        oldestRows(sql`audit_entries`, sql`at`, expiry, expiry.auditEntries),
        oldestRows(sql`email_logs`, sql`created_at`, expiry, expiry.emailLogs),
        deliveries(expiry),
        jobs(expiry)
      ])
      return more.includes(true)
    })

    /** Mails to the operator. True when there is more to remove. */
    const removeMails = (days: number) =>
      removesFullBatch(sql`
        with old as materialized (
          select id from email_logs where created_at < ${daysAgo(days)} and tenant_id is null
          order by created_at limit ${batchSize} for update skip locked
        )
        delete from email_logs l using old where l.id = old.id returning l.id`)

    return { remove, removeMails } as const
  })
}) {}
