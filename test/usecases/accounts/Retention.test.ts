/** The sweep removes what is older than the retention periods, and nothing else. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { ReadScope } from "../../../src/domain/accounts/Access.ts"
import { keepsAll } from "../../../src/domain/accounts/Retention.ts"
import { ExpiredRows } from "../../../src/store/accounts/ExpiredRows.ts"
import { RetentionStore } from "../../../src/store/accounts/Retention.ts"
import { UnusedPassages } from "../../../src/store/chat/UnusedPassages.ts"
import { InstallationRetention, RetentionLimits } from "../../../src/usecases/accounts/Retention.ts"
import * as Fixtures from "../../Fixtures.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"

const stores = Layer.mergeAll(ExpiredRows.Default, RetentionStore.Default, UnusedPassages.Default)
const live = RetentionLimits.Default.pipe(Layer.provideMerge(stores))

/** With limits of the installation. */
const limited = (limits: Partial<typeof keepsAll>) =>
  live.pipe(Layer.provide(Layer.succeed(InstallationRetention, { ...keepsAll, ...limits })))

/** Conversations with a message and a run: name, days since it changed, state, and what the run is at. */
const conversation = (
  { agentId, tenantId }: ReadScope,
  id: string,
  days: number,
  state = "AI_ACTIVE",
  run: "complete" | "running" = "complete"
) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) =>
      sql`
      with person as (insert into end_users (id, tenant_id) values (${`usr_${id}`}, ${tenantId}) returning id),
      made as (
        insert into conversations (id, tenant_id, agent_id, end_user_id, channel, state, created_at, updated_at)
        select ${`cnv_${id}`}, ${tenantId}, ${agentId}, id, 'api', ${state}, now() - interval '400 days',
          now() - make_interval(days => ${days}::int) from person returning id, updated_at
      ),
      said as (
        insert into messages (id, tenant_id, conversation_id, agent_id, position, role, content, created_at)
        select ${`msg_${id}`}, ${tenantId}, id, ${agentId}, 1, 'user', 'Hello', updated_at from made
      )
      insert into agent_runs (id, tenant_id, agent_id, conversation_id, instance_id, user_message_id, user_message,
        period_start, status, started_at, completed_at)
      select ${`run_${id}`}, ${tenantId}, ${agentId}, id, 'ins_1', 'msg_1', 'Hello', now(), ${run}, updated_at,
        case when ${run} = 'complete' then updated_at end from made`
  )

const names = (table: string, { tenantId }: Pick<ReadScope, "tenantId">) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql<{ id: string }>`select id from ${sql(table)} where tenant_id = ${tenantId} order by id`
  ).pipe(Effect.map((rows) => rows.map(({ id }) => id)))

/** Until nothing waits, whatever was released meanwhile. */
const swept = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const limits = yield* RetentionLimits
  yield* sql`update tenant_retention set due_at = now() - interval '1 second'`
  while (yield* limits.sweep) continue
})

eachEngineLive("Mails that belong to no tenant", (it) => {
  it.effect("are removed after 90 days, or after the limit of the installation if that is shorter", () =>
    Effect.gen(function* () {
      yield* reset
      const sql = yield* SqlClient.SqlClient
      const { tenantId } = yield* Fixtures.agent()
      yield* sql`
        insert into email_logs (id, tenant_id, recipient, kind, created_at)
        select 'eml_' || lpad(n::text, 3, '0'), null, 'ops@example.com', 'job_failed:ingestion',
          now() - make_interval(days => 91)
        from generate_series(1, 250) n
        union all select 'eml_twenty', null, 'ops@example.com', 'job_failed:ingestion', now() - interval '20 days'
        union all select 'eml_new', null, 'ops@example.com', 'job_failed:ingestion', now() - interval '9 days'
        union all select 'eml_tenant', ${tenantId}, 'ada@example.com', 'limit', now() - interval '91 days'`
      const left = Effect.map(sql`select from email_logs`, (rows) => rows.length)
      const sweep = (layer: typeof live) =>
        Effect.provide(
          Effect.flatMap(RetentionLimits, ({ sweepMails }) => sweepMails),
          layer
        )
      expect([yield* sweep(live), yield* left]).toEqual([true, 53])
      expect([yield* sweep(live), yield* left]).toEqual([false, 3])
      expect([yield* sweep(limited({ emailLogs: 365 })), yield* left]).toEqual([false, 3])
      yield* sweep(limited({ emailLogs: 10 }))
      expect(yield* sql`select id from email_logs order by id`).toEqual([
        { id: "eml_new" },
        { id: "eml_tenant" }
      ])
    })
  )
})

