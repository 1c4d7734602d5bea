/** Messages of a conversation, in pages or as one stream. */
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { AuthoredMessage } from "../domain/conversations/Conversation.ts"
import * as Cursor from "./Cursor.ts"
import { RequestId } from "./server/RequestId.ts"

/** Default and maximum number of messages per page. */
const defaultPageSize = 50
const maxPageSize = 1_000

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

interface PageParams {
  readonly cursor?: string
  readonly limit?: number
}

/** One page of `list`: the messages that `read` finds after a position. */
export const page = <A, E, R>(
  list: Cursor.List,
  { cursor, limit = defaultPageSize }: PageParams,
  read: (page: {
    readonly after: number | undefined
    readonly limit: number
  }) => Effect.Effect<{ readonly rows: ReadonlyArray<A>; readonly next: number | null }, E, R>
) =>
  Effect.map(
    Cursor.page(list, cursor, (after) =>
      read({ after: after === undefined ? undefined : Number(after), limit: Math.min(limit, maxPageSize) })
    ),
    ({ nextCursor, rows }) => ({ messages: rows, nextCursor, hasMore: nextCursor !== null })
  )
