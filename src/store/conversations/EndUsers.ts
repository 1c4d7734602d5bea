/** End users: listed, exported and erased with all data stored about them. */
import * as SqlClient from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { JobQueueError } from "../../capabilities/JobQueue.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { EndUser } from "../../domain/conversations/EndUser.ts"
import { EndUserId } from "../../domain/Ids.ts"
import { pageOf } from "../../domain/Page.ts"
import { ArtifactRef } from "../../domain/knowledge/Source.ts"
import { clearStoredAnswers } from "../accounts/ManageAnswers.ts"
import { isOwnEvent } from "../channels/EventOwners.ts"
import { clearAnswers } from "../events/ReportedEvents.ts"
import { passagesOf } from "../chat/RunPassages.ts"
import { lastChange } from "./Activity.ts"
import { retryDeadlocks } from "../Deadlock.ts"
import { isoTime } from "../Jsonb.ts"
import * as Rows from "../Rows.ts"

const Row = Schema.Struct({ ...EndUser.fields, createdAt: Schema.DateTimeUtcFromDate })

/** One stored item about a person, and the id after which the next page begins. */
const Line = Schema.Struct({
  id: Schema.String,
  line: Schema.Record({ key: Schema.String, value: Schema.Unknown })
})
export type Line = typeof Line.Type

export interface EndUserFilter {
  readonly limit: number
  readonly after?: string | undefined
  /** Exact match. */
  readonly externalId?: string | undefined
}

