import { expect } from "@effect/vitest"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Statement from "@effect/sql/Statement"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type { ReadScope } from "../../../src/domain/accounts/Access.ts"
import { AgentId, MessageId, newId } from "../../../src/domain/Ids.ts"
import { BudgetStore } from "../../../src/store/billing/Budgets.ts"
import { OtherModelCallStore } from "../../../src/store/billing/OtherModelCalls.ts"
import { EntitlementStore } from "../../../src/store/billing/Entitlements.ts"
import { ProcessLeases } from "../../../src/store/chat/ProcessLeases.ts"
import { Turns } from "../../../src/store/chat/Turns.ts"
import { StorageStore } from "../../../src/store/billing/Storage.ts"
import { UsageStore } from "../../../src/store/billing/Usage.ts"
import type { Bill } from "../../../src/domain/billing/Cost.ts"
import { UsageReport } from "../../../src/usecases/billing/UsageReport.ts"
import * as Fixtures from "../../Fixtures.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"

const Live = UsageReport.Default.pipe(
  Layer.provideMerge(
    Layer.mergeAll(
      StorageStore.Default,
      UsageStore.Default,
      BudgetStore.Default,
      OtherModelCallStore.Default,
      Turns.Default,
      EntitlementStore.Default,
      ProcessLeases.Default
    )
  )
)

const setPeriod = (scope: ReadScope, start: string, end: string) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`
      update subscriptions set period_start = ${start}::timestamptz, period_end = ${end}::timestamptz
      where tenant_id = ${scope.tenantId}`
  )

/** A turn from its reservation to its settlement; null when the quota refused it. */
const turn = (
  scope: ReadScope,
  tokens = { inputTokens: 10, outputTokens: 3 },
  bills: ReadonlyArray<Bill> = []
) =>
  Effect.gen(function* () {
    const turns = yield* Turns
    const runId = yield* newId.run
    const startedAt = yield* DateTime.now
    const admission = yield* turns.begin(scope, {
      target: { _tag: "Anonymous" },
      persist: true,
      channel: "api",
      instanceId: "instance",
      runId,
      endUserId: yield* newId.endUser,
      conversationId: yield* newId.conversation,
      userMessageId: yield* newId.message,
      message: "Hi",
      startedAt,
      startedLabel: "Started",
      timeout: "1 minute"
    })
    if (!admission.reserved) return null
    const reply = { id: MessageId.make(yield* newId.message), content: "Hello", citations: [] }
    yield* turns.settle(scope, { runId, counted: true, ...tokens, bills, reply, events: [] })
    return runId
  })

const secondAgent = (scope: ReadScope) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const agentId = yield* newId.agent
    yield* sql`insert into agents (id, tenant_id, name) values (${agentId}, ${scope.tenantId}, 'Second')`
    return { ...scope, agentId }
  })

