/**
 * Events of the billing provider, each stored once, and the credits that follow from them. Everything here joins the
 * caller's transaction, so that an event is claimed exactly when its changes are written.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { BillingEvent, Fact } from "../../domain/billing/Billing.ts"
import { TenantId } from "../../domain/Ids.ts"
import { jsonbOf } from "../Jsonb.ts"
import * as Rows from "../Rows.ts"

/** The key of the advisory lock that serializes billing events. They are rare, and each must see all earlier ones. */
const lockKey = 7_205_759_403

const Row = Schema.Struct({ ...BillingEvent.fields, created: Schema.Number })
const encodeFact = jsonbOf(Fact)
const Named = Schema.Struct({ tenantId: TenantId })

export class BillingEventStore extends Effect.Service<BillingEventStore>()("store/billing/BillingEvents", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    /**
     * True for the event's first claim. Every other event waits until the transaction ends. A refund names no tenant,
     * and gets the tenant of its payment. Also deletes events that have named no tenant for 30 days.
     */
    const claim = Effect.fn("BillingEventStore.claim")(function* (event: BillingEvent) {
      yield* sql`select pg_advisory_xact_lock(${lockKey}::bigint)`
      yield* sql`
        delete from billing_events where tenant_id is null and received_at < now() - interval '30 days'
          and object_id not in (select object_id from billing_events where tenant_id is not null)`
      const rows = yield* sql`
        insert into billing_events (id, object_id, tenant_id, created, rank, fact)
        values (${event.id}, ${event.object}, ${event.tenantId}, ${event.created}::bigint, ${event.rank}::int,
          ${encodeFact(event.fact)}::jsonb)
        on conflict (id) do nothing returning id`
      yield* sql`
        update billing_events e set tenant_id = paid.tenant_id
        from (select min(tenant_id) as tenant_id from billing_events
          where object_id = ${event.object} having count(distinct tenant_id) = 1) paid
        where e.object_id = ${event.object} and e.tenant_id is null and e.fact ->> '_tag' = 'Refund'`
      return rows.length === 1
    }, Effect.orDie)

    /** Every tenant named by an event of the object. */
    const tenantsOf = (object: string) =>
      sql`
        select distinct tenant_id as "tenantId" from billing_events
        where object_id = ${object} and tenant_id is not null order by 1`.pipe(
        Rows.all(Named),
        Effect.map((rows) => rows.map(({ tenantId }): TenantScope => ({ tenantId })))
      )

    /** All events of every object with an event that names the tenant. */
    const of = ({ tenantId }: TenantScope) =>
      sql`
        select id, created::float8 as created, rank, object_id as object, tenant_id as "tenantId", fact
        from billing_events
        where object_id in (select object_id from billing_events where tenant_id = ${tenantId}) order by id`.pipe(
        Rows.all(Row)
      )

    const exists = ({ tenantId }: TenantScope) =>
      sql`select id from tenants where id = ${tenantId}`.pipe(Rows.any)

    /** Sets the total of credits that the tenant has bought. Used credits stay. */
    const grant = ({ tenantId }: TenantScope, credits: number) =>
      sql`
        insert into tenant_credits (tenant_id, granted) values (${tenantId}, ${credits}::bigint)
        on conflict (tenant_id) do update set granted = excluded.granted`.pipe(Rows.none)

    return { claim, tenantsOf, of, exists, grant } as const
  })
}) {}
