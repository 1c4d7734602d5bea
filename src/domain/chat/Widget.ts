/** The hosted chat: its turn, its sessions and what the widget reads. */
import * as Schema from "effect/Schema"
import { optional } from "../Optional.ts"
import { type ChatTurnRequest, Citation, ExternalEndUserId, Media, StreamTurnRequest } from "./ChatTurn.ts"
import { Conversation, ConversationState, Message } from "../conversations/Conversation.ts"
import { TrialSettings } from "../agents/Agent.ts"
import { AgentId, ConversationId, EndUserId, MessageId, RunId } from "../Ids.ts"
import { Text, trimmed } from "../Text.ts"
import { Version } from "../Version.ts"

/** The session id that a page sends. An unknown one is a 404. Knowledge of the id authenticates the visitor. */
export const SessionId = Text.pipe(Schema.minLength(1), Schema.maxLength(200), Schema.brand("SessionId"))
export type SessionId = typeof SessionId.Type

/** Days without a request after which a session ends. */
export const sessionDays = 90

const turnFields = {
  /** Identifies person and conversation, instead of the three identity fields. */
  sessionId: optional(SessionId),
  /** Needed only where no agent key names the agent. */
  agentId: optional(AgentId),
  /** The session's last message, if it got no answer. It is answered now, and `message` is not stored. */
  retryOf: optional(MessageId),
  /** The agent's version to try; only for team members. */
  version: optional(Version),
  /** Settings for this turn only; only for team members who may change the agent. */
  draft: optional(TrialSettings),
  /** A turn of a test conversation of the team. It and all later turns are deleted, and this one replaces them. */
  replaces: optional(RunId)
}

const sessionIsOnlyIdentity = ({ sessionId, ...turn }: typeof Turn.Type) =>
  sessionId === undefined ||
  [turn.conversationId, turn.endUserId, turn.externalEndUserId].every((field) => field === undefined) ||
  "Send sessionId alone, without conversationId, endUserId and externalEndUserId"

const retryHasSession = ({ persist, retryOf, sessionId }: typeof Turn.Type) =>
  retryOf === undefined || (sessionId !== undefined && persist) || "Send retryOf with sessionId"

const replacesIsOnlyIdentity = ({
  conversationId,
  endUserId,
  externalEndUserId,
  persist,
  replaces,
  sessionId
}: typeof Turn.Type) =>
  replaces === undefined ||
  (persist &&
    [conversationId, endUserId, externalEndUserId, sessionId].every((field) => field === undefined)) ||
  "Send replaces alone: it names the conversation"

const Turn = Schema.extend(StreamTurnRequest, Schema.Struct(turnFields))

/** Body of `POST /api/v1/chat/stream`. */
export const HostedTurnRequest = Turn.pipe(
  Schema.filter(sessionIsOnlyIdentity),
  Schema.filter(retryHasSession),
  Schema.filter(replacesIsOnlyIdentity)
)
export type HostedTurnRequest = ChatTurnRequest & {
  readonly sessionId?: SessionId
  readonly agentId?: AgentId
  readonly retryOf?: MessageId
  readonly version?: number
  readonly draft?: TrialSettings
  readonly replaces?: RunId
}

/** Helpful (1), or not (-1). */
export const Rating = Schema.Literal(1, -1)

/** Fields that every request of the widget may have. */
const callerFields = { agentId: optional(AgentId) }
const sessionFields = { ...callerFields, sessionId: SessionId }

export const InitRequest = Schema.Struct({
  ...callerFields,
  sessionId: optional(SessionId),
  externalEndUserId: optional(ExternalEndUserId)
})
export const VoiceRequest = Schema.Struct({ ...callerFields, sessionId: optional(SessionId) })
export const IdentifyRequest = Schema.Struct({ ...sessionFields, externalEndUserId: ExternalEndUserId })
/** `language` is the page's, such as `de`. Messages to the person use it. */
export const HandoffRequest = Schema.Struct({
  ...sessionFields,
  reason: optional(trimmed(1_000)),
  language: optional(trimmed(35))
})
/** The person is typing. */
export const TypingRequest = Schema.Struct(sessionFields)
export const FeedbackRequest = Schema.Struct({
  ...sessionFields,
  messageId: MessageId,
  rating: Rating,
  comment: optional(trimmed(4_000))
})
export type FeedbackRequest = typeof FeedbackRequest.Type
/** Query of the routes that read a session. */
export const SessionQuery = Schema.Struct(sessionFields)

/** A session as its page sees it. The conversation is null until the first message. */
export interface Session {
  readonly sessionId: SessionId
  readonly endUserId: EndUserId
  readonly conversationId: ConversationId | null
}

/** How to open the socket of the session's conversation. Without a conversation there is no token yet. */
const realtimeFields = { realtimeToken: Schema.NullOr(Schema.String), realtimeUrl: Schema.String }

export const SessionView = Schema.Struct({
  sessionId: SessionId,
  agent: Schema.Struct({ id: AgentId, name: Schema.String, greeting: Schema.NullOr(Schema.String) }),
  endUserId: EndUserId,
  conversationId: Schema.NullOr(ConversationId),
  ...realtimeFields
})

/** `voice` is null, because this server has no voice provider. The session continues in text. */
export const VoiceView = Schema.Struct({ ...SessionView.fields, voice: Schema.Null })

const WidgetConversation = Schema.Struct({ ...Conversation.fields, state: ConversationState })

/**
 * State of the conversation's last turn. `lost`: its server stopped, and answering again would repeat no side effect.
 */
export const LastTurn = Schema.Struct({
  /** Id of the person's message. */
  messageId: MessageId,
  status: Schema.Literal("running", "complete", "failed", "lost")
})
export type LastTurn = typeof LastTurn.Type

export const ConversationView = Schema.Struct({
  conversation: Schema.NullOr(WidgetConversation),
  /** Null before the first turn. */
  turn: Schema.NullOr(LastTurn),
  ...realtimeFields
})

/** The author of a message that the visitor did not write. */
export const Author = Schema.Literal("agent", "human", "system")

/** Messages of the service itself, which the widget shows in the language of its page. */
const Notice = Schema.Literal("handoff")

/** A message with the data that the widget shows beside it. The address in `media` also needs the session. */
export const WidgetMessage = Schema.Struct({
  ...Message.fields,
  author: Schema.NullOr(Author),
  /** Null if `content` is the whole message. */
  notice: Schema.NullOr(Notice),
  citations: Schema.Array(Citation),
  media: Schema.Array(Media),
  /** The person's rating of the message. */
  rating: Schema.NullOr(Rating)
})
export type WidgetMessage = typeof WidgetMessage.Type

export const Feedback = Schema.Struct({
  messageId: MessageId,
  rating: Rating,
  comment: Schema.NullOr(Schema.String)
})
