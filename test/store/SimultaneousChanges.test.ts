/** Changes that exclude each other: the second begins before the first has committed. */
import { expect } from "@effect/vitest"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { Domain } from "../../src/domain/accounts/SingleSignOn.ts"
import type { AgentScope } from "../../src/domain/accounts/Access.ts"
import { newCorrectionId } from "../../src/domain/agents/Correction.ts"
import { newExperimentId } from "../../src/domain/agents/Experiment.ts"
import { newTestCaseId } from "../../src/domain/agents/TestCase.ts"
import { newBudgetId } from "../../src/domain/billing/Budget.ts"
import { SingleSignOnStore } from "../../src/store/accounts/SingleSignOn.ts"
import { newId } from "../../src/domain/Ids.ts"
import { CorrectionStore } from "../../src/store/agents/Corrections.ts"
import { ExperimentStore, type NewQuestion } from "../../src/store/agents/Experiments.ts"
import { TestCaseStore } from "../../src/store/agents/TestCases.ts"
import { BudgetStore } from "../../src/store/billing/Budgets.ts"
import { defaultSettings } from "../../src/usecases/agents/Agents.ts"
import * as Fixtures from "../Fixtures.ts"
import { eachEngineLive, reset } from "../TestDatabase.ts"

const Live = Layer.mergeAll(
  SingleSignOnStore.Default,
  BudgetStore.Default,
  CorrectionStore.Default,
  ExperimentStore.Default,
  TestCaseStore.Default
)

/** A turn of the agent, which ends with the conversation. */
const turnOf = ({ agentId, tenantId }: AgentScope) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const runId = yield* newId.run
    yield* sql`insert into end_users (tenant_id, id) values (${tenantId}, 'usr_1')`
    yield* sql`
      insert into conversations (tenant_id, id, agent_id, end_user_id, channel)
      values (${tenantId}, 'cnv_1', ${agentId}, 'usr_1', 'api')`
    yield* sql`
      insert into agent_runs (
        tenant_id, id, agent_id, conversation_id, status, user_message, user_message_id, instance_id, period_start
      ) values (${tenantId}, ${runId}, ${agentId}, 'cnv_1', 'complete', 'Why?', 'msg_1', 'instance', now())`
    return { runId, erase: sql`delete from end_users where tenant_id = ${tenantId} and id = 'usr_1'` }
  })

/** Begins `second` when `first` has run, and commits `first` a little later. */
const overlapping = <A, B, E, F>(first: Effect.Effect<A, E>, second: Effect.Effect<B, F>) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const hasRun = yield* Deferred.make<void>()
    const uncommitted = sql.withTransaction(
      Effect.zipLeft(first, Effect.zipRight(Deferred.succeed(hasRun, undefined), Effect.sleep("100 millis")))
    )
    return yield* Effect.all([uncommitted, Effect.zipRight(Deferred.await(hasRun), second)], {
      concurrency: "unbounded"
    })
  })

eachEngineLive("Simultaneous changes", (it) => {
  it.effect("confirm a domain for one tenant, and the other one is told that it is taken", () =>
    Effect.gen(function* () {
      yield* reset
      const sql = yield* SqlClient.SqlClient
      const { confirm } = yield* SingleSignOnStore
      const one = yield* Fixtures.agent()
      const two = yield* Fixtures.agent()
      const domain = Schema.decodeSync(Domain)("acme.example")
      for (const { tenantId } of [one, two])
        yield* sql`insert into sso_domains (tenant_id, domain) values (${tenantId}, ${domain})`
      expect(yield* overlapping(confirm(one, domain, true), confirm(two, domain, true))).toEqual([
        "done",
        "taken"
      ])
    }).pipe(Effect.provide(Live))
  )

  it.effect(
    "keep nothing of an erased turn in a correction or a test case, and tell that it is missing",
    () =>
      Effect.gen(function* () {
        yield* reset
        const sql = yield* SqlClient.SqlClient
        const scope = yield* Fixtures.agent()
        const { tenantId } = scope
        const corrections = yield* CorrectionStore
        const cases = yield* TestCaseStore
        const { erase, runId } = yield* turnOf(scope)
        const correction = {
          id: yield* newCorrectionId,
          runId,
          replyRunId: null,
          runIds: [runId],
          question: "Why?",
          answer: "",
          origin: "written",
          author: { type: "user", id: "mbr_1" }
        } as const
        const fields = { question: "Why?", expectSources: [], expectFacts: [] }
        const testCase = { id: yield* newTestCaseId, origin: "run", runId, fields } as const
        const [, outcomes] = yield* overlapping(
          erase,
          Effect.all([corrections.insert(scope, correction, 10), cases.insert(scope, [testCase])], {
            concurrency: "unbounded"
          })
        )
        expect(outcomes).toEqual(["missing", "missing"])
        const rows = yield* sql`
        select id from corrections where tenant_id = ${tenantId}
        union all select id from test_cases where tenant_id = ${tenantId}`
        expect(rows).toEqual([])
      }).pipe(Effect.provide(Live))
  )

  it.effect("start no experiment with what is deleted, and tell that it is missing", () =>
    Effect.gen(function* () {
      yield* reset
      const sql = yield* SqlClient.SqlClient
      const scope = yield* Fixtures.agent()
      const { agentId, tenantId } = scope
      const store = yield* ExperimentStore
      const cases = yield* TestCaseStore
      const { erase, runId } = yield* turnOf(scope)
      const asked = { question: "Why?", expectSources: [], expectFacts: [] }
      const written = { id: yield* newTestCaseId, origin: "written", runId: null, fields: asked } as const
      yield* cases.insert(scope, [written])
      const started = (question: NewQuestion) =>
        Effect.flatMap(newExperimentId, (id) =>
          sql.withTransaction(
            store.insert(scope, {
              id,
              version: null,
              settings: defaultSettings({ name: "Support" }),
              settingsHash: "00",
              casesHash: null,
              baselineId: null,
              maxTokens: 1,
              author: null,
              curated: null,
              questions: [question]
            })
          )
        )
      expect(yield* overlapping(erase, started({ caseId: null, runId, asked }))).toEqual([[], "missing"])
      expect(
        yield* overlapping(
          cases.remove(scope, written.id),
          started({ caseId: written.id, runId: null, asked })
        )
      ).toEqual([true, "missing"])
      expect(
        yield* overlapping(
          sql`delete from agents where tenant_id = ${tenantId} and id = ${agentId}`,
          started({ caseId: null, runId: null, asked })
        )
      ).toEqual([[], "missing"])
      expect(yield* sql`select id from experiments where tenant_id = ${tenantId}`).toEqual([])
    }).pipe(Effect.provide(Live))
  )

  it.effect("give a deleted agent no budget, and tell that it is missing", () =>
    Effect.gen(function* () {
      yield* reset
      const sql = yield* SqlClient.SqlClient
      const { insert } = yield* BudgetStore
      const { agentId, tenantId } = yield* Fixtures.agent()
      const id = yield* newBudgetId
      const [, outcome] = yield* overlapping(
        sql`delete from agents where tenant_id = ${tenantId} and id = ${agentId}`,
        insert({ tenantId }, id, { agentId, limitNanoUsd: 1, period: "day" })
      )
      expect(outcome).toBe("missing")
    }).pipe(Effect.provide(Live))
  )
})
