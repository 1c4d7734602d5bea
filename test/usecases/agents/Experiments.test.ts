/** Experiments: asked by jobs, kept case by case, compared with each other, and what a publish is refused for. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect, expectTypeOf, it as test } from "vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { AuditLog } from "../../../src/capabilities/AuditLog.ts"
import type { JobQueue, QueueJob } from "../../../src/capabilities/JobQueue.ts"
import * as QueueTable from "../../../src/capabilities/JobQueue/Table.ts"
import { layerScrypt } from "../../../src/capabilities/Credentials/Scrypt.ts"
import { layerSql } from "../../../src/capabilities/KeyStore/Sql.ts"
import type { Mailer } from "../../../src/capabilities/Mailer.ts"
import type { ModelPart } from "../../../src/capabilities/ModelRuntime.ts"
import type { OutboundHttp } from "../../../src/capabilities/OutboundHttp.ts"
import type { Realtime } from "../../../src/capabilities/Realtime.ts"
import type { ToolSources } from "../../../src/capabilities/ToolSources.ts"
import type { AgentScope } from "../../../src/domain/accounts/Access.ts"
import { type ExperimentId, StartExperiment } from "../../../src/domain/agents/Experiment.ts"
import { TestCaseFields } from "../../../src/domain/agents/TestCase.ts"
import { JsonObject } from "../../../src/domain/Text.ts"
import { QueueJobId } from "../../../src/domain/Ids.ts"
import { AgentStore } from "../../../src/store/agents/Agents.ts"
import { AgentVersionStore } from "../../../src/store/agents/AgentVersions.ts"
import { ExperimentStore } from "../../../src/store/agents/Experiments.ts"
import { PublishThresholdStore } from "../../../src/store/agents/PublishThresholds.ts"
import { TestCaseStore } from "../../../src/store/agents/TestCases.ts"
import { RecordedRunStore } from "../../../src/store/chat/RecordedRuns.ts"
import type { Turns } from "../../../src/store/chat/Turns.ts"
import { Agents } from "../../../src/usecases/agents/Agents.ts"
import { AgentVersions } from "../../../src/usecases/agents/AgentVersions.ts"
import { CriterionJudge } from "../../../src/usecases/agents/CriterionJudge.ts"
import { Experiments } from "../../../src/usecases/agents/Experiments.ts"
import { ExperimentWork } from "../../../src/usecases/agents/ExperimentWork.ts"
import { PublishGate } from "../../../src/usecases/agents/PublishGate.ts"
import { TestCases } from "../../../src/usecases/agents/TestCases.ts"
import { ChatTurn } from "../../../src/usecases/chat/ChatTurn.ts"
import { Replays } from "../../../src/usecases/chat/replay/Replays.ts"
import type { ChannelSender } from "../../../src/usecases/channels/ChannelSender.ts"
import type { ChatTools } from "../../../src/usecases/chat/tools/Tools.ts"
import * as Fixtures from "../../Fixtures.ts"
import { layerArtifacts } from "../../MemoryArtifacts.ts"
import { layerNoRevocations } from "../../NoRevocations.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { chunk, type Reply, request, says, Script, turnLayer } from "../chat/TurnHarness.ts"

const live = Layer.mergeAll(
  Experiments.Default,
  ExperimentWork.Default,
  Agents.Default.pipe(Layer.provide([layerArtifacts, layerNoRevocations])),
  AgentVersions.Default,
  PublishGate.Default,
  TestCases.Default
).pipe(
  Layer.provideMerge(Layer.merge(CriterionJudge.Default, Replays.Default)),
  Layer.provideMerge(turnLayer()),
  Layer.provideMerge(
    Layer.mergeAll(
      AgentStore.Default,
      AgentVersionStore.Default,
      ExperimentStore.Default,
      PublishThresholdStore.Default,
      RecordedRunStore.Default,
      TestCaseStore.Default,
      QueueTable.layerTable,
      layerSql.pipe(Layer.provide(layerScrypt({ log2N: 10, r: 8, p: 1 })))
    )
  )
)

const onFreshData = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.zipRight(reset, Effect.provide(effect, live))

const startRequest = Schema.decodeUnknownSync(StartExperiment)
const caseOf = Schema.decodeUnknownSync(TestCaseFields)

const addCases = (scope: AgentScope, ...given: ReadonlyArray<unknown>) =>
  Effect.flatMap(TestCases, (cases) =>
    Effect.forEach(given, (one) => cases.create(scope, scope.agentId, caseOf(one)))
  )

const start = (scope: AgentScope, body: unknown = {}) =>
  Effect.flatMap(Experiments, (experiments) =>
    experiments.start(scope, scope.agentId, startRequest(body), null)
  )

const Jobs = Schema.Array(Schema.Struct({ id: QueueJobId, payload: JsonObject }))

/** The jobs that wait, oldest first, as a worker gets them; they count as done. */
const jobs = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* Schema.decodeUnknown(Jobs)(
    yield* sql`select id, payload from queue_jobs where queue = 'experiments' and state = 'waiting' order by seq`
  )
  yield* sql`update queue_jobs set state = 'completed' where queue = 'experiments'`
  return rows.map((row): QueueJob => ({ ...row, queue: "experiments", attempt: 1, lastAttempt: false }))
})

