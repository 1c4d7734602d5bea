/** Budgets: the reservation of a turn before the model is called, and the cost after it has ended. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { AgentKey, ReadScope } from "../../src/domain/accounts/Access.ts"
import type { CreateBudget } from "../../src/domain/billing/Budget.ts"
import type { Bill } from "../../src/domain/billing/Cost.ts"
import { newId } from "../../src/domain/Ids.ts"
import { BudgetStore } from "../../src/store/billing/Budgets.ts"
import { ProcessLeases } from "../../src/store/chat/ProcessLeases.ts"
import { type StartedTurn, type TurnStart, Turns } from "../../src/store/chat/Turns.ts"
import { Budgets } from "../../src/usecases/billing/Budgets.ts"
import * as Fixtures from "../Fixtures.ts"
import { eachEngineLive, reset } from "../TestDatabase.ts"

const layer = Layer.mergeAll(Budgets.Default, Turns.Default, ProcessLeases.Default).pipe(
  Layer.provideMerge(BudgetStore.Default)
)

const onFreshData = <A, E, R>(test: Effect.Effect<A, E, R>) =>
  Effect.zipRight(reset, Effect.provide(test, layer))

const bills = (cost: number | null): ReadonlyArray<Bill> => [
  { model: "one/a", inputTokens: 1, cachedInputTokens: 0, outputTokens: 1, cost }
]

interface Begun {
  readonly opening: TurnStart
  readonly started: StartedTurn
}

const begin = (scope: ReadScope, persist = true) =>
  Effect.gen(function* () {
    const opening: TurnStart = {
      target: { _tag: "Anonymous" },
      persist,
      channel: "api",
      instanceId: "test",
      runId: yield* newId.run,
      endUserId: yield* newId.endUser,
      conversationId: yield* newId.conversation,
      userMessageId: yield* newId.message,
      message: "Hello?",
      startedAt: yield* DateTime.now,
      startedLabel: "Started",
      timeout: "1 minute"
    }
    const begun: Begun = { opening, started: yield* (yield* Turns).begin(scope, opening) }
    return begun
  })

const settle = (scope: ReadScope, { opening, started }: Begun, cost: number | null, counted = true) =>
  Effect.gen(function* () {
    const turns = yield* Turns
    if (opening.persist) {
      yield* turns.settle(scope, {
        runId: opening.runId,
        counted,
        inputTokens: 0,
        outputTokens: 0,
        reply: null,
        events: [],
        bills: counted ? bills(cost) : [],
        budgeted: started.budgeted
      })
      return
    }
    const unstored = { ...started, runId: opening.runId, periodStart: started.periodStart ?? new Date() }
    yield* counted ? turns.count(scope, unstored, bills(cost)) : turns.release(scope, unstored)
  })

/** False when it was refused. */
const turn = (scope: ReadScope, cost: number | null, persist = true) =>
  Effect.gen(function* () {
    const begun = yield* begin(scope, persist)
    if (!begun.started.reserved) return false
    yield* settle(scope, begun, cost)
    return true
  })

const budget = (scope: ReadScope, given: CreateBudget) =>
  Effect.flatMap(Budgets, (budgets) => budgets.create(scope, given))

const standing = (scope: ReadScope) =>
  Effect.gen(function* () {
    const { rows } = yield* (yield* Budgets).list(scope, { limit: 10 })
    return rows.map(({ reservedNanoUsd, spentNanoUsd }) => [spentNanoUsd, reservedNanoUsd])
  })

const webhook = (scope: ReadScope) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`
      insert into webhook_endpoints (tenant_id, id, url, events, payload, secret)
      values (${scope.tenantId}, 'whk_1', 'https://receiver.example/', '{budget.near}', 'thin', 's')`
  )

const reportedEvents = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql<{ readonly ids: Readonly<Record<string, unknown>>; readonly agentId: string | null }>`
    select ids, agent_id as "agentId" from webhook_deliveries where type = 'budget.near' order by seq`
)

