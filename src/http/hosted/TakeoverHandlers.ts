import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { AuditTrail } from "../../usecases/AuditTrail.ts"
import { Takeover } from "../../usecases/Takeover.ts"
import { Api } from "../Api.ts"
import { CurrentUser } from "../Auth.ts"
import { actor } from "./Actor.ts"

/** Conversations of the tenant's agents, answered by its people. */
export const TakeoverHandlers = HttpApiBuilder.group(Api, "takeover", (handlers) =>
  Effect.gen(function* () {
    const takeover = yield* Takeover
    const audit = yield* AuditTrail
    return handlers
      .handle("takeover", ({ path: { id } }) =>
        Effect.gen(function* () {
          const deed = takeover.takeover(yield* CurrentUser, id)
          return { conversation: yield* audit.change(yield* actor, "conversation.takeover", deed, () => id) }
        })
      )
      .handle("release", ({ path: { id } }) =>
        Effect.gen(function* () {
          const deed = takeover.release(yield* CurrentUser, id)
          return { conversation: yield* audit.change(yield* actor, "conversation.release", deed, () => id) }
        })
      )
      .handle("close", ({ path: { id } }) =>
        Effect.gen(function* () {
          const deed = takeover.close(yield* CurrentUser, id)
          return { conversation: yield* audit.change(yield* actor, "conversation.close", deed, () => id) }
        })
      )
      .handle("say", ({ path: { id }, payload }) =>
        Effect.gen(function* () {
          const deed = takeover.say(yield* CurrentUser, id, payload.content)
          return yield* audit.change(yield* actor, "conversation.message", deed, () => id)
        })
      )
  })
)
