/** `spoke eval` at a running server, at one that is too busy, and on a data folder in its own process. */
import * as Fs from "node:fs"
import * as Http from "node:http"
import type { AddressInfo } from "node:net"
import * as Path from "node:path"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as ModelStub from "../../servers/ModelStub.ts"
import { removeFolder, run, type Spoke, start, temporaryFolder, until } from "../Spoke.ts"
import { makeTeam } from "../Team.ts"

const folder = temporaryFolder()
const file = (name: string, text: string) => {
  const made = Path.join(folder, name)
  Fs.writeFileSync(made, text)
  return made
}
const lines = (...cases: ReadonlyArray<unknown>) => cases.map((one) => JSON.stringify(one)).join("\n")

afterAll(() => removeFolder(folder))

describe("spoke eval at a running server", () => {
  const dataDir = temporaryFolder()
  const scope = Effect.runSync(Scope.make())
  let model: ModelStub.ModelStub
  let spoke: Spoke
  let variables: Readonly<Record<string, string>> = {}

  beforeAll(async () => {
    model = await Effect.runPromise(Scope.extend(ModelStub.make, scope))
    spoke = await start(dataDir, {
      OPENAI_API_KEY: "sk-test",
      OPENAI_BASE_URL: model.url,
      SPOKE_EMBEDDING_MODEL: "offline"
    })
    variables = { SPOKE_URL: spoke.url, SPOKE_API_KEY: spoke.apiKey, SPOKE_DATA_DIR: folder }
    await until(
      () => spoke.request("GET", "/v1/sources"),
      ({ body }) => body.data.sources[0]?.status === "READY"
    )
  })
  afterAll(async () => {
    await spoke.kill()
    await Effect.runPromise(Scope.close(scope, Exit.void))
    removeFolder(dataDir)
  })

  const evaluate = (...args: ReadonlyArray<string>) => run(["eval", ...args], variables)

  it("reports sources, facts, refusals, latency and tokens, and exits with 0 though cases failed", async () => {
    model.reset()
    model.script.push(
      { text: "Add it with POST /v1/sources [1]." },
      { text: "I do not know." },
      { text: "Paris is the capital of France." },
      { text: "A source is added within 977 years [1]." }
    )
    const cases = file(
      "cases.jsonl",
      lines(
        {
          question: "How do I add a source?",
          expectSources: ["spoke documentation"],
          expectFacts: ["post /v1/sources"]
        },
        { question: "How do I delete a source for good?", expectRefusal: true },
        { question: "How do I change a source?", expectRefusal: true },
        { question: "How do I add a source?", expectGrounding: true }
      )
    )
    const { code, stderr, stdout } = await evaluate(cases, "--json", "--concurrency", "1")
    expect([code, stderr]).toEqual([0, expect.stringContaining("Asked 4 questions")])
    expect(JSON.parse(stdout)).toMatchObject({
      cases: 4,
      passed: 2,
      failed: 2,
      errors: 0,
      figures: { sourceAt1: { value: 1, of: 1 }, facts: { value: 1, of: 1 }, refusal: { value: 0.5, of: 2 } },
      latencyMs: { p50: expect.any(Number), p95: expect.any(Number) },
      tokens: { input: expect.any(Number), output: expect.any(Number) },
      results: [
        { line: 1, passed: true, sourceAt1: true, facts: true },
        { line: 2, passed: true, refusal: true },
        { line: 3, passed: false, problems: ["answered, and was expected to refuse"] },
        {
          line: 4,
          passed: false,
          problems: [expect.stringContaining("not supported by what it cites: ")],
          grounding: 0
        }
      ]
    })
    // Nothing of it is kept.
    const kept = await spoke.request("GET", "/v1/conversations")
    expect(JSON.stringify(kept.body)).not.toContain("cnv_")
  })

  it("asks for objects where a case has a schema, and says why a reply does not fit", async () => {
    model.reset()
    const wrong = { text: '{"path": 1}' }
    model.script.push({ text: '{"path": "Use POST /v1/sources [1]."}' }, wrong, wrong, { text: "Hello." })
    const responseSchema = {
      type: "object",
      properties: { path: { type: "string" } },
      required: ["path"]
    }
    const cases = file(
      "objects.jsonl",
      lines(
        {
          question: "How do I add a source?",
          responseSchema,
          expectSources: ["spoke documentation"],
          expectFacts: ["use post /v1/sources"]
        },
        { question: "How do I delete a source?", responseSchema },
        { question: "How do I change a source?" }
      )
    )
    const { code, stdout } = await evaluate(cases, "--json", "--concurrency", "1")
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({
      cases: 3,
      passed: 2,
      errors: 1,
      results: [
        { passed: true, sourceAt1: true, facts: true },
        {
          passed: false,
          problems: [expect.stringMatching(/^no reply that fits the responseSchema: TURN_FAILED: .*string/u)]
        },
        { passed: true, reply: "Hello." }
      ]
    })
  })

  it("asks the stored test cases of an agent, which is named, and keeps to the agent of the key", async () => {
    model.reset()
    model.script.push({ text: "Add it with POST /v1/sources [1]." })
    const team = await makeTeam(spoke)
    const made = await team.owner("POST", "/api/tokens", { name: "CI", scopes: ["agents:read"] })
    const token: string = made.body.data.secret
    const { secret } = await team.key()
    const cases = `/api/agents/${team.agentId}/cases`
    await team.owner("POST", cases, { question: "How do I add a source?", expectFacts: ["post /v1/sources"] })
    const asked = (name: string, key: string) =>
      run(["eval", "--agent", name, "--json"], {
        ...variables,
        SPOKE_TOKEN: token,
        SPOKE_API_KEY: key
      })
    const { code, stderr, stdout } = await asked(team.agentId, secret)
    expect([code, stderr]).toEqual([0, expect.stringContaining("Asked 1 questions")])
    expect(JSON.parse(stdout)).toMatchObject({ cases: 1, results: [{ line: 1, facts: true }] })
    const other = await asked(team.agentId, spoke.apiKey)
    expect([other.code, other.stderr]).toEqual([2, expect.stringContaining("belongs to another agent")])
    const nobody = await asked("Nobody", secret)
    expect([nobody.code, nobody.stderr]).toEqual([2, expect.stringContaining("There is no agent Nobody")])
    const neither = await run(["eval"], variables)
    expect([neither.code, neither.stderr]).toEqual([2, expect.stringContaining("Give a file of cases")])
  })

  it("exits with 1 when fewer cases pass than --min-pass asks for, and says so", async () => {
    model.reset()
    const cases = file("one.csv", "question,expectFacts\nHow do I add a source?,no such words\n")
    const { code, stderr, stdout } = await evaluate(cases, "--min-pass", "0.5")
    expect([code, stderr]).toEqual([1, expect.stringContaining("0 of 1 cases passed")])
    expect(stdout).toContain("1 cases: 0 passed, 1 failed")
    expect(stdout).toContain("line 2: How do I add a source?\n  does not say: no such words")
  })

  it("compares with a recorded run: 0 when it is as good, 1 when it is worse, and names what broke", async () => {
    model.reset()
    const cases = file(
      "many.jsonl",
      lines(
        ...Array.from({ length: 8 }, (_, place) => ({
          question: `How do I add source ${place}?`,
          expectFacts: ["yes"]
        }))
      )
    )
    const baseline = Path.join(folder, "baseline.json")
    model.otherwise = { text: "Yes, so [1]." }
    expect((await evaluate(cases, "--record", baseline)).code).toBe(0)
    expect(JSON.parse(Fs.readFileSync(baseline, "utf8"))).toMatchObject({ cases: 8, passed: 8, failed: 0 })

    const same = await evaluate(cases, "--baseline", baseline, "--json")
    expect([same.code, JSON.parse(same.stdout).baseline]).toMatchObject([
      0,
      { compared: 8, regression: false, broken: [], mended: [] }
    ])

    model.otherwise = { text: "No, so [1]." }
    const worse = await evaluate(cases, "--baseline", baseline)
    expect([worse.code, worse.stderr]).toEqual([
      1,
      expect.stringContaining("Worse than the baseline: passRate")
    ])
    expect(worse.stdout).toContain("100.0 % → 0.0 %, −100.0 points")
    expect(worse.stdout).toContain("fails now:  How do I add source 0?")
  })

  it("counts a turn that fails as a failed case", async () => {
    model.reset()
    model.otherwise = { status: 400, body: { error: { message: "no" } } }
    const cases = file("fails.jsonl", lines({ question: "How do I add a source?" }))
    const { code, stdout } = await evaluate(cases, "--json")
    expect([code, JSON.parse(stdout)]).toMatchObject([
      0,
      {
        cases: 1,
        passed: 0,
        failed: 1,
        errors: 1,
        results: [{ error: expect.stringContaining("TURN_FAILED") }]
      }
    ])
  })

  it.each([
    { args: () => [Path.join(folder, "none.jsonl")], says: ["none.jsonl cannot be read"] },
    {
      args: () => [file("bad.jsonl", '{"question": "a"}\n{"question": 1}')],
      says: ["bad.jsonl, line 2: question:", '"expectSources"']
    },
    {
      args: () => [file("ok.jsonl", '{"question": "a"}'), "--baseline", file("no.json", "{}")],
      says: ["no.json is not a result of spoke eval", "--record"]
    },
    {
      args: () => [
        file("ok.jsonl", '{"question": "a"}'),
        "--record",
        Path.join(folder, "no/such/folder.json")
      ],
      says: ["folder.json cannot be written"]
    },
    {
      args: () => [file("ok.jsonl", '{"question": "a"}'), "--data", Path.join(folder, "no-data")],
      says: ["no-data is no data folder"]
    },
    {
      args: () => [file("ok.jsonl", '{"question": "a"}'), "--agent", "Helpdesk"],
      says: ["the agent of the key", "--agent"]
    }
  ])("bad input exits with 2 and asks nothing: $says", async ({ args, says }) => {
    model.reset()
    const { code, stderr, stdout } = await evaluate(...args())
    expect([code, stdout, model.requests.length]).toEqual([2, "", 0])
    for (const words of says) expect(stderr).toContain(words)
  })

  it("a key that is refused ends the run with 1, and leaves no file where the results would be", async () => {
    const cases = file("ok.jsonl", '{"question": "a"}')
    const results = Path.join(folder, "never.json")
    const { code, stderr, stdout } = await run(["eval", cases, "--record", results], {
      ...variables,
      SPOKE_API_KEY: "spk_wrong"
    })
    expect([code, stdout]).toEqual([1, ""])
    expect(stderr).toContain("UNAUTHORIZED")
    expect(Fs.existsSync(results)).toBe(false)
  })

  it("a data folder that a server uses is left alone", async () => {
    const cases = file("ok.jsonl", '{"question": "a"}')
    const { code, stderr } = await evaluate(cases, "--data", dataDir)
    expect([code, stderr]).toEqual([1, expect.stringContaining(String(spoke.process.pid))])
  })
})

