/**
 * Control of a conversation: by the agent or by humans. Every change raises its epoch. A reply of the model is written
 * only under the epoch that its turn began with (store/chat/TurnSettlement), so the agent never answers after a human.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { StoredAttachment } from "../../domain/channels/Attachment.ts"
import {
  ConversationChannel,
  type ConversationScope,
  ConversationState
} from "../../domain/conversations/Conversation.ts"
import { AgentId, type ConversationId, type MessageId, RunId, type UserId } from "../../domain/Ids.ts"
import { conversationStarted, eventWrites, messageSent } from "../events/ReportedEvents.ts"
import { activityAssignments } from "./Activity.ts"
import * as Rows from "../Rows.ts"
import { attachmentsJson } from "./AttachmentsJson.ts"

const Changed = Schema.Struct({
  agentId: AgentId,
  channel: ConversationChannel,
  epoch: Schema.Int,
  /** The end user's last message; empty if there is none. */
  lastQuestion: Schema.String
})
export type Changed = typeof Changed.Type

const Compared = Schema.Struct({ isSame: Schema.Boolean })

const Running = Schema.Struct({ id: RunId, agentId: AgentId })

export interface Change {
  readonly from: ReadonlyArray<ConversationState>
  readonly to: ConversationState
  /** Why a human is requested. */
  readonly reason?: string
  /** The team member who makes the change, if any. */
  readonly by?: UserId
  /** The value of `answered_by` for unanswered messages of a channel. */
  readonly unanswered: string
}

export class ConversationStates extends Effect.Service<ConversationStates>()(
  "store/conversations/ConversationStates",
  {
    effect: Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      /** Marks unanswered messages, so that the agent does not answer them. */
      const markAnswered = ({ tenantId }: TenantScope, id: ConversationId, answeredBy: string) => sql`
      update messages set answered_by = ${answeredBy}
      where tenant_id = ${tenantId} and conversation_id = ${id} and role = 'user' and channel_message_id is not null and answered_by is null`

      /** The event for a change to this state, after that for a conversation that begins with it, before any turn. */
      const eventsOf = (to: ConversationState) =>
        to !== "HUMAN_REQUESTED" && to !== "HUMAN_ACTIVE"
          ? sql``
          : sql`, ${eventWrites(
              sql,
              conversationStarted(
                sql,
                sql`changed`,
                sql`tickets = 0 and message_count = 0 and channel_id is null and import_key is null`
              ),
              {
                type: to === "HUMAN_ACTIVE" ? "handoff.taken" : "handoff.requested",
                key: sql`changed.id || ':' || changed.epoch`,
                tenantId: sql`changed.tenant_id`,
                agentId: sql`changed.agent_id`,
                conversationId: sql`changed.id`,
                ids: sql`'{}'::jsonb`,
                from: sql`changed`,
                place: sql`1`
              }
            )}`

      /**
       * None when the scope has no such conversation, or its state is not one of `from`. A conversation that returns to
       * its agent begins a new episode: the model does not see earlier messages.
       */
      const change = Effect.fn("ConversationStates.change")(function* (
        { agentId, tenantId }: ConversationScope,
        id: ConversationId,
        { by, from, reason, to, unanswered }: Change
      ) {
        const changed = yield* sql`
          with changed as (
          update conversations c set state = ${to}, state_by = ${by ?? null}, epoch = c.epoch + 1, updated_at = now(),
            handoff_reason = ${reason === undefined ? sql`handoff_reason` : reason}
            ${to === "AI_ACTIVE" ? sql`, episode_start = c.message_count` : sql``}
          where c.tenant_id = ${tenantId} and c.id = ${id} and c.state = any(${from}::text[])
            ${agentId === undefined ? sql`` : sql`and c.agent_id = ${agentId}`}
          returning c.id, c.tenant_id, c.agent_id, c.end_user_id, c.channel, c.epoch, c.tickets, c.message_count,
            c.channel_id, c.import_key
          )
          ${eventsOf(to)}
          select agent_id as "agentId", channel, epoch::int, coalesce((
            select m.content from messages m
            where m.tenant_id = changed.tenant_id and m.conversation_id = changed.id and m.role = 'user'
            order by m.position desc nulls last limit 1
          ), '') as "lastQuestion" from changed`.pipe(Rows.first(Changed))
        if (Option.isSome(changed)) yield* markAnswered({ tenantId }, id, unanswered)
        // A running turn locks its run before the conversation. Its settlement reports the result.
        if (Option.isSome(changed) && to === "HUMAN_REQUESTED")
          yield* sql`
          update agent_runs set handed_over = true where tenant_id = ${tenantId} and status <> 'running' and id = (
            select r.id from agent_runs r
            where r.tenant_id = ${tenantId} and r.conversation_id = ${id} order by r.ticket desc limit 1
          )`
        return changed
      }, Effect.orDie)

      /** Marks the files as used by the conversation, from the commit on, so that they are not removed. */
      const keepFiles = ({ tenantId }: TenantScope, id: ConversationId, files: string) => sql`
      insert into conversation_artifacts (tenant_id, conversation_id, ref)
      select distinct ${tenantId}, ${id}, a.artifact from jsonb_to_recordset(${files}::jsonb) as a (artifact text)
      on conflict do nothing`

      /** Whether the stored message has this content and these files. None if there is no such message. */
      const compareMessage = (
        { tenantId }: TenantScope,
        id: MessageId,
        content: string,
        attachments: ReadonlyArray<StoredAttachment>
      ) =>
        sql`
          select content = ${content} and attachments = ${attachmentsJson(attachments)}::jsonb as "isSame"
          from messages where tenant_id = ${tenantId} and id = ${id}`.pipe(
          Rows.first(Compared),
          Effect.withSpan("ConversationStates.compareMessage")
        )

      /** Appends a message of a team member or the service. Needs a transaction. */
      const addMessage = Effect.fn("ConversationStates.addMessage")(function* (
        scope: TenantScope,
        id: ConversationId,
        message: {
          readonly id: MessageId
          readonly content: string
          readonly author: "human" | "system"
          readonly userId: UserId | null
          readonly attachments: ReadonlyArray<StoredAttachment>
        }
      ) {
        const files = attachmentsJson(message.attachments)
        yield* sql`
        with conversation as (
          update conversations c set message_count = c.message_count + 1, ${activityAssignments(sql)}
          where c.tenant_id = ${scope.tenantId} and c.id = ${id} returning c.id, c.tenant_id, c.agent_id, c.message_count
        )
        ${message.author === "human" ? sql`, ${eventWrites(sql, messageSent(sql, message.id, message.userId))}` : sql``}
        insert into messages (
          id, tenant_id, conversation_id, agent_id, position, role, content, author, author_user_id, attachments
        )
        select ${message.id}, tenant_id, id, agent_id, message_count, 'assistant', ${message.content}, ${message.author},
          ${message.userId}, ${files}::jsonb
        from conversation`
        if (message.attachments.length > 0) yield* keepFiles(scope, id, files)
      }, Effect.orDie)

      /**
       * Requests a stop from the processes that run turns of the conversation. Must not run in the transaction of the
       * change, because a settling turn locks its run before the conversation.
       */
      const stopTurns = ({ tenantId }: TenantScope, id: ConversationId) =>
        sql`
          update agent_runs set stop_requested = true
          where tenant_id = ${tenantId} and conversation_id = ${id} and status = 'running'
          returning id, agent_id as "agentId"`.pipe(
          Rows.all(Running),
          Effect.withSpan("ConversationStates.stopTurns")
        )

      return { change, compareMessage, addMessage, stopTurns } as const
    })
  }
) {}
