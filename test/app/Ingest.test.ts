/** `spoke ingest` with a key that may be used a few times a minute. */
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import { expect, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/TestClock"
import { afterAll, beforeAll, vi } from "vitest"
import { ingest } from "../../src/app/cli/Ingest.ts"
import type { Services } from "../../src/app/cli/Services.ts"

const printed = vi.fn<(text: string) => void>()
beforeAll(() => {
  vi.spyOn(console, "log").mockImplementation(printed)
  vi.spyOn(console, "error").mockReturnValue()
})
afterAll(() => vi.restoreAllMocks())

/** Requests of any 60 seconds. */
const limit = 3
const jobMillis = 150_000

/** A server whose jobs take a while. */
const makeServer = () => {
  const accepted: Array<number> = []
  const created: Array<number> = []
  const client = HttpClient.make((request, { pathname }) =>
    Effect.map(Clock.currentTimeMillis, (now) => {
      const recent = accepted.filter((at) => at > now - 60_000)
      const [oldest = now] = recent
      if (recent.length >= limit) {
        const headers = { "retry-after": String(Math.ceil((oldest + 60_000 - now) / 1_000)) }
        const error = { code: "RATE_LIMITED", message: "Too often." }
        return HttpClientResponse.fromWeb(request, Response.json({ error }, { status: 429, headers }))
      }
      accepted.push(now)
      if (pathname === "/v1/sources") created.push(now)
      const isDone = now >= (created.at(-1) ?? now) + jobMillis
      const job = { status: isDone ? "SUCCEEDED" : "RUNNING", progress: 0, chunksCreated: 7, error: null }
      const creation = { source: { id: "src_1" }, ingestionJob: { id: "job_1" } }
      return HttpClientResponse.fromWeb(
        request,
        Response.json({ data: pathname === "/v1/sources" ? creation : job })
      )
    })
  )
  return { client, created }
}

it.effect("Ingesting waits as long as a rate limit says, and creates each source once", () =>
  Effect.gen(function* () {
    const { client, created } = makeServer()
    let task: Effect.Effect<void, unknown, Services> = Effect.void
    ingest((given) => (task = given)).parse(
      ["--url", "http://spoke.example", "--key", "spk_1", "https://one.example", "https://two.example"],
      { from: "user" }
    )
    const fiber = yield* Effect.fork(Effect.provideService(task, HttpClient.HttpClient, client))
    for (let second = 0; second < 600; second += 1) yield* TestClock.adjust("1 second")
    yield* Fiber.join(fiber)
    expect(created.length).toBe(2)
    expect(printed.mock.calls.flat()).toEqual([
      "https://one.example: ready, 7 chunks",
      "https://two.example: ready, 7 chunks"
    ])
  })
)
