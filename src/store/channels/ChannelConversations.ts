/**
 * Conversations of messaging channels: finds the conversation of a message, and stores the message. Joins the caller's
 * transaction.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { StoredAttachment } from "../../domain/channels/Attachment.ts"
import type { ContactAlias, MessageContext, MessagingChannel } from "../../domain/channels/Channel.ts"
import { ConversationState } from "../../domain/conversations/Conversation.ts"
import {
  AgentId,
  ChannelId,
  ConversationId,
  type EndUserId,
  type MessageId,
  TenantId
} from "../../domain/Ids.ts"
import { conversationStarted, eventWrites, messageSent } from "../events/ReportedEvents.ts"
import { toJsonb } from "../Jsonb.ts"
import { activityAssignments, lastChange } from "../conversations/Activity.ts"
import * as Rows from "../Rows.ts"
import { attachmentsJson } from "../conversations/AttachmentsJson.ts"

/** The configuration that a message belongs to. */
const Route = Schema.Struct({ channelId: ChannelId, tenantId: TenantId, agentId: AgentId })
export type Route = typeof Route.Type

const Open = Schema.Struct({ id: ConversationId, state: ConversationState })
export type OpenConversation = typeof Open.Type

const Found = Schema.Struct({ conversationId: ConversationId })

/** The two parties of a message: the contact as the provider names it, and the account. */
export interface MessageParties {
  readonly channel: MessagingChannel
  readonly accountId: string
  readonly aliases: ReadonlyArray<ContactAlias>
}

export interface StoredMessage {
  readonly id: MessageId
  readonly channelMessageId: string
  readonly content: string
  /** Written by the contact, or by a human to the contact. */
  readonly author: "contact" | "human"
  readonly writtenAt: DateTime.Utc
  /** Why it gets no answer; null while one is due. */
  readonly answeredBy: string | null
  /** Returned to the adapter with the answer; null for none. */
  readonly context: MessageContext | null
}

