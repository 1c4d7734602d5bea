import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { AuditTrail } from "../../../usecases/accounts/AuditTrail.ts"
import { Takeover } from "../../../usecases/conversations/Takeover.ts"
import { Attachments } from "../../../usecases/chat/widget/Attachments.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import { actor } from "../accounts/Actor.ts"
import * as ReplyForm from "./ReplyForm.ts"

/** Conversations that the tenant's people answer. */
const group = (handlers: GroupHandlers<"takeover">) =>
  Effect.gen(function* () {
    const takeover = yield* Takeover
    const attachments = yield* Attachments
    const audit = yield* AuditTrail
    return handlers
      .handle("takeover", ({ path: { id } }) =>
        Effect.gen(function* () {
          const change = takeover.takeover(yield* CurrentUser, id)
          return {
            conversation: yield* audit.change(yield* actor, "conversation.takeover", change, () => id)
          }
        })
      )
      .handle("release", ({ path: { id } }) =>
        Effect.gen(function* () {
          const change = takeover.release(yield* CurrentUser, id)
          return { conversation: yield* audit.change(yield* actor, "conversation.release", change, () => id) }
        })
      )
      .handle("close", ({ path: { id } }) =>
        Effect.gen(function* () {
          const change = takeover.close(yield* CurrentUser, id)
          return { conversation: yield* audit.change(yield* actor, "conversation.close", change, () => id) }
        })
      )
      .handleRaw("say", ({ path: { id }, request }) =>
        Effect.gen(function* () {
          const reply = yield* ReplyForm.read(request, attachments.stage)
          const change = takeover.say(yield* CurrentUser, id, reply)
          return yield* audit.change(yield* actor, "conversation.message", change, () => id)
          // Received files that were not kept are removed before the response.
        }).pipe(Effect.scoped)
      )
  })

export const TakeoverHandlers = HttpApiBuilder.group(Api, "takeover", group)
export const ManagedTakeoverHandlers = HttpApiBuilder.group(Api, "managedTakeover", group)
