/** `spoke listen`, where the local server takes its time and the server restarts. */
import * as HttpClient from "@effect/platform/HttpClient"
import type * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import { expect, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/TestClock"
import { afterAll, beforeAll, vi } from "vitest"
import type { Services } from "../../src/app/cli/Services.ts"
import { listenCommand } from "../../src/app/cli/Listen.ts"

beforeAll(() => {
  for (const name of ["log", "error"] as const) vi.spyOn(console, name).mockReturnValue()
})
afterAll(() => vi.restoreAllMocks())

/** A listener is removed when nobody has asked for so long. */
const lease = 120_000

const decodeNext = Schema.decodeUnknownSync(
  Schema.parseJson(Schema.Struct({ received: Schema.NullOr(Schema.String), waitSeconds: Schema.Int }))
)

const failure = (code: string) => JSON.stringify({ error: { code, message: `${code}.` } })

/** A server with one listener, and a local one that answers nothing. */
const makeServers = (events: number, isDown: (asked: number) => boolean = () => false) => {
  let pending = Array.from({ length: events }, (_, place) => place + 1)
  let askedAt = 0
  let asked = 0
  const forwarded: Array<string> = []
  const next = (now: number, body: string) => {
    if (now - askedAt > lease) return [404, failure("NOT_FOUND")] as const
    askedAt = now
    const { received } = decodeNext(body)
    if (received !== null) pending = pending.filter((place) => place > Number(received))
    const batch = pending.slice(0, 50)
    const heard = batch.map((place) => ({
      id: `evt_${place}`,
      type: "turn.settled",
      headers: {},
      body: String(place)
    }))
    return [
      200,
      JSON.stringify({ data: { events: heard, received: String(batch.at(-1) ?? received) } })
    ] as const
  }
  const bodyOf = (request: HttpClientRequest.HttpClientRequest) =>
    request.body._tag === "Uint8Array" ? new TextDecoder().decode(request.body.body) : ""
  const client = HttpClient.make((request, url) =>
    Effect.gen(function* () {
      if (url.port === "4000") {
        forwarded.push(bodyOf(request))
        return yield* Effect.never
      }
      const now = yield* Clock.currentTimeMillis
      if (url.pathname.endsWith("/listeners")) {
        askedAt = now
        const started = JSON.stringify({ data: { listener: { id: "whk_1" }, secret: "whsec_" } })
        return HttpClientResponse.fromWeb(request, new Response(started))
      }
      if (url.pathname.endsWith("/next")) {
        // An empty answer comes after the time that a request waits.
        if (pending.length === 0) yield* Effect.sleep("20 seconds")
        asked += 1
        const [status, text] = isDown(asked)
          ? ([503, failure("SERVICE_UNAVAILABLE")] as const)
          : next(now, bodyOf(request))
        return HttpClientResponse.fromWeb(request, new Response(text, { status }))
      }
      return HttpClientResponse.fromWeb(request, new Response('{"data":{"deleted":true}}'))
    })
  )
  return { client, forwarded, pending: () => pending }
}

const listen = (client: HttpClient.HttpClient, ...flags: ReadonlyArray<string>) => {
  let task: Effect.Effect<void, unknown, Services> = Effect.void
  listenCommand((given) => (task = given)).parse(
    ["--url", "http://spoke.example", "--token", "spt_1", ...flags],
    { from: "user" }
  )
  return Effect.provideService(task, HttpClient.HttpClient, client)
}

it.effect("Events that a local server keeps waiting are each forwarded once, and the listener stays", () =>
  Effect.gen(function* () {
    const { client, forwarded, pending } = makeServers(70)
    const fiber = yield* Effect.fork(Effect.flip(listen(client, "--forward-to", "http://127.0.0.1:4000")))
    // Each of them is waited for, 10 seconds.
    for (let second = 0; second < 800; second += 5) yield* TestClock.adjust("5 seconds")
    expect(yield* Fiber.poll(fiber)).toMatchObject({ _tag: "None" })
    expect(forwarded).toEqual(Array.from({ length: 70 }, (_, place) => String(place + 1)))
    expect(pending()).toEqual([])
    yield* Fiber.interrupt(fiber)
  })
)

it.effect("Listening goes on after a server that stops or is busy", () =>
  Effect.gen(function* () {
    const { client, pending } = makeServers(3, (asked) => asked > 1 && asked < 6)
    const fiber = yield* Effect.fork(Effect.flip(listen(client)))
    for (let second = 0; second < 60; second += 1) yield* TestClock.adjust("1 second")
    expect(yield* Fiber.poll(fiber)).toMatchObject({ _tag: "None" })
    expect(pending()).toEqual([])
    yield* Fiber.interrupt(fiber)
  })
)

it.effect("Listening ends soon after Ctrl+C, also if the server does not answer any more", () =>
  Effect.gen(function* () {
    const { client } = makeServers(0)
    const hanging = HttpClient.makeWith(
      (preprocessed: Effect.Effect<HttpClientRequest.HttpClientRequest>) =>
        Effect.flatMap(preprocessed, (request) =>
          request.method === "DELETE" ? Effect.never : client.execute(request)
        ),
      Effect.succeed<HttpClientRequest.HttpClientRequest>
    )
    const fiber = yield* Effect.fork(listen(hanging))
    yield* TestClock.adjust("5 seconds")
    const interrupting = yield* Effect.fork(Fiber.interrupt(fiber))
    yield* TestClock.adjust("5 seconds")
    expect(yield* Fiber.poll(interrupting)).toMatchObject({ _tag: "Some" })
  })
)