const work = Effect.flatMap(jobs, (waiting) =>
  Effect.flatMap(ExperimentWork, ({ process }) => Effect.forEach(waiting, process, { discard: true }))
)

const ran = (scope: AgentScope, body: unknown = {}) =>
  Effect.gen(function* () {
    const { id } = yield* start(scope, body)
    yield* work
    return yield* (yield* Experiments).report(scope, id)
  })

const resultsOf = (scope: AgentScope, id: ExperimentId) =>
  Effect.flatMap(Experiments, (experiments) => experiments.results(scope, id, { after: -1, limit: 100 }))

/** Everything that is stored of turns, people, usage and tools, but calls of models, which are counted. */
const untouched = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const tables = yield* sql<{ readonly name: string }>`
    select quote_ident(tablename) as name from pg_tables
    where schemaname = 'public' and tablename not in ('instances', 'queue_jobs', 'model_usage', 'other_model_usage')
      and tablename not like 'experiment%' order by 1`
  return yield* Effect.forEach(tables, ({ name }) =>
    sql.unsafe<{ readonly text: string }>(`select to_jsonb(t)::text as text from ${name} t order by 1`)
  )
})

const steps = {
  question: "How do I reset it?",
  expectSources: ["Handbook"],
  expectFacts: ["hold the button"]
}
const both = { ...steps, expectFacts: ["pull the plug", "hold the button"] }

/** Follows the instructions: both steps, unless they ask for the first alone. The model `worse` knows nothing of it. */
const follows: Reply = (asked) => {
  const isShort = JSON.stringify(asked.prompt).includes("the first step alone")
  if (asked.model === "worse") return says("It works by itself.")(asked)
  if (asked.passages.length === 0) return says("I did not find that.")(asked)
  return says(isShort ? "Pull the plug. [1]" : "Pull the plug, hold the button. [1]")(asked)
}

const eight = (expected: object) =>
  Array.from({ length: 8 }, (_, place) => ({ ...expected, question: `How do I reset it, way ${place}?` }))

/** With its first version, which the fixture of agents leaves out. */
const agent = Effect.gen(function* () {
  const caller = yield* Fixtures.agent()
  const { id } = yield* (yield* Agents).create(caller, { name: "Helper" })
  return { ...caller, agentId: id }
})

const prepared = (...cases: ReadonlyArray<unknown>) =>
  Effect.gen(function* () {
    const scope = yield* agent
    const script = yield* Script
    yield* Ref.set(script.chunks, [chunk(1)])
    yield* Ref.set(script.reply, follows)
    const made = yield* addCases(scope, ...cases)
    return { scope, script, made }
  })

const draft = (scope: AgentScope, instructions: string) =>
  Effect.flatMap(Agents, (agents) => agents.patch(scope, scope.agentId, { instructions, publish: false }))

const publish = (scope: AgentScope, version: number, force = false) =>
  Effect.flatMap(AgentVersions, (versions) => versions.publish(scope, scope.agentId, version, force))

const threshold = (scope: AgentScope, minPass: number | null, noRegression: boolean) =>
  Effect.flatMap(PublishGate, (gate) => gate.set(scope, scope.agentId, { minPass, noRegression }))

