/**
 * Outgoing messages for providers: one row per part of a message. A row is `sending` from before its call until the
 * answer is stored. A row found `sending` later has lost its answer.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { StoredAttachment } from "../../domain/channels/Attachment.ts"
import {
  ContactAlias,
  type DeliveryStatus,
  type InboundMessage,
  MessageContext,
  MessagingChannel
} from "../../domain/channels/Channel.ts"
import { ChannelId, ConversationId, type MessageId, OutboxId, TenantId } from "../../domain/Ids.ts"
import { toJsonb } from "../Jsonb.ts"
import { ChannelProfile } from "./Channels.ts"
import * as Rows from "../Rows.ts"

/** The failure reason of a message that the provider may have accepted, or not. */
export const unknownOutcome = "outcome unknown"

const State = Schema.Literal("pending", "sending", "sent", "failed", "cancelled")

const Part = Schema.Struct({
  id: OutboxId,
  conversationId: ConversationId,
  channelId: ChannelId,
  /** The text, or the caption of the file; may be empty. */
  body: Schema.String,
  media: Schema.NullOr(StoredAttachment),
  author: Schema.Literal("agent", "human", "system"),
  state: State,
  lastError: Schema.NullOr(Schema.String)
})
export type OutboxPart = typeof Part.Type

const Claim = Schema.Struct({ state: State, resent: Schema.Boolean })

const OutboxRecipient = Schema.Struct({
  tenantId: TenantId,
  channelId: ChannelId,
  channel: MessagingChannel,
  externalId: Schema.String,
  /** Sealed. */
  accessToken: Schema.String,
  /** Sealed, as JSON; null if there are none. */
  secrets: Schema.NullOr(Schema.String),
  profile: ChannelProfile,
  active: Schema.Boolean,
  /** Number of consecutive failed calls of its provider. */
  failures: Schema.Int,
  /** The newest of each kind first. */
  aliases: Schema.Array(ContactAlias),
  /** The provider's id of the contact's last message. */
  lastMessageId: Schema.NullOr(Schema.String),
  /** The adapter's context of that message. */
  context: Schema.NullOr(MessageContext)
})
export type OutboxRecipient = typeof OutboxRecipient.Type

const DeliveredPart = Schema.Struct({
  tenantId: TenantId,
  conversationId: ConversationId,
  lastError: Schema.NullOr(Schema.String)
})

export interface NewParts extends TenantScope {
  readonly conversationId: ConversationId
  readonly messageId: MessageId
  readonly author: "agent" | "human" | "system"
  readonly epoch: number
  readonly parts: ReadonlyArray<{
    readonly id: OutboxId
    readonly body: string
    readonly media?: StoredAttachment
  }>
}

