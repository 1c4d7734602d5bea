/** Events for developers: polled by clients that have no public address, and examples sent on request. */
import { randomUUID } from "node:crypto"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { SecretBox } from "../../capabilities/SecretBox.ts"
import { FairLimiter } from "../../concurrency/FairLimiter.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { Conflict, NotFound, ServiceUnavailable } from "../../domain/Errors.ts"
import {
  type EventType,
  exampleIds,
  type ReceivedEvent,
  newWebhookId,
  type StartListener,
  type WebhookId
} from "../../domain/events/Webhook.ts"
import { WebhookDeliveryStore } from "../../store/events/WebhookDeliveries.ts"
import { maxEndpoints } from "../../store/events/WebhookEndpoints.ts"
import { WebhookListenerStore } from "../../store/events/WebhookListeners.ts"
import { newSecret, signed } from "./Signature.ts"
import { bodyOf } from "./WebhookDelivery.ts"

/** Poll interval while a listener waits for events. */
const pollInterval = Duration.millis(500)

const noSuchListener = () =>
  new NotFound({ message: "There is no such listener. It ends when nobody has asked for two minutes." })
const tooManyWaiting = () =>
  new ServiceUnavailable({
    message: "Too many requests are waiting for events. Try again.",
    details: { retryAfterSeconds: 1 }
  })
const tooManyListeners = () =>
  new Conflict({ message: `There are ${maxEndpoints} webhooks and listeners already.` })

export class WebhookListeners extends Effect.Service<WebhookListeners>()("usecases/events/WebhookListeners", {
  effect: Effect.gen(function* () {
    const store = yield* WebhookListenerStore
    const deliveries = yield* WebhookDeliveryStore
    const box = yield* SecretBox
    const limiter = new FairLimiter({
      name: "event-listeners",
      permits: 256,
      maxPermitsPerOwner: 2 * maxEndpoints
    })

    /** The secret for its events' signatures is shown only in this result. */
    const start = Effect.fn("WebhookListeners.start")(function* (scope: TenantScope, asked: StartListener) {
      const secret = yield* Effect.sync(newSecret)
      const id = yield* newWebhookId
      const sealed = yield* box.seal("webhook-secret", secret)
      if (!(yield* store.insert(scope, { ...asked, id, secret: sealed }))) return yield* tooManyListeners()
      return { listener: { id, events: asked.events, payload: asked.payload }, secret: Redacted.make(secret) }
    })

    /** The event as it would be sent now. None when the listener or the subject of the event is gone. */
    const renderEvent = ({ tenantId }: TenantScope, endpointId: WebhookId, eventId: string) =>
      Effect.gen(function* () {
        const found = yield* deliveries.take({ tenantId, endpointId, eventId })
        if (Option.isNone(found)) return Option.none<ReceivedEvent>()
        const opened = yield* Effect.forEach(found.value.secrets, (sealed) =>
          box.open("webhook-secret", sealed)
        )
        const body = bodyOf(found.value)
        const now = yield* Clock.currentTimeMillis
        const headers = { ...signed(opened.flatMap(Option.toArray), eventId, now, body) }
        return Option.some({ id: eventId, type: found.value.type, headers, body })
      })

    const awaitDeliveries = (scope: TenantScope, id: WebhookId, wait: Duration.Duration) =>
      Effect.gen(function* () {
        const deadline = (yield* Clock.currentTimeMillis) + Duration.toMillis(wait)
        let waiting = yield* store.nextDeliveries(scope, id)
        while (waiting.length === 0 && (yield* Clock.currentTimeMillis) < deadline) {
          yield* Effect.sleep(pollInterval)
          waiting = yield* store.nextDeliveries(scope, id)
        }
        return waiting
      })

    /**
     * The next events in order. Waits at most `wait` for the first one. Events up to `received` are confirmed; all
     * others are returned again.
     */
    const next = Effect.fn("WebhookListeners.next")(function* (
      scope: TenantScope,
      id: WebhookId,
      { received, wait }: { readonly received: string | null; readonly wait: Duration.Duration }
    ) {
      if (!(yield* store.renew(scope, id, received))) return yield* noSuchListener()
      const waiting = yield* awaitDeliveries(scope, id, wait).pipe(
        limiter.withPermit(scope.tenantId),
        Effect.catchTag("LimitReached", () => Effect.fail(tooManyWaiting()))
      )
      const events = yield* Effect.forEach(waiting, ({ eventId }) => renderEvent(scope, id, eventId))
      return { events: events.flatMap(Option.toArray), received: waiting.at(-1)?.place ?? received }
    })

    const stop = Effect.fn("WebhookListeners.stop")(function* (scope: TenantScope, id: WebhookId) {
      if (!(yield* store.remove(scope, id))) return yield* noSuchListener()
    })

    /** Sends an example of `type` to every active webhook that subscribes to it. Its ids do not exist. */
    const trigger = Effect.fn("WebhookListeners.trigger")(function* (scope: TenantScope, type: EventType) {
      const key = `example:${yield* Effect.sync(randomUUID)}`
      return yield* store.trigger(scope, type, key, { ...exampleIds[type], example: true })
    })

    return { start, next, stop, trigger, sweep: store.sweep } as const
  })
}) {}
