/** What `spoke tenant move` prints. */
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { afterAll, beforeAll, vi } from "vitest"
import type { Services } from "../../src/app/cli/Services.ts"
import { moveCommand } from "../../src/app/cli/tenant/Move.ts"

const printed = vi.fn<(text: string) => void>()
beforeAll(() => {
  vi.spyOn(console, "log").mockImplementation(printed)
  vi.spyOn(console, "error").mockReturnValue()
})
afterAll(() => vi.restoreAllMocks())

const destination = "http://destination.example"

/** The origin has ended the move, and the destination has not. */
const client = HttpClient.make((request, { host }) =>
  Effect.sync(() => {
    const body = request.body._tag === "Uint8Array" ? new TextDecoder().decode(request.body.body) : "{}"
    const { _tag }: { readonly _tag?: string } = JSON.parse(body)
    const isThere = destination.endsWith(host)
    const move = {
      tenantId: "ten_1",
      move: "1",
      role: "destination",
      state: "serving",
      handovers: 1,
      servedAt: "http://origin.example",
      accounts: []
    }
    const facts = {
      migrations: [],
      tables: [],
      name: isThere ? "Acme" : null,
      move: isThere ? move : null
    }
    const data = _tag === "Facts" ? facts : _tag === "Begin" ? move : { changed: true }
    return HttpClientResponse.fromWeb(request, Response.json({ data }))
  })
)

it.effect("The confirmation is JSON with --json, like the move itself", () =>
  Effect.gen(function* () {
    let task: Effect.Effect<void, unknown, Services> = Effect.void
    const origin = ["--url", "http://origin.example", "--operator-token", "one"]
    moveCommand((given) => (task = given)).parse(
      ["ten_1", ...origin, "--to", destination, "--to-token", "two", "--confirm", "--json"],
      { from: "user" }
    )
    yield* Effect.provideService(task, HttpClient.HttpClient, client)
    expect(printed.mock.calls.map(([text]) => JSON.parse(text))).toEqual([
      { tenant: "ten_1", servedAt: destination }
    ])
  })
)
