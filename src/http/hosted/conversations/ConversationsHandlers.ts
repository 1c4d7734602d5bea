import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { AuthoredMessage } from "../../../domain/conversations/Conversation.ts"
import { Conversations } from "../../../usecases/conversations/Conversations.ts"
import { InboxView } from "../../../usecases/conversations/InboxView.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import { listPage } from "../../Lists.ts"
import * as Transcript from "../../Transcript.ts"
import { HostedConversationDetail } from "./ConversationsApi.ts"
import * as ChannelFilter from "./ChannelFilter.ts"

const encodeHead = Schema.encodeSync(HostedConversationDetail.omit("messages"))
const encodeMessage = Schema.encodeSync(Schema.parseJson(AuthoredMessage))

const group = (handlers: GroupHandlers<"hostedConversations">) =>
  Effect.gen(function* () {
    const conversations = yield* Conversations
    const inbox = yield* InboxView
    const checkChannel = yield* ChannelFilter.makeCheck

    return handlers
      .handle("list", ({ urlParams: { agentId, state, channel, ...params } }) =>
        Effect.zipRight(
          checkChannel(channel),
          listPage(
            "conversations",
            { route: "/api/conversations", filter: { agentId, state, channel } },
            params,
            ({ tenantId }, page) => conversations.list({ tenantId, agentId, channel }, { ...page, state })
          )
        )
      )
      .handle("get", ({ path }) =>
        Effect.gen(function* () {
          const { tenantId } = yield* CurrentUser
          const { conversation, messages } = yield* conversations.get({ tenantId }, path.id)
          return yield* Transcript.streamAll(encodeHead(conversation), encodeMessage, messages)
        })
      )
      .handle("messages", ({ path, urlParams }) =>
        Effect.gen(function* () {
          const { tenantId } = yield* CurrentUser
          const list = { scope: tenantId, route: `conversations/${path.id}/messages` }
          const found = yield* Transcript.page(list, urlParams, (page) =>
            conversations.messages({ tenantId }, path.id, page)
          )
          return { ...found, messages: yield* inbox.withReceipts({ tenantId }, found.messages) }
        })
      )
  })

export const ConversationsHandlers = HttpApiBuilder.group(Api, "hostedConversations", group)
export const ManagedConversationsHandlers = HttpApiBuilder.group(Api, "managedConversations", group)
