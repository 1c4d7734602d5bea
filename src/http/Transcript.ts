/** Messages of a conversation, in pages or as one stream, for the public and the hosted routes. */
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { AuthoredMessage, ConversationScope } from "../domain/conversations/Conversation.ts"
import type { ConversationId } from "../domain/Ids.ts"
import type { Conversations } from "../usecases/conversations/Conversations.ts"
import * as Cursor from "./Cursor.ts"
import { RequestId } from "./server/RequestId.ts"

/** Default number of messages per page. */
const defaultPageSize = 50

/**
 * `{ data: { …head, messages }, meta }`. `messages` are sent while they are read, so that a conversation of any length
 * fits in memory. When reading fails the response is cut off, which clients detect as incomplete.
 */
export const streamAll = <E>(
  head: Readonly<Record<string, unknown>>,
  encode: (message: AuthoredMessage) => string,
  messages: Stream.Stream<AuthoredMessage, E>
) =>
  Effect.map(RequestId, (requestId) => {
    const opening = JSON.stringify({ ...head, messages: [] }).slice(0, -2)
    const items = Stream.zipWithIndex(messages).pipe(
      Stream.map(([message, index]) => `${index === 0 ? "" : ","}${encode(message)}`),
      Stream.chunks,
      Stream.map((texts) => Array.from(texts).join(""))
    )
    const body = Stream.make(`{"data":${opening}`).pipe(
      Stream.concat(items),
      Stream.concat(Stream.make(`]},"meta":${JSON.stringify({ requestId })}}`)),
      Stream.encodeText
    )
    return HttpServerResponse.stream(body, { contentType: "application/json" })
  })

/** One page. Its cursor is valid for `reader` and this conversation only. */
export const page = Effect.fn("Transcript.page")(function* (
  conversations: Conversations,
  reader: string,
  scope: ConversationScope,
  id: ConversationId,
  { cursor, limit = defaultPageSize }: { readonly cursor?: string; readonly limit?: number }
) {
  const list = { scope: reader, route: `conversations/${id}/messages` }
  const { nextCursor, rows } = yield* Cursor.page(list, cursor, (after) =>
    conversations.messages(scope, id, { after: after === undefined ? undefined : Number(after), limit })
  )
  return { messages: rows, nextCursor, hasMore: nextCursor !== null }
})