eachEngineLive("An experiment", (it) => {
  it.scoped("stores the result of each case, and stores no turn", () =>
    Effect.gen(function* () {
      const { made, scope } = yield* prepared(both, { question: "Who won?", expectRefusal: true })
      const before = yield* untouched
      const started = yield* start(scope, { maxTokens: 500 })
      expect(started).toMatchObject({ status: "queued", kind: "cases", total: 2, asked: 0, version: 1 })
      yield* work
      const { experiment, report } = yield* (yield* Experiments).report(scope, started.id)
      expect(experiment).toMatchObject({
        status: "complete",
        reason: null,
        total: 2,
        asked: 2,
        passed: 1,
        inputTokens: 22,
        outputTokens: 2
      })
      expect(report).toMatchObject({
        failed: 1,
        errors: 0,
        figures: { passRate: { value: 0.5, of: 2 }, sourceCited: { value: 1, of: 1 }, refusal: { value: 0 } },
        comparison: null
      })
      const { next, rows } = yield* resultsOf(scope, started.id)
      expect(next).toBe(null)
      expect(rows).toMatchObject([
        {
          position: 0,
          caseId: made[0]?.id,
          question: both.question,
          result: { passed: true, facts: true, reply: "Pull the plug, hold the button. [1]", outcome: null },
          baseline: null
        },
        { position: 1, result: { passed: false, problems: ["answered, and was expected to refuse"] } }
      ])
      expect(rows[0]?.result?.citations).toEqual([
        { sourceName: "Handbook", title: "Chapter 1", url: "https://example.test/1" }
      ])
      expect(rows[0]?.result?.latencyMs).toBeGreaterThanOrEqual(0)
      expect(yield* untouched).toEqual(before)
    }).pipe(onFreshData)
  )

  it.scoped("continues after the last stored case when its worker was killed, and asks no case twice", () =>
    Effect.gen(function* () {
      const { scope, script } = yield* prepared(...eight(both))
      const blocked = yield* Deferred.make<void>()
      const asked = yield* Ref.make(0)
      yield* Ref.set(script.reply, (from) =>
        Stream.unwrap(
          Effect.gen(function* () {
            const count = yield* Ref.updateAndGet(asked, (before) => before + 1)
            if (count > 4) yield* Effect.zipRight(Deferred.succeed(blocked, undefined), Effect.never)
            return follows(from)
          })
        )
      )
      const { id } = yield* start(scope)
      const [job] = yield* jobs
      if (job === undefined) return expect(job).toBeDefined()
      const { process } = yield* ExperimentWork
      const worker = yield* Effect.fork(process(job))
      yield* Deferred.await(blocked)
      yield* Fiber.interrupt(worker)
      const { find } = yield* ExperimentStore
      expect(Option.getOrThrow(yield* find(scope, id))).toMatchObject({ status: "running", asked: 4 })
      yield* Ref.set(script.requests, [])
      yield* Ref.set(script.reply, follows)
      yield* process(job)
      expect(Option.getOrThrow(yield* find(scope, id))).toMatchObject({
        status: "complete",
        asked: 8,
        passed: 8
      })
      expect(yield* Ref.get(script.requests)).toHaveLength(4)
      // Once more, as after a worker that died before it could say that it was done.
      yield* process(job)
      expect(yield* Ref.get(script.requests)).toHaveLength(4)
    }).pipe(onFreshData)
  )

  it.scoped("stops when it is cancelled or its tokens are used up, and keeps the results so far", () =>
    Effect.gen(function* () {
      const { scope, script } = yield* prepared(...eight(both))
      const spent = yield* ran(scope, { maxTokens: 30 })
      expect(spent.experiment).toMatchObject({ status: "failed", asked: 4 })
      expect(spent.experiment.reason).toMatch(/token budget/u)
      const experiments = yield* Experiments
      const { id } = yield* start(scope)
      yield* Ref.set(script.reply, (asked) =>
        Stream.unwrap(Effect.as(Effect.ignore(experiments.cancel(scope, id)), follows(asked)))
      )
      yield* work
      const { experiment } = yield* experiments.report(scope, id)
      expect(experiment).toMatchObject({ status: "cancelled", asked: 0 })
      expect(yield* Effect.exit(experiments.cancel(scope, id))).toSatisfy(Exit.isFailure)
      yield* experiments.remove(scope, id)
      expect((yield* experiments.list(scope, scope.agentId, { limit: 9 })).rows).toMatchObject([
        { id: spent.experiment.id }
      ])
    }).pipe(onFreshData)
  )

  it.scoped("counts the tokens of failed replies toward its token limit", () =>
    Effect.gen(function* () {
      const responseSchema = { type: "object", properties: { a: { type: "integer" } }, required: ["a"] }
      const { scope, script } = yield* prepared(...eight({ responseSchema }))
      yield* Ref.set(script.reply, says("{}"))
      const unfit = yield* ran(scope, { maxTokens: 30 })
      expect(unfit.experiment).toMatchObject({
        status: "failed",
        asked: 2,
        inputTokens: 44,
        outputTokens: 4
      })
      expect(unfit.report.tokens).toEqual({ input: 44, output: 4 })
      const call: ModelPart = { _tag: "ToolCall", id: "call_1", name: "refund", input: {}, rawInput: "" }
      const finish = { _tag: "Finish", reason: "tool-calls", inputTokens: 20, outputTokens: 3 } as const
      yield* Ref.set(script.reply, () => Stream.fromIterable([call, finish]))
      const diverged = yield* ran(scope, { maxTokens: 30 })
      expect(diverged.experiment).toMatchObject({
        status: "failed",
        asked: 2,
        inputTokens: 40,
        outputTokens: 6
      })
    }).pipe(onFreshData)
  )

  it.scoped("fails when its last attempt ends unexpectedly, and is retried before", () =>
    Effect.gen(function* () {
      const { scope, script } = yield* prepared(both)
      const { id } = yield* start(scope)
      yield* Ref.set(script.reply, () => Stream.die("broken"))
      const { process } = yield* ExperimentWork
      const [job] = yield* jobs
      if (job === undefined) return expect(job).toBeDefined()
      const status = Effect.map((yield* Experiments).report(scope, id), ({ experiment }) => experiment.status)
      yield* Effect.exit(process(job))
      expect(yield* status).toBe("running")
      expect(Exit.isFailure(yield* Effect.exit(process({ ...job, attempt: 10, lastAttempt: true })))).toBe(
        true
      )
      expect(yield* status).toBe("failed")
    }).pipe(onFreshData)
  )

  it.scoped("is listed with its sums, without reading its results", () =>
    Effect.gen(function* () {
      const { scope } = yield* prepared(both, { question: "Who won?", expectRefusal: true })
      yield* ran(scope)
      const sql = yield* SqlClient.SqlClient
      const { list } = yield* Experiments
      const listed = yield* sql`alter table experiment_results rename column result to unread`.pipe(
        Effect.zipRight(list(scope, scope.agentId, { limit: 9 })),
        // Rolls back.
        Effect.flatMap(({ rows }) => Effect.fail(rows)),
        sql.withTransaction,
        Effect.flip
      )
      expect(listed).toMatchObject([{ total: 2, asked: 2, passed: 1, inputTokens: 22, outputTokens: 2 }])
    }).pipe(onFreshData)
  )

  it.scoped("is compared with an experiment of the same kind, by the cases that both have", () =>
    Effect.gen(function* () {
      const { scope } = yield* prepared(both)
      const { experiment } = yield* ran(scope)
      const { runId } = yield* (yield* ChatTurn).complete(
        scope,
        request({ message: both.question, includeRealtimeToken: false })
      )
      expect(yield* Effect.flip(start(scope, { runIds: [runId], baseline: experiment.id }))).toMatchObject({
        _tag: "VALIDATION_ERROR",
        details: { issues: [{ path: ["baseline"] }] }
      })
      const { list } = yield* Experiments
      expect((yield* list(scope, scope.agentId, { limit: 9 })).rows).toHaveLength(1)
      const { report } = yield* ran(scope, { cases: [both, steps], baseline: experiment.id })
      expect(report.comparison).toMatchObject({ compared: 1 })
    }).pipe(onFreshData)
  )

  it.scoped("compares cases with the same question with their own results, in any order", () =>
    Effect.gen(function* () {
      const { scope } = yield* prepared()
      const passes = { ...both, note: "The first." }
      const fails = { ...both, expectFacts: ["call us"] }
      const before = yield* ran(scope, { cases: [passes, fails] })
      const { experiment, report } = yield* ran(scope, {
        cases: [fails, both],
        baseline: before.experiment.id
      })
      expect(report.comparison).toMatchObject({ compared: 2, broken: [], mended: [] })
      const { rows } = yield* resultsOf(scope, experiment.id)
      expect(rows.map(({ baseline, result }) => [baseline?.passed, result?.passed])).toEqual([
        [false, false],
        [true, true]
      ])
    }).pipe(onFreshData)
  )

  it.scoped("of a draft may use the tools of the process, as the agent may", () =>
    Effect.gen(function* () {
      const { scope } = yield* prepared(both)
      expect(yield* Effect.flip(start(scope, { settings: { tools: ["nowhere"] } }))).toMatchObject({
        _tag: "VALIDATION_ERROR",
        details: { issues: [{ path: ["settings", "tools", 0] }] }
      })
    }).pipe(onFreshData)
  )

  it.scoped("needs the tenant's own agent and at least one case, and at most ten wait", () =>
    Effect.gen(function* () {
      const { scope } = yield* prepared()
      const other = yield* agent
      expect(yield* Effect.flip(start(scope))).toMatchObject({ _tag: "VALIDATION_ERROR" })
      yield* addCases(scope, both)
      expect(yield* Effect.flip(start({ ...scope, tenantId: other.tenantId }))).toMatchObject({
        _tag: "NOT_FOUND"
      })
      expect(yield* Effect.flip(start(scope, { version: 9 }))).toMatchObject({ _tag: "NOT_FOUND" })
      expect(yield* Effect.flip(start(scope, { runIds: ["run_9"] }))).toMatchObject({ _tag: "NOT_FOUND" })
      yield* Effect.forEach(Array.from({ length: 5 }), () => start(scope, { baselineVersion: 1 }))
      expect(yield* Effect.flip(start(scope))).toMatchObject({ _tag: "CONFLICT" })
      const [first] = (yield* (yield* Experiments).list(scope, scope.agentId, { limit: 1 })).rows
      if (first === undefined) return expect(first).toBeDefined()
      expect(yield* Effect.flip((yield* Experiments).report(other, first.id))).toMatchObject({
        _tag: "NOT_FOUND"
      })
    }).pipe(onFreshData)
  )

  it.scoped("of stored turns reports which get the same answer", () =>
    Effect.gen(function* () {
      const { scope, script } = yield* prepared()
      const chat = yield* ChatTurn
      const asked = yield* Effect.forEach(["How do I reset it?", "And then?"], (message) =>
        chat.complete(scope, request({ message, includeRealtimeToken: false }))
      )
      const runIds = asked.map(({ runId }) => runId)
      const same = yield* ran(scope, { runIds })
      expect(same.experiment).toMatchObject({ kind: "turns", total: 2, passed: 2 })
      yield* Ref.set(script.reply, says("Something else."))
      const other = yield* ran(scope, { runIds, baseline: same.experiment.id })
      expect(other.experiment).toMatchObject({ passed: 0 })
      const { rows } = yield* resultsOf(scope, other.experiment.id)
      expect(rows[0]).toMatchObject({
        runId: runIds[0],
        result: {
          outcome: "changed",
          before: "Pull the plug, hold the button. [1]",
          reply: "Something else."
        },
        baseline: { outcome: "same" }
      })
    }).pipe(onFreshData)
  )

  it.scoped(
    "calls no tool: a case of a turn uses the recorded answers, and any other call fails the case",
    () =>
      Effect.gen(function* () {
        const { scope, script } = yield* prepared(both)
        const call: ModelPart = { _tag: "ToolCall", id: "call_1", name: "refund", input: {}, rawInput: "" }
        const finish = { _tag: "Finish", reason: "tool-calls", inputTokens: 1, outputTokens: 1 } as const
        yield* Ref.set(script.reply, () => Stream.fromIterable([call, finish]))
        const { experiment } = yield* ran(scope)
        const { rows } = yield* resultsOf(scope, experiment.id)
        expect(rows[0]?.result).toMatchObject({ passed: false, error: expect.stringMatching(/refund/u) })
      }).pipe(onFreshData)
  )

  it.scoped(
    "uses the response schema of a case: a reply that does not match fails the case, and the run continues",
    () =>
      Effect.gen(function* () {
        // The longer name first: jsonb would store it last.
        const properties = { reason: { type: "string" }, a: { type: "integer" } }
        const responseSchema = { type: "object", properties, required: ["reason", "a"] }
        const { scope, script } = yield* prepared(
          { question: "First?", responseSchema, expectGrounding: true, expectFacts: ["fact number 1"] },
          { question: "Second?", responseSchema },
          { question: "Third?" }
        )
        const stored = yield* (yield* TestCases).exportAll(scope, scope.agentId)
        expect(stored.split("\n")[0]).toContain(JSON.stringify(responseSchema))
        yield* Ref.set(script.reply, (asked) =>
          says(
            JSON.stringify(asked.prompt).includes("Second?")
              ? '{"reason": 7}'
              : '{"reason": "It is fact number 1 [1].", "a": 1}'
          )(asked)
        )
        const { experiment, report } = yield* ran(scope)
        expect(experiment).toMatchObject({ status: "complete", asked: 3, passed: 2 })
        expect(report).toMatchObject({ failed: 1, errors: 1 })
        const { rows } = yield* resultsOf(scope, experiment.id)
        expect(rows[0]?.result).toMatchObject({
          passed: true,
          grounding: 1,
          reply: '{"reason":"It is fact number 1.","a":1}',
          citations: [{ title: "Chapter 1" }]
        })
        expect(rows[1]?.result).toMatchObject({
          passed: false,
          problems: [
            "no reply that fits the responseSchema: TURN_FAILED: The model's reply did not match the responseSchema, also not at the second attempt."
          ]
        })
        const [first, , , last] = yield* Ref.get(script.requests)
        expect(JSON.stringify(first?.responseSchema)).toBe(JSON.stringify(responseSchema))
        expect(last).not.toHaveProperty("responseSchema.type")
      }).pipe(onFreshData)
  )

  it.scoped("loses deleted cases and the questions of erased end users", () =>
    Effect.gen(function* () {
      const { made, scope } = yield* prepared(both)
      const sql = yield* SqlClient.SqlClient
      const { runId } = yield* (yield* ChatTurn).complete(
        scope,
        request({ message: "My number is canary-7, how do I reset it?", includeRealtimeToken: false })
      )
      const id = String(runId)
      yield* sql`
        insert into test_cases (id, tenant_id, agent_id, question, expect_sources, expect_facts, origin, run_id)
        values ('tcs_z', ${scope.tenantId}, ${scope.agentId}, 'canary-7?', '[]', '[]', 'run', ${id})`
      const ofCases = yield* ran(scope)
      const ofTurns = yield* ran(scope, { runIds: [id] })
      expect([ofCases.experiment.total, ofTurns.experiment.total]).toEqual([2, 1])
      const found = sql`select 1 from experiment_results where asked::text || result::text like '%canary-7%'`
      expect(yield* found).toHaveLength(2)
      yield* sql`delete from end_users`
      expect(yield* found).toEqual([])
      const [first] = made
      if (first === undefined) return expect(first).toBeDefined()
      yield* (yield* TestCases).remove(scope, first.id)
      expect(yield* sql`select 1 from experiment_results`).toEqual([])
    }).pipe(onFreshData)
  )
})

