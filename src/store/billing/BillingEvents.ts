/**
 * What the billing provider has told, each event once, and the credits that follow from it. Everything here joins the
 * caller's transaction: an event is claimed exactly when what it changes is written.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as SqlSchema from "@effect/sql/SqlSchema"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { BillingEvent, Fact } from "../../domain/billing/Billing.ts"
import { TenantId } from "../../domain/Ids.ts"
import { jsonbOf } from "../Jsonb.ts"

/** The advisory lock of billing events: they are few, and each must see all before it. */
const everyEvent = 7_205_759_403

const Row = Schema.Struct({ ...BillingEvent.fields, created: Schema.Number })
const encodeFact = jsonbOf(Fact)
const Named = Schema.Struct({ tenantId: TenantId })

export class BillingEventStore extends Effect.Service<BillingEventStore>()("store/billing/BillingEvents", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    /**
     * True for the event's first claim. Until the transaction ends every other event waits. What named no tenant for 30
     * days, and so never will, is forgotten by the way.
     */
    const claim = Effect.fn("BillingEventStore.claim")(function* (event: BillingEvent) {
      yield* sql`select pg_advisory_xact_lock(${everyEvent}::bigint)`
      yield* sql`
        delete from billing_events where tenant_id is null and received_at < now() - interval '30 days'
          and object_id not in (select object_id from billing_events where tenant_id is not null)`
      const rows = yield* sql`
        insert into billing_events (id, object_id, tenant_id, created, rank, fact)
        values (${event.id}, ${event.object}, ${event.tenantId}, ${event.created}::bigint, ${event.rank}::int,
          ${encodeFact(event.fact)}::jsonb)
        on conflict (id) do nothing returning id`
      return rows.length === 1
    }, Effect.orDie)

    const selectTenants = SqlSchema.findAll({
      Request: Schema.String,
      Result: Named,
      execute: (object) => sql`
        select distinct tenant_id as "tenantId" from billing_events
        where object_id = ${object} and tenant_id is not null order by 1`
    })

    const selectOf = SqlSchema.findAll({
      Request: TenantId,
      Result: Row,
      execute: (tenantId) => sql`
        select id, created::float8 as created, rank, object_id as object, tenant_id as "tenantId", fact
        from billing_events
        where object_id in (select object_id from billing_events where tenant_id = ${tenantId}) order by id`
    })

    /** Every tenant that an event of the object names. */
    const tenantsOf = (object: string) =>
      selectTenants(object).pipe(
        Effect.orDie,
        Effect.map((rows) => rows.map(({ tenantId }): TenantScope => ({ tenantId })))
      )

    /** All events of every object that one names the tenant for. */
    const of = ({ tenantId }: TenantScope) => Effect.orDie(selectOf(tenantId))

    const exists = ({ tenantId }: TenantScope) =>
      sql`select id from tenants where id = ${tenantId}`.pipe(
        Effect.orDie,
        Effect.map((rows) => rows.length === 1)
      )

    /** Sets what the tenant has bought in all; what it has used stays. */
    const grant = ({ tenantId }: TenantScope, credits: number) =>
      sql`
        insert into tenant_credits (tenant_id, granted) values (${tenantId}, ${credits}::bigint)
        on conflict (tenant_id) do update set granted = excluded.granted`.pipe(Effect.orDie, Effect.asVoid)

    return { claim, tenantsOf, of, exists, grant } as const
  })
}) {}
