/** Which model a trace names where another provider answered than the agent's. */
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as Stream from "effect/Stream"
import { layerSql } from "../../../src/capabilities/AuditLog/Sql.ts"
import type { ModelPart } from "../../../src/capabilities/ModelRuntime.ts"
import { RunId } from "../../../src/domain/Ids.ts"
import { AgentRuns } from "../../../src/usecases/chat/AgentRuns.ts"
import { ChatTurn } from "../../../src/usecases/chat/ChatTurn.ts"
import * as Fixtures from "../../Fixtures.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { request, says, Script, turnLayer } from "./TurnHarness.ts"

const processLayer = AgentRuns.Default.pipe(Layer.provideMerge(turnLayer()), Layer.provideMerge(layerSql))

eachEngineLive("A run's trace", (it) => {
  it.scoped("names the model that answered: a fallback, or the agent's own", () =>
    Effect.gen(function* () {
      const key = yield* Fixtures.key(yield* Fixtures.agent())
      const chat = yield* ChatTurn
      const runs = yield* AgentRuns
      const { reply } = yield* Script
      const modelOf = Effect.gen(function* () {
        const turn = yield* chat.start(key, request())
        yield* Stream.runDrain(turn.parts)
        const { events } = yield* runs.read(
          key,
          turn.runId ?? RunId.make("none"),
          { limit: 20, after: 0 },
          "req_1"
        )
        return events.find(({ type }) => type === "model.completed")?.payload?.["model"]
      })
      const instead: ModelPart = { _tag: "Answering", model: "two/spare" }
      yield* Ref.set(reply, (sent) => Stream.concat(Stream.make(instead), says("Hello")(sent)))
      expect(yield* modelOf).toBe("two/spare")
      yield* Ref.set(reply, says("Hello"))
      expect(yield* modelOf).toBe("scripted")
    }).pipe(Effect.provide(processLayer), (test) => Effect.zipRight(reset, test))
  )
})
