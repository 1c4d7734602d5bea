/** Leases of the processes that run turns, and the runs of dead processes. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { processStopped } from "../../domain/chat/AgentRun.ts"
import { returnTurns } from "../billing/TurnQuota.ts"
import { eventWrites } from "../events/ReportedEvents.ts"
import { endedWithoutMessageEvents, nextServedTicket, settleEmptyStatement } from "./TurnSettlement.ts"
import { orUnstorable } from "../Unstorable.ts"

interface Run {
  readonly tenantId: string
  readonly id: string
}

/** Maximum number of runs that one sweep ends. */
const sweepLimit = 1_000

export class ProcessLeases extends Effect.Service<ProcessLeases>()("store/chat/ProcessLeases", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    /** Extends the process's lease: its runs stay alive for `lease` from now. */
    const renew = (id: string, lease: Duration.DurationInput) =>
      sql`
        insert into instances (id, lease_until, reads_float16)
        values (${id}, now() + make_interval(secs => ${Duration.toSeconds(lease)}), true)
        on conflict (id) do update set lease_until = excluded.lease_until`.pipe(
        Effect.asVoid,
        Effect.withSpan("ProcessLeases.renew")
      )

    /** Removes the lease of a process that has stopped, with its runs. */
    const remove = (id: string) => sql`delete from instances where id = ${id}`.pipe(Effect.asVoid)

    /** Removes all leases. Only for a store with one process: every other process is dead, even with a valid lease. */
    const removeAll = sql`delete from instances`.pipe(Effect.asVoid)

    const alive = sql`exists (select 1 from instances i where i.id = r.instance_id and i.lease_until >= now())`
    const isDead = sql`(r.ends_by < now() or not ${alive})`

    /** Running runs whose process has died or whose deadline has passed, by ticket. */
    const findDead = sql<Run>`/* every tenant: sweep */
      with expired as (delete from instances where lease_until < now())
      select r.tenant_id as "tenantId", r.id from agent_runs r
      where r.status = 'running' and ${isDead} and tenant_is_swept(r.tenant_id)
      order by r.conversation_id, r.ticket limit ${sweepLimit}`

    /** Returns the runs that it has ended. */
    const end = (runs: ReadonlyArray<Run>) => sql<{ readonly id: string }>`/* every tenant: sweep */
      with dead as (
        update agent_runs r set status = 'failed', completed_at = now(), message_id = user_message_id
        where r.status = 'running' and ${isDead} and (r.tenant_id, r.id) in (
          select * from unnest(${runs.map(({ tenantId }) => tenantId)}::text[], ${runs.map(({ id }) => id)}::text[])
        )
        returning r.id, r.agent_id, r.tenant_id, r.conversation_id, r.ticket, r.period_start, r.credited, r.user_message_id,
          r.user_message, r.answers, r.attachments, r.started_at, ${alive} as alive
      ),
      ordered as (
        select dead.*, row_number() over (partition by conversation_id order by ticket) as place,
          count(*) over (partition by conversation_id) as total
        from dead where answers is null
      ),
      conversation as (
        update conversations c set message_count = c.message_count + lost.asked, updated_at = now(),
          served = ${nextServedTicket(sql, sql`lost.ticket`, sql`and e.id not in (select id from dead)`)}
        from (
          select tenant_id, conversation_id, count(*) filter (where answers is null) as asked, max(ticket) as ticket
          from dead group by tenant_id, conversation_id
        ) lost
        where c.tenant_id = lost.tenant_id and c.id = lost.conversation_id
        returning c.tenant_id, c.id, c.message_count
      ),
      asked as (
        insert into messages (id, tenant_id, conversation_id, agent_id, position, role, content, attachments, created_at)
        select o.user_message_id, c.tenant_id, c.id, o.agent_id, c.message_count - o.total + o.place, 'user', o.user_message, o.attachments,
          o.started_at
        from ordered o join conversation c on c.id = o.conversation_id
      ),
      traced as (
        insert into agent_run_events (tenant_id, run_id, sequence, type, status, label, payload, at)
        select tenant_id, id, 1 + coalesce((
            select max(sequence) from agent_run_events e where e.tenant_id = dead.tenant_id and e.run_id = dead.id), 0),
          'run.failed', 'failed',
          case when alive then 'The turn did not end in time' else 'The process that ran the turn stopped' end,
          case when alive then null else jsonb_build_object('code', ${processStopped}::text) end, now()
        from dead
      ),
      ${eventWrites(sql, endedWithoutMessageEvents(sql, sql`dead`))},
      ${returnTurns(sql, sql`dead`)}
      select id from dead`

    /** Removes budget reservations of dead turns, including turns that are not stored. */
    const releaseBudgets = sql`/* every tenant: sweep */
      select h.tenant_id, settle_budgets(h.tenant_id, h.run_id, 0) from (
        select distinct r.tenant_id, r.run_id from budget_holds r where ${isDead} and tenant_is_swept(r.tenant_id) limit ${sweepLimit}
      ) h`

    /** Ends one run without storing its message, which the database has refused. */
    const endWithoutMessage = (run: Run) =>
      settleEmptyStatement(sql, run, sql`r.id = ${run.id} and ${isDead}`, "The turn could not be stored")

    /** Ends them one by one, so that a failure does not affect the others. */
    const endOneByOne = (runs: ReadonlyArray<Run>) =>
      Effect.forEach(runs, (run) =>
        orUnstorable(end([run])).pipe(
          Effect.catchTag("Unstorable", () => endWithoutMessage(run)),
          Effect.catchAllCause((cause) =>
            Effect.as(Effect.logError(`The run ${run.id} could not be ended`, cause), [])
          )
        )
      ).pipe(Effect.map((ended) => ended.flat()))

    /**
     * Ends the runs whose process has died or whose deadline has passed. The run is `failed`, the user's message is
     * added to the conversation unless it is already stored, and the turn is returned to the quota and to budgets.
     * Returns the number of runs.
     */
    const sweep = Effect.gen(function* () {
      const runs = yield* findDead
      yield* releaseBudgets
      if (runs.length === 0) return 0
      const ended = yield* Effect.catchTag(orUnstorable(end(runs)), "Unstorable", () => endOneByOne(runs))
      return ended.length
    }).pipe(Effect.withSpan("ProcessLeases.sweep"))

    /**
     * Ends the tenant's running turns like those of a dead process, although their processes are alive. What these
     * write afterwards has no effect, because the turn no longer runs.
     */
    const endAll = Effect.fn("ProcessLeases.endAll")(function* ({ tenantId }: TenantScope) {
      const runs = yield* sql<Run>`
        update agent_runs set ends_by = now() - interval '1 second'
        where tenant_id = ${tenantId} and status = 'running' returning tenant_id as "tenantId", id`
      // The sweep skips a tenant that is being moved.
      yield* sql`
        select settle_budgets(h.tenant_id, h.run_id, 0) from (
          select distinct tenant_id, run_id from budget_holds where tenant_id = ${tenantId}
        ) h`
      if (runs.length > 0)
        yield* Effect.catchTag(orUnstorable(end(runs)), "Unstorable", () => endOneByOne(runs))
    })

    /** The number of the tenant's running turns. */
    const countRunning = ({ tenantId }: TenantScope) =>
      sql<{ readonly count: number }>`
        select count(*)::int as count from agent_runs where tenant_id = ${tenantId} and status = 'running'`.pipe(
        Effect.orDie,
        Effect.map(([row]) => row?.count ?? 0)
      )

    return { renew, remove, removeAll, sweep, endAll, countRunning } as const
  })
}) {}
