import { expect, layer } from "@effect/vitest"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { reset, TestDatabase } from "../../TestDatabase.ts"
import { accountsServer, type Answer, call, type Call, signedIn } from "./AccountsServer.ts"

const Server = accountsServer().pipe(Layer.provideMerge(TestDatabase))

const outcome = ({ error, status }: Answer) => [status, error?.code]

const begun = Effect.gen(function* () {
  yield* reset
  const { cookie } = yield* signedIn("ada@example.com")
  const ask = (method: string, path: string, options: Call = {}) => call(method, path, { cookie, ...options })
  const made = yield* ask("POST", "/api/agents", { body: { name: "Helper" } })
  const agent = `/api/agents/${made.data.agent.id}`
  yield* ask("POST", `${agent}/cases`, { body: { question: "How?", expectFacts: ["so"] } })
  yield* ask("POST", `${agent}/cases`, { body: { question: "Why?", expectFacts: ["thus"] } })
  return { agent, ask, cookie }
})

/** As its worker leaves it: the first question passed, the others failed. */
const answered = (id: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* sql`
      update experiment_results set result = jsonb_build_object('passed', position = 0, 'problems', '[]'::jsonb,
        'sourceAt1', null, 'sourceAt3', null, 'sourceCited', null, 'facts', position = 0, 'refusal', null,
        'grounding', null, 'citations', '[]'::jsonb, 'reply', 'So.', 'error', null, 'latencyMs', 7, 'inputTokens', 5,
        'outputTokens', 2, 'outcome', null, 'before', null)
      where experiment_id = ${id}`
    yield* sql`update experiments set status = 'complete', started_at = now(), ended_at = now() where id = ${id}`
  })

const deeds = (cookie: string) =>
  Effect.map(call("GET", "/api/audit", { cookie }), ({ data }) =>
    data.entries.map(({ action }: { readonly action: string }) => action)
  )

