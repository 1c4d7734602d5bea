/** Interface for sending messages through a channel, for the code that writes them. */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { StoredAttachment } from "../../domain/channels/Attachment.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import type { ConversationId, MessageId } from "../../domain/Ids.ts"

/** A stored message to send to the contact. */
export interface Post extends TenantScope {
  readonly conversationId: ConversationId
  readonly messageId: MessageId
  /** A reply of the `agent` is sent only while the conversation has this `epoch`. */
  readonly author: "agent" | "human" | "system"
  /** The conversation's epoch when the message was written. */
  readonly epoch: number
  readonly text: string
  /** Files stored with the conversation, of types that the channel carries. */
  readonly attachments?: ReadonlyArray<StoredAttachment>
}

export class ChannelSender extends Context.Tag("usecases/channels/ChannelSender")<
  ChannelSender,
  {
    /** Queues the message in the caller's transaction. Does nothing for a conversation without a channel. */
    readonly post: (post: Post) => Effect.Effect<void>
    /** Shows the contact that their message was read and an answer is being written. Errors are ignored. */
    readonly markSeen: (scope: TenantScope, conversationId: ConversationId) => Effect.Effect<void>
  }
>() {}
