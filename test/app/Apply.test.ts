/** `spoke apply` of settings that are tested first. */
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { afterAll, beforeAll, describe, vi } from "vitest"
import { CommandFailed } from "../../src/app/cli/Connection.ts"
import { applyCommand } from "../../src/app/cli/Configuration.ts"
import type { Services } from "../../src/app/cli/Services.ts"

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "spoke-apply-"))
const file = path.join(folder, "agents.json")
beforeAll(() => {
  for (const name of ["log", "error"] as const) vi.spyOn(console, name).mockReturnValue()
})
afterAll(() => {
  vi.restoreAllMocks()
  fs.rmSync(folder, { recursive: true })
})

const change = {
  action: "update",
  agent: "Ferry",
  id: "agt_1",
  fields: [
    { field: "instructions", before: "", after: "Be brief." },
    { field: "sources.Tides", before: null, after: {} }
  ],
  meaning: ""
}
const counts = { total: 2, asked: 2, passed: 2 }
const experiment = { id: "exp_1", baselineId: "exp_0", status: "complete", reason: null, ...counts }
const comparison = { compared: 2, regression: false, broken: [], mended: [] }

interface Answers {
  /** The stored cases, two a page. */
  readonly cases?: ReadonlyArray<{ readonly runId: string | null }>
  readonly experiment?: object
  readonly comparison?: object | null
  /** The first request of each path that contains this text is answered by a server that stops. */
  readonly stopsAt?: string
}

/** Applies `said` at a server that answers so. Returns what it was asked to do. */
const applied = (said: object, answers: Answers, ...flags: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const experiments: Array<unknown> = []
    const changes: Array<unknown> = []
    const stopped = new Set<string>()
    const { cases = [{ runId: null }] } = answers
    const dataOf = (method: string, { pathname, searchParams }: URL, body: string): unknown => {
      const found = { ...experiment, ...answers.experiment }
      if (pathname.endsWith("/apply")) {
        const asked = JSON.parse(body)
        if (asked.dryRun !== true) changes.push({ force: asked.force })
        return { plan: { changes: [change], revision: "1" }, applied: asked.dryRun !== true }
      }
      if (pathname.endsWith("/cases")) {
        const from = Number(searchParams.get("cursor") ?? 0)
        const size = Math.min(2, Number(searchParams.get("limit")))
        const next = from + size < cases.length ? String(from + size) : null
        return { cases: cases.slice(from, from + size), nextCursor: next }
      }
      if (method === "POST" && pathname.endsWith("/agt_1/experiments")) {
        experiments.push(JSON.parse(body))
        return { experiment: found }
      }
      if (pathname.endsWith("/exp_1"))
        return {
          experiment: found,
          report: { comparison: answers.comparison === undefined ? comparison : answers.comparison }
        }
      if (pathname.endsWith("/sources"))
        return {
          sources: [{ name: "Tides", lastError: null, latestJob: { status: "SUCCEEDED" } }],
          nextCursor: null
        }
      return { agent: { publishedVersion: 3 } }
    }
    const client = HttpClient.make((request, url) =>
      Effect.sync(() => {
        const { pathname } = url
        if (answers.stopsAt !== undefined && pathname.includes(answers.stopsAt) && !stopped.has(pathname)) {
          stopped.add(pathname)
          const error = { code: "SERVICE_UNAVAILABLE", message: "The server is stopping." }
          return HttpClientResponse.fromWeb(request, Response.json({ error }, { status: 503 }))
        }
        const body = request.body._tag === "Uint8Array" ? new TextDecoder().decode(request.body.body) : ""
        const data = dataOf(request.method, url, body)
        return HttpClientResponse.fromWeb(request, Response.json({ data }))
      })
    )
    fs.writeFileSync(file, JSON.stringify({ agents: { Ferry: said } }))
    let task: Effect.Effect<void, unknown, Services> = Effect.void
    applyCommand((given) => (task = given)).parse(
      ["--url", "http://spoke.example", "--token", "spt_1", "--yes", file, ...flags],
      { from: "user" }
    )
    const failure = yield* task.pipe(
      Effect.as(null),
      Effect.catchAll((cause) => Effect.succeed(cause instanceof CommandFailed ? cause.message : `${cause}`)),
      Effect.provideService(HttpClient.HttpClient, client)
    )
    return { failure, experiments, changes }
  })

