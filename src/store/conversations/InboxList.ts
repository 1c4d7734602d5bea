/** The inbox of one member: conversations by last activity, unread state, and search. */
import * as SqlClient from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { opaque } from "../../concurrency/OpaqueValue.ts"
import { forEveryTenant } from "../../concurrency/TenantSession.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { type InboxFilter, InboxStatus, maxUnread } from "../../domain/conversations/Inbox.ts"
import { ConversationId, type MessageId, type UserId } from "../../domain/Ids.ts"
import type { Page } from "../../domain/Page.ts"
import { toJsonb } from "../Jsonb.ts"
import { lastChange, minUpdatedAt } from "./Activity.ts"
import { ConversationRow } from "./Conversations.ts"
import * as Rows from "../Rows.ts"

/** Maximum number of conversations that a search finds in each searched place. */
const searchLimit = 500

const Row = Schema.Struct({
  ...ConversationRow.fields,
  /** Position in the order: the time stamp with all its digits. */
  moment: Schema.String
})
type ListedConversation = Omit<typeof Row.Type, "moment">

const StandingRow = Schema.Struct({ conversationId: ConversationId, ...InboxStatus.fields })

/** The member of a tenant whose inbox is read. */
export interface InboxMember extends TenantScope {
  readonly userId: UserId
}

/** Parses a cursor, `<moment> <id>` of the last row of a page. */
const parseCursor = (after: string) => {
  const [moment = "", id = ""] = after.split(" ")
  return { moment, id }
}

