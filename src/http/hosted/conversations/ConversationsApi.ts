/** Conversations of every channel, for the dashboard. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Schema from "effect/Schema"
import { optional } from "../../../domain/Optional.ts"
import {
  AuthoredMessage,
  Conversation,
  ConversationChannel,
  ConversationState
} from "../../../domain/conversations/Conversation.ts"
import { NotFound, PaginationNotReady, ValidationError } from "../../../domain/Errors.ts"
import { AgentId } from "../../../domain/Ids.ts"
import { PostedMessage } from "../../../domain/conversations/InboxView.ts"
import { nextCursor, pageParams } from "../../../domain/Page.ts"
import { managed, RequiredRole, SessionAuth } from "../../Auth.ts"
import { failure, success } from "../../Envelope.ts"
import {
  ConversationDetail,
  conversationPath,
  MessagePage,
  messagePageParams
} from "../../public/conversations/ConversationsApi.ts"

const { updatedAt } = Conversation.fields
const hostedFields = {
  state: ConversationState,
  channel: ConversationChannel,
  handoffReason: Schema.NullOr(Schema.String)
}

export const HostedConversation = Schema.Struct({ ...Conversation.fields, ...hostedFields })

/** A conversation with all its messages, oldest first. */
export const HostedConversationDetail = Schema.Struct({
  ...ConversationDetail.fields,
  messages: Schema.Array(AuthoredMessage),
  updatedAt,
  ...hostedFields
})

/** One page of a conversation, oldest first. */
const PostedPage = Schema.Struct({ ...MessagePage.fields, messages: Schema.Array(PostedMessage) })

/** Newest first. */
const list = HttpApiEndpoint.get("list", "/conversations")
  .setUrlParams(
    Schema.Struct({
      ...pageParams.fields,
      agentId: optional(AgentId),
      state: optional(ConversationState),
      channel: optional(ConversationChannel)
    })
  )
  .addSuccess(success(Schema.Struct({ conversations: Schema.Array(HostedConversation), nextCursor })))
  .addError(failure(ValidationError))
  .annotate(RequiredRole, "viewer")

const get = HttpApiEndpoint.get("get", "/conversations/:id")
  .setPath(conversationPath)
  .addSuccess(success(HostedConversationDetail))
  .addError(failure(NotFound, PaginationNotReady))
  .annotate(RequiredRole, "viewer")

const messages = HttpApiEndpoint.get("messages", "/conversations/:id/messages")
  .setPath(conversationPath)
  .setUrlParams(messagePageParams)
  .addSuccess(success(PostedPage))
  .addError(failure(ValidationError, NotFound, PaginationNotReady))
  .annotate(RequiredRole, "viewer")

const conversations = <const Id extends string>(id: Id) =>
  HttpApiGroup.make(id).add(list).add(get).add(messages)

export class HostedConversationsApi extends conversations("hostedConversations")
  .prefix("/api")
  .middleware(SessionAuth) {}

export class ManagedConversationsApi extends managed(
  conversations("managedConversations"),
  "conversations"
) {}