eachEngineLive("The expired data of a tenant", (it) => {
  it.effect("is empty until the tenant sets a limit", () =>
    Effect.gen(function* () {
      yield* reset
      const scope = yield* Fixtures.agent()
      yield* conversation(scope, "old", 3_000)
      yield* swept
      expect(yield* names("conversations", scope)).toEqual(["cnv_old"])
      expect(yield* (yield* RetentionLimits).find(scope)).toEqual({
        retention: keepsAll,
        installation: keepsAll
      })
    }).pipe(Effect.provide(live))
  )

  it.effect("contains its conversations past the limit, except those with an active human or run", () =>
    Effect.gen(function* () {
      yield* reset
      const sql = yield* SqlClient.SqlClient
      const scope = yield* Fixtures.agent()
      const other = yield* Fixtures.agent()
      yield* conversation(scope, "closed", 31, "CLOSED")
      yield* conversation(scope, "open", 31)
      yield* conversation(scope, "young", 29)
      yield* conversation(scope, "requested", 31, "HUMAN_REQUESTED")
      yield* conversation(scope, "taken", 31, "HUMAN_ACTIVE")
      yield* conversation(scope, "running", 31, "AI_ACTIVE", "running")
      yield* conversation(other, "others", 31)
      yield* sql`insert into agent_usage (tenant_id, agent_id, period_start, turns)
        values (${scope.tenantId}, ${scope.agentId}, now(), 6)`
      const limits = yield* RetentionLimits
      expect((yield* limits.patch(scope, { conversations: 30 })).retention).toEqual({
        ...keepsAll,
        conversations: 30
      })
      yield* limits.patch(other, { conversations: 32 })
      yield* swept
      expect(yield* names("conversations", scope)).toEqual([
        "cnv_requested",
        "cnv_running",
        "cnv_taken",
        "cnv_young"
      ])
      expect(yield* names("agent_runs", scope)).toEqual([
        "run_requested",
        "run_running",
        "run_taken",
        "run_young"
      ])
      expect(yield* sql`select count(*)::int as n from messages`).toEqual([{ n: 5 }])
      expect(yield* names("conversations", other)).toEqual(["cnv_others"])
      expect(yield* sql`select turns::int from agent_usage`).toEqual([{ turns: 6 }])
    }).pipe(Effect.provide(live))
  )

  it.effect("contains its runs, audit entries, mails, deliveries and jobs past their own limits", () =>
    Effect.gen(function* () {
      yield* reset
      const sql = yield* SqlClient.SqlClient
      const scope = yield* Fixtures.agent()
      const { agentId, tenantId } = scope
      yield* conversation(scope, "old", 11)
      yield* conversation(scope, "new", 9)
      yield* conversation(scope, "running", 11, "AI_ACTIVE", "running")
      for (const [id, days] of [
        ["a_old", 11],
        ["b_new", 9]
      ] as const) {
        const at = sql`now() - make_interval(days => ${days}::int)`
        yield* sql`
          insert into audit_entries (id, tenant_id, at, actor_type, actor_id, action, target, request_id)
          values (${id}, ${tenantId}, ${at}, 'user', 'usr_1', 'agent.update', 'agt_1', 'req_1')`
        yield* sql`
          insert into email_logs (id, tenant_id, recipient, kind, created_at)
          values (${id}, ${tenantId}, 'a@example.com', 'invitation', ${at})`
      }
      yield* sql`insert into webhook_endpoints (id, tenant_id, url, events, payload, secret)
        values ('whk_1', ${tenantId}, 'https://shop.example', '{}', 'ids', 's')`
      yield* sql`insert into webhook_deliveries (tenant_id, event_id, endpoint_id, type, ids, status, created_at) values
        (${tenantId}, 'evt_old', 'whk_1', 't', '{}', 'delivered', now() - interval '11 days'),
        (${tenantId}, 'evt_pending', 'whk_1', 't', '{}', 'pending', now() - interval '11 days'),
        (${tenantId}, 'evt_new', 'whk_1', 't', '{}', 'delivered', now() - interval '9 days')`
      yield* sql`insert into sources (id, tenant_id, agent_id, type, name, config) values
        ('src_1', ${tenantId}, ${agentId}, 'URL', 'One', '{}'), ('src_2', ${tenantId}, ${agentId}, 'URL', 'Two', '{}')`
      for (const [id, source] of [
        ["job_1", "src_1"],
        ["job_2", "src_1"],
        ["job_3", "src_1"],
        ["job_4", "src_2"]
      ] as const)
        yield* sql`insert into ingestion_jobs (id, tenant_id, source_id, agent_id, type, status, completed_at)
          values (${id}, ${tenantId}, ${source}, ${agentId}, 'INGEST', 'SUCCEEDED', now() - interval '11 days')`
      yield* sql`update sources set live_generation = (select generation from ingestion_jobs where id = 'job_2')
        where id = 'src_1'`
      yield* (yield* RetentionLimits).patch(scope, {
        runs: 10,
        auditEntries: 10,
        emailLogs: 10,
        eventDeliveries: 10,
        ingestionJobs: 10
      })
      yield* swept
      expect(yield* names("conversations", scope)).toEqual(["cnv_new", "cnv_old", "cnv_running"])
      expect(yield* names("agent_runs", scope)).toEqual(["run_new", "run_running"])
      expect(yield* names("audit_entries", scope)).toEqual(["b_new"])
      expect(yield* names("email_logs", scope)).toEqual(["b_new"])
      expect(yield* sql`select event_id as id from webhook_deliveries order by id`).toEqual([
        { id: "evt_new" },
        { id: "evt_pending" }
      ])
      expect(yield* sql`select id from ingestion_jobs order by id`).toEqual([
        { id: "job_2" },
        { id: "job_3" },
        { id: "job_4" }
      ])
    }).pipe(Effect.provide(live))
  )

  it.effect("is deleted in batches, for tenants in turn, in one process at a time", () =>
    Effect.gen(function* () {
      yield* reset
      const sql = yield* SqlClient.SqlClient
      const store = yield* RetentionStore
      const rows = yield* ExpiredRows
      const large = yield* Fixtures.agent()
      const small = yield* Fixtures.agent()
      for (const { tenantId } of [large, small]) {
        yield* sql`
          insert into audit_entries (id, tenant_id, at, actor_type, actor_id, action, target, request_id)
          select ${tenantId} || lpad(n::text, 5, '0'), ${tenantId}, now() - interval '11 days', 'user', 'u', 'a', 't', 'r'
          from generate_series(1, ${tenantId === large.tenantId ? 450 : 3}::int) n`
        yield* store.patch({ tenantId }, { auditEntries: 10 })
      }
      yield* sql`update tenant_retention set due_at = now() - interval '2 seconds' where tenant_id = ${large.tenantId}`
      yield* sql`update tenant_retention set due_at = now() - interval '1 second' where tenant_id = ${small.tenantId}`
      const turns: Array<readonly [string, number]> = []
      for (;;) {
        const claimed = yield* store.claim
        if (claimed._tag === "None") break
        // Another process gets another tenant, or none.
        const beside = yield* store.claim
        expect(beside._tag === "Some" && beside.value.tenantId === claimed.value.tenantId).toBe(false)
        for (const each of [claimed, beside]) {
          if (each._tag === "None") continue
          yield* store.release(each.value, yield* rows.remove(each.value))
          const left = (yield* names("audit_entries", each.value)).length
          turns.push([each.value.tenantId === large.tenantId ? "large" : "small", left])
        }
      }
      expect(turns).toEqual([
        ["large", 250],
        ["small", 0],
        ["large", 50],
        ["large", 0]
      ])
    }).pipe(Effect.provide(live))
  )

  it.effect("is found behind any number of conversations that are kept", () =>
    Effect.gen(function* () {
      yield* reset
      const sql = yield* SqlClient.SqlClient
      const scope = yield* Fixtures.agent()
      yield* conversation(scope, "0", 1)
      yield* sql`
        insert into conversations (id, tenant_id, agent_id, end_user_id, channel, created_at, updated_at)
        select 'cnv_1' || lpad(n::text, 4, '0'), ${scope.tenantId}, ${scope.agentId}, 'usr_0', 'api',
          now() - interval '400 days', case when n = 450 then now() - interval '31 days' else now() end
        from generate_series(1, 450) n`
      yield* (yield* RetentionLimits).patch(scope, { conversations: 30 })
      yield* swept
      const left = yield* names("conversations", scope)
      expect([left.length, left.includes("cnv_10450")]).toEqual([450, false])
    }).pipe(Effect.provide(live))
  )

  it.effect("contains people without an id, with their last conversation and by their own limit", () =>
    Effect.gen(function* () {
      yield* reset
      const sql = yield* SqlClient.SqlClient
      const scope = yield* Fixtures.agent()
      const { agentId, tenantId } = scope
      for (const id of ["gone", "known", "alias", "session", "twice"]) yield* conversation(scope, id, 8)
      yield* conversation(scope, "young", 6)
      yield* conversation(scope, "other", 6)
      yield* sql`update conversations set end_user_id = 'usr_twice' where id = 'cnv_other'`
      yield* sql`update end_users set external_id = 'ada' where id = 'usr_known'`
      yield* sql`insert into end_user_aliases (tenant_id, channel, kind, value, end_user_id)
        values (${tenantId}, 'whatsapp', 'phone', '49', 'usr_alias')`
      yield* sql`insert into widget_sessions (tenant_id, id_hash, agent_id, end_user_id, conversation_id)
        values (${tenantId}, 'x', ${agentId}, 'usr_session', 'cnv_session')`
      const limits = yield* RetentionLimits
      yield* limits.patch(scope, { anonymousPeople: 7 })
      yield* swept
      expect(yield* names("conversations", scope)).toEqual([
        "cnv_alias",
        "cnv_known",
        "cnv_other",
        "cnv_young"
      ])
      const stay = ["usr_alias", "usr_known", "usr_other", "usr_session", "usr_twice", "usr_young"]
      expect(yield* names("end_users", scope)).toEqual(stay)
      expect(yield* sql`select conversation_id from widget_sessions`).toEqual([{ conversation_id: null }])
      // A limit for all conversations is the longest time for these, too.
      yield* limits.patch(scope, { anonymousPeople: 100, conversations: 5 })
      yield* swept
      expect(yield* names("conversations", scope)).toEqual([])
      expect(yield* names("end_users", scope)).toEqual(["usr_alias", "usr_known", "usr_other", "usr_session"])
    }).pipe(Effect.provide(live))
  )

  it.effect("follows the limits of the installation, unless the tenant's are shorter", () =>
    Effect.gen(function* () {
      yield* reset
      const scope = yield* Fixtures.agent()
      const own = yield* Fixtures.agent()
      const longer = yield* Fixtures.agent()
      for (const [place, each] of [scope, own, longer].entries())
        for (const days of [4, 11, 19]) yield* conversation(each, `${place}_${days}`, days)
      const limits = yield* RetentionLimits
      yield* limits.patch(own, { runs: 3 })
      yield* limits.patch(longer, { runs: 300 })
      expect((yield* limits.find(scope)).installation).toEqual({ ...keepsAll, runs: 10 })
      yield* swept
      // Eight days later at most: their weeks would have been dropped before.
      expect(yield* names("agent_runs", scope)).toEqual(["run_0_11", "run_0_4"])
      expect(yield* names("agent_runs", own)).toEqual([])
      expect(yield* names("agent_runs", longer)).toEqual(["run_2_11", "run_2_4"])
      expect(yield* names("conversations", own)).toHaveLength(3)
    }).pipe(Effect.provide(limited({ runs: 10 })))
  )
})
