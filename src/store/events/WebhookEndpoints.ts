/** Webhook endpoints of a tenant. The caller seals secrets. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { Webhook, type WebhookId } from "../../domain/events/Webhook.ts"
import type { Page } from "../../domain/Page.ts"
import type { PageRequest } from "../accounts/Tenants.ts"
import * as Rows from "../Rows.ts"

/** Maximum number of endpoints of one tenant. */
export const maxEndpoints = 20

const Row = Schema.Struct({
  ...Webhook.fields,
  failingSince: Schema.NullOr(Schema.DateTimeUtcFromDate),
  createdAt: Schema.DateTimeUtcFromDate,
  updatedAt: Schema.DateTimeUtcFromDate
})

type WebhookChanges = Partial<Pick<Webhook, "url" | "events" | "payload" | "status">>

export class WebhookEndpointStore extends Effect.Service<WebhookEndpointStore>()(
  "store/events/WebhookEndpoints",
  {
    effect: Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const columns = sql`
        id, url, events, payload, status, disabled_reason as "disabledReason", failing_since as "failingSince", version,
        created_at as "createdAt", updated_at as "updatedAt"`

      const one = Rows.first(Row)

      /** None when the tenant already has {@link maxEndpoints}, or does not exist. */
      const insert = (
        { tenantId }: TenantScope,
        given: Pick<Webhook, "id" | "url" | "events" | "payload"> & { readonly secret: string }
      ): Effect.Effect<Option.Option<Webhook>> =>
        one(sql`
          with owner as (select id from tenants where id = ${tenantId} for update)
          insert into webhook_endpoints (id, tenant_id, url, events, payload, secret)
          select ${given.id}, id, ${given.url}, ${[...given.events]}::text[], ${given.payload}, ${given.secret} from owner
          where (select count(*) from webhook_endpoints where tenant_id = ${tenantId}) < ${maxEndpoints}::int
          returning ${columns}`)

      const find = ({ tenantId }: TenantScope, id: WebhookId): Effect.Effect<Option.Option<Webhook>> =>
        one(sql`select ${columns} from webhook_endpoints
            where tenant_id = ${tenantId} and id = ${id} and listening_until is null`)

      /** Oldest first. */
      const page = ({ tenantId }: TenantScope, { limit, after }: PageRequest): Effect.Effect<Page<Webhook>> =>
        sql`
          select ${columns} from webhook_endpoints
          where tenant_id = ${tenantId} and listening_until is null and ${after === undefined ? sql`true` : sql`id > ${after}`}
          order by id limit ${limit + 1}`.pipe(Rows.page(Row, limit))

      /** Applies `changes`; another address or status resets its failures. None when its version is not `expected`. */
      const update = (
        { tenantId }: TenantScope,
        id: WebhookId,
        changes: WebhookChanges,
        expected: number | null
      ): Effect.Effect<Option.Option<Webhook>> => {
        const { events, payload, status, url } = changes
        const assignments = [
          sql`updated_at = now()`,
          sql`version = version + 1`,
          ...(url === undefined ? [] : [sql`url = ${url}`]),
          ...(events === undefined ? [] : [sql`events = ${[...events]}::text[]`]),
          ...(payload === undefined ? [] : [sql`payload = ${payload}`]),
          ...(status === undefined
            ? []
            : [sql`status = ${status}`, sql`disabled_reason = ${status === "active" ? null : "manual"}`]),
          ...(url === undefined && status === undefined
            ? []
            : [sql`failures = 0`, sql`failing_since = null`, sql`retry_at = null`])
        ]
        return one(sql`
          update webhook_endpoints set ${sql.csv(assignments)}
          where tenant_id = ${tenantId} and id = ${id} and listening_until is null and version = coalesce(${expected}::int, version)
          returning ${columns}`)
      }

      /** Sets a new secret. The previous one also signs for `overlap`; an older one is removed. */
      const rotate = (
        { tenantId }: TenantScope,
        id: WebhookId,
        secret: string,
        overlap: Duration.Duration
      ): Effect.Effect<Option.Option<Webhook>> =>
        one(sql`
          update webhook_endpoints set previous_secret = secret, secret = ${secret}, version = version + 1,
            updated_at = now(), previous_until = now() + make_interval(secs => ${Duration.toSeconds(overlap)})
          where tenant_id = ${tenantId} and id = ${id} and listening_until is null returning ${columns}`)

      /** Removes the endpoint with its deliveries. False when the tenant has no such endpoint. */
      const remove = ({ tenantId }: TenantScope, id: WebhookId) =>
        sql`
          delete from webhook_endpoints
          where tenant_id = ${tenantId} and id = ${id} and listening_until is null returning id`.pipe(
          Rows.any
        )

      /** Recipients of the mail about a disabled endpoint: the first ten owners of its tenant. */
      const owners = ({ tenantId }: TenantScope) =>
        sql<{ readonly email: string }>`
          select email from users where tenant_id = ${tenantId} and role = 'owner' and active order by id limit 10`.pipe(
          Effect.orDie,
          Effect.map((rows) => rows.map(({ email }) => email))
        )

      return { insert, find, page, update, rotate, remove, owners } as const
    })
  }
) {}
