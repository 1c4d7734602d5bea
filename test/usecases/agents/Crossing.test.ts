/** Changes that wait for the deletion of their agent, which waits for them. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { layerMemory } from "../../../src/capabilities/ArtifactStore.ts"
import { layerTable } from "../../../src/capabilities/JobQueue/Table.ts"
import { ModelRuntime } from "../../../src/capabilities/ModelRuntime.ts"
import { VectorSearch } from "../../../src/capabilities/VectorSearch.ts"
import type { AgentScope } from "../../../src/domain/accounts/Access.ts"
import { CorrectionId } from "../../../src/domain/agents/Correction.ts"
import { ToolDefinition, ToolId } from "../../../src/domain/agents/Tool.ts"
import { ChannelId } from "../../../src/domain/Ids.ts"
import { AgentStore } from "../../../src/store/agents/Agents.ts"
import { ChannelStore } from "../../../src/store/channels/Channels.ts"
import { CorrectionStore } from "../../../src/store/agents/Corrections.ts"
import { PublishThresholdStore } from "../../../src/store/agents/PublishThresholds.ts"
import { TestCaseStore } from "../../../src/store/agents/TestCases.ts"
import { ToolStore } from "../../../src/store/agents/Tools.ts"
import { EntitlementStore } from "../../../src/store/billing/Entitlements.ts"
import { IdempotencyKeyStore } from "../../../src/store/IdempotencyKeys.ts"
import { ArtifactRows } from "../../../src/store/knowledge/ArtifactRows.ts"
import { IngestionJobStore } from "../../../src/store/knowledge/IngestionJobs.ts"
import { SourceStore } from "../../../src/store/knowledge/Sources.ts"
import { Corrections } from "../../../src/usecases/agents/Corrections.ts"
import { Experiments } from "../../../src/usecases/agents/Experiments.ts"
import { TestCases } from "../../../src/usecases/agents/TestCases.ts"
import { OtherModelCalls } from "../../../src/usecases/billing/OtherModelCalls.ts"
import { Insights } from "../../../src/usecases/conversations/Insights.ts"
import { Artifacts } from "../../../src/usecases/knowledge/Artifacts.ts"
import { Sources } from "../../../src/usecases/knowledge/Sources.ts"
import { crossing } from "../../store/Crossing.ts"
import * as Fixtures from "../../Fixtures.ts"
import { reset, serverLive } from "../../TestDatabase.ts"
import { layerSettings } from "../knowledge/ConnectorLayers.ts"

const live = Corrections.Default.pipe(
  Layer.provide([
    TestCases.Default,
    CorrectionStore.Default,
    Layer.mock(Experiments, { _tag: "usecases/agents/Experiments" }),
    Layer.mock(Insights, { _tag: "usecases/conversations/Insights" }),
    Layer.mock(ModelRuntime, {
      readsPassages: true,
      defaultModel: "",
      contextWindow: 0,
      acceptsImages: false,
      readable: () => []
    }),
    Layer.mock(VectorSearch, {}),
    Layer.mock(OtherModelCalls, {
      _tag: "usecases/billing/OtherModelCalls",
      model: () => Effect.runSync(Effect.dieMessage("Unused."))
    })
  ]),
  Layer.provideMerge(Sources.Default.pipe(Layer.provide([layerSettings(), Artifacts.Default]))),
  Layer.provideMerge(
    Layer.mergeAll(
      AgentStore.Default,
      ChannelStore.Default,
      PublishThresholdStore.Default,
      ToolStore.Default,
      ArtifactRows.Default,
      EntitlementStore.Default,
      IdempotencyKeyStore.Default,
      IngestionJobStore.Default,
      SourceStore.Default,
      TestCaseStore.Default,
      layerMemory,
      layerTable
    )
  )
)

serverLive("Beside the deletion of its agent", (it) => {
  it.effect("a correction is approved by a second attempt after a deadlock", () =>
    Effect.gen(function* () {
      yield* reset
      const sql = yield* SqlClient.SqlClient
      const scope = yield* Fixtures.agent()
      const id = CorrectionId.make("cor_1")
      yield* sql`
        insert into corrections (tenant_id, id, agent_id, question, answer, origin, run_ids)
        values (${scope.tenantId}, ${id}, ${scope.agentId}, 'When?', 'At nine.', 'written', '[]')`
      const approved = yield* crossing(
        {
          first: sql`select from agents where tenant_id = ${scope.tenantId} for update`,
          second: sql`select from corrections where tenant_id = ${scope.tenantId} for update`,
          waiting: "for key share"
        },
        Effect.flatMap(Corrections, ({ approve }) => approve(scope, id, { force: true }))
      )
      expect(approved.status).toBe("approved")
    }).pipe(Effect.provide(live))
  )

  it.effect("a source, tool, channel or threshold that is added is refused, once the agent is deleted", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const [sources, tools] = [yield* Sources, yield* ToolStore]
      const [channels, thresholds] = [yield* ChannelStore, yield* PublishThresholdStore]
      const afterDeletion = <A, E>(add: (scope: AgentScope) => Effect.Effect<A, E>) =>
        Effect.gen(function* () {
          yield* reset
          const scope = yield* Fixtures.agent()
          return yield* crossing(
            {
              first: sql`delete from agents where tenant_id = ${scope.tenantId}`,
              second: sql`select 1`,
              waiting: "for key share"
            },
            add(scope)
          )
        })
      const source = { type: "TEXT", name: "Hours", config: { text: "We open at nine." } } as const
      const definition = Schema.decodeSync(ToolDefinition)({})
      const channel = {
        id: ChannelId.make("chn_1"),
        channel: "telegram" as const,
        externalId: "1",
        accessToken: "sealed",
        secrets: null,
        profile: {},
        sourceScope: null,
        active: true
      }
      const refused = yield* Effect.flip(afterDeletion((scope) => sources.add(scope, source)))
      expect(refused._tag).toBe("NOT_FOUND")
      expect(
        yield* afterDeletion((scope) =>
          tools.insert(scope, { id: ToolId.make("tol_1"), name: "find", definition, secret: null })
        )
      ).toEqual(Option.none())
      expect(yield* afterDeletion((scope) => channels.insert(scope, channel))).toEqual(Option.none())
      expect(
        yield* afterDeletion((scope) => thresholds.set(scope, { minPass: 1, noRegression: true }))
      ).toEqual(Option.none())
    }).pipe(Effect.provide(live))
  )
})