export class InboxListStore extends Effect.Service<InboxListStore>()("store/conversations/InboxList", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    /** Position up to which the member has read `c`, and the time before which everything counts as read. */
    const joinReads = ({ tenantId, userId }: InboxMember) => sql`
      left join users reader on reader.tenant_id = ${tenantId} and reader.id = ${userId}
      left join conversation_reads seen on seen.tenant_id = ${tenantId} and seen.user_id = ${userId}
        and seen.conversation_id = c.id`

    // By the time at which a message was stored, because a provider may deliver it long after it was written.
    const isUnread = sql`(
      c.message_count > coalesce(seen.position, 0) and ${lastChange(sql)} > coalesce(reader.inbox_read_at, '-infinity')
      and exists (
        select from messages m where m.tenant_id = c.tenant_id and m.conversation_id = c.id and m.position > coalesce(seen.position, 0)
          and m.role = 'user' and coalesce(m.stored_at, m.created_at) > coalesce(reader.inbox_read_at, '-infinity')
      )
    )`

    /** Conversations with all words of `q` in one message, one note or the person's name. */
    const matchingIds = ({ tenantId }: TenantScope, q: string) => sql`
      (select m.conversation_id from messages m where m.tenant_id = ${tenantId}
        and inbox_words(m.tenant_id, m.content) @@ inbox_query(${tenantId}, ${q}) limit ${searchLimit})
      union
      (select e.conversation_id from conversation_entries e
      where e.tenant_id = ${tenantId} and e.kind = 'note'
        and inbox_words(e.tenant_id, e.content) @@ inbox_query(${tenantId}, ${q}) limit ${searchLimit})
      union
      select own.id from (
        (select p.id from end_users p where p.tenant_id = ${tenantId} and p.external_id is not null
          and inbox_words(p.tenant_id, p.external_id) @@ inbox_query(${tenantId}, ${q}) limit ${searchLimit})
        union
        (select n.end_user_id from end_user_aliases n where n.tenant_id = ${tenantId}
          and inbox_words(n.tenant_id, n.value) @@ inbox_query(${tenantId}, ${q}) limit ${searchLimit})
      ) person (id) join conversations own on own.end_user_id = person.id and own.tenant_id = ${tenantId}`

    const conditionsOf = (
      member: InboxMember,
      { agentId, assignee, channel, label, q, state, unread }: InboxFilter
    ): ReadonlyArray<Fragment> => [
      sql`c.tenant_id = ${opaque(sql, member.tenantId)}`,
      channel === undefined ? sql`c.channel <> 'test'` : sql`c.channel = ${channel}`,
      ...(agentId === undefined ? [] : [sql`c.agent_id = ${agentId}`]),
      ...(state === undefined ? [] : [sql`c.state = ${state}`]),
      ...(assignee === undefined
        ? []
        : assignee === "none"
          ? [sql`c.assignee_id is null`, sql`c.state <> 'CLOSED'`]
          : [sql`c.assignee_id = ${assignee === "me" ? member.userId : assignee}`]),
      ...(label === undefined
        ? []
        : [
            sql`exists (select from conversation_labels l where l.tenant_id = c.tenant_id and l.conversation_id = c.id
              and l.label_id = ${label})`
          ]),
      ...(unread === undefined ? [] : [isUnread]),
      ...(q === undefined ? [] : [sql`c.id in (${matchingIds(member, q)})`])
    ]

    /** Last activity first. Test conversations of the team only if their channel is requested. */
    const list = Effect.fn("InboxListStore.list")(function* (
      member: InboxMember,
      filter: InboxFilter,
      { after, limit }: { readonly limit: number; readonly after: string | undefined }
    ) {
      const place = after === undefined ? undefined : parseCursor(after)
      const changed = lastChange(sql)
      const conditions = sql.and([
        ...conditionsOf(member, filter),
        ...(place === undefined
          ? []
          : [
              sql`c.updated_at <= ${place.moment}::timestamptz`,
              sql`(${changed}, c.id) < (${place.moment}::timestamptz, ${place.id})`
            ])
      ])
      const from = sql`conversations c ${filter.unread === undefined ? sql`` : joinReads(member)}`
      const selected = sql`
        select c.id, c.agent_id as "agentId", c.end_user_id as "endUserId",
          (c.message_count + c.legacy_count)::int as "messageCount", c.created_at as "createdAt",
          ${changed} as "updatedAt", c.state, c.channel, c.handoff_reason as "handoffReason",
          to_char(${changed} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as moment
        from ${from}
        where ${conditions} and c.updated_at >= ${minUpdatedAt(sql, from, sql`${conditions}`, limit + 1)}
        order by ${changed} desc, c.id desc limit ${limit + 1}`.pipe(Rows.all(Row))
      const rows = yield* filter.q === undefined ? selected : forEveryTenant("words")(selected)
      const shown = rows.slice(0, limit)
      const last = shown.at(-1)
      const page: Page<ListedConversation> = {
        rows: shown.map(({ moment: _, ...row }) => row),
        next: rows.length > limit && last !== undefined ? `${last.moment} ${last.id}` : null
      }
      return page
    })

    /** The state of each of `ids` for the member. */
    const readStates = (member: InboxMember, ids: ReadonlyArray<ConversationId>) =>
      sql`
        select c.id as "conversationId", left(q.content, 160) as question, ${isUnread} as unread,
          case when c.assignee_id is not null then jsonb_build_object('id', c.assignee_id, 'email', (
            select u.email from users u where u.tenant_id = c.tenant_id and u.id = c.assignee_id
          )) end as assignee,
          coalesce((
            select jsonb_agg(l.label_id order by l.label_id) from conversation_labels l
            where l.tenant_id = c.tenant_id and l.conversation_id = c.id
          ), '[]') as "labelIds"
        from conversations c ${joinReads(member)}
        left join lateral (
          select m.content from messages m
          where m.tenant_id = c.tenant_id and m.conversation_id = c.id and m.role = 'user' and m.position is not null
          order by m.position desc limit 1
        ) q on true
        where c.tenant_id = ${opaque(sql, member.tenantId)}
          and c.id in (select jsonb_array_elements_text(${toJsonb(ids)}::jsonb))`.pipe(
        Rows.all(StandingRow),
        Effect.withSpan("InboxListStore.readStates")
      )

    /**
     * Number of unread conversations that humans answer and that are not assigned to another member, at most
     * `maxUnread`.
     */
    const unread = (member: InboxMember) =>
      sql`
        select count(*)::int as count from (
          select from conversations c ${joinReads(member)}
          where c.tenant_id = ${opaque(sql, member.tenantId)} and c.state in ('HUMAN_REQUESTED', 'HUMAN_ACTIVE')
            and c.channel <> 'test' and (c.assignee_id is null or c.assignee_id = ${member.userId}) and ${isUnread}
          limit ${maxUnread}
        ) waiting`.pipe(
        Rows.first(Schema.Struct({ count: Schema.Int })),
        Effect.map(Option.match({ onNone: () => 0, onSome: ({ count }) => count })),
        Effect.withSpan("InboxListStore.unread")
      )

    /** False when the tenant has no such conversation with such a message. The read position never moves back. */
    const read = ({ tenantId, userId }: InboxMember, id: ConversationId, messageId: MessageId) =>
      sql`
        insert into conversation_reads (tenant_id, user_id, conversation_id, position)
        select c.tenant_id, u.id, c.id, m.position
        from conversations c join messages m on m.tenant_id = c.tenant_id and m.conversation_id = c.id and m.id = ${messageId}
        join users u on u.tenant_id = c.tenant_id and u.id = ${userId}
        where c.tenant_id = ${tenantId} and c.id = ${id} and m.position is not null
        on conflict (tenant_id, user_id, conversation_id)
          do update set position = greatest(conversation_reads.position, excluded.position)
        returning position`.pipe(Rows.any, Effect.withSpan("InboxListStore.read"))

    /** Marks everything as read. */
    const readAll = Effect.fn("InboxListStore.readAll")(function* ({ tenantId, userId }: InboxMember) {
      yield* sql`update users set inbox_read_at = now() where tenant_id = ${tenantId} and id = ${userId}`
      yield* sql`delete from conversation_reads where tenant_id = ${tenantId} and user_id = ${userId}`
    }, Effect.orDie)

    return { list, readStates, unread, read, readAll } as const
  })
}) {}
