/** Requests of a move over HTTP: what stands before the other side may answer in its place. */
import { createServer, type ServerResponse } from "node:http"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { overHttp } from "../../src/app/moves/Side.ts"
import { TenantId } from "../../src/domain/Ids.ts"
import { ArtifactRef } from "../../src/domain/knowledge/Source.ts"

const ref = ArtifactRef.make(`sha256:${"0".repeat(64)}`)

const failing = (message: string, reason?: string) => (response: ServerResponse) =>
  response
    .writeHead(404, { "content-type": "application/json" })
    .end(JSON.stringify({ error: { code: "NOT_FOUND", message, ...(reason && { details: { reason } }) } }))

/** What sides have reported. */
const reported: Array<string> = []
const report = (text: string) => Effect.sync(() => void reported.push(text))

/** A side whose server gives these answers, one after another. */
const sideOf = (...answers: ReadonlyArray<(response: ServerResponse) => unknown>) =>
  Effect.gen(function* () {
    const left = [...answers]
    const server = yield* Effect.acquireRelease(
      Effect.async<ReturnType<typeof createServer>>((resume) => {
        const made = createServer((_, response) => void left.shift()?.(response))
        made.listen(0, "127.0.0.1", () => resume(Effect.succeed(made)))
      }),
      (made) =>
        Effect.async<void>((resume) => {
          made.closeAllConnections()
          made.close(() => resume(Effect.void))
        })
    )
    const address = server.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    return yield* overHttp(
      "origin",
      TenantId.make("ten_1"),
      `http://127.0.0.1:${port}`,
      Redacted.make("operator"),
      report
    )
  }).pipe(Effect.provide(FetchHttpClient.layer))

it.scopedLive("An original is missing if the other side says so, not if a proxy does", () =>
  Effect.gen(function* () {
    const restarting = (response: ServerResponse) => response.writeHead(404).end("404 page not found")
    const bytes = (response: ServerResponse) => response.writeHead(200).end("the original")
    const side = yield* sideOf(restarting, bytes)
    const found = yield* side.original(ref)
    expect(Option.map(found, (read) => new TextDecoder().decode(read))).toEqual(Option.some("the original"))
    const removed = yield* sideOf(failing("There is no such original.", "removed"))
    expect(yield* removed.original(ref)).toEqual(Option.none())
    const other = yield* sideOf(failing("The tenant is not being moved."))
    expect(yield* Effect.flip(other.original(ref))).toMatchObject({ reason: "refused" })
  })
)

it.scopedLive("A side that does not answer is reported once, until it does", () =>
  Effect.gen(function* () {
    const restarting = (response: ServerResponse) => response.writeHead(502).end()
    const bytes = (response: ServerResponse) => response.writeHead(200).end("the original")
    const side = yield* sideOf(restarting, restarting, bytes, bytes, restarting, bytes)
    reported.length = 0
    for (const count of [1, 1, 2]) {
      yield* side.original(ref)
      expect(reported).toHaveLength(count)
    }
    expect(reported[0]).toMatch(/^the origin \(http:\S+\) does not answer; trying again/u)
  })
)

it.scopedLive("A side that refuses the token names the option that gives it", () =>
  Effect.gen(function* () {
    const side = yield* sideOf((response) => response.writeHead(401).end())
    const { message } = yield* Effect.flip(side.original(ref))
    expect(message).toContain("does not take the operator's token")
    expect(message).toContain("--operator-token-file (SPOKE_OPERATOR_TOKEN)")
  })
)
