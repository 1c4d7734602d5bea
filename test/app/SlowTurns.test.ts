/** Commands whose answer takes as long as a turn: `SPOKE_TURN_TIMEOUT` may be a day. */
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/TestClock"
import { afterAll, beforeAll, vi } from "vitest"
import type { Run } from "../../src/app/cli/Arguments.ts"
import { chat } from "../../src/app/cli/Chat.ts"
import { replayCommand } from "../../src/app/cli/Replay.ts"
import type { Services } from "../../src/app/cli/Services.ts"

beforeAll(() => {
  for (const name of ["log", "error"] as const) vi.spyOn(console, name).mockReturnValue()
})
afterAll(() => vi.restoreAllMocks())

const before = { reply: "Before.", citations: [], failure: null, inputTokens: 1, outputTokens: 1 }

/** A server that answers every turn after four minutes, one at a time. */
const makeServer = () => {
  const asked: Array<string> = []
  const client = HttpClient.make((request, { pathname }) =>
    Effect.gen(function* () {
      asked.push(pathname)
      const body = request.body._tag === "Uint8Array" ? new TextDecoder().decode(request.body.body) : "{}"
      const { runIds = [""] }: { readonly runIds?: ReadonlyArray<string> } = JSON.parse(body)
      yield* Effect.sleep(240_000 * runIds.length)
      const runs = runIds.map((runId) => ({ runId, outcome: "same", reason: null, before, after: before }))
      return HttpClientResponse.fromWeb(request, Response.json({ data: { reply: "Yes.", runs } }))
    })
  )
  return { asked, client }
}

const finished = (
  command: (run: Run) => { parse: (args: Array<string>, options: { from: "user" }) => unknown },
  ...args: Array<string>
) =>
  Effect.gen(function* () {
    const { asked, client } = makeServer()
    let task: Effect.Effect<void, unknown, Services> = Effect.void
    command((given) => (task = given)).parse(["--url", "http://spoke.example", "--key", "spk_1", ...args], {
      from: "user"
    })
    const fiber = yield* Effect.fork(Effect.provideService(task, HttpClient.HttpClient, client))
    for (let minute = 0; minute < 15; minute += 1) yield* TestClock.adjust("1 minute")
    yield* Fiber.join(fiber)
    return asked
  })

it.effect("chat --json waits for a turn as long as the server runs it", () =>
  Effect.gen(function* () {
    expect(yield* finished(chat, "Hi", "--json")).toEqual(["/v1/chat"])
  })
)

it.effect("replay asks for one turn at a time, and waits as long as the server runs it", () =>
  Effect.gen(function* () {
    const path = "/api/agents/agt_1/replays"
    expect(yield* finished(replayCommand, "run_1", "run_2", "--agent", "agt_1")).toEqual([path, path])
  })
)