describe("spoke eval at a server that is too busy", () => {
  const answers: Array<{ readonly status: number; readonly headers?: Readonly<Record<string, string>> }> = []
  let asked = 0
  const server = Http.createServer((request, response) => {
    request.resume().on("end", () => {
      asked++
      const { headers, status } = answers.shift() ?? { status: 200 }
      response.writeHead(status, { "content-type": "application/json", ...headers })
      if (status !== 200)
        return void response.end('{"error": {"code": "RATE_LIMITED", "message": "Too fast."}}')
      const result = { reply: "Yes.", citations: [] }
      response.end(`data: ${JSON.stringify({ type: "data-done", data: { result } })}\n\ndata: [DONE]\n\n`)
    })
  })
  beforeAll(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve)))
  afterAll(() => server.close())

  it("asks again after the pause that it was told, and a case counts once", async () => {
    answers.push(
      { status: 429, headers: { "retry-after": "1" } },
      { status: 503, headers: { "retry-after": "0" } }
    )
    const cases = file("busy.jsonl", lines({ question: "a", expectFacts: ["yes"] }, { question: "b" }))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const { code, stdout } = await run(["eval", cases, "--json", "--concurrency", "1"], {
      SPOKE_URL: url,
      SPOKE_API_KEY: "spk_any",
      SPOKE_DATA_DIR: folder
    })
    expect([code, asked, JSON.parse(stdout)]).toMatchObject([0, 4, { cases: 2, passed: 2, tokens: null }])
  })
})

