/** A chat turn of a tenant with a budget. */
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as Stream from "effect/Stream"
import { ModelError, type ModelPart } from "../../../src/capabilities/ModelRuntime.ts"
import { BudgetStore } from "../../../src/store/billing/Budgets.ts"
import { Budgets } from "../../../src/usecases/billing/Budgets.ts"
import { ChatTurn } from "../../../src/usecases/chat/ChatTurn.ts"
import * as Fixtures from "../../Fixtures.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { request, Script, turnLayer } from "../chat/TurnHarness.ts"

const layer = Layer.merge(turnLayer(), Budgets.Default.pipe(Layer.provideMerge(BudgetStore.Default)))

const costing = (cost: number) => () =>
  Stream.make<Array<ModelPart>>(
    { _tag: "TextDelta", delta: "Hello" },
    {
      _tag: "Finish",
      reason: "stop",
      inputTokens: 3,
      outputTokens: 2,
      bill: { model: "one/a", inputTokens: 3, cachedInputTokens: 0, outputTokens: 2, cost }
    }
  )

eachEngineLive("A chat turn of a tenant with a budget", (it) => {
  it.scoped(
    "counts against the budget, stored or not, and is refused with 429 once the budget is exhausted",
    () =>
      Effect.zipRight(
        reset,
        Effect.gen(function* () {
          const chat = yield* ChatTurn
          const budgets = yield* Budgets
          const { reply } = yield* Script
          const scope = yield* Fixtures.agent()
          const { id } = yield* budgets.create(scope, { period: "day", limitNanoUsd: 1_000 })
          const left = Effect.map(budgets.find(scope, id), ({ reservedNanoUsd, spentNanoUsd }) => [
            spentNanoUsd,
            reservedNanoUsd
          ])
          yield* Ref.set(reply, costing(400))
          yield* chat.complete(scope, request())
          yield* chat.complete(scope, request({ persist: false }))
          expect(yield* left).toEqual([800, 0])
          yield* Ref.set(reply, () =>
            Stream.fail(new ModelError({ reason: "Rejected", message: "no", retryable: false }))
          )
          yield* Effect.flip(chat.complete(scope, request()))
          yield* Effect.flip(chat.complete(scope, request({ persist: false })))
          expect(yield* left).toEqual([800, 0])
          yield* Ref.set(reply, costing(400))
          yield* chat.complete(scope, request())
          const refused = yield* Effect.flip(chat.complete(scope, request()))
          const { resetsAt } = yield* budgets.find(scope, id)
          expect(refused).toMatchObject({
            _tag: "TURN_LIMIT_EXCEEDED",
            details: { budget: { of: "tenant", period: "day" } }
          })
          expect(refused.message).toContain("starts again at")
          expect(refused.message).not.toContain("1000")
          expect(Date.parse(JSON.parse(JSON.stringify(refused)).details.budget.resetsAt)).toBe(
            resetsAt.epochMillis
          )
          yield* budgets.patch(scope, id, { limitNanoUsd: 5_000 })
          yield* chat.complete(scope, request())
          expect(yield* left).toEqual([1_600, 0])
        }).pipe(Effect.provide(layer))
      )
  )
})
