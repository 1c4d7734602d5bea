/**
 * Control of a conversation: its agent answers while it is `AI_ACTIVE`, otherwise humans do. Every change stops the
 * running turns in every process and is signalled to all readers of the conversation.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import type { StoredAttachment } from "../../domain/channels/Attachment.ts"
import type { ConversationScope } from "../../domain/conversations/Conversation.ts"
import { type ConversationId, type MessageId, newId, type UserId } from "../../domain/Ids.ts"
import {
  type Change,
  type Changed,
  ConversationStates
} from "../../store/conversations/ConversationStates.ts"
import { ChannelSender } from "../channels/ChannelSender.ts"
import { RunningTurns } from "../chat/RunningTurns.ts"
import { RealtimeFeed } from "./RealtimeFeed.ts"

export interface OutgoingMessage {
  /** A new one unless given. */
  readonly id?: MessageId
  readonly content: string
  readonly author: "human" | "system"
  readonly userId: UserId | null
  /** Locked until the end of the transaction. */
  readonly attachments?: ReadonlyArray<StoredAttachment>
  /** The text for the channel, when it differs from the content. */
  readonly sent?: string
}

export class ConversationControl extends Effect.Service<ConversationControl>()(
  "usecases/conversations/ConversationControl",
  {
    effect: Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const states = yield* ConversationStates
      const sender = yield* ChannelSender
      const runningTurns = yield* RunningTurns
      const feed = yield* RealtimeFeed

      /**
       * Stores a message, and sends it when the conversation has a channel. Must run in a transaction that has locked
       * the conversation.
       */
      const addMessage = Effect.fn("ConversationControl.addMessage")(function* (
        scope: TenantScope,
        id: ConversationId,
        epoch: number,
        { attachments = [], author, content, sent = content, userId, ...given }: OutgoingMessage
      ) {
        const messageId = given.id ?? (yield* newId.message)
        yield* states.addMessage(scope, id, { id: messageId, content, author, userId, attachments })
        yield* sender.post({
          tenantId: scope.tenantId,
          conversationId: id,
          messageId,
          author,
          epoch,
          text: sent,
          attachments
        })
        return messageId
      })

      /** Stops the running turns of the conversation, and signals the change. */
      const announce = Effect.fn("ConversationControl.announce")(function* (
        tenantId: ConversationScope["tenantId"],
        id: ConversationId
      ) {
        for (const run of yield* states.stopTurns({ tenantId }, id)) {
          const found = yield* runningTurns.find({ tenantId, agentId: run.agentId }, run.id)
          if (Option.isSome(found)) yield* found.value.stop
        }
        yield* feed.changed(id, null)
      })

      /**
       * Changes the state. None when the conversation does not exist or is in another state. `then` runs in the same
       * transaction.
       */
      const change = <A, E>(
        scope: ConversationScope,
        id: ConversationId,
        change: Change,
        then: (changed: Changed) => Effect.Effect<A, E>
      ) =>
        Effect.gen(function* () {
          const changed = yield* states.change(scope, id, change)
          return Option.isNone(changed) ? Option.none<A>() : Option.some(yield* then(changed.value))
        }).pipe(
          sql.withTransaction,
          Effect.catchTag("SqlError", Effect.die),
          Effect.tap((done) => (Option.isSome(done) ? announce(scope.tenantId, id) : Effect.void)),
          Effect.uninterruptible,
          Effect.withSpan("ConversationControl.change", { attributes: { id, to: change.to } })
        )

      return { change, addMessage, announce } as const
    })
  }
) {}
