import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { AgentKey } from "../../../domain/accounts/Access.ts"
import type { ConversationScope } from "../../../domain/conversations/Conversation.ts"
import { Conversations } from "../../../usecases/conversations/Conversations.ts"
import { Api } from "../../Api.ts"
import { CurrentKey } from "../../Auth.ts"
import * as Cursor from "../../Cursor.ts"
import * as Transcript from "../../Transcript.ts"
import { ConversationDetail, MessageItem } from "./ConversationsApi.ts"

/** A key may read conversations of its own agent that began over the API; with a visitor's token, those of others not. */
const scopeOf = ({ agentId, sourceScope, tenantId, visitor }: AgentKey): ConversationScope => ({
  tenantId,
  agentId,
  sourceScope,
  channel: "api",
  ...(visitor === undefined ? {} : { visitor })
})

const encodeHead = Schema.encodeSync(ConversationDetail.omit("messages"))
const encodeMessage = Schema.encodeSync(Schema.parseJson(MessageItem))

export const layer = HttpApiBuilder.group(Api, "conversations", (handlers) =>
  Effect.gen(function* () {
    const conversations = yield* Conversations

    return handlers
      .handle("list", ({ urlParams: { limit = 20, cursor, endUserId } }) =>
        Effect.gen(function* () {
          const key = yield* CurrentKey
          const list = { scope: key.agentId, route: "conversations", filter: { endUserId } }
          const { nextCursor, rows } = yield* Cursor.page(list, cursor, (after) =>
            conversations.list(scopeOf(key), { limit, after, endUserId })
          )
          return { conversations: rows, nextCursor }
        })
      )
      .handle("get", ({ path }) =>
        Effect.gen(function* () {
          const { conversation, messages } = yield* conversations.get(scopeOf(yield* CurrentKey), path.id)
          return yield* Transcript.streamAll(encodeHead(conversation), encodeMessage, messages)
        })
      )
      .handle("messages", ({ path, urlParams }) =>
        Effect.flatMap(CurrentKey, (key) =>
          Transcript.page(
            { scope: key.agentId, route: `conversations/${path.id}/messages` },
            urlParams,
            (page) => conversations.messages(scopeOf(key), path.id, page)
          )
        )
      )
  })
)
