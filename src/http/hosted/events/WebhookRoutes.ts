/** What the routes of webhooks do, whoever may call them. */
import * as Effect from "effect/Effect"
import { expectedVersion, type IfMatchHeader } from "../../../domain/Version.ts"
import type {
  CreateWebhook,
  DeliveryStatus,
  PatchWebhook,
  ReplayRange,
  WebhookId
} from "../../../domain/events/Webhook.ts"
import { AuditTrail, type By } from "../../../usecases/accounts/AuditTrail.ts"
import { WebhookEndpoints } from "../../../usecases/events/WebhookEndpoints.ts"
import * as Cursor from "../../Cursor.ts"

interface PageParams {
  readonly limit?: number
  readonly cursor?: string
}
interface One {
  readonly path: { readonly id: WebhookId }
}

/** `by` says who calls. `base` is where they are served: a cursor is good there alone. */
export const webhookRoutes = <E, R>(base: string, by: Effect.Effect<By, E, R>) =>
  Effect.gen(function* () {
    const webhooks = yield* WebhookEndpoints
    const audit = yield* AuditTrail

    const list = ({ urlParams: { cursor, limit = 20 } }: { readonly urlParams: PageParams }) =>
      Effect.gen(function* () {
        const { tenantId } = yield* by
        const of = { scope: tenantId, route: base }
        const page = yield* webhooks.list({ tenantId }, { limit, after: yield* Cursor.open(of, cursor) })
        return { webhooks: page.rows, nextCursor: yield* Cursor.seal(of, page.next) }
      })

    const create = ({ payload }: { readonly payload: CreateWebhook }) =>
      Effect.gen(function* () {
        const who = yield* by
        return yield* audit.change(
          who,
          "webhook.create",
          webhooks.create(who, payload),
          ({ webhook }) => webhook.id
        )
      })

    const find = ({ path: { id } }: One) =>
      Effect.gen(function* () {
        return { webhook: yield* webhooks.find(yield* by, id) }
      })

    const patch = ({
      headers,
      path: { id },
      payload
    }: One & { readonly headers: typeof IfMatchHeader.Type; readonly payload: PatchWebhook }) =>
      Effect.gen(function* () {
        const who = yield* by
        const change = webhooks.patch(who, id, payload, expectedVersion(headers))
        return { webhook: yield* audit.change(who, "webhook.update", change, () => id) }
      })

    const remove = ({ path: { id } }: One) =>
      Effect.gen(function* () {
        const who = yield* by
        yield* audit.change(who, "webhook.delete", webhooks.remove(who, id), () => id)
        return { id, deleted: true } as const
      })

    const rotate = ({ path: { id } }: One) =>
      Effect.gen(function* () {
        const who = yield* by
        return yield* audit.change(who, "webhook.rotate", webhooks.rotate(who, id), () => id)
      })

    const deliveries = ({
      path: { id },
      urlParams: { cursor, limit = 20, status }
    }: One & { readonly urlParams: PageParams & { readonly status?: typeof DeliveryStatus.Type } }) =>
      Effect.gen(function* () {
        const { tenantId } = yield* by
        const of = { scope: tenantId, route: `${base}/:id/deliveries`, filter: { id, status } }
        const after = yield* Cursor.open(of, cursor)
        const page = yield* webhooks.deliveries({ tenantId }, id, { limit, after, status })
        return { deliveries: page.rows, nextCursor: yield* Cursor.seal(of, page.next) }
      })

    const replay = ({ path: { id }, payload }: One & { readonly payload: ReplayRange }) =>
      Effect.gen(function* () {
        const who = yield* by
        return yield* audit.change(who, "webhook.replay", webhooks.replay(who, id, payload), () => id)
      })

    const test = ({ path: { id } }: One) =>
      Effect.gen(function* () {
        const who = yield* by
        return {
          eventId: yield* audit.change(who, "webhook.test", webhooks.test(who, id), () => id)
        }
      })

    return { list, create, find, patch, remove, rotate, deliveries, replay, test } as const
  })
