/** Groups of unanswered questions that were reported to a tenant, and the time of the next search. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { hasCome } from "../../concurrency/DatabaseTime.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { type AgentId, type RunId, TenantId } from "../../domain/Ids.ts"
import { toJsonb } from "../Jsonb.ts"
import { eventWrites, type Report } from "../events/ReportedEvents.ts"
import * as Rows from "../Rows.ts"

/** How long a process holds a tenant. After a crash, another process can take it then. */
const leaseDuration = Duration.minutes(10)
/** Time between two searches of a tenant. */
const searchInterval = Duration.hours(1)

const Gap = Schema.Struct({ id: Schema.String, threshold: Schema.Int, runIds: Schema.Array(Schema.String) })

/** A group to report: `runIds` are all of its turns, `examples` those that the event names. */
export interface FoundGap {
  readonly id: string
  readonly agentId: AgentId
  readonly threshold: number
  readonly count: number
  readonly people: number
  readonly runIds: ReadonlyArray<RunId>
  readonly examples: ReadonlyArray<RunId>
}

export class ReportedGapStore extends Effect.Service<ReportedGapStore>()("store/conversations/ReportedGaps", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    /** Claims the tenant that has waited longest, of those that subscribe to the event. */
    const claim = sql`/* every tenant: sweep */
      insert into gap_searches as s (tenant_id, due_at)
      select e.tenant_id, now() + make_interval(secs => ${Duration.toSeconds(leaseDuration)})
      from webhook_endpoints e left join gap_searches d on d.tenant_id = e.tenant_id
      where e.status = 'active' and 'gap.found' = any(e.events) and coalesce(${hasCome(sql, sql`d.due_at`, searchInterval)}, true)
        and tenant_is_swept(e.tenant_id)
      order by d.due_at nulls first limit 1
      on conflict (tenant_id) do update set due_at = excluded.due_at where ${hasCome(sql, sql`s.due_at`, searchInterval)}
      returning s.tenant_id as "tenantId"`.pipe(
      Rows.first(Schema.Struct({ tenantId: TenantId })),
      Effect.withSpan("ReportedGapStore.claim")
    )

    const release = ({ tenantId }: TenantScope) =>
      sql`
          update gap_searches set due_at = now() + make_interval(secs => ${Duration.toSeconds(searchInterval)})
          where tenant_id = ${tenantId}`.pipe(Rows.none)

    const list = ({ tenantId }: TenantScope) =>
      sql`
        select id, threshold, run_ids as "runIds" from reported_gaps where tenant_id = ${tenantId} order by id`.pipe(
        Rows.all(Gap)
      )

    /** Stores the group's current state. With `mustReport`, the event is reported. */
    const keep = ({ tenantId }: TenantScope, gap: FoundGap, mustReport: boolean) => {
      const report: Report = {
        type: "gap.found",
        key: sql`kept.id || ':' || kept.threshold || ':' || extract(epoch from clock_timestamp())`,
        tenantId: sql`kept.tenant_id`,
        agentId: sql`${gap.agentId}`,
        conversationId: sql`null`,
        ids: sql`${toJsonb({ gapId: gap.id, count: gap.count, people: gap.people, runIds: gap.examples })}::jsonb`,
        from: sql`kept`
      }
      return sql`
          with kept as (
            insert into reported_gaps (tenant_id, id, threshold, run_ids)
            values (${tenantId}, ${gap.id}, ${gap.threshold}, ${[...gap.runIds]}::text[])
            on conflict (tenant_id, id) do update set threshold = excluded.threshold, run_ids = excluded.run_ids
            returning tenant_id, id, threshold
          )
          ${mustReport ? sql`, ${eventWrites(sql, report)}` : sql``}
          select id from kept`.pipe(Rows.none)
    }

    /** Deletes groups that no longer exist. A group that appears again is reported again. */
    const forget = ({ tenantId }: TenantScope, except: ReadonlyArray<string>) =>
      sql`delete from reported_gaps where tenant_id = ${tenantId} and id <> all(${[...except]}::text[])`.pipe(
        Rows.none
      )

    return { claim, release, list, keep, forget } as const
  })
}) {}
