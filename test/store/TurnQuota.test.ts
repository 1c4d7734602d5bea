/** The quota of turns with credits: what a turn uses, and what is returned. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import type { ReadScope } from "../../src/domain/accounts/Access.ts"
import { newId } from "../../src/domain/Ids.ts"
import { ProcessLeases } from "../../src/store/chat/ProcessLeases.ts"
import { SubscriptionStore } from "../../src/store/billing/Subscriptions.ts"
import { type TurnStart, Turns } from "../../src/store/chat/Turns.ts"
import * as Fixtures from "../Fixtures.ts"
import { eachEngineLive, reset } from "../TestDatabase.ts"

const opening = (persist = true) =>
  Effect.gen(function* () {
    const made: TurnStart = {
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
    return made
  })

const tenant = (limits: Fixtures.Limits, granted: number) =>
  Effect.gen(function* () {
    yield* reset
    const sql = yield* SqlClient.SqlClient
    const scope = yield* Fixtures.agent(limits)
    yield* sql`insert into tenant_credits (tenant_id, granted) values (${scope.tenantId}, ${granted})`
    return scope
  })

const begin = (scope: ReadScope, persist = true) =>
  Effect.gen(function* () {
    const turns = yield* Turns
    const made = yield* opening(persist)
    const { budgeted, credited, periodStart, reserved } = yield* turns.begin(scope, made)
    return { runId: made.runId, reserved, credited, periodStart, budgeted }
  })

const settle = (scope: ReadScope, runId: TurnStart["runId"], counted: boolean) =>
  Effect.flatMap(Turns, (turns) =>
    turns.settle(scope, { runId, counted, inputTokens: 0, outputTokens: 0, reply: null, events: [] })
  )

const quotaState = (scope: ReadScope) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const { used } = yield* (yield* SubscriptionStore).credits(scope)
    const [row] = yield* sql<{ readonly turns: number; readonly credited: number }>`
      select turns::int as turns, credited::int as credited from tenant_usage where tenant_id = ${scope.tenantId}`
    return { turns: row?.turns ?? 0, credited: row?.credited ?? 0, used }
  })

const provided = Effect.provide([Turns.Default, ProcessLeases.Default, SubscriptionStore.Default])

eachEngineLive("The quota of turns", (it) => {
  it.effect("uses the period's turns first, then the bought ones, then refuses", () =>
    Effect.gen(function* () {
      const scope = yield* tenant({ turns: 2 }, 2)
      const begun = yield* Effect.forEach([1, 2, 3, 4, 5], () => begin(scope))
      expect(begun.map(({ reserved, credited }) => [reserved, credited])).toEqual([
        [true, false],
        [true, false],
        [true, true],
        [true, true],
        [false, false]
      ])
      expect(yield* quotaState(scope)).toEqual({ turns: 4, credited: 2, used: 2 })
    }).pipe(provided)
  )

  it.effect("uses only credits if the plan has no turns", () =>
    Effect.gen(function* () {
      const scope = yield* tenant({ turns: 0 }, 1)
      const first = yield* begin(scope)
      const second = yield* begin(scope)
      expect([first.reserved, second.reserved]).toEqual([true, false])
    }).pipe(provided)
  )

  it.effect("does not use credits while overage is on", () =>
    Effect.gen(function* () {
      const scope = yield* tenant({ turns: 1, overage: true }, 5)
      yield* Effect.forEach([1, 2, 3], () => begin(scope))
      expect(yield* quotaState(scope)).toEqual({ turns: 3, credited: 0, used: 0 })
    }).pipe(provided)
  )

  it.effect("never gives the same turn of the plan, or the same credit, to two concurrent turns", () =>
    Effect.gen(function* () {
      const scope = yield* tenant({ turns: 5 }, 7)
      const begun = yield* Effect.all(
        Array.from({ length: 40 }, (_, place) => begin(scope, place % 2 === 0)),
        { concurrency: "unbounded" }
      )
      expect(begun.filter(({ reserved }) => reserved)).toHaveLength(12)
      expect(begun.filter(({ credited }) => credited)).toHaveLength(7)
      expect(yield* quotaState(scope)).toEqual({ turns: 12, credited: 7, used: 7 })
    }).pipe(provided)
  )

  it.effect("gets back the turn or credit of a turn that failed before the model was called", () =>
    Effect.gen(function* () {
      const scope = yield* tenant({ turns: 1 }, 1)
      const planned = yield* begin(scope)
      const bought = yield* begin(scope)
      yield* settle(scope, bought.runId, false)
      expect(yield* quotaState(scope)).toEqual({ turns: 1, credited: 0, used: 0 })
      const again = yield* begin(scope)
      expect(again.credited).toBe(true)
      yield* settle(scope, planned.runId, false)
      expect(yield* quotaState(scope)).toEqual({ turns: 1, credited: 1, used: 1 })
      // The plan's place is free again, although a credit is in use.
      const next = yield* begin(scope)
      expect([next.reserved, next.credited]).toEqual([true, false])
    }).pipe(provided)
  )

  it.effect("stays correct while turns begin and fail at the same time", () =>
    Effect.gen(function* () {
      const scope = yield* tenant({ turns: 3 }, 4)
      const attempt = Effect.gen(function* () {
        const { reserved, runId } = yield* begin(scope)
        if (reserved) yield* settle(scope, runId, false)
      })
      yield* Effect.all(
        Array.from({ length: 60 }, () => attempt),
        { concurrency: "unbounded", discard: true }
      )
      expect(yield* quotaState(scope)).toEqual({ turns: 0, credited: 0, used: 0 })
    }).pipe(provided)
  )

  it.effect("gets back the credit of a turn that stores nothing", () =>
    Effect.gen(function* () {
      const scope = yield* tenant({ turns: 0 }, 1)
      const { periodStart, ...begun } = yield* begin(scope, false)
      if (periodStart === null) return expect.fail("No turn was reserved.")
      yield* (yield* Turns).release(scope, { ...begun, periodStart })
      expect(yield* quotaState(scope)).toEqual({ turns: 0, credited: 0, used: 0 })
    }).pipe(provided)
  )

  it.effect("gets back the turns and credits of a process that died", () =>
    Effect.gen(function* () {
      const scope = yield* tenant({ turns: 1 }, 3)
      yield* Effect.forEach([1, 2, 3], () => begin(scope))
      expect(yield* quotaState(scope)).toEqual({ turns: 3, credited: 2, used: 2 })
      expect(yield* (yield* ProcessLeases).sweep).toBe(3)
      expect(yield* quotaState(scope)).toEqual({ turns: 0, credited: 0, used: 0 })
    }).pipe(provided)
  )
})