eachEngineLive("A planted regression is found at the first run", (it) => {
  const compared = (scope: AgentScope, body: object) =>
    Effect.map(ran(scope, { baselineVersion: 1, ...body }), ({ report }) => report.comparison)

  it.scoped("of an instruction that drops the second step", () =>
    Effect.gen(function* () {
      const { scope } = yield* prepared(...eight(both))
      const { version } = yield* draft(scope, "Give the first step alone.")
      const comparison = yield* compared(scope, { version })
      expect(comparison).toMatchObject({ compared: 8, regression: true })
      expect(comparison?.broken).toHaveLength(8)
      const settings = { instructions: "Give the first step alone." }
      expect(yield* compared(scope, { settings })).toMatchObject({ regression: true })
    }).pipe(onFreshData)
  )

  it.scoped("of a page that was deleted", () =>
    Effect.gen(function* () {
      const { scope, script } = yield* prepared(...eight(both))
      const before = yield* ran(scope)
      yield* Ref.set(script.chunks, [])
      const after = yield* ran(scope, { baseline: before.experiment.id })
      expect(after.report.comparison).toMatchObject({ regression: true })
    }).pipe(onFreshData)
  )

  it.scoped("of a worse model", () =>
    Effect.gen(function* () {
      const { scope } = yield* prepared(...eight(both))
      expect(yield* compared(scope, { model: "worse" })).toMatchObject({ regression: true })
      expect(yield* compared(scope, {})).toMatchObject({ regression: false, broken: [], mended: [] })
    }).pipe(onFreshData)
  )
})