describe("spoke eval on a data folder", () => {
  it("asks the agent in its own process, without a server", async () => {
    const dataDir = temporaryFolder()
    const spoke = await start(dataDir)
    await until(
      () => spoke.request("GET", "/v1/sources"),
      ({ body }) => body.data.sources[0]?.status === "READY"
    )
    await spoke.stop()
    const cases = file(
      "own.csv",
      [
        "question,expectSources,expectFacts,expectRefusal",
        "How do I start the server?,getting-started.md,npm ci && npm start,",
        'How do I add a source?,sources.md,"Add a source with POST /v1/sources|curl -sf ""$SPOKE_URL/v1/sources""",',
        "Who won the world cup in 1998?,,,true"
      ].join("\n")
    )
    // Servers of this environment do not apply to a folder.
    const { code, stderr, stdout } = await run(["eval", cases, "--data", dataDir, "--json"], {
      DATABASE_URL_FILE: file("database_url", "postgres://127.0.0.1:1/production"),
      SPOKE_DATABASE_DIRECT_URL_FILE: file("direct_url", "postgres://127.0.0.1:1/production"),
      REDIS_URL_FILE: file("redis_url", "redis://127.0.0.1:1"),
      SPOKE_VECTOR: "pgvector"
    })
    expect([code, stderr]).toEqual([0, expect.stringContaining("Asked 3 questions")])
    expect(JSON.parse(stdout)).toMatchObject({
      passed: 3,
      results: [{ sourceCited: true, facts: true }, { sourceCited: true, facts: true }, { refusal: true }]
    })
    // Without a language model there is no object, and nothing waits for one.
    const object = file("object.jsonl", lines({ question: "How?", responseSchema: { type: "object" } }))
    const unanswered = await run(["eval", object, "--data", dataDir, "--json"], {})
    expect(JSON.parse(unanswered.stdout)).toMatchObject({
      passed: 0,
      results: [{ problems: [expect.stringContaining("responseSchema: NOT_CONFIGURED: ")] }]
    })
    const other = await run(["eval", cases, "--data", dataDir, "--agent", "agt_none"], {})
    expect([other.code, other.stderr]).toEqual([2, expect.stringContaining("agt_none is no agent")])
    removeFolder(dataDir)
  }, 240_000)
})