layer(Server, { excludeTestServices: true })("Experiments over HTTP", (it) => {
  it.effect("are started, report their progress, are read page by page, cancelled and deleted", () =>
    Effect.gen(function* () {
      const { agent, ask, cookie } = yield* begun
      const started = yield* ask("POST", `${agent}/experiments`, { body: { baselineVersion: 1 } })
      expect(started.status).toBe(201)
      const { id } = started.data.experiment
      expect(started.data.experiment).toEqual({
        id: expect.stringMatching(/^exp_/),
        agentId: expect.any(String),
        kind: "cases",
        version: 1,
        model: null,
        status: "queued",
        reason: null,
        total: 2,
        asked: 0,
        passed: 0,
        baselineId: expect.stringMatching(/^exp_/),
        maxTokens: 2_000_000,
        inputTokens: 0,
        outputTokens: 0,
        author: { type: "user", id: expect.any(String) },
        createdAt: expect.any(String),
        startedAt: null,
        endedAt: null
      })
      const page = yield* ask("GET", `${agent}/experiments?limit=1`)
      expect(page.data.experiments).toMatchObject([{ id }])
      const rest = yield* ask("GET", `${agent}/experiments?limit=1&cursor=${page.data.nextCursor}`)
      expect([rest.data.experiments[0].id, rest.data.nextCursor]).toEqual([
        started.data.experiment.baselineId,
        null
      ])
      yield* answered(id)
      yield* answered(started.data.experiment.baselineId)
      const told = yield* ask("GET", `/api/experiments/${id}`)
      expect(told.data).toMatchObject({
        experiment: { status: "complete", asked: 2, passed: 1, inputTokens: 10, outputTokens: 4 },
        report: {
          failed: 1,
          errors: 0,
          figures: { passRate: { value: 0.5, of: 2 } },
          latencyMs: { p50: 7 },
          tokens: { input: 10, output: 4 },
          comparison: { compared: 2, regression: false, broken: [], mended: [] }
        }
      })
      const first = yield* ask("GET", `/api/experiments/${id}/results?limit=1`)
      expect(first.data.results).toMatchObject([
        { position: 0, question: "How?", result: { passed: true }, baseline: { passed: true } }
      ])
      const second = yield* ask(
        "GET",
        `/api/experiments/${id}/results?limit=1&cursor=${first.data.nextCursor}`
      )
      expect(second.data).toMatchObject({ results: [{ position: 1, question: "Why?" }], nextCursor: null })
      expect(outcome(yield* ask("POST", `/api/experiments/${id}/cancel`))).toEqual([409, "CONFLICT"])
      const other = (yield* ask("POST", `${agent}/experiments`, { body: {} })).data.experiment.id
      expect((yield* ask("POST", `/api/experiments/${other}/cancel`)).data.experiment.status).toBe(
        "cancelled"
      )
      expect((yield* ask("DELETE", `/api/experiments/${other}`)).data).toEqual({ id: other, deleted: true })
      expect(outcome(yield* ask("GET", `/api/experiments/${other}`))).toEqual([404, "NOT_FOUND"])
      expect((yield* deeds(cookie)).slice(0, 4)).toEqual([
        "experiment.delete",
        "experiment.cancel",
        "experiment.start",
        "experiment.start"
      ])
    })
  )

  it.effect("are refused if they contradict themselves, and are not found by other tenants", () =>
    Effect.gen(function* () {
      const { agent, ask } = yield* begun
      for (const body of [
        { version: 1, settings: {} },
        { cases: [{ question: "?" }], runIds: ["run_1"] },
        { baseline: "exp_1", baselineVersion: 1 },
        { maxTokens: 0 },
        { runIds: [] }
      ])
        expect(outcome(yield* ask("POST", `${agent}/experiments`, { body }))).toEqual([
          400,
          "VALIDATION_ERROR"
        ])
      for (const body of [{ version: 9 }, { baseline: "exp_1" }, { runIds: ["run_1"] }])
        expect(outcome(yield* ask("POST", `${agent}/experiments`, { body }))).toEqual([404, "NOT_FOUND"])
      const { id } = (yield* ask("POST", `${agent}/experiments`, { body: {} })).data.experiment
      const eve = { cookie: (yield* signedIn("eve@example.com")).cookie }
      for (const [method, path, body] of [
        ["POST", `${agent}/experiments`, {}],
        ["GET", `${agent}/experiments`, undefined],
        ["GET", `/api/experiments/${id}`, undefined],
        ["GET", `/api/experiments/${id}/results`, undefined],
        ["POST", `/api/experiments/${id}/cancel`, undefined],
        ["DELETE", `/api/experiments/${id}`, undefined],
        ["GET", `${agent}/threshold`, undefined],
        ["PUT", `${agent}/threshold`, { minPass: 1, noRegression: true }]
      ] as const)
        expect(outcome(yield* call(method, path, { ...eve, body }))).toEqual([404, "NOT_FOUND"])
    })
  )

  it.effect(
    "keep a version from being published below the threshold, which force overrides on the record",
    () =>
      Effect.gen(function* () {
        const { agent, ask, cookie } = yield* begun
        expect((yield* ask("GET", `${agent}/threshold`)).data.threshold).toEqual({
          minPass: null,
          noRegression: false
        })
        const threshold = { minPass: 0.9, noRegression: false }
        expect((yield* ask("PUT", `${agent}/threshold`, { body: threshold })).data).toEqual({ threshold })
        const draft = { instructions: "Be brief.", publish: false }
        yield* ask("PATCH", agent, { body: draft })
        const publish = `${agent}/versions/2/publish`
        expect(outcome(yield* ask("POST", publish))).toEqual([409, "CONFLICT"])
        const { id } = (yield* ask("POST", `${agent}/experiments`, { body: { version: 2 } })).data.experiment
        yield* answered(id)
        const refused = yield* ask("POST", publish)
        expect(refused.error).toMatchObject({
          code: "CONFLICT",
          message:
            "1 of 2 test cases passed; the minimum is 90 %. To publish it nevertheless, send force=true.",
          details: { gate: true, failing: ["Why?"] }
        })
        expect(outcome(yield* ask("PATCH", agent, { body: { instructions: "Other" } }))).toEqual([
          409,
          "CONFLICT"
        ])
        expect(outcome(yield* ask("PUT", `${agent}/split`, { body: { version: 2, share: 0.5 } }))).toEqual([
          409,
          "CONFLICT"
        ])
        expect((yield* ask("GET", agent)).data.agent).toMatchObject({ version: 2, publishedVersion: 1 })
        const forced = yield* ask("POST", `${publish}?force=true`)
        expect(forced.data.agent).toMatchObject({ publishedVersion: 2 })
        expect((yield* deeds(cookie))[0]).toBe("agent.publish_forced")
      })
  )
})
