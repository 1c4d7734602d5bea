import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { InboxItems } from "../../../usecases/conversations/InboxItems.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import { audited, idOf, auditedRemoval } from "../accounts/Actor.ts"

const group = (handlers: GroupHandlers<"inboxItems">) =>
  Effect.gen(function* () {
    const items = yield* InboxItems
    return handlers
      .handle("all", () => Effect.flatMap(CurrentUser, items.all))
      .handle("addLabel", ({ payload }) =>
        audited("inbox_label.create", (user) => items.addLabel(user, payload), idOf).pipe(
          Effect.bindTo("label")
        )
      )
      .handle("removeLabel", ({ path: { id } }) =>
        auditedRemoval("inbox_label.delete", id, items.removeLabel)
      )
      .handle("addView", ({ payload }) =>
        audited("inbox_view.create", (user) => items.addView(user, payload), idOf).pipe(Effect.bindTo("view"))
      )
      .handle("removeView", ({ path: { id } }) => auditedRemoval("inbox_view.delete", id, items.removeView))
      .handle("addReply", ({ payload }) =>
        audited("canned_reply.create", (user) => items.addReply(user, payload), idOf).pipe(
          Effect.bindTo("reply")
        )
      )
      .handle("updateReply", ({ path: { id }, payload }) =>
        audited("canned_reply.update", (user) => items.updateReply(user, id, payload), id).pipe(
          Effect.bindTo("reply")
        )
      )
      .handle("removeReply", ({ path: { id } }) =>
        auditedRemoval("canned_reply.delete", id, items.removeReply)
      )
  })

export const InboxItemsHandlers = HttpApiBuilder.group(Api, "inboxItems", group)
export const ManagedInboxItemsHandlers = HttpApiBuilder.group(Api, "managedInboxItems", group)
