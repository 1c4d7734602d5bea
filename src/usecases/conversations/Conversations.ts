/** Reads conversations page by page, newest first, and their messages, oldest first. */
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { ConversationScope } from "../../domain/conversations/Conversation.ts"
import { PaginationNotReady, orNoSuch } from "../../domain/Errors.ts"
import type { ConversationId } from "../../domain/Ids.ts"
import { pageBy } from "../../domain/Page.ts"
import {
  ConversationStore,
  type KeyedMessage,
  type MessagePage
} from "../../store/conversations/Conversations.ts"

/** Messages per page when a whole conversation is read. */
const messagesPerPage = 200

const notReady = () =>
  new PaginationNotReady({
    message: "Older messages of this conversation are still being put in order. Try again in a moment.",
    details: { retryAfterSeconds: 1 }
  })

export class Conversations extends Effect.Service<Conversations>()("usecases/conversations/Conversations", {
  effect: Effect.gen(function* () {
    const store = yield* ConversationStore

    const pageOf = Effect.fn("Conversations.pageOf")(function* (
      scope: ConversationScope,
      id: ConversationId,
      page: { readonly after: number | undefined; readonly limit: number }
    ) {
      const found = yield* store.messages(scope, id, page).pipe(orNoSuch("conversation"))
      if (found.pending) return yield* notReady()
      return found
    })

    /** At most `limit` messages after the key `after`. `next` is the key for the following page, if there is one. */
    const messages = Effect.fn("Conversations.messages")(function* (
      scope: ConversationScope,
      id: ConversationId,
      { after, limit }: { readonly after: number | undefined; readonly limit: number }
    ) {
      const page = yield* pageOf(scope, id, { after, limit: limit + 1 })
      const { next, rows } = pageBy(page.messages, limit, ({ position }) => position)
      return { rows: rows.map(({ message }) => message), next }
    })

    /** The pages after `first`, up to the message that was the last one when reading began. */
    const rest = (scope: ConversationScope, id: ConversationId, first: MessagePage) => {
      const last = first.last ?? -Infinity
      const upTo = ({ messages }: MessagePage) => messages.filter(({ position }) => position <= last)
      const next = (page: ReadonlyArray<KeyedMessage>) =>
        Option.fromNullable(page.at(-1)?.position).pipe(Option.filter((position) => position < last))
      const begun = upTo(first)
      return Stream.concat(
        Stream.fromIterable(begun),
        Stream.unfoldChunkEffect(next(begun), (after) =>
          Option.match(after, {
            onNone: () => Effect.succeedNone,
            onSome: (position) =>
              pageOf(scope, id, { after: position, limit: messagesPerPage }).pipe(
                // A conversation deleted meanwhile is a defect: a part of it must not look complete.
                Effect.orDie,
                Effect.map(upTo),
                Effect.map((page) => Option.some([Chunk.fromIterable(page), next(page)] as const))
              )
          })
        )
      )
    }

    /**
     * A conversation and all its messages as of now. They are read page by page, with backpressure. Errors come before
     * the first message; a later failure is a defect of the stream.
     */
    const get = Effect.fn("Conversations.get")(function* (scope: ConversationScope, id: ConversationId) {
      const found = yield* store.find(scope, id).pipe(orNoSuch("conversation"))
      const first = yield* pageOf(scope, id, { after: undefined, limit: messagesPerPage })
      return {
        conversation: found,
        messages: Stream.map(rest(scope, id, first), ({ message }) => message)
      }
    })

    return { list: store.list, get, messages } as const
  })
}) {}
