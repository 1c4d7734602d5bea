/** Events for developers: polled by `spoke listen`, and examples sent by `spoke trigger`. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Schema from "effect/Schema"
import { Conflict, NotFound, ServiceUnavailable, ValidationError } from "../../domain/Errors.ts"
import { EventType, ReceivedEvent, Payload, StartListener, WebhookId } from "../../domain/events/Webhook.ts"
import { optional } from "../../domain/Optional.ts"
import { ManageAuth, RequiredTokenScope, RequiredRole } from "../Auth.ts"
import { deletion, failure, success } from "../Envelope.ts"

/** Maximum wait of one request, in seconds. */
const maxWaitSeconds = 20

const Listener = Schema.Struct({ id: WebhookId, events: Schema.Array(EventType), payload: Payload })
const path = Schema.Struct({ id: WebhookId })
const EventPosition = Schema.String.pipe(
  Schema.pattern(/^\d{1,18}$/, { message: () => "Expected the place that an answer has given" })
)

/** The last event that the caller received, and how long it waits for the next. */
const NextEvents = Schema.Struct({
  received: optional(Schema.NullOr(EventPosition)),
  waitSeconds: optional(Schema.Int.pipe(Schema.between(0, maxWaitSeconds)))
})

const start = HttpApiEndpoint.post("start", "/listeners")
  .setPayload(StartListener)
  .addSuccess(success(Schema.Struct({ listener: Listener, secret: Schema.Redacted(Schema.String) })), {
    status: 201
  })
  .addError(failure(ValidationError, Conflict, ServiceUnavailable))

/** The next events, as soon as there is one. Events up to `received` are confirmed; all others are returned again. */
const next = HttpApiEndpoint.post("next", "/listeners/:id/next")
  .setPath(path)
  .setPayload(NextEvents)
  .addSuccess(
    success(Schema.Struct({ events: Schema.Array(ReceivedEvent), received: Schema.NullOr(Schema.String) }))
  )
  .addError(failure(ValidationError, NotFound, ServiceUnavailable))

const stop = deletion("stop", "/listeners/:id", WebhookId)

/** Sends an example of `type` to every active webhook that subscribes to it. */
const trigger = HttpApiEndpoint.post("trigger", "/events")
  .setPayload(Schema.Struct({ type: EventType }))
  .addSuccess(success(Schema.Struct({ webhooks: Schema.Int })), { status: 202 })
  .addError(failure(ValidationError, ServiceUnavailable))

export class ListenersApi extends HttpApiGroup.make("listeners")
  .add(start)
  .add(next)
  .add(stop)
  .add(trigger)
  .prefix("/api/manage/v1")
  .middleware(ManageAuth)
  .annotateEndpoints(RequiredRole, "admin")
  .annotateEndpoints(RequiredTokenScope, "webhooks") {}
