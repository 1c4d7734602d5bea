/** The cost of a turn, stored by the statement that settles it, whatever the outcome. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as Stream from "effect/Stream"
import { ModelError, type ModelPart } from "../../../src/capabilities/ModelRuntime.ts"
import type { Bill } from "../../../src/domain/billing/Cost.ts"
import { ChatTurn } from "../../../src/usecases/chat/ChatTurn.ts"
import { counterValue } from "../../Counters.ts"
import * as Fixtures from "../../Fixtures.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { type Reply, request, Script, turnLayer } from "./TurnHarness.ts"

const onFreshData =
  <P, PE, PR>(process: Layer.Layer<P, PE, PR>) =>
  <A, E, R>(test: Effect.Effect<A, E, R>) =>
    Effect.zipRight(reset, Effect.provide(test, process))

const bill = (model: string, cost: number | null): Bill => ({
  model,
  inputTokens: 11,
  cachedInputTokens: 2,
  outputTokens: 3,
  cost
})

/** Says `text`; without a bill the runtime does not know what it costs. */
const says = (text: string, billed?: Bill): Reply => {
  const finish: ModelPart = {
    _tag: "Finish",
    reason: "stop",
    inputTokens: 11,
    outputTokens: 3,
    ...(billed === undefined ? {} : { bill: billed })
  }
  return () => Stream.make<ModelPart[]>({ _tag: "TextDelta", delta: text }, finish)
}

/** One reply after the other, the last one again and again. */
const inTurn = (...replies: ReadonlyArray<Reply>): Reply => {
  let asked = 0
  return (given) => Stream.suspend(() => (replies[asked++] ?? replies.at(-1) ?? says(""))(given))
}

const broken = (reason: ModelError["reason"]) => new ModelError({ reason, message: "no", retryable: false })

const stored = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const runs = yield* sql<{ readonly run: string }>`
    select coalesce(cost_nano::text, 'unknown') || '+' || unpriced_calls as run from agent_runs order by started_at, id`
  const models = yield* sql<{ readonly model: string }>`
    select model || ' ' || calls || ' ' || cost_nano || '+' || unpriced_calls || ' '
      || input_tokens || '/' || cached_input_tokens || '/' || output_tokens as model from model_usage order by model`
  return { runs: runs.map(({ run }) => run), models: models.map(({ model }) => model) }
})

eachEngineLive("A turn's cost", (it) => {
  it.scoped("is the sum of its calls, stored with the run and by model", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const chat = yield* ChatTurn
      const before = yield* counterValue("spoke_turn_cost_usd_total")
      const { reply } = yield* Script
      yield* Ref.set(
        reply,
        inTurn(says("no object", bill("one/b", 700)), says('{"a":"x"}', bill("one/a", 40)))
      )
      const responseSchema = { type: "object", properties: { a: { type: "string" } }, required: ["a"] }
      yield* chat.complete(scope, request({ responseSchema }))
      expect(yield* stored).toEqual({
        runs: ["740+0"],
        models: ["one/a 1 40+0 11/2/3", "one/b 1 700+0 11/2/3"]
      })
      yield* Ref.set(reply, says("Hello", bill("one/a", 2)))
      yield* chat.complete(scope, request({ persist: false }))
      expect((yield* stored).models[0]).toBe("one/a 2 42+0 22/4/6")
      expect((yield* counterValue("spoke_turn_cost_usd_total")) - before).toBeCloseTo(742e-9, 12)
    }).pipe(onFreshData(turnLayer()))
  )

  it.scoped("is unknown, not 0, for a model without a price and for an interrupted call", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const chat = yield* ChatTurn
      const before = yield* counterValue("spoke_turn_unpriced_calls_total")
      const { reply } = yield* Script
      yield* Ref.set(reply, says("Hello"))
      yield* chat.complete(scope, request())
      const half: ModelPart = { _tag: "TextDelta", delta: "Half" }
      yield* Ref.set(reply, () => Stream.concat(Stream.make(half), Stream.fail(broken("Truncated"))))
      yield* Effect.flip(chat.complete(scope, request()))
      yield* Ref.set(reply, () => Stream.fail(broken("TimedOut")))
      yield* Effect.flip(chat.complete(scope, request()))
      expect(yield* stored).toEqual({
        runs: ["unknown+1", "unknown+1", "unknown+1"],
        models: ["scripted 3 0+3 11/0/3"]
      })
      expect(yield* counterValue("spoke_turn_unpriced_calls_total")).toBe(before + 3)
    }).pipe(onFreshData(turnLayer()))
  )

  it.scoped("is 0 for a refused call, and earlier calls still count", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const chat = yield* ChatTurn
      const { reply } = yield* Script
      for (const reason of ["Rejected", "RateLimited", "Unreachable"] as const) {
        yield* Ref.set(reply, () => Stream.fail(broken(reason)))
        yield* Effect.flip(chat.complete(scope, request()))
      }
      expect(yield* stored).toEqual({ runs: ["0+0", "0+0", "0+0"], models: [] })
      const refused: Reply = () => Stream.fail(broken("Rejected"))
      yield* Ref.set(reply, inTurn(says("no object", bill("one/a", 700)), refused))
      yield* Effect.flip(chat.complete(scope, request({ responseSchema: { type: "object" } })))
      expect((yield* stored).runs.at(-1)).toBe("700+0")
    }).pipe(onFreshData(turnLayer()))
  )
})
