import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { OtherModelCalls } from "../../../src/usecases/billing/OtherModelCalls.ts"
import { failsOnce } from "../../FailingWrites.ts"
import * as Fixtures from "../../Fixtures.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { turnLayer } from "../chat/TurnHarness.ts"

const onFreshData = <A, E, R>(test: Effect.Effect<A, E, R>) =>
  Effect.zipRight(reset, Effect.provide(test, turnLayer()))

const bill = { model: "a/model", inputTokens: 7, cachedInputTokens: 0, outputTokens: 3, cost: 5_000 }

eachEngineLive("Calls of a model that belong to no turn", (it) => {
  for (const [problem, code] of [
    ["the database stops", "57P01"],
    ["the database ends a deadlock with it", "40P01"]
  ] as const) {
    it.scoped(`are counted once if ${problem} at their end, also for an interrupted caller`, () =>
      Effect.gen(function* () {
        const scope = yield* Fixtures.agent()
        const calls = yield* OtherModelCalls
        const sql = yield* SqlClient.SqlClient
        const interruptedCall = Effect.gen(function* () {
          const bills = yield* calls.reserve(scope, "judge", "1 minute")
          bills.push(bill)
          return yield* Effect.interrupt
        })
        yield* failsOnce(
          "other_model_usage",
          "true",
          code,
          Effect.flatMap(Effect.fork(Effect.scoped(interruptedCall)), Fiber.await)
        )
        expect(
          yield* sql`select kind, calls::int as calls, cost_nano::int as cost from other_model_usage`
        ).toEqual([{ kind: "judge", calls: 1, cost: 5_000 }])
      }).pipe(onFreshData)
    )
  }
})
