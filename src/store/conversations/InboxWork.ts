/** Assignee, labels, notes, history and end user of a conversation. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { Role } from "../../domain/accounts/Access.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import {
  type Entry,
  EntryId,
  type EntryKind,
  type LabelId,
  Entry as EntrySchema,
  maxNotes,
  newEntryId,
  Person
} from "../../domain/conversations/Inbox.ts"
import { type ConversationId, UserId } from "../../domain/Ids.ts"
import { isoTime, toJsonb } from "../Jsonb.ts"
import type { InboxMember } from "./InboxList.ts"
import { lastChange } from "./Activity.ts"
import * as Rows from "../Rows.ts"

/** Maximum number of entries of one page of a thread. The newest are kept. */
const maxEntries = 500
/** Maximum number of other conversations of a person. */
const maxOtherConversations = 10

const EntryRow = Schema.Struct({ ...EntrySchema.fields, createdAt: Schema.DateTimeUtcFromDate })

/** Dates within `others` come as JSON. */
const PersonRow = Schema.Struct({ ...Person.fields, createdAt: Schema.DateTimeUtcFromDate })

const LabelRow = Schema.Struct({ name: Schema.String, added: Schema.Boolean })

export class InboxWorkStore extends Effect.Service<InboxWorkStore>()("store/conversations/InboxWork", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const memberJson = (column: string) =>
      sql.literal(
        `case when ${column} is not null then jsonb_build_object('id', ${column}, 'email',
          (select u.email from users u where u.tenant_id = e.tenant_id and u.id = ${column})) end`
      )

    const columns = sql`e.id, e.kind, e.position::int as position, ${memberJson("e.user_id")} as by,
      ${memberJson("e.subject_id")} as subject, e.content, e.created_at as "createdAt"`

    /** Entries after the messages from `first` to `last`, oldest first. */
    const entries = (
      { tenantId }: TenantScope,
      id: ConversationId,
      { first, last }: { readonly first: number; readonly last: number | null }
    ) =>
      sql`
        select * from (
          select ${columns} from conversation_entries e
          where e.tenant_id = ${tenantId} and e.conversation_id = ${id} and e.position >= ${first}
            ${last === null ? sql`` : sql`and e.position <= ${last}`}
          order by e.position desc, e.created_at desc limit ${maxEntries}
        ) newest order by position, "createdAt", id`.pipe(
        Rows.all(EntryRow),
        Effect.withSpan("InboxWorkStore.entries")
      )

    /** Adds an entry. Needs a transaction that has locked the conversation. */
    const addEntry = Effect.fn("InboxWorkStore.addEntry")(function* (
      { tenantId, userId }: InboxMember,
      conversationId: ConversationId,
      entry: {
        readonly kind: EntryKind
        readonly subjectId?: UserId | null
        readonly content?: string | null
      },
      noteId?: EntryId
    ) {
      const id = noteId ?? (yield* newEntryId)
      yield* sql`
        insert into conversation_entries (tenant_id, id, conversation_id, position, kind, user_id, subject_id, content)
        select c.tenant_id, ${id}, c.id, c.message_count, ${entry.kind}, ${userId}, ${entry.subjectId ?? null},
          ${entry.content ?? null}
        from conversations c where c.tenant_id = ${tenantId} and c.id = ${conversationId}`
      return id
    }, Effect.orDie)

    /** True when the tenant has the conversation, and it is not closed. */
    const isOpen = ({ tenantId }: TenantScope, id: ConversationId) =>
      sql`
        select id from conversations where tenant_id = ${tenantId} and id = ${id} and state <> 'CLOSED'`.pipe(
        Rows.any,
        Effect.withSpan("InboxWorkStore.isOpen")
      )

    /** Locks the conversation. True when the tenant has it. Needs a transaction. */
    const lock = ({ tenantId }: TenantScope, id: ConversationId) =>
      sql`
        select id from conversations where tenant_id = ${tenantId} and id = ${id} for no key update`.pipe(
        Rows.any,
        Effect.withSpan("InboxWorkStore.lock")
      )

    /** The assignee of the conversation, whose row is locked. None when it is not the tenant's. Needs a transaction. */
    const assignee = ({ tenantId }: TenantScope, id: ConversationId) =>
      sql`
        select assignee_id as "userId" from conversations
        where tenant_id = ${tenantId} and id = ${id} for no key update`.pipe(
        Rows.first(Schema.Struct({ userId: Schema.NullOr(UserId) })),
        Effect.withSpan("InboxWorkStore.assignee")
      )

    /**
     * The member's role, which stays until the transaction ends; none when the tenant has no such member, or has
     * deactivated them.
     */
    const roleOf = ({ tenantId }: TenantScope, userId: UserId) =>
      sql`select role from users where tenant_id = ${tenantId} and id = ${userId} and active for share`.pipe(
        Rows.first(Schema.Struct({ role: Role })),
        Effect.map(Option.map(({ role }) => role)),
        Effect.withSpan("InboxWorkStore.roleOf")
      )

    /** Sets the assignee. Locks the conversation and the member. */
    const assign = ({ tenantId }: TenantScope, id: ConversationId, userId: UserId | null) =>
      sql`update conversations set assignee_id = ${userId} where tenant_id = ${tenantId} and id = ${id}`.pipe(
        Rows.none,
        Effect.withSpan("InboxWorkStore.assign")
      )

    /** True when the tenant has all these labels. They cannot be removed until the transaction ends. */
    const hasLabels = Effect.fn("InboxWorkStore.hasLabels")(function* (
      { tenantId }: TenantScope,
      labelIds: ReadonlyArray<LabelId>
    ) {
      const rows = yield* sql`
        select id from inbox_items where tenant_id = ${tenantId} and kind = 'label'
          and id in (select jsonb_array_elements_text(${toJsonb(labelIds)}::jsonb)) for key share`
      return rows.length === new Set(labelIds).size
    }, Effect.orDie)

    /** Sets the labels. Returns the changed ones, by name. Needs a transaction. */
    const setLabels = ({ tenantId }: TenantScope, id: ConversationId, labelIds: ReadonlyArray<LabelId>) =>
      sql`
        with wanted as (
          select i.id, i.name from inbox_items i
          where i.tenant_id = ${tenantId} and i.kind = 'label'
            and i.id in (select jsonb_array_elements_text(${toJsonb(labelIds)}::jsonb))
        ), removed as (
          delete from conversation_labels l
          where l.tenant_id = ${tenantId} and l.conversation_id = ${id}
            and l.label_id not in (select id from wanted)
          returning l.label_id
        ), added as (
          insert into conversation_labels (tenant_id, conversation_id, label_id)
          select ${tenantId}, ${id}, id from wanted on conflict do nothing returning label_id
        )
        select i.name, true as added from added a join inbox_items i on i.tenant_id = ${tenantId} and i.id = a.label_id
        union all
        select i.name, false from removed r join inbox_items i on i.tenant_id = ${tenantId} and i.id = r.label_id
        order by added, name`.pipe(Rows.all(LabelRow), Effect.withSpan("InboxWorkStore.setLabels"))

    /** False when the conversation already has {@link maxNotes}. */
    const hasRoomForNotes = Effect.fn("InboxWorkStore.hasRoomForNotes")(function* (
      { tenantId }: TenantScope,
      id: ConversationId
    ) {
      const rows = yield* sql`
        select id from conversation_entries where tenant_id = ${tenantId} and conversation_id = ${id} and kind = 'note'
        limit ${maxNotes}`
      return rows.length < maxNotes
    }, Effect.orDie)

    const entry = ({ tenantId }: TenantScope, id: EntryId): Effect.Effect<Option.Option<Entry>> =>
      sql`
        select ${columns} from conversation_entries e where e.tenant_id = ${tenantId} and e.id = ${id}`.pipe(
        Rows.first(EntryRow)
      )

    /** False when the conversation has no such note of the member. */
    const removeNote = ({ tenantId, userId }: InboxMember, conversationId: ConversationId, id: EntryId) =>
      sql`
        delete from conversation_entries
        where tenant_id = ${tenantId} and conversation_id = ${conversationId} and id = ${id} and kind = 'note'
          and user_id = ${userId} returning id`.pipe(Rows.any, Effect.withSpan("InboxWorkStore.removeNote"))

    /** The end user of the conversation. */
    const person = ({ tenantId }: TenantScope, id: ConversationId): Effect.Effect<Option.Option<Person>> =>
      sql`
        select p.id, p.external_id as "externalId", p.created_at as "createdAt",
          coalesce((
            select jsonb_agg(jsonb_build_object('channel', a.channel, 'kind', a.kind, 'value', a.value)
              order by a.channel, a.kind, a.value)
            from (select * from end_user_aliases where tenant_id = ${tenantId} and end_user_id = p.id limit 20) a
          ), '[]') as contacts,
          (select count(*)::int from conversations n
            where n.tenant_id = ${tenantId} and n.end_user_id = p.id and n.channel <> 'test') as "conversationCount",
          coalesce((
            select jsonb_agg(jsonb_build_object('id', o.id, 'channel', o.channel, 'state', o.state,
              'question', o.question, 'updatedAt', ${isoTime(sql, sql`o.updated_at`)}) order by o.id desc)
            from (
              select n.id, n.channel, n.state, ${lastChange(sql, "n")} as updated_at, (
                select left(m.content, 160) from messages m
                where m.tenant_id = n.tenant_id and m.conversation_id = n.id and m.role = 'user' and m.position is not null
                order by m.position desc limit 1
              ) as question
              from conversations n
              where n.tenant_id = ${tenantId} and n.end_user_id = p.id and n.id <> c.id and n.channel <> 'test'
              order by n.id desc limit ${maxOtherConversations}
            ) o
          ), '[]') as others
        from conversations c join end_users p on p.tenant_id = c.tenant_id and p.id = c.end_user_id
        where c.tenant_id = ${tenantId} and c.id = ${id}`.pipe(
        Rows.first(PersonRow),
        Effect.withSpan("InboxWorkStore.person")
      )

    return {
      entries,
      addEntry,
      lock,
      isOpen,
      assignee,
      assign,
      roleOf,
      hasLabels,
      setLabels,
      hasRoomForNotes,
      entry,
      removeNote,
      person
    } as const
  })
}) {}
