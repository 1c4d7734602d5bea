import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { InboxWork } from "../../../usecases/conversations/InboxWork.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import { audited } from "../accounts/Actor.ts"

const group = (handlers: GroupHandlers<"inboxWork">) =>
  Effect.gen(function* () {
    const work = yield* InboxWork
    return handlers
      .handle("unread", () => Effect.flatMap(CurrentUser, work.unread).pipe(Effect.bindTo("unread")))
      .handle("readAll", () => Effect.as(Effect.flatMap(CurrentUser, work.readAll), { unread: 0 }))
      .handle("read", ({ path: { id }, payload: { messageId } }) =>
        Effect.as(
          Effect.flatMap(CurrentUser, (user) => work.read(user, id, messageId)),
          { id }
        )
      )
      .handle("assign", ({ path: { id }, payload: { userId } }) =>
        Effect.as(
          audited("conversation.assign", (user) => work.assign(user, id, userId), id),
          { id }
        )
      )
      .handle("label", ({ path: { id }, payload: { labelIds } }) =>
        Effect.as(
          audited("conversation.label", (user) => work.label(user, id, labelIds), id),
          { id }
        )
      )
      .handle("note", ({ headers, path: { id }, payload: { content } }) =>
        audited(
          "conversation.note",
          (user) => work.note(user, id, content, headers["idempotency-key"]),
          id
        ).pipe(Effect.bindTo("entry"))
      )
      .handle("removeNote", ({ path: { id, noteId } }) =>
        Effect.as(
          audited("conversation.note_delete", (user) => work.removeNote(user, id, noteId), id),
          { id: noteId, deleted: true } as const
        )
      )
      .handle("typing", ({ path: { id } }) =>
        Effect.as(
          Effect.flatMap(CurrentUser, (user) => work.typing(user, id)),
          { id }
        )
      )
      .handle("person", ({ path: { id } }) =>
        Effect.flatMap(CurrentUser, (user) => work.person(user, id)).pipe(Effect.bindTo("person"))
      )
  })

export const InboxWorkHandlers = HttpApiBuilder.group(Api, "inboxWork", group)
export const ManagedInboxWorkHandlers = HttpApiBuilder.group(Api, "managedInboxWork", group)
