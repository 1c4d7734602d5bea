/** Plans and entitlements of tenants. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { Credits, Entitlements, Subscription } from "../../domain/agents/Agent.ts"
import * as Rows from "../Rows.ts"

const Row = Schema.Struct({
  plan: Schema.String,
  status: Schema.String,
  start: Schema.NullOr(Schema.DateTimeUtcFromDate),
  end: Schema.NullOr(Schema.DateTimeUtcFromDate),
  ...Entitlements.fields
})

const toSubscription = ({ plan, status, start, end, ...entitlements }: typeof Row.Type) =>
  Subscription.make({
    plan,
    status,
    period: start === null || end === null ? null : { start, end },
    entitlements
  })

export class SubscriptionStore extends Effect.Service<SubscriptionStore>()("store/billing/Subscriptions", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const columns = sql`
      plan, status, period_start as "start", period_end as "end", public_api as "publicApi",
      turns_limit::float8 as turns, ingestion_jobs_limit::float8 as "ingestionJobs",
      sources_limit::float8 as sources, overage_enabled as "overageEnabled"`

    /** Replaces the tenant's subscription; none when there is no such tenant. */
    const put = ({ tenantId }: TenantScope, { entitlements, period, plan, status }: Subscription) =>
      sql`
        insert into subscriptions (tenant_id, plan, status, period_start, period_end, public_api, turns_limit,
          ingestion_jobs_limit, sources_limit, overage_enabled)
        select id, ${plan}::text, ${status}::text, ${period && DateTime.formatIso(period.start)}::timestamptz,
          ${period && DateTime.formatIso(period.end)}::timestamptz,
          ${entitlements.publicApi}::boolean, ${entitlements.turns}::bigint,
          ${entitlements.ingestionJobs}::bigint, ${entitlements.sources}::bigint,
          ${entitlements.overageEnabled}::boolean
        from tenants where id = ${tenantId}
        on conflict (tenant_id) do update set plan = excluded.plan, status = excluded.status,
          period_start = excluded.period_start, period_end = excluded.period_end,
          public_api = excluded.public_api, turns_limit = excluded.turns_limit,
          ingestion_jobs_limit = excluded.ingestion_jobs_limit, sources_limit = excluded.sources_limit,
          overage_enabled = excluded.overage_enabled, updated_at = now()
        returning ${columns}`.pipe(Rows.first(Row), Effect.map(Option.map(toSubscription)))

    const find = (scope: TenantScope) =>
      sql`select ${columns} from subscriptions where tenant_id = ${scope.tenantId}`.pipe(
        Rows.first(Row),
        Effect.map(Option.map(toSubscription))
      )

    /** Changes only the payment status. */
    const setStatus = (scope: TenantScope, status: string) =>
      sql`
        update subscriptions set status = ${status}, updated_at = now() where tenant_id = ${scope.tenantId}`.pipe(
        Rows.none
      )

    /** Turns that the tenant has bought in addition to its plan. */
    const credits = (scope: TenantScope) =>
      sql`
        select granted::float8 as granted, used::float8 as used from tenant_credits where tenant_id = ${scope.tenantId}`.pipe(
        Rows.first(Credits),
        Effect.map(Option.getOrElse((): Credits => ({ granted: 0, used: 0 })))
      )

    return { put, find, setStatus, credits } as const
  })
}) {}
