import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { expectedVersion } from "../../../domain/Version.ts"
import { AuditTrail } from "../../../usecases/accounts/AuditTrail.ts"
import { WebhookEndpoints } from "../../../usecases/events/WebhookEndpoints.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import { listPage } from "../../Lists.ts"
import { actor, removal } from "../accounts/Actor.ts"

const base = "/api/webhook-endpoints"

const webhooks = (handlers: GroupHandlers<"webhooks">) =>
  Effect.gen(function* () {
    const webhooks = yield* WebhookEndpoints
    const audit = yield* AuditTrail
    return handlers
      .handle("list", ({ urlParams }) => listPage("webhooks", { route: base }, urlParams, webhooks.list))
      .handle("create", ({ payload }) =>
        Effect.gen(function* () {
          const change = webhooks.create(yield* CurrentUser, payload)
          return yield* audit.change(yield* actor, "webhook.create", change, ({ webhook }) => webhook.id)
        })
      )
      .handle("find", ({ path }) =>
        Effect.gen(function* () {
          return { webhook: yield* webhooks.find(yield* CurrentUser, path.id) }
        })
      )
      .handle("patch", ({ headers, path, payload }) =>
        Effect.gen(function* () {
          const change = webhooks.patch(yield* CurrentUser, path.id, payload, expectedVersion(headers))
          return { webhook: yield* audit.change(yield* actor, "webhook.update", change, ({ id }) => id) }
        })
      )
      .handle("remove", ({ path: { id } }) => removal(audit, "webhook.delete", id, webhooks.remove))
      .handle("rotate", ({ path: { id } }) =>
        Effect.gen(function* () {
          const change = webhooks.rotate(yield* CurrentUser, id)
          return yield* audit.change(yield* actor, "webhook.rotate", change, () => id)
        })
      )
      .handle("deliveries", ({ path: { id }, urlParams: { status, ...params } }) =>
        listPage(
          "deliveries",
          { route: `${base}/:id/deliveries`, filter: { id, status } },
          params,
          (user, page) => webhooks.deliveries(user, id, { ...page, status })
        )
      )
      .handle("replay", ({ path: { id }, payload }) =>
        Effect.gen(function* () {
          const change = webhooks.replay(yield* CurrentUser, id, payload)
          return yield* audit.change(yield* actor, "webhook.replay", change, () => id)
        })
      )
      .handle("test", ({ path: { id } }) =>
        Effect.gen(function* () {
          const change = webhooks.test(yield* CurrentUser, id)
          return { eventId: yield* audit.change(yield* actor, "webhook.test", change, () => id) }
        })
      )
  })
export const WebhooksHandlers = HttpApiBuilder.group(Api, "webhooks", webhooks)
export const ManagedWebhooksHandlers = HttpApiBuilder.group(Api, "managedWebhooks", webhooks)
