/** Endpoints without an address: a developer's command fetches their deliveries while it runs. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import type { EventType, Payload, WebhookId } from "../../domain/events/Webhook.ts"
import { toJsonb } from "../Jsonb.ts"
import { maxEndpoints } from "./WebhookEndpoints.ts"
import { eventWrites, type Report } from "./ReportedEvents.ts"
import * as Rows from "../Rows.ts"

/** Lease of a listener: it is removed when it has not fetched for this long. */
const listenerLease = Duration.minutes(2)
/** Maximum number of events in one answer. */
const maxEvents = 50

const lease = `interval '${Duration.toSeconds(listenerLease)} seconds'`

/** A delivery to be fetched. */
interface Waiting {
  readonly eventId: string
  /** Position of the delivery. The next request acknowledges those up to the last of the previous answer. */
  readonly place: string
}

export class WebhookListenerStore extends Effect.Service<WebhookListenerStore>()(
  "store/events/WebhookListeners",
  {
    effect: Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      /** False when the tenant has {@link maxEndpoints} endpoints already, listeners among them. */
      const insert = (
        { tenantId }: TenantScope,
        given: {
          readonly id: WebhookId
          readonly events: ReadonlyArray<EventType>
          readonly payload: Payload
          readonly secret: string
        }
      ) =>
        sql`
          with owner as (select id from tenants where id = ${tenantId} for update)
          insert into webhook_endpoints (id, tenant_id, url, events, payload, secret, listening_until)
          select ${given.id}, id, '', ${[...given.events]}::text[], ${given.payload}, ${given.secret},
            now() + ${sql.literal(lease)}
          from owner
          where (select count(*) from webhook_endpoints where tenant_id = ${tenantId}) < ${maxEndpoints}::int
          returning id`.pipe(Rows.any)

      /**
       * Acknowledges deliveries up to `received` that were offered, and renews the {@link listenerLease}. False without
       * such a listener. A delivery gets its place before its transaction commits, so one with an earlier place may not
       * have been offered yet.
       */
      const renew = ({ tenantId }: TenantScope, id: WebhookId, received: string | null) =>
        sql`
          with listener as (
            update webhook_endpoints set listening_until = now() + ${sql.literal(lease)}
            where tenant_id = ${tenantId} and id = ${id} and listening_until is not null
            returning id
          ),
          arrived as (
            update webhook_deliveries d set status = 'delivered', settled_at = now(), attempted_at = now(),
              attempts = d.attempts + 1
            from listener where d.tenant_id = ${tenantId} and d.endpoint_id = listener.id and d.status = 'pending' and d.seq <= ${received}::bigint
              and d.attempted_at is not null
          )
          select id from listener`.pipe(Rows.any)

      /** Offers the next deliveries, in order. */
      const nextDeliveries = ({ tenantId }: TenantScope, id: WebhookId) =>
        sql<Waiting>`
          with next as (
            select d.tenant_id, d.endpoint_id, d.event_id
            from webhook_endpoints e join webhook_deliveries d on d.tenant_id = e.tenant_id and d.endpoint_id = e.id
            where e.tenant_id = ${tenantId} and e.id = ${id} and d.status = 'pending'
            order by d.seq limit ${maxEvents}::int
          ),
          offered as (
            update webhook_deliveries d set attempted_at = now() from next
            where d.tenant_id = next.tenant_id and d.endpoint_id = next.endpoint_id and d.event_id = next.event_id
            returning d.event_id, d.seq
          )
          select event_id as "eventId", seq::text as place from offered order by offered.seq`.pipe(
          Effect.orDie
        )

      /** Removes a listener with its deliveries. False when the tenant has no such listener. */
      const remove = ({ tenantId }: TenantScope, id: WebhookId) =>
        sql`
          delete from webhook_endpoints
          where tenant_id = ${tenantId} and id = ${id} and listening_until is not null returning id`.pipe(
          Rows.any
        )

      /** Removes listeners of all tenants whose lease has run out. */
      const sweep =
        sql`/* every tenant: sweep */ delete from webhook_endpoints where listening_until < now() and tenant_is_swept(tenant_id)`.pipe(
          Rows.none,
          Effect.withSpan("WebhookListenerStore.sweep")
        )

      /** Sends a test event to every active endpoint that subscribes to its type. Returns their number. */
      const trigger = (
        { tenantId }: TenantScope,
        type: EventType,
        key: string,
        ids: Readonly<Record<string, unknown>>
      ) => {
        const report: Report = {
          type,
          key: sql`${key}`,
          tenantId: sql`${tenantId}`,
          agentId: sql`null`,
          conversationId: sql`null`,
          ids: sql`${toJsonb(ids)}::jsonb`,
          from: sql`(select 1) as once`
        }
        return sql<{ readonly webhooks: number }>`
          with ${eventWrites(sql, report)} select count(*)::int as webhooks from reported`.pipe(
          Effect.orDie,
          Effect.map(([row]) => row?.webhooks ?? 0)
        )
      }

      return { insert, renew, nextDeliveries, remove, sweep, trigger } as const
    })
  }
) {}