export class OutboxStore extends Effect.Service<OutboxStore>()("store/channels/Outbox", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    /**
     * The recipient and the sending account; none for a conversation without a channel. An account that the tenant has
     * moved to another agent continues its existing conversations, with its new token.
     */
    const recipientOf = ({ tenantId }: TenantScope, id: ConversationId) =>
      sql`
        select h.tenant_id as "tenantId", h.id as "channelId", h.channel, h.external_id as "externalId",
          h.access_token as "accessToken", h.secrets, h.profile, h.active, h.failures,
          coalesce((
            select jsonb_agg(jsonb_build_object('kind', a.kind, 'value', a.value) order by a.created_at desc, a.value)
            from end_user_aliases a
            where a.tenant_id = c.tenant_id and a.channel = h.channel and a.end_user_id = c.end_user_id
          ), '[]') as aliases,
          last.channel_message_id as "lastMessageId", last.channel_context as context
        from conversations c left join lateral (
          select m.channel_message_id, m.channel_context from messages m
          where m.tenant_id = c.tenant_id and m.conversation_id = c.id and m.role = 'user' and m.channel_message_id is not null
          order by m.position desc limit 1
        ) last on true join channels own on own.tenant_id = c.tenant_id and own.id = c.channel_id
        cross join lateral (
          select * from channels o
          where o.channel = own.channel and o.external_id = own.external_id and o.tenant_id = own.tenant_id
          order by o.active desc, o.id = own.id desc limit 1
        ) h
        where c.tenant_id = ${tenantId} and c.id = ${id}`.pipe(Rows.first(OutboxRecipient))

    /**
     * Inserts the parts of a message, unless they exist already; true when they did not. Joins the caller's
     * transaction.
     */
    const insert = ({ author, conversationId, epoch, messageId, parts, tenantId }: NewParts) => {
      const given = toJsonb(parts.map((part, index) => ({ ...part, part: index + 1 })))
      return sql`
        insert into channel_outbox (id, tenant_id, conversation_id, channel_id, message_id, part, author, epoch, body, media)
        select p.id, c.tenant_id, c.id, c.channel_id, ${messageId}, p.part, ${author}, ${epoch}::bigint, p.body, p.media
        from conversations c, jsonb_to_recordset(${given}::jsonb) as p (id text, part int, body text, media jsonb)
        where c.tenant_id = ${tenantId} and c.id = ${conversationId} and c.channel_id is not null
        on conflict (tenant_id, message_id, part) do nothing returning id`.pipe(Rows.any)
    }

    /** The parts of one message, in order. */
    const parts = ({ tenantId }: TenantScope, messageId: MessageId) =>
      sql`
        select id, conversation_id as "conversationId", channel_id as "channelId", body, media, author, state,
          last_error as "lastError"
        from channel_outbox where tenant_id = ${tenantId} and message_id = ${messageId} order by part`.pipe(
        Rows.all(Part)
      )

    /**
     * Prepares an operator's retry: parts that were certainly not accepted can be sent again, even if a human was
     * requested since, unless a human has answered.
     */
    const reopen = ({ tenantId }: TenantScope, messageId: MessageId) =>
      sql`
        update channel_outbox o set state = 'pending', delivery = null,
          epoch = case when c.state = 'HUMAN_REQUESTED' then c.epoch else o.epoch end
        from conversations c
        where o.tenant_id = ${tenantId} and o.message_id = ${messageId} and o.state = 'failed' and o.last_error is distinct from ${unknownOutcome}
          and c.tenant_id = o.tenant_id and c.id = o.conversation_id`.pipe(Rows.none)

    /**
     * Claims a part for sending and makes it `sending`. It becomes `cancelled` if the agent wrote it and no longer
     * answers. The conversation's row is locked, so that a takeover comes before or after the claim. A part whose
     * answer was lost is claimed once more with `resent`; a second time, or after 7 days, it becomes `failed`. None
     * when another worker has settled it.
     */
    const claim = ({ tenantId }: TenantScope, id: OutboxId) =>
      sql`
        with held as (
          select id, epoch from conversations
          where tenant_id = ${tenantId}
            and id = (select conversation_id from channel_outbox where tenant_id = ${tenantId} and id = ${id}) for share
        ), decided as (
          select o.id, o.state as was, case
            when o.state = 'sending' and (o.resent or o.created_at < now() - interval '7 days') then 'failed'
            when o.author <> 'agent' or o.epoch = held.epoch then 'sending'
            when o.state = 'sending' or o.resent then 'failed'
            else 'cancelled' end as becomes
          from channel_outbox o join held on held.id = o.conversation_id
          where o.tenant_id = ${tenantId} and o.id = ${id} and o.state in ('pending', 'sending')
        )
        update channel_outbox o set state = becomes, resent = o.resent or was = 'sending' and becomes = 'sending',
          attempts = o.attempts + (becomes = 'sending')::int,
          last_error = case when becomes = 'failed' then ${unknownOutcome} else o.last_error end
        from decided where o.tenant_id = ${tenantId} and o.id = decided.id and o.state = decided.was
        returning o.state, o.resent`.pipe(Rows.first(Claim))

    const markSent = ({ tenantId }: TenantScope, id: OutboxId, providerMessageId: string) =>
      sql`
        update channel_outbox set state = 'sent', sent_at = coalesce(sent_at, now()), last_error = null,
          provider_message_id = coalesce(provider_message_id, ${providerMessageId}),
          delivery = coalesce(delivery, 'sent')
        where tenant_id = ${tenantId} and id = ${id} and state <> 'cancelled' and delivery is distinct from 'failed'`.pipe(
        Rows.none
      )

    /** The provider has certainly not accepted it. It may be sent again as a first attempt. */
    const markRefused = ({ tenantId }: TenantScope, id: OutboxId, reason: string) =>
      sql`
        update channel_outbox set state = 'pending', last_error = ${reason}
        where tenant_id = ${tenantId} and id = ${id} and state = 'sending'`.pipe(Rows.none)

    /** Gives up the remaining parts of a message. Parts whose answers were lost keep that as their reason. */
    const fail = ({ tenantId }: TenantScope, messageId: MessageId, reason: string) =>
      sql`
        update channel_outbox set state = 'failed',
          last_error = case when state = 'sending' then ${unknownOutcome} else ${reason} end
        where tenant_id = ${tenantId} and message_id = ${messageId} and state in ('pending', 'sending')`.pipe(
        Rows.none
      )

    const deliveryAssignments = (delivery: string, error: string | null) => sql`
      delivery = ${delivery}::text, sent_at = coalesce(o.sent_at, now()),
      state = case when ${delivery}::text = 'failed' then 'failed' when o.state = 'cancelled' then o.state else 'sent' end,
      last_error = case when ${delivery}::text = 'failed'
        then coalesce(${error}::text, 'The provider could not deliver it.') else null end`

    const deliveredColumns = sql`o.tenant_id as "tenantId", o.conversation_id as "conversationId", o.last_error as "lastError"`

    /** Delivery states, in order. A part never returns to an earlier one. */
    const deliveryStates = sql.literal("array['sent', 'failed', 'delivered', 'read']")
    const isLaterState = (delivery: string) =>
      sql`(o.delivery is null or array_position(${deliveryStates}, o.delivery) < array_position(${deliveryStates}, ${delivery}::text))`

    /**
     * Records a delivery state that is later than the stored one, and returns the parts that it has changed. Also
     * applies to a part whose answer is pending or lost.
     */
    const recordDelivery = ({
      accountId,
      channel,
      delivery,
      error,
      outboxId,
      providerMessageId,
      watermark
    }: DeliveryStatus) => {
      const isOfAccount = sql`h.tenant_id = o.tenant_id and h.id = o.channel_id and h.channel = ${channel} and h.external_id = ${accountId}`
      const statement =
        watermark === undefined
          ? sql`/* every tenant: directory */
              update channel_outbox o set ${deliveryAssignments(delivery, error)},
                provider_message_id = coalesce(o.provider_message_id, ${providerMessageId}::text)
              from channels h
              where ${isOfAccount} and (o.id = ${outboxId} or o.provider_message_id = ${providerMessageId})
                and ${isLaterState(delivery)} returning ${deliveredColumns}`
          : sql`/* every tenant: directory */
              update channel_outbox o set ${deliveryAssignments(delivery, error)}
              from channels h, conversations c, end_user_aliases a
              where ${isOfAccount} and c.tenant_id = o.tenant_id and c.id = o.conversation_id and a.tenant_id = o.tenant_id and a.channel = h.channel
                and a.kind = 'page_scoped_id' and a.value = ${watermark.pageScopedId} and a.end_user_id = c.end_user_id
                and o.state = 'sent' and o.sent_at <= to_timestamp(${watermark.until.epochMillis}::float8 / 1000)
                and ${isLaterState(delivery)} returning ${deliveredColumns}`
      return Rows.all(DeliveredPart)(statement)
    }

    /** Whether an echo is of one of our messages, by the metadata that we sent with it or by the provider's id. */
    const isOwn = ({ accountId, channel, messageId, origin }: InboundMessage) =>
      sql`/* every tenant: directory */
        select o.id from channel_outbox o join channels h on h.tenant_id = o.tenant_id and h.id = o.channel_id
        where h.channel = ${channel} and h.external_id = ${accountId}
          and (o.id = ${origin?.outboxId ?? null} or o.provider_message_id = ${messageId}) limit 1`.pipe(
        Rows.any
      )

    return {
      recipientOf,
      insert,
      parts,
      reopen,
      claim,
      markSent,
      markRefused,
      fail,
      recordDelivery,
      isOwn
    } as const
  })
}) {}
