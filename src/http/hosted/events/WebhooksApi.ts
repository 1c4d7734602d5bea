/** Webhook endpoints of the tenant, for admins in the dashboard and for programs. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Schema from "effect/Schema"
import {
  CreateWebhook,
  DeliveryStatus,
  PatchWebhook,
  Replayed,
  ReplayRange,
  Webhook,
  WebhookDelivery,
  WebhookId
} from "../../../domain/events/Webhook.ts"
import { Conflict, NotFound, ServiceUnavailable, ValidationError } from "../../../domain/Errors.ts"
import { nextCursor, pageParams } from "../../../domain/Page.ts"
import { IfMatchHeader } from "../../../domain/Version.ts"
import { optional } from "../../../domain/Optional.ts"
import { managed, RequiredRole, SessionAuth } from "../../Auth.ts"
import { deletion, failure, success } from "../../Envelope.ts"

const One = success(Schema.Struct({ webhook: Webhook }))
export const WebhookPage = Schema.Struct({ webhooks: Schema.Array(Webhook), nextCursor })
export const DeliveryPage = Schema.Struct({ deliveries: Schema.Array(WebhookDelivery), nextCursor })
/** The response of a creation or rotation, the only ones with a secret. */
export const MadeWebhook = Schema.Struct({ webhook: Webhook, secret: Schema.Redacted(Schema.String) })
/** The id of the event that is sent. */
export const TestedWebhook = Schema.Struct({ eventId: Schema.String })
const path = Schema.Struct({ id: WebhookId })

/**
 * The endpoints under `/base`. The base differs between dashboard and programs, because providers deliver to
 * `/api/webhooks`.
 */
const endpoints = <const Path extends string>(base: Path) => {
  const all = `/${base}` as const
  const one = `/${base}/:id` as const
  return {
    /** Oldest first. */
    list: HttpApiEndpoint.get("list", all)
      .setUrlParams(pageParams)
      .addSuccess(success(WebhookPage))
      .addError(failure(ValidationError)),
    create: HttpApiEndpoint.post("create", all)
      .setPayload(CreateWebhook)
      .addSuccess(success(MadeWebhook), { status: 201 })
      .addError(failure(ValidationError, Conflict, ServiceUnavailable)),
    find: HttpApiEndpoint.get("find", one)
      .setPath(path)
      .addSuccess(One)
      .addError(failure(ValidationError, NotFound)),
    /** Omitted fields stay. `If-Match` has the version that the change is based on. */
    patch: HttpApiEndpoint.patch("patch", one)
      .setPath(path)
      .setHeaders(IfMatchHeader)
      .setPayload(PatchWebhook)
      .addSuccess(One)
      .addError(failure(ValidationError, NotFound, Conflict, ServiceUnavailable)),
    remove: deletion("remove", one, WebhookId),
    /** The previous secret signs too for 24 hours. */
    rotate: HttpApiEndpoint.post("rotate", `/${base}/:id/rotate`)
      .setPath(path)
      .addSuccess(success(MadeWebhook))
      .addError(failure(ValidationError, NotFound, ServiceUnavailable)),
    /** Newest first. */
    deliveries: HttpApiEndpoint.get("deliveries", `/${base}/:id/deliveries`)
      .setPath(path)
      .setUrlParams(Schema.Struct({ ...pageParams.fields, status: optional(DeliveryStatus) }))
      .addSuccess(success(DeliveryPage))
      .addError(failure(ValidationError, NotFound)),
    /** Resends events of the last seven days. 409 for a disabled webhook. */
    replay: HttpApiEndpoint.post("replay", `/${base}/:id/replay`)
      .setPath(path)
      .setPayload(ReplayRange)
      .addSuccess(success(Replayed))
      .addError(failure(ValidationError, NotFound, Conflict, ServiceUnavailable)),
    /** Sends `webhook.test`. 409 for a disabled webhook. */
    test: HttpApiEndpoint.post("test", `/${base}/:id/test`)
      .setPath(path)
      .addSuccess(success(TestedWebhook))
      .addError(failure(ValidationError, NotFound, Conflict, ServiceUnavailable))
  } as const
}

const group = <const Id extends string, const Path extends string>(id: Id, base: Path) => {
  const { create, deliveries, find, list, patch, remove, replay, rotate, test } = endpoints(base)
  return HttpApiGroup.make(id)
    .add(list)
    .add(create)
    .add(find)
    .add(patch)
    .add(remove)
    .add(rotate)
    .add(deliveries)
    .add(replay)
    .add(test)
    .annotateEndpoints(RequiredRole, "admin")
}

export class WebhooksApi extends group("webhooks", "webhook-endpoints")
  .prefix("/api")
  .middleware(SessionAuth) {}

export class ManagedWebhooksApi extends managed(group("managedWebhooks", "webhooks"), "webhooks") {}
