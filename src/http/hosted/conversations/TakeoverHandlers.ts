import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { Takeover } from "../../../usecases/conversations/Takeover.ts"
import { Attachments } from "../../../usecases/chat/widget/Attachments.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { audited } from "../accounts/Actor.ts"
import * as ReplyForm from "./ReplyForm.ts"

/** Conversations that the tenant's people answer. */
const group = (handlers: GroupHandlers<"takeover">) =>
  Effect.gen(function* () {
    const takeover = yield* Takeover
    const attachments = yield* Attachments
    return handlers
      .handle("takeover", ({ path: { id } }) =>
        audited("conversation.takeover", (user) => takeover.takeover(user, id), id).pipe(
          Effect.bindTo("conversation")
        )
      )
      .handle("release", ({ path: { id } }) =>
        audited("conversation.release", (user) => takeover.release(user, id), id).pipe(
          Effect.bindTo("conversation")
        )
      )
      .handle("close", ({ path: { id } }) =>
        audited("conversation.close", (user) => takeover.close(user, id), id).pipe(
          Effect.bindTo("conversation")
        )
      )
      .handleRaw("say", ({ headers, path: { id }, request }) =>
        Effect.gen(function* () {
          const reply = yield* ReplyForm.read(request, attachments.stage)
          // A repeat is recorded too, because the process may have died before it recorded the first request.
          return yield* audited(
            "conversation.message",
            (user) => takeover.say(user, id, reply, headers["idempotency-key"]),
            id
          )
          // Received files that were not kept are removed before the response.
        }).pipe(Effect.scoped)
      )
  })

export const TakeoverHandlers = HttpApiBuilder.group(Api, "takeover", group)
export const ManagedTakeoverHandlers = HttpApiBuilder.group(Api, "managedTakeover", group)