export class ChannelConversationStore extends Effect.Service<ChannelConversationStore>()(
  "store/channels/ChannelConversations",
  {
    effect: Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      /**
       * The route of the open conversation with a contact of these aliases. The configuration need not be active any
       * more. If the account belongs to another tenant now, that tenant's messages are not routed to this one.
       */
      const routeOfContact = ({ accountId, aliases, channel }: MessageParties) =>
        sql`/* every tenant: directory */
          select ch.id as "channelId", ch.tenant_id as "tenantId", ch.agent_id as "agentId"
          from unnest(${aliases.map(({ kind }) => kind)}::text[], ${aliases.map(({ value }) => value)}::text[])
            as given (kind, value)
          join end_user_aliases a on a.channel = ${channel} and a.kind = given.kind and a.value = given.value
          join conversations c
            on c.tenant_id = a.tenant_id and c.end_user_id = a.end_user_id and c.state <> 'CLOSED'
          join channels ch on ch.tenant_id = c.tenant_id and ch.id = c.channel_id and ch.channel = ${channel} and ch.external_id = ${accountId}
          where not exists (
            select from channels o where o.channel = ch.channel and o.external_id = ch.external_id and o.active
              and o.tenant_id <> ch.tenant_id
          )
          order by ch.active desc, ${lastChange(sql)} desc limit 1`.pipe(Rows.first(Route))

      const activeRoutes = ({ accountId, channel }: MessageParties) =>
        sql`/* every tenant: directory */
          select id as "channelId", tenant_id as "tenantId", agent_id as "agentId" from channels
          where channel = ${channel} and external_id = ${accountId} and active limit 2`.pipe(Rows.all(Route))

      /** None unless the contact has an open conversation, or exactly one active configuration has the account. */
      const route = Effect.fn("ChannelConversationStore.route")(function* (from: MessageParties) {
        const known = yield* routeOfContact(from)
        if (Option.isSome(known)) return known
        const [first, ...others] = yield* activeRoutes(from)
        return others.length === 0 ? Option.fromNullable(first) : Option.none<Route>()
      }, Effect.orDie)

      /** Locks and returns the contact's open conversation; null when there is none. */
      const lockOpen = ({ channelId, tenantId }: Route, endUserId: EndUserId) =>
        sql`
          select id, state from conversations
          where tenant_id = ${tenantId} and channel_id = ${channelId} and end_user_id = ${endUserId}
            and state <> 'CLOSED' for update`.pipe(Rows.first(Open), Effect.map(Option.getOrNull))

      /** Locks and returns the contact's open conversation. Creates one with the id `newId` when there is none. */
      const open = Effect.fn("ChannelConversationStore.open")(function* (
        route: Route,
        channel: MessagingChannel,
        endUserId: EndUserId,
        newId: ConversationId
      ) {
        for (;;) {
          const found = yield* lockOpen(route, endUserId)
          if (found !== null) return found
          yield* sql`
            with made as (
              insert into conversations (id, tenant_id, agent_id, end_user_id, channel, channel_id)
              values (${newId}, ${route.tenantId}, ${route.agentId}, ${endUserId}, ${channel}, ${route.channelId})
              on conflict (tenant_id, channel_id, end_user_id) where channel_id is not null and state <> 'CLOSED' do nothing
              returning id, tenant_id, agent_id, end_user_id, channel
            ),
            ${eventWrites(sql, conversationStarted(sql, sql`made`))}
            select id from made`
        }
      }, Effect.orDie)

      /** The conversation with the contact in which a message of the provider is already stored. */
      const findByMessage = (
        { channelId, tenantId }: Route,
        endUserId: EndUserId,
        channelMessageId: string
      ) =>
        sql`
          select m.conversation_id as "conversationId" from conversations c
          join messages m on m.tenant_id = c.tenant_id and m.conversation_id = c.id and m.channel_message_id = ${channelMessageId}
          where c.tenant_id = ${tenantId} and c.end_user_id = ${endUserId} and c.channel_id = ${channelId} limit 1`.pipe(
          Rows.first(Found),
          Effect.map(Option.match({ onNone: () => null, onSome: (row) => row.conversationId }))
        )

      /** Appends to a conversation whose lock the caller holds. */
      const append = ({ agentId, tenantId }: Route, conversationId: ConversationId, message: StoredMessage) =>
        sql`
          with conversation as (
            update conversations c set message_count = c.message_count + 1, ${activityAssignments(sql)}
            where c.tenant_id = ${tenantId} and c.id = ${conversationId}
            returning c.id, c.tenant_id, c.agent_id, c.message_count
          )
          ${message.author === "human" ? sql`, ${eventWrites(sql, messageSent(sql, message.id, null))}` : sql``}
          insert into messages (
            id, tenant_id, conversation_id, agent_id, position, role, content, author, channel_message_id, answered_by,
            channel_context, created_at
          )
          select ${message.id}, tenant_id, id, ${agentId}, message_count, ${message.author === "contact" ? "user" : "assistant"},
            ${message.content}, ${message.author === "contact" ? null : message.author}, ${message.channelMessageId},
            ${message.answeredBy}, ${message.context === null ? null : toJsonb(message.context)}::jsonb,
            ${DateTime.formatIso(message.writtenAt)}::timestamptz
          from conversation`.pipe(Rows.none)

      /** True when the message exists and has no files. */
      const isWithoutFiles = (
        { tenantId }: TenantScope,
        conversationId: ConversationId,
        channelMessageId: string
      ) =>
        sql`
          select from messages
          where tenant_id = ${tenantId} and conversation_id = ${conversationId}
            and channel_message_id = ${channelMessageId} and attachments = '[]'`.pipe(Rows.any)

      /** Attaches files to a message. False when it already has some, or does not exist. */
      const attach = (
        { tenantId }: TenantScope,
        conversationId: ConversationId,
        channelMessageId: string,
        files: ReadonlyArray<StoredAttachment>
      ) =>
        sql`
          update messages set attachments = ${attachmentsJson(files)}::jsonb
          where tenant_id = ${tenantId} and conversation_id = ${conversationId}
            and channel_message_id = ${channelMessageId} and attachments = '[]'
          returning id`.pipe(Rows.any)

      /** Marks files as used by the conversation, from the commit on, so that they are not removed. */
      const keepFiles = (
        { tenantId }: TenantScope,
        conversationId: ConversationId,
        files: ReadonlyArray<StoredAttachment>
      ) =>
        sql`
          insert into conversation_artifacts (tenant_id, conversation_id, ref)
          select distinct ${tenantId}, ${conversationId}, a.artifact
          from jsonb_to_recordset(${attachmentsJson(files)}::jsonb) as a (artifact text)
          on conflict do nothing`.pipe(Rows.none)

      return { route, open, findByMessage, append, isWithoutFiles, attach, keepFiles } as const
    })
  }
) {}
