/** Finds sources that are due for a scheduled refresh. Times come from the caller, so that tests can control them. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { AgentId, SourceId, TenantId } from "../../domain/Ids.ts"
import { refreshableTypes } from "../../domain/knowledge/Source.ts"
import * as Rows from "../Rows.ts"

const DueSource = Schema.Struct({ tenantId: TenantId, agentId: AgentId, id: SourceId })
type DueSource = typeof DueSource.Type

export class RefreshStore extends Effect.Service<RefreshStore>()("store/knowledge/Refreshes", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const at = (now: DateTime.Utc) => sql`${DateTime.formatIso(now)}::timestamptz`

    /**
     * The source that has been due longest, locked until the caller's transaction ends; other transactions skip it. A
     * source is due a day or a week after its last successful or scheduled reading, plus up to a tenth (by its id), so
     * that sources do not all start at once. A source with an open job is not due. Times that are more than a period
     * ahead were written while the clock was ahead, and are ignored.
     */
    const claim = (now: DateTime.Utc) =>
      sql`/* every tenant: sweep */
        select s.id, s.tenant_id as "tenantId", s.agent_id as "agentId" from sources s
        cross join lateral (
          select case s.config ->> 'refresh' when 'daily' then interval '1 day' else interval '7 days' end as period,
            ('x' || substr(md5(s.id), 1, 7))::bit(28)::int / 268435456.0 as share
        ) plan
        cross join lateral (
          select coalesce(max(at), '-infinity') as at
          from (values (coalesce(s.last_synced_at, s.created_at)), (s.refreshed_at)) as times (at)
          where at <= ${at(now)} + period
        ) last
        where s.config ->> 'refresh' in ('daily', 'weekly') and s.type in ${sql.in(refreshableTypes)}
          and tenant_is_swept(s.tenant_id)
          and (s.refresh_held_until is null or s.refresh_held_until <= ${at(now)}
            or s.refresh_held_until > ${at(now)} + period)
          and last.at + period * (1 + share / 10)::float8 <= ${at(now)}
          and not exists (
            select from ingestion_jobs j
            where j.tenant_id = s.tenant_id and j.source_id = s.id and j.status in ('QUEUED', 'RUNNING')
          )
        order by last.at limit 1 for update of s skip locked`.pipe(Rows.first(DueSource))

    /** Part of the transaction that queues the job. */
    const recordRefresh = ({ tenantId }: TenantScope, id: SourceId, now: DateTime.Utc) =>
      sql`
        update sources set refreshed_at = ${at(now)}, refresh_held_until = null
        where tenant_id = ${tenantId} and id = ${id}`.pipe(Rows.none)

    /** Postpones the source's refresh and stores the reason for its owner. */
    const postpone = (
      { tenantId }: TenantScope,
      id: SourceId,
      now: DateTime.Utc,
      pause: Duration.Duration,
      reason: string
    ) =>
      sql`
        update sources set refresh_held_until = ${at(DateTime.addDuration(now, pause))}, last_error = ${reason}
        where tenant_id = ${tenantId} and id = ${id}`.pipe(Rows.none)

    return { claim, recordRefresh, postpone } as const
  })
}) {}