export class EndUserStore extends Effect.Service<EndUserStore>()("store/conversations/EndUsers", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const columns = sql`
      e.id, e.external_id as "externalId", e.created_at as "createdAt",
      (select count(*) from conversations c
        where c.tenant_id = e.tenant_id and c.end_user_id = e.id and c.channel <> 'test')::int as conversations`

    /** True for a person who has only test conversations of the team. */
    const isTestUser = sql`(
      e.external_id is null
      and exists (select from conversations c
        where c.tenant_id = e.tenant_id and c.end_user_id = e.id and c.channel = 'test')
      and not exists (select from conversations c
        where c.tenant_id = e.tenant_id and c.end_user_id = e.id and c.channel <> 'test')
    )`

    const select = ({ tenantId }: TenantScope, condition: Fragment, limit: number) =>
      sql`
        select ${columns} from end_users e
        where e.tenant_id = ${tenantId} and ${condition} order by e.id desc limit ${limit}`.pipe(
        Rows.all(Row)
      )

    /** Newest first. */
    const list = ({ tenantId }: TenantScope, { limit, after, externalId }: EndUserFilter) => {
      const conditions = [
        sql`not ${isTestUser}`,
        ...(after === undefined ? [] : [sql`e.id < ${after}`]),
        ...(externalId === undefined ? [] : [sql`e.external_id = ${externalId}`])
      ]
      return select({ tenantId }, sql`${sql.and(conditions)}`, limit + 1).pipe(
        Effect.map((found) => pageOf(found, limit)),
        Effect.withSpan("EndUserStore.list")
      )
    }

    const find = ({ tenantId }: TenantScope, id: EndUserId) =>
      select({ tenantId }, sql`e.id = ${id}`, 1).pipe(
        Effect.map((found) => Option.fromNullable(found[0])),
        Effect.withSpan("EndUserStore.find")
      )

    const lines = (rows: Fragment) => Rows.all(Line)(sql`select id, line from (${rows}) rows order by id`)

    /** Conversations after the id `after`, oldest first. */
    const conversations = ({ tenantId }: TenantScope, id: EndUserId, after: string, limit: number) =>
      lines(sql`
        select c.id, json_build_object('type', 'conversation', 'id', c.id, 'agentId', c.agent_id,
          'channel', c.channel, 'state', c.state, 'createdAt', ${isoTime(sql, sql`c.created_at`)},
          'updatedAt', ${isoTime(sql, lastChange(sql))}) as line
        from conversations c
        where c.tenant_id = ${tenantId} and c.end_user_id = ${id} and c.id > ${after} order by c.id limit ${limit}`)

    /** Messages of a conversation after the id `after`, oldest first. */
    const messages = ({ tenantId }: TenantScope, conversationId: string, after: string, limit: number) =>
      lines(sql`
        select m.id, json_build_object('type', 'message', 'id', m.id, 'conversationId', m.conversation_id,
          'role', m.role, 'content', m.content, 'citations', m.citations, 'attachments', m.attachments,
          'feedback', (
            select json_build_object('rating', f.rating, 'comment', f.comment) from message_feedback f
            where f.tenant_id = m.tenant_id and f.message_id = m.id
          ),
          'createdAt', ${isoTime(sql, sql`m.created_at`)}) as line
        from messages m
        where m.tenant_id = ${tenantId} and m.conversation_id = ${conversationId} and m.id > ${after}
        order by m.id limit ${limit}`)

    /** Runs of a conversation after the id `after`, oldest first, with their stored, redacted events. */
    const runs = ({ tenantId }: TenantScope, conversationId: string, after: string, limit: number) =>
      lines(sql`
        select r.id, json_build_object('type', 'run', 'id', r.id, 'conversationId', r.conversation_id,
          'status', r.status, 'message', r.user_message, 'startedAt', ${isoTime(sql, sql`r.started_at`)},
          'completedAt', ${isoTime(sql, sql`r.completed_at`)},
          'events', (
            select coalesce(json_agg(json_build_object('sequence', e.sequence, 'type', e.type, 'status', e.status,
              'label', e.label, 'payload', e.payload, 'timestamp', ${isoTime(sql, sql`e.at`)}) order by e.sequence), '[]')
            from agent_run_events e where e.tenant_id = r.tenant_id and e.run_id = r.id
          ), 'passages', (${passagesOf(sql)})) as line
        from agent_runs r
        where r.tenant_id = ${tenantId} and r.conversation_id = ${conversationId} and r.id > ${after}
        order by r.id limit ${limit}`)

    /** Notes on a conversation after the id `after`, by id. */
    const notes = ({ tenantId }: TenantScope, conversationId: string, after: string, limit: number) =>
      lines(sql`
        select e.id, json_build_object('type', 'note', 'id', e.id, 'conversationId', e.conversation_id,
          'content', e.content, 'createdAt', ${isoTime(sql, sql`e.created_at`)}) as line
        from conversation_entries e
        where e.tenant_id = ${tenantId} and e.conversation_id = ${conversationId} and e.kind = 'note' and e.id > ${after}
        order by e.id limit ${limit}`)

    /** The person's aliases at messaging providers. */
    const aliases = ({ tenantId }: TenantScope, id: EndUserId) =>
      lines(sql`
        select a.channel || ' ' || a.kind || ' ' || a.value as id, json_build_object('type', 'alias',
          'channel', a.channel, 'kind', a.kind, 'value', a.value, 'createdAt', ${isoTime(sql, sql`a.created_at`)}) as line
        from end_user_aliases a where a.tenant_id = ${tenantId} and a.end_user_id = ${id}`).pipe(
        Effect.orDie,
        Effect.withSpan("EndUserStore.aliases")
      )

    /**
     * True for delivered events `i` of the person. They do not refer to the person's row, so they are found by the
     * messages made from them and by the sender. The sender may also write to other tenants, so events for another
     * tenant's account are excluded.
     */
    const isOfPerson = ({ tenantId }: TenantScope, id: EndUserId) => sql`
      (exists (
        select from messages m join conversations c on c.tenant_id = m.tenant_id and c.id = m.conversation_id
        where c.tenant_id = ${tenantId} and c.end_user_id = ${id} and c.channel = i.channel and m.channel_message_id = i.message_id
      ) or exists (
        select from end_user_aliases a
        cross join lateral jsonb_build_array(jsonb_build_object('kind', a.kind, 'value', a.value)) as name
        where a.tenant_id = ${tenantId} and a.end_user_id = ${id} and a.channel = i.channel
          and (i.event -> 'from' @> name or i.event -> 'aliases' @> name)
          and not exists (
            select from channels o
            where o.channel = i.channel and o.external_id = i.account_id and o.tenant_id <> a.tenant_id
              and (o.active or not exists (
                select from channels own where own.channel = o.channel and own.external_id = o.external_id
                  and own.tenant_id = a.tenant_id
              ))
          )
      ))`

    /** Delivered events after the id `after`, oldest first, as the provider sent them. */
    const deliveries = (scope: TenantScope, id: EndUserId, after: string, limit: number) =>
      lines(sql`/* every tenant: directory */
        select i.id, json_build_object('type', 'delivery', 'channel', i.channel, 'accountId', i.account_id,
          'receivedAt', ${isoTime(sql, sql`i.received_at`)}, 'raw', i.raw) as line
        from channel_inbox i where i.id > ${after} and ${isOfPerson(scope, id)} and ${isOwnEvent(sql, scope)}
        order by i.id limit ${limit}`)

    /**
     * Deletes the delivered events of the person, and their jobs, whose serial keys have an alias. A job that runs
     * loses its key.
     */
    const eraseDeliveries = (scope: TenantScope, id: EndUserId) =>
      sql`/* every tenant: directory */
        with erased as (delete from channel_inbox i where ${isOfPerson(scope, id)} returning i.id),
        jobs as materialized (
          select j.id, j.state from queue_jobs j join erased on erased.id = j.payload ->> 'inboxId'
          where j.queue = 'channel-inbound' for update of j skip locked
        ), running as (
          update queue_jobs set serial_key = null where id in (select id from jobs where state = 'active')
        )
        delete from queue_jobs where id in (select id from jobs where state <> 'active')`

    /** Files of all the person's conversations. */
    const filesOf = ({ tenantId }: TenantScope, id: EndUserId) =>
      sql`
        select distinct a.ref from conversation_artifacts a
        join conversations c on c.tenant_id = a.tenant_id and c.id = a.conversation_id
        where c.tenant_id = ${tenantId} and c.end_user_id = ${id}`.pipe(
        Rows.all(Schema.Struct({ ref: ArtifactRef }))
      )

    /**
     * Ends the tenant's running previews of corrections, and removes the copies of drafts in them: a draft that quotes
     * the person is deleted with its turn. Earlier versions kept copies in ended previews.
     */
    const endPreviews = (tenantId: TenantScope["tenantId"]) => sql`
      update experiments set curated = null, ended_at = coalesce(ended_at, now()),
        status = case when status in ('queued', 'running') then 'cancelled' else status end
      where tenant_id = ${tenantId} and curated is not null`

    /**
     * Erases everything about the person, in one transaction. Rows that refer to the person are deleted by cascade.
     * `busy` while a turn of the person runs on a live process, which would write again. `release` joins the
     * transaction, with the files of the person's conversations.
     */
    const erase = Effect.fn("EndUserStore.erase")(
      function* (
        { tenantId }: TenantScope,
        id: EndUserId,
        release: (files: ReadonlyArray<ArtifactRef>) => Effect.Effect<void, JobQueueError>
      ) {
        const rows = yield* sql`
          select id from end_users where tenant_id = ${tenantId} and id = ${id} for update`
        if (rows.length === 0) return "missing" as const
        // No turn can begin in a conversation whose row is locked.
        yield* sql`
          select id from conversations where tenant_id = ${tenantId} and end_user_id = ${id} order by id for update`
        const running = yield* sql`
          select r.id from conversations c
          join agent_runs r on r.tenant_id = c.tenant_id and r.conversation_id = c.id and r.status = 'running'
          join instances i on i.id = r.instance_id and i.lease_until > now()
          where c.tenant_id = ${tenantId} and c.end_user_id = ${id} limit 1`
        if (running.length > 0) return "busy" as const
        yield* eraseDeliveries({ tenantId }, id)
        const files = yield* filesOf({ tenantId }, id)
        yield* clearAnswers(
          sql,
          tenantId,
          sql`conversation_id in (select id from conversations where tenant_id = ${tenantId} and end_user_id = ${id})`
        )
        yield* clearStoredAnswers(sql, tenantId)
        yield* sql`delete from end_users where tenant_id = ${tenantId} and id = ${id}`
        // Last: an experiment that starts meanwhile waits for the turns, and has locked no other experiment then.
        yield* endPreviews(tenantId)
        if (files.length > 0) yield* release(files.map(({ ref }) => ref))
        return "erased" as const
      },
      sql.withTransaction,
      Effect.catchTag("SqlError", Effect.die),
      (erasing) => retryDeadlocks(erasing)
    )

    return { list, find, aliases, deliveries, conversations, messages, notes, runs, erase } as const
  })
}) {}
