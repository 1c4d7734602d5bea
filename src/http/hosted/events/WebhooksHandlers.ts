import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { expectedVersion } from "../../../domain/Version.ts"
import { WebhookEndpoints } from "../../../usecases/events/WebhookEndpoints.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import { listPage } from "../../Lists.ts"
import { audited, idOf, auditedRemoval } from "../accounts/Actor.ts"

const base = "/api/webhook-endpoints"

const webhooks = (handlers: GroupHandlers<"webhooks">) =>
  Effect.gen(function* () {
    const webhooks = yield* WebhookEndpoints
    return handlers
      .handle("list", ({ urlParams }) => listPage("webhooks", { route: base }, urlParams, webhooks.list))
      .handle("create", ({ payload }) =>
        audited(
          "webhook.create",
          (user) => webhooks.create(user, payload),
          ({ webhook }) => webhook.id
        )
      )
      .handle("find", ({ path }) =>
        Effect.flatMap(CurrentUser, (user) => webhooks.find(user, path.id)).pipe(Effect.bindTo("webhook"))
      )
      .handle("patch", ({ headers, path, payload }) =>
        audited(
          "webhook.update",
          (user) => webhooks.patch(user, path.id, payload, expectedVersion(headers)),
          idOf
        ).pipe(Effect.bindTo("webhook"))
      )
      .handle("remove", ({ path: { id } }) => auditedRemoval("webhook.delete", id, webhooks.remove))
      .handle("rotate", ({ path: { id } }) =>
        audited("webhook.rotate", (user) => webhooks.rotate(user, id), id)
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
        audited("webhook.replay", (user) => webhooks.replay(user, id, payload), id)
      )
      .handle("test", ({ path: { id } }) =>
        audited("webhook.test", (user) => webhooks.test(user, id), id).pipe(Effect.bindTo("eventId"))
      )
  })
export const WebhooksHandlers = HttpApiBuilder.group(Api, "webhooks", webhooks)
export const ManagedWebhooksHandlers = HttpApiBuilder.group(Api, "managedWebhooks", webhooks)
