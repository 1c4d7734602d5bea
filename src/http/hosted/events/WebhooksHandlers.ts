import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { Api } from "../../Api.ts"
import { actor } from "../accounts/Actor.ts"
import { webhookRoutes } from "./WebhookRoutes.ts"

/** The tenant's webhooks. */
export const WebhooksHandlers = HttpApiBuilder.group(Api, "webhooks", (handlers) =>
  Effect.map(webhookRoutes("/api/webhook-endpoints", actor), (routes) =>
    handlers
      .handle("list", routes.list)
      .handle("create", routes.create)
      .handle("find", routes.find)
      .handle("patch", routes.patch)
      .handle("remove", routes.remove)
      .handle("rotate", routes.rotate)
      .handle("deliveries", routes.deliveries)
      .handle("replay", routes.replay)
      .handle("test", routes.test)
  )
)
