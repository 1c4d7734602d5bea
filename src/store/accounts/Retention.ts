/** Retention periods of tenants, in `tenant_retention`, and the queue of tenants whose older rows are removed. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { hasCome } from "../../concurrency/DatabaseTime.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { keepsAll, type PatchRetention, Retention } from "../../domain/accounts/Retention.ts"
import { TenantId } from "../../domain/Ids.ts"
import * as Rows from "../Rows.ts"

/** How long a process holds a tenant. After a crash, another process can take it then. */
const leaseDuration = Duration.minutes(10)
/** Time between two rounds of a tenant. */
const roundInterval = Duration.hours(1)

/** A tenant with its own limits. `seen` is the last conversation that was examined. */
const Claimed = Schema.Struct({ tenantId: TenantId, seen: Schema.String, ...Retention.fields })
export type Claimed = typeof Claimed.Type

const Longest = Schema.Struct({ days: Schema.NullOr(Schema.Int) })

export class RetentionStore extends Effect.Service<RetentionStore>()("store/accounts/Retention", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const columns = sql`conversations, anonymous_people as "anonymousPeople", runs, audit_entries as "auditEntries",
      email_logs as "emailLogs", event_deliveries as "eventDeliveries", ingestion_jobs as "ingestionJobs"`

    /** The limits of a tenant. */
    const find = ({ tenantId }: TenantScope) =>
      sql`select ${columns} from tenant_retention where tenant_id = ${tenantId}`.pipe(
        Rows.first(Retention),
        Effect.map(Option.getOrElse(() => keepsAll)),
        Effect.withSpan("RetentionStore.find")
      )

    /** Changes the given limits. The next sweep removes what is then too old. */
    const patch = Effect.fn("RetentionStore.patch")(
      function* ({ tenantId }: TenantScope, change: PatchRetention) {
        yield* sql`insert into tenant_retention (tenant_id) values (${tenantId}) on conflict do nothing`
        yield* sql`select tenant_id from tenant_retention where tenant_id = ${tenantId} for update`
        const next = { ...(yield* find({ tenantId })), ...change }
        yield* sql`
          update tenant_retention set conversations = ${next.conversations}, runs = ${next.runs},
            anonymous_people = ${next.anonymousPeople},
            audit_entries = ${next.auditEntries}, email_logs = ${next.emailLogs},
            event_deliveries = ${next.eventDeliveries}, ingestion_jobs = ${next.ingestionJobs},
            conversations_seen = '', updated_at = now(),
            -- Not before a process that is at it has ended.
            due_at = least(due_at, now() + make_interval(secs => ${Duration.toSeconds(leaseDuration)}))
          where tenant_id = ${tenantId}`
        return next
      },
      sql.withTransaction,
      Effect.orDie
    )

    /** Adds the row of tenants that have none, for limits of the installation. True when there were some. */
    const include = sql`/* every tenant: sweep */
      insert into tenant_retention (tenant_id)
      select t.id from tenants t where tenant_is_swept(t.id) and not exists (select from tenant_retention r where r.tenant_id = t.id)
      on conflict do nothing returning tenant_id`.pipe(Rows.any, Effect.withSpan("RetentionStore.include"))

    /** Claims the tenant that has waited longest. */
    const claim = sql`/* every tenant: sweep */
      update tenant_retention set due_at = now() + make_interval(secs => ${Duration.toSeconds(leaseDuration)})
      where tenant_id = (
        select tenant_id from tenant_retention where ${hasCome(sql, sql`due_at`, roundInterval)} and tenant_is_swept(tenant_id) order by due_at limit 1 for update skip locked)
      returning tenant_id as "tenantId", conversations_seen as seen, ${columns}`.pipe(
      Rows.first(Claimed),
      Effect.withSpan("RetentionStore.claim")
    )

    /** Releases a claimed tenant: due again after the others if `more` is to be removed, else in an hour. */
    const release = Effect.fn("RetentionStore.release")(function* ({ tenantId }: Claimed, more: boolean) {
      const due = more ? sql`now()` : sql`now() + make_interval(secs => ${Duration.toSeconds(roundInterval)})`
      yield* sql`update tenant_retention set due_at = ${due} where tenant_id = ${tenantId}`
    }, Effect.orDie)

    /** The longest time, in days, for which a tenant's own limit keeps runs: null for ever, 0 without tenants. */
    const longestRuns = sql`/* every tenant: sweep */
      select case when not exists ( -- Stops at the first tenant without a limit.
          select from tenants t where not exists (
            select from tenant_retention r where r.tenant_id = t.id and r.runs is not null)
        ) then coalesce((select max(runs) from tenant_retention), 0) end as days`.pipe(
      Rows.one(Longest),
      Effect.map(({ days }) => days),
      Effect.withSpan("RetentionStore.longestRuns")
    )

    /** The time by the database's clock. */
    const now = sql`select clock_timestamp() as now`.pipe(
      Rows.one(Schema.Struct({ now: Schema.DateTimeUtcFromDate })),
      Effect.map((row) => row.now),
      Effect.withSpan("RetentionStore.now")
    )

    return { find, patch, include, claim, release, longestRuns, now } as const
  })
}) {}
