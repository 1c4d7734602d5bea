import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { AuditTrail } from "../../usecases/accounts/AuditTrail.ts"
import { WebhookListeners } from "../../usecases/events/WebhookListeners.ts"
import { Api } from "../Api.ts"
import { CurrentUser } from "../Auth.ts"
import { actor } from "../hosted/accounts/Actor.ts"

export const ListenersHandlers = HttpApiBuilder.group(Api, "listeners", (handlers) =>
  Effect.gen(function* () {
    const listeners = yield* WebhookListeners
    const audit = yield* AuditTrail
    return handlers
      .handle("start", ({ payload }) =>
        Effect.gen(function* () {
          const change = listeners.start(yield* CurrentUser, payload)
          return yield* audit.change(yield* actor, "webhook.listen", change, ({ listener }) => listener.id)
        })
      )
      .handle("next", ({ path, payload: { received = null, waitSeconds = 0 } }) =>
        Effect.flatMap(CurrentUser, (user) =>
          listeners.next(user, path.id, { received, wait: Duration.seconds(waitSeconds) })
        )
      )
      .handle("stop", ({ path: { id } }) =>
        Effect.gen(function* () {
          yield* listeners.stop(yield* CurrentUser, id)
          return { id, deleted: true } as const
        })
      )
      .handle("trigger", ({ payload: { type } }) =>
        Effect.gen(function* () {
          const user = yield* CurrentUser
          const change = listeners.trigger(user, type)
          return {
            webhooks: yield* audit.change(yield* actor, "webhook.trigger", change, () => user.tenantId)
          }
        })
      )
  })
)