eachEngineLive("A budget", (it) => {
  it.effect("refuses turns once it is spent, and says which budget it is and when it resets", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      yield* budget(scope, { period: "month", limitNanoUsd: 100 })
      expect([yield* turn(scope, 60), yield* turn(scope, 60), yield* turn(scope, 60)]).toEqual([
        true,
        true,
        false
      ])
      expect(yield* standing(scope)).toEqual([[120, 0]])
      const { started } = yield* begin(scope)
      const now = new Date()
      const next = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1))
      expect(started.spentBudget).toEqual({ of: "tenant", period: "month", resetsAt: next.toISOString() })
      const sql = yield* SqlClient.SqlClient
      const [used] = yield* sql`select turns::int as turns from tenant_usage`
      expect(used).toEqual({ turns: 2 })
    }).pipe(onFreshData)
  )

  it.effect("of an agent or a key counts only their turns, and every budget of a turn counts it", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const key: AgentKey = yield* Fixtures.key(scope)
      const other: AgentKey = yield* Fixtures.key(scope)
      const sql = yield* SqlClient.SqlClient
      const agentId = yield* newId.agent
      yield* sql`insert into agents (id, tenant_id, name) values (${agentId}, ${scope.tenantId}, 'Second')`
      yield* budget(scope, { period: "month", limitNanoUsd: 1_000 })
      yield* budget(scope, { agentId: scope.agentId, period: "day", limitNanoUsd: 200 })
      yield* budget(scope, { keyId: key.keyId, period: "day", limitNanoUsd: 50 })
      expect([yield* turn(key, 50), yield* turn(key, 50)]).toEqual([true, false])
      expect((yield* begin(key)).started.spentBudget).toMatchObject({ of: "key", period: "day" })
      expect(yield* turn(other, 150)).toBe(true)
      expect((yield* begin(other)).started.spentBudget).toMatchObject({ of: "agent" })
      expect(yield* turn({ ...other, agentId }, 10)).toBe(true)
      expect(yield* standing(scope)).toEqual([
        [210, 0],
        [200, 0],
        [50, 0]
      ])
    }).pipe(onFreshData)
  )

  it.effect("is exceeded by at most one turn, also if many begin at once", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      yield* budget(scope, { period: "month", limitNanoUsd: 100 })
      // From here on a turn holds what this one has cost.
      yield* turn(scope, 10)
      const begun = yield* Effect.all(
        Array.from({ length: 40 }, (_, place) => begin(scope, place % 2 === 0)),
        { concurrency: "unbounded" }
      )
      const running = begun.filter(({ started }) => started.reserved)
      expect(running).toHaveLength(9)
      expect(yield* standing(scope)).toEqual([[10, 90]])
      yield* Effect.forEach(running, (each) => settle(scope, each, 10), { concurrency: "unbounded" })
      expect(yield* standing(scope)).toEqual([[100, 0]])
      expect(yield* turn(scope, 10)).toBe(false)
    }).pipe(onFreshData)
  )

  it.effect("lets at most a hundred turns begin before the cost of one is known", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      yield* budget(scope, { period: "month", limitNanoUsd: 1_000 })
      const begun = yield* Effect.forEach(Array.from({ length: 110 }), () => begin(scope, false))
      expect(begun.filter(({ started }) => started.reserved)).toHaveLength(100)
    }).pipe(onFreshData)
  )

  it.effect(
    "gets back the reservation of a turn that failed early, was refused by the quota, or lost its process",
    () =>
      Effect.gen(function* () {
        const scope = yield* Fixtures.agent({ turns: 2 })
        yield* budget(scope, { period: "month", limitNanoUsd: 100_000 })
        yield* settle(scope, yield* begin(scope), null, false)
        yield* settle(scope, yield* begin(scope, false), null, false)
        expect(yield* standing(scope)).toEqual([[0, 0]])
        yield* begin(scope)
        yield* begin(scope, false)
        const refused = yield* begin(scope)
        expect([refused.started.reserved, refused.started.spentBudget]).toEqual([false, null])
        expect(yield* standing(scope)).toEqual([[0, 2_000]])
        // No process of this name is alive.
        yield* (yield* ProcessLeases).sweep
        expect(yield* standing(scope)).toEqual([[0, 0]])
      }).pipe(onFreshData)
  )

  it.effect("counts no calls of unknown price, and a settled turn once", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      yield* budget(scope, { period: "month", limitNanoUsd: 100 })
      expect(yield* turn(scope, null)).toBe(true)
      const begun = yield* begin(scope)
      yield* settle(scope, begun, 30)
      yield* settle(scope, begun, 30)
      expect(yield* standing(scope)).toEqual([[30, 0]])
      expect(yield* turn(scope, 5, false)).toBe(true)
      expect(yield* standing(scope)).toEqual([[35, 0]])
    }).pipe(onFreshData)
  )

  it.effect("resets with its period, and a reservation is settled in the period in which it was made", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      yield* budget(scope, { period: "day", limitNanoUsd: 100 })
      yield* turn(scope, 70)
      const begun = yield* begin(scope)
      const sql = yield* SqlClient.SqlClient
      yield* sql`alter table budget_holds drop constraint budget_holds_tenant_id_budget_id_period_start_fkey`
      yield* sql`update budget_periods set period_start = period_start - interval '1 day'`
      yield* sql`update budget_holds set period_start = period_start - interval '1 day'`
      yield* sql`
        alter table budget_holds add foreign key (tenant_id, budget_id, period_start)
          references budget_periods (tenant_id, budget_id, period_start) on delete cascade`
      expect(yield* standing(scope)).toEqual([[0, 0]])
      yield* settle(scope, begun, 40)
      // As much as the dearest of the day before.
      yield* begin(scope)
      expect(yield* standing(scope)).toEqual([[0, 70]])
      const days =
        yield* sql`select spent_nano::int as spent, held_nano::int as held from budget_periods order by period_start`
      expect(days).toEqual([
        { spent: 110, held: 0 },
        { spent: 0, held: 70 }
      ])
    }).pipe(onFreshData)
  )

  it.effect("is reported once at 80 and once at 100 percent, with the turn that reaches it", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const scope = yield* Fixtures.agent()
      yield* webhook(scope)
      const { id, version } = yield* budget(scope, {
        agentId: scope.agentId,
        period: "month",
        limitNanoUsd: 100
      })
      yield* turn(scope, 79)
      expect(yield* reportedEvents).toEqual([])
      const undone = Effect.zipRight(turn(scope, 1), Effect.fail("undone"))
      yield* Effect.ignore(sql.withTransaction(undone))
      expect(yield* reportedEvents).toEqual([])
      yield* turn(scope, 2, false)
      yield* turn(scope, 3)
      expect((yield* reportedEvents).map(({ agentId, ids }) => [agentId, ids["percent"]])).toEqual([
        [scope.agentId, 80]
      ])
      yield* turn(scope, 50)
      expect((yield* reportedEvents).map(({ ids }) => ids)).toEqual([
        { budgetId: id, keyId: null, period: "month", percent: 80, limitNanoUsd: 100, spentNanoUsd: 81 },
        { budgetId: id, keyId: null, period: "month", percent: 100, limitNanoUsd: 100, spentNanoUsd: 134 }
      ])
      // Of another limit both thresholds are reported again.
      yield* (yield* Budgets).patch(scope, id, { limitNanoUsd: 1_000 }, version)
      yield* turn(scope, 900)
      expect((yield* reportedEvents).map(({ ids }) => [ids["percent"], ids["limitNanoUsd"]])).toEqual([
        [80, 100],
        [100, 100],
        [80, 1_000],
        [100, 1_000]
      ])
      const jobs = yield* sql`select distinct serial_key from queue_jobs where queue = 'webhook-outbound'`
      expect(jobs).toHaveLength(1)
    }).pipe(onFreshData)
  )

  it.effect(
    "is unique by subject and period, belongs to its tenant, and costs a tenant without budgets nothing",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const scope = yield* Fixtures.agent()
        const stranger = yield* Fixtures.agent()
        const budgets = yield* Budgets
        const made = yield* budget(scope, { period: "day", limitNanoUsd: 5 })
        const twice = yield* Effect.flip(budget(scope, { period: "day", limitNanoUsd: 5 }))
        expect(twice._tag).toBe("CONFLICT")
        expect(
          (yield* Effect.flip(budget(scope, { period: "day", limitNanoUsd: 5, agentId: stranger.agentId })))
            ._tag
        ).toBe("NOT_FOUND")
        expect((yield* Effect.flip(budgets.find(stranger, made.id)))._tag).toBe("NOT_FOUND")
        expect((yield* Effect.flip(budgets.remove(stranger, made.id)))._tag).toBe("NOT_FOUND")
        expect((yield* Effect.flip(budgets.patch(scope, made.id, { limitNanoUsd: 7 }, 9)))._tag).toBe(
          "CONFLICT"
        )
        yield* turn(stranger, 50)
        expect(yield* sql`select * from budget_periods`).toEqual([])
        const running = yield* begin(scope)
        yield* budgets.remove(scope, made.id)
        yield* settle(scope, running, 50)
        expect((yield* begin(scope)).started.budgeted).toBe(false)
        expect(yield* sql`select * from budget_holds`).toEqual([])
      }).pipe(onFreshData)
  )
})
