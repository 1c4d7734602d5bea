/** The webhook endpoints of a tenant, and their deliveries. */
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { SecretBox } from "../../capabilities/SecretBox.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import {
  type CreateWebhook,
  type DeliveryStatus,
  newWebhookId,
  type PatchWebhook,
  type ReplayRange,
  type WebhookId
} from "../../domain/events/Webhook.ts"
import { Conflict, noSuch, orNoSuch } from "../../domain/Errors.ts"
import { outdated } from "../../domain/Version.ts"
import type { PageRequest } from "../../store/accounts/Tenants.ts"
import { WebhookDeliveryStore } from "../../store/events/WebhookDeliveries.ts"
import { maxEndpoints, WebhookEndpointStore } from "../../store/events/WebhookEndpoints.ts"
import { newSecret } from "./Signature.ts"

/** Time for which the previous secret signs too. */
const secretOverlap = Duration.hours(24)

const tooManyEndpoints = () => new Conflict({ message: `There are ${maxEndpoints} webhooks already.` })
const disabled = () => new Conflict({ message: "The webhook is disabled. Make it active first." })

export class WebhookEndpoints extends Effect.Service<WebhookEndpoints>()("usecases/events/WebhookEndpoints", {
  effect: Effect.gen(function* () {
    const store = yield* WebhookEndpointStore
    const deliveryStore = yield* WebhookDeliveryStore
    const box = yield* SecretBox

    const newSealedSecret = Effect.gen(function* () {
      const secret = yield* Effect.sync(newSecret)
      return { secret: Redacted.make(secret), sealed: yield* box.seal("webhook-secret", secret) }
    })

    /** Oldest first. */
    const list = (scope: TenantScope, page: PageRequest) =>
      Effect.withSpan(store.page(scope, page), "WebhookEndpoints.list")

    const find = Effect.fn("WebhookEndpoints.find")(function* (scope: TenantScope, id: WebhookId) {
      return yield* store.find(scope, id).pipe(orNoSuch("webhook"))
    })

    /** The secret is shown only in this result. */
    const create = Effect.fn("WebhookEndpoints.create")(function* (scope: TenantScope, given: CreateWebhook) {
      const { sealed, secret } = yield* newSealedSecret
      const created = yield* store.insert(scope, { ...given, id: yield* newWebhookId, secret: sealed })
      if (Option.isNone(created)) return yield* tooManyEndpoints()
      return { webhook: created.value, secret }
    })

    /** CONFLICT when `expected` is no longer the newest version. */
    const patch = Effect.fn("WebhookEndpoints.patch")(function* (
      scope: TenantScope,
      id: WebhookId,
      changes: PatchWebhook,
      expected: number | null = null
    ) {
      const updated = yield* store.update(scope, id, changes, expected)
      if (Option.isNone(updated)) {
        const { version } = yield* find(scope, id)
        return yield* outdated(version)
      }
      if (updated.value.status === "disabled") yield* deliveryStore.cancel(scope, id)
      else yield* deliveryStore.retryNow(scope, id)
      return updated.value
    })

    const remove = Effect.fn("WebhookEndpoints.remove")(function* (scope: TenantScope, id: WebhookId) {
      if (!(yield* store.remove(scope, id))) return yield* noSuch("webhook")
    })

    /** Makes a new secret. The previous one signs too for {@link secretOverlap}. */
    const rotate = Effect.fn("WebhookEndpoints.rotate")(function* (scope: TenantScope, id: WebhookId) {
      const { sealed, secret } = yield* newSealedSecret
      const rotated = yield* store.rotate(scope, id, sealed, secretOverlap).pipe(orNoSuch("webhook"))
      return { webhook: rotated, secret }
    })

    /** Newest first. */
    const deliveries = Effect.fn("WebhookEndpoints.deliveries")(function* (
      scope: TenantScope,
      id: WebhookId,
      request: PageRequest & { readonly status?: typeof DeliveryStatus.Type | undefined }
    ) {
      yield* find(scope, id)
      return yield* deliveryStore.page(scope, id, request)
    })

    const requireActive = Effect.fn("WebhookEndpoints.requireActive")(function* (
      scope: TenantScope,
      id: WebhookId
    ) {
      const { status } = yield* find(scope, id)
      if (status !== "active") return yield* disabled()
    })

    /** Sends the stored events of the range again. */
    const replay = Effect.fn("WebhookEndpoints.replay")(function* (
      scope: TenantScope,
      id: WebhookId,
      { from, to }: ReplayRange
    ) {
      yield* requireActive(scope, id)
      return yield* deliveryStore.replay(scope, id, { from, to: to ?? (yield* DateTime.now) })
    })

    /** Sends an event of type `webhook.test`. Returns its id. */
    const test = Effect.fn("WebhookEndpoints.test")(function* (scope: TenantScope, id: WebhookId) {
      yield* requireActive(scope, id)
      const eventId = yield* deliveryStore.test(scope, id)
      return Option.isNone(eventId) ? yield* disabled() : eventId.value
    })

    return { list, find, create, patch, remove, rotate, deliveries, replay, test } as const
  })
}) {}
