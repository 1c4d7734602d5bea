import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { SessionUser } from "../../../domain/accounts/Access.ts"
import {
  AuthoredMessage,
  type ConversationChannel,
  type ConversationState
} from "../../../domain/conversations/Conversation.ts"
import type { AgentId } from "../../../domain/Ids.ts"
import { Conversations } from "../../../usecases/conversations/Conversations.ts"
import { InboxView } from "../../../usecases/conversations/InboxView.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import * as Cursor from "../../Cursor.ts"
import * as Transcript from "../../Transcript.ts"
import { HostedConversationDetail } from "./ConversationsApi.ts"
import * as KnownChannel from "./KnownChannel.ts"

interface ListParams {
  readonly limit?: number
  readonly cursor?: string
  readonly agentId?: AgentId
  readonly state?: ConversationState
  readonly channel?: ConversationChannel
}

const encodeHead = Schema.encodeSync(HostedConversationDetail.omit("messages"))
const encodeMessage = Schema.encodeSync(Schema.parseJson(AuthoredMessage))

const group = (handlers: GroupHandlers<"hostedConversations">) =>
  Effect.gen(function* () {
    const conversations = yield* Conversations
    const inbox = yield* InboxView
    const known = yield* KnownChannel.make

    const list = Effect.fn("HostedConversationsHandlers.list")(function* (
      { tenantId }: SessionUser,
      { limit = 20, cursor, agentId, state, channel }: ListParams
    ) {
      yield* known(channel)
      const place = { scope: tenantId, route: "/api/conversations", filter: { agentId, state, channel } }
      const after = yield* Cursor.open(place, cursor)
      const { rows, next } = yield* conversations.list(
        { tenantId, agentId, channel },
        { limit, after, state }
      )
      return { conversations: rows, nextCursor: yield* Cursor.seal(place, next) }
    })

    return handlers
      .handle("list", ({ urlParams }) => Effect.flatMap(CurrentUser, (user) => list(user, urlParams)))
      .handle("get", ({ path }) =>
        Effect.gen(function* () {
          const { tenantId } = yield* CurrentUser
          const { conversation, messages } = yield* conversations.get({ tenantId }, path.id)
          return yield* Transcript.whole(encodeHead(conversation), encodeMessage, messages)
        })
      )
      .handle("messages", ({ path, urlParams }) =>
        Effect.gen(function* () {
          const { tenantId } = yield* CurrentUser
          const page = yield* Transcript.page(conversations, tenantId, { tenantId }, path.id, urlParams)
          return { ...page, messages: yield* inbox.withReceipts({ tenantId }, page.messages) }
        })
      )
  })

export const ConversationsHandlers = HttpApiBuilder.group(Api, "hostedConversations", group)
export const ManagedConversationsHandlers = HttpApiBuilder.group(Api, "managedConversations", group)