const brief = { instructions: "Be brief." }

describe("The test cases of an agent whose settings change", () => {
  it.live("are asked with these settings, and with no other part of the file", () =>
    Effect.gen(function* () {
      const parts = {
        sources: {},
        remoteTools: {},
        widget: { allowedOrigins: ["https://ferry.example"] },
        channels: { "telegram:ferry": { accessToken: { env: "PATH" } } }
      }
      const { changes, experiments, failure } = yield* applied({ ...brief, ...parts }, {})
      expect([failure, changes]).toEqual([null, [{}]])
      expect(experiments).toEqual([{ settings: brief, baselineVersion: 3 }])
    })
  )

  it.live("are none if the file removes them all, but for those made from turns", () =>
    Effect.gen(function* () {
      const said = { ...brief, cases: [] }
      const none = yield* applied(said, { cases: [{ runId: null }, { runId: null }, { runId: null }] })
      expect(none).toEqual({ failure: null, experiments: [], changes: [{}] })
      const some = yield* applied(said, { cases: [{ runId: null }, { runId: null }, { runId: "run_1" }] })
      expect(some).toEqual({
        failure: null,
        experiments: [{ settings: brief, baselineVersion: 3, cases: [] }],
        changes: [{}]
      })
    })
  )

  it.live.each([
    ["nothing could be compared", { comparison: { ...comparison, compared: 0 } }, "What is published"],
    ["only a part could be compared", { comparison: { ...comparison, compared: 1 } }, "What is published"],
    ["there is no comparison", { comparison: null }, "What is published"],
    ["the experiment failed", { experiment: { status: "failed", reason: "A budget is spent." } }, "A budget"]
  ] as const)("refuse it if %s, unless a regression is allowed", ([, answers, reason]) =>
    Effect.gen(function* () {
      const refused = yield* applied(brief, answers)
      expect([refused.failure, refused.changes]).toEqual([expect.stringContaining(reason), []])
      expect(refused.failure).toContain("--allow-regression")
      const allowed = yield* applied(brief, answers, "--allow-regression")
      expect([allowed.failure, allowed.changes]).toEqual([null, [{ force: true }]])
    })
  )

  it.live("are waited for while the server restarts", () =>
    Effect.gen(function* () {
      const { changes, experiments, failure } = yield* applied(brief, { stopsAt: "/experiments/" })
      expect([failure, experiments.length, changes]).toEqual([null, 1, [{}]])
    })
  )
})

it.live("Test cases are asked no more when the command is interrupted", () =>
  Effect.gen(function* () {
    const asked: Array<string> = []
    const client = HttpClient.make((request, { pathname }) =>
      Effect.sync(() => {
        asked.push(`${request.method} ${pathname.slice("/api/manage/v1".length)}`)
        const running = { ...experiment, status: "running", asked: 0 }
        const data = pathname.endsWith("/apply")
          ? { plan: { changes: [change], revision: "1" }, applied: false }
          : pathname.endsWith("/cases")
            ? { cases: [{ runId: null }], nextCursor: null }
            : { experiment: running, report: { comparison: null }, agent: { publishedVersion: 3 } }
        return HttpClientResponse.fromWeb(request, Response.json({ data }))
      })
    )
    fs.writeFileSync(file, JSON.stringify({ agents: { Ferry: brief } }))
    let task: Effect.Effect<void, unknown, Services> = Effect.void
    applyCommand((given) => (task = given)).parse(
      ["--url", "http://spoke.example", "--token", "spt_1", "--yes", file],
      { from: "user" }
    )
    const fiber = yield* Effect.fork(Effect.provideService(task, HttpClient.HttpClient, client))
    while (!asked.includes("GET /experiments/exp_1")) yield* Effect.sleep("10 millis")
    yield* Fiber.interrupt(fiber)
    expect(asked.filter((one) => one.endsWith("/cancel")).toSorted()).toEqual([
      "POST /experiments/exp_0/cancel",
      "POST /experiments/exp_1/cancel"
    ])
  })
)

it.live("Sources that were applied are waited for while the server restarts", () =>
  Effect.gen(function* () {
    const { changes, failure } = yield* applied(brief, { stopsAt: "/sources", cases: [] }, "--wait")
    expect([failure, changes]).toEqual([null, [{}]])
  })
)
