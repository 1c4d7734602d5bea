import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { WebhookListeners } from "../../usecases/events/WebhookListeners.ts"
import { Api } from "../Api.ts"
import { CurrentUser } from "../Auth.ts"
import { audited } from "../hosted/accounts/Actor.ts"

export const ListenersHandlers = HttpApiBuilder.group(Api, "listeners", (handlers) =>
  Effect.gen(function* () {
    const listeners = yield* WebhookListeners
    return handlers
      .handle("start", ({ payload }) =>
        audited(
          "webhook.listen",
          (user) => listeners.start(user, payload),
          ({ listener }) => listener.id
        )
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
        audited(
          "webhook.trigger",
          (user) => listeners.trigger(user, type),
          (_, user) => user.tenantId
        ).pipe(Effect.bindTo("webhooks"))
      )
  })
)
