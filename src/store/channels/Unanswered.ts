/** Unanswered messages of channels, read under the conversation's lock, so that only one turn answers them. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import { StoredAttachment } from "../../domain/channels/Attachment.ts"
import { ConversationChannel, ConversationState } from "../../domain/conversations/Conversation.ts"
import { AgentId, ConversationId, MessageId, TenantId } from "../../domain/Ids.ts"
import { openScope, SourceScope } from "../../domain/knowledge/SourceScope.ts"
import { sourceScopeJson } from "../knowledge/SourceScopeColumns.ts"
import * as Rows from "../Rows.ts"

/** Maximum number of messages that one reply answers. */
const maxMessagesPerReply = 1_000
/** Maximum number of conversations of one sweep. */
export const sweepBatchSize = 100

const LockedConversation = Schema.Struct({
  state: ConversationState,
  sourceScope: Schema.NullOr(SourceScope)
})

const Message = Schema.Struct({
  id: MessageId,
  /** Empty for a message before the last {@link Since.characters} characters. */
  content: Schema.String,
  attachments: Schema.Array(StoredAttachment),
  /** Whether the messages are recent enough to be answered. The newest one decides for all of them. */
  fresh: Schema.Boolean
})

const Activity = Schema.Struct({
  /** Whether a running turn already answers in the conversation. */
  busy: Schema.Boolean,
  /** Number of the agent's replies since the requested time. */
  replies: Schema.Int
})

const Forgotten = Schema.Struct({
  tenantId: TenantId,
  agentId: AgentId,
  conversationId: ConversationId,
  channel: ConversationChannel,
  fresh: Schema.Boolean
})
type Forgotten = typeof Forgotten.Type

/** What of a conversation is read. */
interface Since {
  /** Maximum characters of the messages, rounded up to a whole message. */
  readonly characters: number
  readonly fresh: DateTime.Utc
  readonly replies: DateTime.Utc
}

export interface Unanswered {
  readonly state: ConversationState
  /** What the answer may read. */
  readonly sourceScope: SourceScope | null
  readonly busy: boolean
  readonly replies: number
  /** Oldest first; the newest {@link maxMessagesPerReply} of the current episode, if the agent answers. */
  readonly messages: ReadonlyArray<typeof Message.Type>
}

export class UnansweredStore extends Effect.Service<UnansweredStore>()("store/channels/Unanswered", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const readActivity = ({ tenantId }: AgentScope, id: ConversationId, repliesSince: DateTime.Utc) =>
      sql`
        select
          exists (
            select from agent_runs r join instances i on i.id = r.instance_id
            where r.tenant_id = ${tenantId} and r.conversation_id = ${id} and r.status = 'running' and i.lease_until > now()
          ) as busy,
          (
            select count(*)::int from messages m
            where m.tenant_id = ${tenantId} and m.conversation_id = ${id} and m.author = 'agent'
              and m.created_at > ${DateTime.formatIso(repliesSince)}::timestamptz
          ) as replies`.pipe(Rows.one(Activity))

    const messages = ({ tenantId }: AgentScope, id: ConversationId, { characters, fresh }: Since) =>
      sql`
        select m.id, m.content, m.attachments, m.fresh from (
          select id, attachments, position, created_at >= ${DateTime.formatIso(fresh)}::timestamptz as fresh,
            case when sum(length(content)) over (order by position desc) - length(content) < ${characters}::int
              then content else '' end as content
          from messages
          where tenant_id = ${tenantId} and conversation_id = ${id} and role = 'user'
            and channel_message_id is not null and answered_by is null
          order by position desc limit ${maxMessagesPerReply}
        ) m order by m.position`.pipe(Rows.all(Message))

    /**
     * The scope of the channel of the conversation `c`. It is that of the account's active configuration, if the agent has
     * it. Only sources without labels are read when the channel was deleted.
     */
    const channelScope = sql`
      coalesce(
        (
          select coalesce(o.source_scope, 'null'::jsonb) from channels own
          join channels o on o.tenant_id = own.tenant_id and o.agent_id = own.agent_id
            and o.channel = own.channel and o.external_id = own.external_id
          where own.tenant_id = c.tenant_id and own.id = c.channel_id
          order by o.active desc, o.id = own.id desc limit 1
        ),
        ${sourceScopeJson({ sourceScope: openScope })}::jsonb
      )`

    /**
     * Locks the conversation and reads its unanswered messages; null when it does not exist. Needs a transaction, in
     * which the answering turn must be started too.
     */
    const hold = Effect.fn("UnansweredStore.hold")(function* (
      scope: AgentScope,
      id: ConversationId,
      since: Since
    ) {
      const locked = yield* sql`
        select c.state, ${channelScope} as "sourceScope" from conversations c
        where c.tenant_id = ${scope.tenantId} and c.agent_id = ${scope.agentId} and c.id = ${id} for update`.pipe(
        Rows.first(LockedConversation)
      )
      if (Option.isNone(locked)) return null
      const found: Unanswered = {
        ...locked.value,
        ...(yield* readActivity(scope, id, since.replies)),
        messages: yield* messages(scope, id, since)
      }
      return found
    }, Effect.orDie)

    /**
     * Conversations of agents in which a message has waited since `before` without a running turn, because the job that
     * should answer it has died. `fresh`: whether it may still be answered. Fresh ones with a queued job, whose serial
     * key is the id of the conversation, are left out.
     */
    const listForgotten = (before: DateTime.Utc, freshSince: DateTime.Utc) =>
      sql`/* every tenant: sweep */
        select c.tenant_id as "tenantId", c.agent_id as "agentId", c.id as "conversationId", c.channel,
          max(m.created_at) >= ${DateTime.formatIso(freshSince)}::timestamptz as fresh
        from messages m join conversations c
          on c.tenant_id = m.tenant_id and c.id = m.conversation_id and c.state = 'AI_ACTIVE'
        where m.role = 'user' and m.channel_message_id is not null and m.answered_by is null
          and tenant_is_swept(m.tenant_id)
          and not exists (
            select from agent_runs r join instances i on i.id = r.instance_id
            where r.tenant_id = c.tenant_id and r.conversation_id = c.id and r.status = 'running' and i.lease_until > now()
          )
        group by c.tenant_id, c.id having max(m.created_at) < ${DateTime.formatIso(before)}::timestamptz and (
          max(m.created_at) < ${DateTime.formatIso(freshSince)}::timestamptz or not exists (
            select from queue_jobs q
            where q.queue = 'channel-inbound' and q.serial_key = c.id and q.state in ('waiting', 'active')
          )
        )
        order by c.id limit ${sweepBatchSize}`.pipe(
        Rows.all(Forgotten),
        Effect.withSpan("UnansweredStore.listForgotten")
      )

    return { hold, listForgotten } as const
  })
}) {}