eachEngineLive("usage", (it) => {
  it.effect("reports only the key's agent, and limits as entitlements", () =>
    Effect.gen(function* () {
      yield* reset
      const scope = yield* Fixtures.agent({ turns: 7, sources: 3, ingestionJobs: 5 })
      const other = yield* secondAgent(scope)
      yield* turn(scope)
      yield* turn(scope, { inputTokens: 100, outputTokens: 40 })
      yield* turn(other)
      const report = yield* UsageReport
      expect(yield* report.ofAgent(scope)).toMatchObject({
        turns: { used: 2, limit: 7, overageEnabled: false },
        ingestionJobs: { used: 0, limit: 5 },
        sources: { active: 0, limit: 3 },
        tokens: { input: 110, output: 43 }
      })
      const tenant = yield* report.ofTenant(scope)
      expect(tenant).toMatchObject({ turns: { used: 3, limit: 7 }, tokens: { input: 120, output: 46 } })
      const turnsOf = new Map(tenant.agents.map(({ agentId, turns }) => [agentId, turns]))
      expect(turnsOf).toEqual(
        new Map([
          [scope.agentId, 2],
          [other.agentId, 1]
        ])
      )
      const today = DateTime.formatIsoDateUtc(yield* DateTime.now)
      expect(tenant.days).toEqual([
        {
          date: today,
          turns: 3,
          tokens: { input: 120, output: 46 },
          cost: { nanoUsd: 0, unpricedCalls: 0 }
        }
      ])
    }).pipe(Effect.provide(Live))
  )

  it.effect("sums the costs by agent, model and day, and counts calls of unknown price", () =>
    Effect.gen(function* () {
      yield* reset
      const scope = yield* Fixtures.agent({ turns: 7, sources: 3, ingestionJobs: 5 })
      const other = yield* secondAgent(scope)
      const bill = (model: string, cost: number | null): Bill => ({
        model,
        inputTokens: 10,
        cachedInputTokens: 4,
        outputTokens: 3,
        cost
      })
      yield* turn(scope, undefined, [bill("b/dear", 7_000), bill("a/cheap", 5), bill("b/dear", 3_000)])
      yield* turn(scope, undefined, [bill("a/cheap", 1), bill("c/unknown", null)])
      yield* turn(other, undefined, [bill("c/unknown", null)])
      const tenant = yield* (yield* UsageReport).ofTenant(scope)
      expect(tenant.cost).toEqual({ nanoUsd: 10_006, unpricedCalls: 2 })
      const costOf = new Map(tenant.agents.map(({ agentId, cost }) => [agentId, cost]))
      expect(costOf).toEqual(
        new Map([
          [scope.agentId, { nanoUsd: 10_006, unpricedCalls: 1 }],
          [other.agentId, { nanoUsd: null, unpricedCalls: 1 }]
        ])
      )
      const used = (calls: number) => ({ input: 10 * calls, cachedInput: 4 * calls, output: 3 * calls })
      expect(tenant.models).toEqual([
        { model: "b/dear", calls: 2, tokens: used(2), cost: { nanoUsd: 10_000, unpricedCalls: 0 } },
        { model: "a/cheap", calls: 2, tokens: used(2), cost: { nanoUsd: 6, unpricedCalls: 0 } },
        { model: "c/unknown", calls: 2, tokens: used(2), cost: { nanoUsd: null, unpricedCalls: 2 } }
      ])
      expect(tenant.days.map(({ cost }) => cost)).toEqual([{ nanoUsd: 10_006, unpricedCalls: 2 }])
    }).pipe(Effect.provide(Live))
  )

  it.effect("keeps what a deleted agent has used in the totals of the period", () =>
    Effect.gen(function* () {
      yield* reset
      const sql = yield* SqlClient.SqlClient
      const scope = yield* Fixtures.agent({ turns: 7, sources: 3, ingestionJobs: 5 })
      const other = yield* secondAgent(scope)
      const bill: Bill = {
        model: "a/b",
        inputTokens: 10,
        cachedInputTokens: 4,
        outputTokens: 3,
        cost: 7
      }
      yield* turn(scope, undefined, [bill])
      yield* turn(other, { inputTokens: 100, outputTokens: 40 }, [bill, bill])
      yield* (yield* EntitlementStore).reserveIngestionJob(other)
      const report = yield* UsageReport
      const none = { nanoUsd: 0, unpricedCalls: 0 }
      const before = yield* report.ofTenant(scope)
      expect(before.deletedAgents).toEqual({
        turns: 0,
        ingestionJobs: 0,
        tokens: { input: 0, output: 0 },
        cost: none
      })
      yield* sql`delete from agents where tenant_id = ${scope.tenantId} and id = ${other.agentId}`
      const after = yield* report.ofTenant(scope)
      for (const total of ["turns", "ingestionJobs", "tokens", "cost", "models"] as const)
        expect(after[total]).toEqual(before[total])
      expect(after.agents.map(({ agentId, turns }) => [agentId, turns])).toEqual([[scope.agentId, 1]])
      expect(after.deletedAgents).toEqual({
        turns: 1,
        ingestionJobs: 1,
        tokens: { input: 100, output: 40 },
        cost: { nanoUsd: 14, unpricedCalls: 0 }
      })
      // The end of a call that began before.
      const { settle } = yield* OtherModelCallStore
      yield* settle(other, { id: yield* newId.run, kind: "draft", bills: [bill] })
      expect((yield* report.ofTenant(scope)).deletedAgents.cost).toEqual({ nanoUsd: 21, unpricedCalls: 0 })
      yield* sql`delete from tenants where id = ${scope.tenantId}`
      yield* settle(other, { id: yield* newId.run, kind: "draft", bills: [bill] })
      expect(yield* sql`select from agent_usage union all select from model_usage`).toEqual([])
    }).pipe(Effect.provide(Live))
  )

  it.effect("needs no further statement for the costs of models", () =>
    Effect.gen(function* () {
      yield* reset
      const scope = yield* Fixtures.agent({ turns: 7, sources: 3, ingestionJobs: 5 })
      const statements = (bills: ReadonlyArray<Bill>) => {
        let count = 0
        const counting = Statement.withTransformer((statement) => Effect.sync(() => (count++, statement)))
        return Effect.map(counting(turn(scope, undefined, bills)), () => count)
      }
      const bill: Bill = { model: "a/b", inputTokens: 1, cachedInputTokens: 0, outputTokens: 1, cost: 1 }
      expect([yield* statements([]), yield* statements([bill]), yield* statements([bill, bill])]).toEqual([
        2, 2, 2
      ])
    }).pipe(Effect.provide(Live))
  )

  it.effect("counts jobs even after the deletion of their source", () =>
    Effect.gen(function* () {
      yield* reset
      const scope = yield* Fixtures.agent()
      const sql = yield* SqlClient.SqlClient
      const { reserveIngestionJob } = yield* EntitlementStore
      yield* sql`
        insert into sources (id, tenant_id, agent_id, type, name, config)
        values ('src_1', ${scope.tenantId}, ${scope.agentId}, 'URL', 'Handbook', '{}')`
      yield* reserveIngestionJob(scope)
      const report = yield* UsageReport
      expect(yield* report.ofAgent(scope)).toMatchObject({
        ingestionJobs: { used: 1 },
        sources: { active: 1 }
      })
      yield* sql`delete from sources`
      expect(yield* report.ofAgent(scope)).toMatchObject({
        ingestionJobs: { used: 1 },
        sources: { active: 0 }
      })
    }).pipe(Effect.provide(Live))
  )

  it.effect("uses the period of the subscription, else the calendar month in UTC", () =>
    Effect.gen(function* () {
      yield* reset
      const scope = yield* Fixtures.agent()
      const report = yield* UsageReport
      const month = DateTime.startOf(yield* DateTime.now, "month")
      expect((yield* report.ofAgent(scope)).period).toEqual({
        start: month,
        end: DateTime.add(month, { months: 1 })
      })
      yield* setPeriod(scope, "2020-01-01T00:00:00Z", "2999-01-01T00:00:00Z")
      expect((yield* report.ofAgent(scope)).period).toEqual({
        start: DateTime.unsafeMake("2020-01-01T00:00:00Z"),
        end: DateTime.unsafeMake("2999-01-01T00:00:00Z")
      })
    }).pipe(Effect.provide(Live))
  )

  it.effect("restores a used quota at the end of its period", () =>
    Effect.gen(function* () {
      yield* reset
      const scope = yield* Fixtures.agent({ turns: 1 })
      const report = yield* UsageReport
      const now = yield* DateTime.now
      const iso = (shift: number) => DateTime.formatIso(DateTime.add(now, { hours: shift }))
      yield* setPeriod(scope, iso(-1), iso(1))
      expect(yield* turn(scope)).not.toBe(null)
      expect(yield* turn(scope)).toBe(null)
      expect(yield* report.ofAgent(scope)).toMatchObject({ turns: { used: 1 } })
      // The same turn, a period later: its hours are the ones from three hours ago to an hour ago.
      const sql = yield* SqlClient.SqlClient
      yield* setPeriod(scope, iso(-3), iso(-1))
      yield* sql`update tenant_usage set period_start = ${iso(-3)}::timestamptz`
      yield* sql`update agent_usage set period_start = ${iso(-3)}::timestamptz`
      const rolled = yield* report.ofAgent(scope)
      expect(rolled.turns.used).toBe(0)
      expect(DateTime.formatIso(rolled.period.start)).toBe(iso(-1))
      expect(DateTime.formatIso(rolled.period.end)).toBe(iso(1))
      expect(yield* turn(scope)).not.toBe(null)
      expect(yield* turn(scope)).toBe(null)
      expect(yield* report.ofAgent(scope)).toMatchObject({ turns: { used: 1 } })
    }).pipe(Effect.provide(Live))
  )

  it.effect(
    "continues an ended period with the next one of the same length, in whole months if it has whole months",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const at = (first: string, last: string, moment: string) =>
          Effect.map(
            sql<{ readonly start: string; readonly end: string }>`
            select to_char(period_start at time zone 'UTC', 'YYYY-MM-DD HH24:MI') as start,
              to_char(period_end at time zone 'UTC', 'YYYY-MM-DD HH24:MI') as end
            from period_at(${first}::timestamptz, ${last}::timestamptz, ${moment}::timestamptz)`,
            ([row]) => [row?.start, row?.end]
          )
        const day = (text: string) => `${text}T00:00:00Z`
        // Still running, and not begun yet: as it is.
        expect(yield* at(day("2026-01-10"), day("2026-02-10"), day("2026-02-09"))).toEqual([
          "2026-01-10 00:00",
          "2026-02-10 00:00"
        ])
        expect(yield* at(day("2026-01-10"), day("2026-02-10"), day("2025-02-09"))).toEqual([
          "2026-01-10 00:00",
          "2026-02-10 00:00"
        ])
        // Its end is the first moment of the next.
        expect(yield* at(day("2026-01-10"), day("2026-02-10"), day("2026-02-10"))).toEqual([
          "2026-02-10 00:00",
          "2026-03-10 00:00"
        ])
        expect(yield* at(day("2026-01-10"), day("2026-02-10"), "2027-03-09T23:59:59Z")).toEqual([
          "2027-02-10 00:00",
          "2027-03-10 00:00"
        ])
        // The last day of a month stays the last day.
        expect(yield* at(day("2026-01-31"), day("2026-02-28"), day("2026-02-28"))).toEqual([
          "2026-02-28 00:00",
          "2026-03-31 00:00"
        ])
        expect(yield* at(day("2024-02-29"), day("2025-02-28"), day("2026-06-01"))).toEqual([
          "2026-02-28 00:00",
          "2027-02-28 00:00"
        ])
        // No whole months: the exact length, whatever the time zone of the session, which changes to summer time here.
        for (const zone of ["UTC", "Europe/Berlin"])
          expect(
            yield* sql`select set_config('TimeZone', ${zone}, true)`.pipe(
              Effect.zipRight(at(day("2026-03-20"), day("2026-04-03"), day("2026-04-18"))),
              sql.withTransaction
            )
          ).toEqual(["2026-04-17 00:00", "2026-05-01 00:00"])
      })
  )

  it.effect("fails when the agent is missing", () =>
    Effect.gen(function* () {
      yield* reset
      const scope = yield* Fixtures.agent()
      const report = yield* UsageReport
      const failed = yield* Effect.flip(report.ofAgent({ ...scope, agentId: AgentId.make("agt_none") }))
      expect(failed._tag).toBe("INTERNAL_ERROR")
      const { ofAgent } = yield* UsageStore
      const stranger = yield* Fixtures.agent()
      expect(yield* ofAgent({ ...scope, agentId: stranger.agentId })).toEqual(Option.none())
    }).pipe(Effect.provide(Live))
  )
})
