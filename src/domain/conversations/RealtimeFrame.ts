/** Frames of a conversation's realtime socket. */
import * as Schema from "effect/Schema"
import { RunEvent } from "../chat/AgentRun.ts"
import { Citation } from "../chat/ChatTurn.ts"
import { ConversationState, Message } from "./Conversation.ts"
import { ConversationId } from "../Ids.ts"

const FeedMessage = Schema.Struct({
  ...Message.fields,
  citations: Schema.optionalWith(Schema.Array(Citation), { exact: true })
})

/** Who is typing, besides the agent. */
export const Writer = Schema.Literal("customer", "team")
export type Writer = typeof Writer.Type

/** One frame of the socket. */
export const Frame = Schema.Union(
  Schema.Struct({
    type: Schema.Literal("message.created"),
    conversationId: ConversationId,
    message: FeedMessage
  }),
  Schema.Struct({
    type: Schema.Literal("conversation.updated"),
    conversationId: ConversationId,
    state: ConversationState
  }),
  Schema.Struct({ type: Schema.Literal("run.event"), event: RunEvent }),
  Schema.Struct({
    type: Schema.Literal("typing"),
    conversationId: ConversationId,
    /** Omitted if the agent writes. */
    by: Schema.optionalWith(Writer, { exact: true })
  })
)
export type Frame = typeof Frame.Type