eachEngineLive("A version is published", (it) => {
  const refusal = (scope: AgentScope, version: number) => Effect.flip(publish(scope, version))

  it.scoped("without conditions if the agent has no threshold", () =>
    Effect.gen(function* () {
      const { scope } = yield* prepared(both)
      const { version } = yield* draft(scope, "Give the first step alone.")
      expect(yield* publish(scope, version)).toMatchObject({ publishedVersion: 2 })
    }).pipe(onFreshData)
  )

  it.scoped("only when enough of the current cases pass, or by force", () =>
    Effect.gen(function* () {
      const { scope } = yield* prepared(...eight(both))
      yield* threshold(scope, 0.9, false)
      const { version: worse } = yield* draft(scope, "Give the first step alone.")
      expect(yield* refusal(scope, worse)).toMatchObject({
        _tag: "CONFLICT",
        message: expect.stringMatching(/not been tested.*force=true/u)
      })
      yield* ran(scope, { version: worse })
      const refused = yield* refusal(scope, worse)
      expect(refused).toMatchObject({
        message: expect.stringMatching(/^0 of 8 test cases passed; the minimum is 90 %/u)
      })
      expect(refused._tag === "CONFLICT" && refused.details?.["failing"]).toHaveLength(8)
      const { patch } = yield* Agents
      const change = { instructions: "Give the first step alone." }
      expect(yield* Effect.flip(patch(scope, scope.agentId, change))).toMatchObject({ _tag: "CONFLICT" })
      const { split } = yield* AgentVersions
      expect(yield* Effect.flip(split(scope, scope.agentId, { version: worse, share: 1 }))).toMatchObject({
        _tag: "CONFLICT"
      })
      const { version: good } = yield* draft(scope, "Give all steps.")
      const { version: other } = yield* draft(scope, "Give every step.")
      for (const version of [good, other]) yield* ran(scope, { version })
      expect(yield* publish(scope, good)).toMatchObject({ publishedVersion: good })
      // Another case: what was measured no longer says enough.
      yield* addCases(scope, both)
      expect(yield* refusal(scope, other)).toMatchObject({ _tag: "CONFLICT" })
      // No reply can tell the difference, so nothing has to be measured.
      const same = { greeting: "Hello", streamReasoning: true }
      expect(yield* patch(scope, scope.agentId, same)).toMatchObject(same)
      expect(yield* publish(scope, good)).toMatchObject({ publishedVersion: good })
      yield* ran(scope, { version: other })
      expect(yield* publish(scope, other)).toMatchObject({ publishedVersion: other })
      expect(yield* publish(scope, worse, true)).toMatchObject({ publishedVersion: worse })
    }).pipe(onFreshData)
  )

  it.scoped("only with settings that have been tested, also when two changes meet", () =>
    Effect.gen(function* () {
      const { scope } = yield* prepared(both)
      yield* threshold(scope, 1, false)
      const changes = [{ instructions: "Give all steps." }, { style: { tone: "formal" as const } }]
      yield* Effect.forEach(changes, (settings) => ran(scope, { settings }))
      const { get, patch } = yield* Agents
      const patched = yield* Effect.forEach(
        changes,
        (change) => Effect.either(patch(scope, scope.agentId, change)),
        { concurrency: 2 }
      )
      expect(patched.filter(Either.isRight)).toHaveLength(1)
      expect(patched.find(Either.isLeft)?.left).toMatchObject({ _tag: "CONFLICT", details: { gate: true } })
      expect(yield* get(scope, scope.agentId)).toMatchObject({ version: 2, publishedVersion: 2 })
    }).pipe(onFreshData)
  )

  it.scoped("only when it is not clearly worse than a version that was published in the meantime", () =>
    Effect.gen(function* () {
      const { scope } = yield* prepared(...eight(both))
      const { version: worse } = yield* draft(scope, "Give the first step alone.")
      const { version: good } = yield* draft(scope, "Give all steps.")
      yield* publish(scope, worse)
      yield* threshold(scope, null, true)
      for (const version of [1, worse, good]) yield* ran(scope, { version })
      // Neither is worse than what is published now, and the second is worse than the first.
      const again = yield* draft(scope, "Answer with the first step alone.")
      yield* ran(scope, { version: again.version })
      yield* Effect.forEach([good, again.version], (version) => Effect.either(publish(scope, version)), {
        concurrency: 2
      })
      const { get } = yield* Agents
      expect(yield* get(scope, scope.agentId)).toMatchObject({ publishedVersion: good })
    }).pipe(onFreshData)
  )

  it.scoped("only when the sources support the replies of cases that expect it", () =>
    Effect.gen(function* () {
      const { scope, script } = yield* prepared({ question: "Which number?", expectGrounding: true })
      yield* threshold(scope, 1, false)
      const { version } = yield* draft(scope, "Name the number.")
      const { version: next } = yield* draft(scope, "Name it.")
      const asked = (reply: string) =>
        Effect.gen(function* () {
          yield* Ref.set(script.reply, says(reply))
          const { experiment } = yield* ran(scope, { version })
          return (yield* resultsOf(scope, experiment.id)).rows[0]?.result
        })
      expect(yield* asked("Fact number 7. [1]")).toMatchObject({
        passed: false,
        problems: ["not supported by what it cites: Chapter 1"],
        grounding: 0
      })
      expect(yield* refusal(scope, version)).toMatchObject({ _tag: "CONFLICT" })
      expect(yield* asked("Fact number 1.")).toMatchObject({ passed: false, grounding: null })
      expect(yield* asked("Fact number 1. [1]")).toMatchObject({ passed: true, grounding: 1 })
      expect(yield* publish(scope, version)).toMatchObject({ publishedVersion: version })
      yield* ran(scope, { version: next })
      // A case that no longer expects it is another case.
      const { list, update } = yield* TestCases
      const [stored] = (yield* list(scope, scope.agentId, { limit: 1 })).rows
      if (stored === undefined) return expect(stored).toBeDefined()
      yield* update(scope, stored.id, caseOf({ question: "Which number?" }))
      expect(yield* refusal(scope, next)).toMatchObject({
        message: expect.stringMatching(/not been tested/u)
      })
    }).pipe(onFreshData)
  )

  it.scoped("when exactly the required share of cases passes", () =>
    Effect.gen(function* () {
      const missed = { ...both, expectFacts: ["call us"] }
      const { scope } = yield* prepared(
        ...Array.from({ length: 25 }, (_, place) => (place < 7 ? both : missed))
      )
      // 0.28 * 25 is 7.000000000000001.
      yield* threshold(scope, 0.28, false)
      const { version } = yield* draft(scope, "Give all steps.")
      yield* ran(scope, { version })
      expect(yield* publish(scope, version)).toMatchObject({ publishedVersion: version })
    }).pipe(onFreshData)
  )

  it.scoped("only when it is not clearly worse than the published version", () =>
    Effect.gen(function* () {
      const { scope } = yield* prepared(...eight(both))
      yield* threshold(scope, null, true)
      const { version: worse } = yield* draft(scope, "Give the first step alone.")
      yield* ran(scope, { version: worse })
      expect(yield* refusal(scope, worse)).toMatchObject({
        message: expect.stringMatching(/baselineVersion 1/u)
      })
      yield* ran(scope, { version: worse, baselineVersion: 1 })
      const refused = yield* refusal(scope, worse)
      expect(refused).toMatchObject({ message: expect.stringMatching(/Significantly fewer/u) })
      expect(refused._tag === "CONFLICT" && refused.details?.["failing"]).toHaveLength(8)
      // The results of cases that were removed are gone: the same cases again have not been asked.
      const { list, remove } = yield* TestCases
      for (const { id } of (yield* list(scope, scope.agentId, { limit: 20 })).rows) yield* remove(scope, id)
      yield* addCases(scope, ...eight(both))
      expect(yield* refusal(scope, worse)).toMatchObject({
        message: expect.stringMatching(/not been tested/u)
      })
      const { version: good } = yield* draft(scope, "Give all steps.")
      yield* ran(scope, { version: good, baselineVersion: 1 })
      expect(yield* publish(scope, good)).toMatchObject({ publishedVersion: good })
    }).pipe(onFreshData)
  )
})

test("The code that asks the questions gets no service with side effects", () => {
  type Needs =
    Layer.Layer.Context<typeof ExperimentWork.Default> | Layer.Layer.Context<typeof Replays.Default>
  type Acting =
    | AuditLog
    | ChannelSender
    | ChatTools
    | JobQueue
    | Mailer
    | OutboundHttp
    | Realtime
    | ToolSources
    | Turns
    | SqlClient.SqlClient
  expectTypeOf<Extract<Needs, Acting>>().toEqualTypeOf<never>()
  expectTypeOf<Layer.Layer.Context<typeof ExperimentWork.Default>>().toEqualTypeOf<
    CriterionJudge | ExperimentStore | Replays
  >()
})
