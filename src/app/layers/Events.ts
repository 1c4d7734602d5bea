/** Webhooks of what happens. */
import * as Layer from "effect/Layer"
import { WebhookDeliveryStore } from "../../store/events/WebhookDeliveries.ts"
import { WebhookEndpointStore } from "../../store/events/WebhookEndpoints.ts"
import { WebhookListenerStore } from "../../store/events/WebhookListeners.ts"
import { WebhookDelivery } from "../../usecases/events/WebhookDelivery.ts"
import { WebhookEndpoints } from "../../usecases/events/WebhookEndpoints.ts"
import { WebhookListeners } from "../../usecases/events/WebhookListeners.ts"

export const stores = Layer.mergeAll(
  WebhookDeliveryStore.Default,
  WebhookEndpointStore.Default,
  WebhookListenerStore.Default
)

export const layer = Layer.mergeAll(
  WebhookDelivery.Default,
  WebhookEndpoints.Default,
  WebhookListeners.Default
)
