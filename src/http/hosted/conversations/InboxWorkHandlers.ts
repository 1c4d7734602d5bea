import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { AuditTrail } from "../../../usecases/accounts/AuditTrail.ts"
import { InboxWork } from "../../../usecases/conversations/InboxWork.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import { actor } from "../accounts/Actor.ts"

const group = (handlers: GroupHandlers<"inboxWork">) =>
  Effect.gen(function* () {
    const work = yield* InboxWork
    const audit = yield* AuditTrail
    return handlers
      .handle("unread", () => Effect.map(Effect.flatMap(CurrentUser, work.unread), (unread) => ({ unread })))
      .handle("readAll", () => Effect.as(Effect.flatMap(CurrentUser, work.readAll), { unread: 0 }))
      .handle("read", ({ path: { id }, payload: { messageId } }) =>
        Effect.as(
          Effect.flatMap(CurrentUser, (user) => work.read(user, id, messageId)),
          { id }
        )
      )
      .handle("assign", ({ path: { id }, payload: { userId } }) =>
        Effect.gen(function* () {
          const change = work.assign(yield* CurrentUser, id, userId)
          yield* audit.change(yield* actor, "conversation.assign", change, () => id)
          return { id }
        })
      )
      .handle("label", ({ path: { id }, payload: { labelIds } }) =>
        Effect.gen(function* () {
          const change = work.label(yield* CurrentUser, id, labelIds)
          yield* audit.change(yield* actor, "conversation.label", change, () => id)
          return { id }
        })
      )
      .handle("note", ({ path: { id }, payload: { content } }) =>
        Effect.gen(function* () {
          const change = work.note(yield* CurrentUser, id, content)
          return { entry: yield* audit.change(yield* actor, "conversation.note", change, () => id) }
        })
      )
      .handle("removeNote", ({ path: { id, noteId } }) =>
        Effect.gen(function* () {
          const change = work.removeNote(yield* CurrentUser, id, noteId)
          yield* audit.change(yield* actor, "conversation.note_delete", change, () => id)
          return { id: noteId, deleted: true } as const
        })
      )
      .handle("typing", ({ path: { id } }) =>
        Effect.as(
          Effect.flatMap(CurrentUser, (user) => work.typing(user, id)),
          { id }
        )
      )
      .handle("person", ({ path: { id } }) =>
        Effect.map(
          Effect.flatMap(CurrentUser, (user) => work.person(user, id)),
          (person) => ({ person })
        )
      )
  })

export const InboxWorkHandlers = HttpApiBuilder.group(Api, "inboxWork", group)
export const ManagedInboxWorkHandlers = HttpApiBuilder.group(Api, "managedInboxWork", group)
