import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { AuditTrail } from "../../../usecases/accounts/AuditTrail.ts"
import { InboxItems } from "../../../usecases/conversations/InboxItems.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import { actor, removal } from "../accounts/Actor.ts"

const group = (handlers: GroupHandlers<"inboxItems">) =>
  Effect.gen(function* () {
    const items = yield* InboxItems
    const audit = yield* AuditTrail
    return handlers
      .handle("all", () => Effect.flatMap(CurrentUser, items.all))
      .handle("addLabel", ({ payload }) =>
        Effect.gen(function* () {
          const change = items.addLabel(yield* CurrentUser, payload)
          return { label: yield* audit.change(yield* actor, "inbox_label.create", change, ({ id }) => id) }
        })
      )
      .handle("removeLabel", ({ path: { id } }) =>
        removal(audit, "inbox_label.delete", id, items.removeLabel)
      )
      .handle("addView", ({ payload }) =>
        Effect.gen(function* () {
          const change = items.addView(yield* CurrentUser, payload)
          return { view: yield* audit.change(yield* actor, "inbox_view.create", change, ({ id }) => id) }
        })
      )
      .handle("removeView", ({ path: { id } }) => removal(audit, "inbox_view.delete", id, items.removeView))
      .handle("addReply", ({ payload }) =>
        Effect.gen(function* () {
          const change = items.addReply(yield* CurrentUser, payload)
          return { reply: yield* audit.change(yield* actor, "canned_reply.create", change, ({ id }) => id) }
        })
      )
      .handle("updateReply", ({ path: { id }, payload }) =>
        Effect.gen(function* () {
          const change = items.updateReply(yield* CurrentUser, id, payload)
          return { reply: yield* audit.change(yield* actor, "canned_reply.update", change, () => id) }
        })
      )
      .handle("removeReply", ({ path: { id } }) =>
        removal(audit, "canned_reply.delete", id, items.removeReply)
      )
  })

export const InboxItemsHandlers = HttpApiBuilder.group(Api, "inboxItems", group)
export const ManagedInboxItemsHandlers = HttpApiBuilder.group(Api, "managedInboxItems", group)
