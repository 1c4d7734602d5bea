/** Conversations of the key's agent that began over the API, and their messages. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import * as Schema from "effect/Schema"
import { Conversation, Message } from "../../../domain/conversations/Conversation.ts"
import { NotFound, PaginationNotReady, ValidationError } from "../../../domain/Errors.ts"
import { ConversationId, EndUserId } from "../../../domain/Ids.ts"
import { cursorParam, limitParam, nextCursor, pageParams } from "../../../domain/Page.ts"
import { optional } from "../../../domain/Optional.ts"
import { AgentKeyAuth, RequiredPermission } from "../../Auth.ts"
import { failure, success, UpdatedAt } from "../../Envelope.ts"

const { agentId, createdAt, endUserId, id } = Conversation.fields

/** An item of the list. */
const ConversationItem = Schema.Struct(Conversation.fields)

export const ConversationPage = Schema.Struct({ conversations: Schema.Array(ConversationItem), nextCursor })

export const MessageItem = Schema.Struct(Message.fields)

/** A conversation with all its messages, oldest first. */
export const ConversationDetail = Schema.Struct({
  id,
  agentId,
  endUserId,
  messages: Schema.Array(MessageItem),
  createdAt
})

/** One page of a conversation, oldest first. */
export const MessagePage = Schema.Struct({
  messages: Schema.Array(MessageItem),
  nextCursor,
  hasMore: Schema.Boolean
})

/** `limit` may be any positive safe integer; a page has at most the page maximum. */
export const messagePageParams = Schema.Struct({
  limit: limitParam(Number.MAX_SAFE_INTEGER),
  cursor: cursorParam
})

export const conversationPath = Schema.Struct({ id: ConversationId })

export const ConversationsApi = HttpApiGroup.make("conversations")
  .add(
    HttpApiEndpoint.get("list", "/v1/conversations")
      .setUrlParams(
        Schema.Struct({
          ...pageParams.fields,
          endUserId: optional(EndUserId)
        })
      )
      .addSuccess(success(ConversationPage))
      .addError(failure(ValidationError))
      .annotate(OpenApi.Summary, "List conversations, newest first")
  )
  .add(
    HttpApiEndpoint.get("get", "/v1/conversations/:id")
      .setPath(conversationPath)
      .addSuccess(success(ConversationDetail))
      .addError(failure(NotFound, PaginationNotReady))
      .annotate(OpenApi.Summary, "Fetch a conversation with all its messages")
  )
  .add(
    HttpApiEndpoint.get("messages", "/v1/conversations/:id/messages")
      .setPath(conversationPath)
      .setUrlParams(messagePageParams)
      .addSuccess(success(MessagePage))
      .addError(failure(ValidationError, NotFound, PaginationNotReady))
      .annotate(OpenApi.Summary, "Page through a conversation's messages, oldest first")
  )
  .annotate(UpdatedAt, "2026-11-21T00:00:00.000Z")
  .annotateEndpoints(RequiredPermission, "chat")
  .middleware(AgentKeyAuth)
