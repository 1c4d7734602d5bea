import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { AgentKey } from "../../../domain/accounts/Access.ts"
import type { ConversationScope } from "../../../domain/conversations/Conversation.ts"
import type { EndUserId } from "../../../domain/Ids.ts"
import { Conversations } from "../../../usecases/conversations/Conversations.ts"
import { Api } from "../../Api.ts"
import { CurrentKey } from "../../Auth.ts"
import * as Cursor from "../../Cursor.ts"
import * as Transcript from "../../Transcript.ts"
import { ConversationDetail, MessageItem } from "./ConversationsApi.ts"

interface ListParams {
  readonly limit?: number
  readonly cursor?: string
  readonly endUserId?: EndUserId
}

/** A key may read conversations of its own agent that began over the API. */
const scopeOf = ({ agentId, sourceScope, tenantId }: AgentKey): ConversationScope => ({
  tenantId,
  agentId,
  sourceScope,
  channel: "api"
})

const encodeHead = Schema.encodeSync(ConversationDetail.omit("messages"))
const encodeMessage = Schema.encodeSync(Schema.parseJson(MessageItem))

export const layer = HttpApiBuilder.group(Api, "conversations", (handlers) =>
  Effect.gen(function* () {
    const conversations = yield* Conversations

    const list = Effect.fn("ConversationsHandlers.list")(function* (
      key: AgentKey,
      { limit = 20, cursor, endUserId }: ListParams
    ) {
      const place = { scope: key.agentId, route: "conversations", filter: { endUserId } }
      const after = yield* Cursor.open(place, cursor)
      const { rows, next } = yield* conversations.list(scopeOf(key), { limit, after, endUserId })
      return { conversations: rows, nextCursor: yield* Cursor.seal(place, next) }
    })

    return handlers
      .handle("list", ({ urlParams }) => Effect.flatMap(CurrentKey, (key) => list(key, urlParams)))
      .handle("get", ({ path }) =>
        Effect.gen(function* () {
          const { conversation, messages } = yield* conversations.get(scopeOf(yield* CurrentKey), path.id)
          return yield* Transcript.whole(encodeHead(conversation), encodeMessage, messages)
        })
      )
      .handle("messages", ({ path, urlParams }) =>
        Effect.flatMap(CurrentKey, (key) =>
          Transcript.page(conversations, key.agentId, scopeOf(key), path.id, urlParams)
        )
      )
  })
)
