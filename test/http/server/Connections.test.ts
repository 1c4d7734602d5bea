import { it } from "@effect/vitest"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as Stream from "effect/Stream"
import { BlockList } from "node:net"
import { describe, expect } from "vitest"
import { TrustedProxies } from "../../../src/http/server/ClientAddress.ts"
import { ConnectionLimits } from "../../../src/http/server/Connections.ts"
import * as Server from "../../../src/http/server/Server.ts"
import { ask, type Client, connect, eventually, limitMetric, portOf } from "../HostileClients.ts"
import { api, keyHeader, Script, script, turn } from "../PublicServer.ts"
import { result } from "../chat/UiStream.ts"
import { realtimePath } from "../../../src/http/realtime/RealtimePath.ts"

/** Answers handshakes with a stream that never ends. */
const handshakes = HttpApiBuilder.Router.use((router) =>
  router.get(realtimePath, HttpServerResponse.stream(Stream.repeatValue(new Uint8Array(10_000))))
)

const server = (limits: Partial<ConnectionLimits["Type"]> = {}, proxies = new BlockList()) =>
  Server.serve(Layer.merge(api, handshakes)).pipe(
    Layer.provideMerge(Server.listen({ host: "127.0.0.1", port: 0, grace: "1 second" })),
    Layer.provideMerge(script),
    Layer.provide(Layer.succeed(ConnectionLimits, { maxConnections: 40, maxStallMillis: 60_000, ...limits })),
    Layer.provide(Layer.succeed(TrustedProxies, proxies))
  )

const openMany = (port: number, count: number, from: string, first = "") =>
  Promise.all(
    Array.from({ length: count }, async () => {
      const client = await connect(port, from)
      client.socket.on("error", () => {})
      client.send(first)
      return client
    })
  )

const closeAll = (clients: ReadonlyArray<Client>) => {
  for (const { socket } of clients) socket.destroy()
}

const openOf = (clients: ReadonlyArray<Client>) => clients.filter((client) => !client.isClosed())

describe("Connections", () => {
  for (const [what, first] of [
    ["that ask nothing", ""],
    ["whose headers never end", "GET /healthz HTTP/1.1\r\nhost: a\r\nx-slow: "]
  ] as const)
    it.live(`of one address ${what} are limited to half of the maximum, and the newest stay`, () =>
      Effect.gen(function* () {
        const port = yield* portOf
        yield* Effect.promise(async () => {
          const hostile: Array<Client> = []
          for (let times = 0; times < 3; times++)
            hostile.push(...(await openMany(port, 20, "127.0.0.2", first)))
          await eventually("most are closed", () => openOf(hostile).length <= 20)
          expect(await limitMetric(port, "held", "http-connections")).toBeLessThanOrEqual(21)
          for (const from of ["127.0.0.2", "127.0.0.3"])
            expect((await ask(port, "/healthz", { from })).status).toBe(200)
          closeAll(hostile)
        })
      }).pipe(Effect.provide(server()))
    )

  it.live(
    "without a request are closed when there are too many, first those of the address with the most",
    () =>
      Effect.gen(function* () {
        const port = yield* portOf
        yield* Effect.promise(async () => {
          const many = await openMany(port, 20, "127.0.0.2")
          const others = await openMany(port, 15, "127.0.0.3")
          await eventually("all are accepted", async () => {
            return (await limitMetric(port, "held", "http-connections")) >= 35
          })
          const few = await openMany(port, 3, "127.0.0.4")
          for (let times = 0; times < 10; times++)
            expect((await ask(port, "/healthz", { from: `127.0.1.${times}` })).status).toBe(200)
          const more = await openMany(port, 5, "127.0.0.5")
          await eventually("some were closed", () => openOf(many).length < 20)
          expect([openOf(others).length, openOf(few).length, openOf(more).length]).toEqual([15, 3, 5])
          closeAll([...many, ...others, ...few, ...more])
        })
      }).pipe(Effect.provide(server()))
  )

  it.live("with a request are kept, and one beyond the limit is refused with an answer", () =>
    Effect.gen(function* () {
      const port = yield* portOf
      const { start } = yield* Script
      const ended = yield* Effect.makeLatch(false)
      let begun = 0
      yield* Ref.set(start, () =>
        Effect.sync(() => {
          begun++
          return turn(Stream.fromEffect(Effect.as(ended.await, { _tag: "Done", result } as const)))
        })
      )
      const streams = Array.from({ length: 10 }, (_, place) =>
        ask(port, "/v1/chat/stream", {
          method: "POST",
          from: `127.0.0.${place + 2}`,
          headers: { ...keyHeader("spk_all"), "content-type": "application/json" },
          body: '{"message":"Hi"}'
        })
      )
      yield* Effect.promise(async () => {
        await eventually("all are open", () => begun === 10)
        const refused = await connect(port, "127.0.1.1")
        refused.send("GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n")
        expect(await refused.closed).toMatch(/^HTTP\/1\.1 503 /u)
        expect(refused.received()).toMatch(/^retry-after: \d+\r$/mu)
      })
      yield* ended.open
      const texts = yield* Effect.promise(() => Promise.all(streams))
      expect(texts.map(({ status, text }) => [status, text.includes("data-done")])).toEqual(
        texts.map(() => [200, true])
      )
    }).pipe(Effect.provide(server({ maxConnections: 10 })))
  )

  it.live("of a trusted proxy may reach the maximum", () => {
    const proxies = new BlockList()
    proxies.addAddress("127.0.0.2")
    return Effect.gen(function* () {
      const port = yield* portOf
      yield* Effect.promise(async () => {
        const clients = await openMany(port, 38, "127.0.0.2")
        await eventually("all are accepted", async () => {
          return (await limitMetric(port, "held", "http-connections")) >= 38
        })
        expect(openOf(clients)).toHaveLength(38)
        closeAll(clients)
      })
    }).pipe(Effect.provide(server({}, proxies)))
  })

  const body = '{"message":"Hi"}'
  for (const [what, request] of [
    [
      "an answer",
      `POST /v1/chat/stream HTTP/1.1\r\nhost: a\r\nx-api-key: spk_all\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
    ],
    [
      "an answer to a handshake",
      `GET ${realtimePath} HTTP/1.1\r\nhost: a\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n`
    ]
  ] as const)
    it.live(`whose clients read nothing of ${what} are closed`, () =>
      Effect.gen(function* () {
        const port = yield* portOf
        const { start } = yield* Script
        const endless = Stream.repeatValue({ _tag: "TextDelta", delta: "x".repeat(10_000) } as const)
        yield* Ref.set(start, () => Effect.succeed(turn(endless)))
        yield* Effect.promise(async () => {
          const client = await connect(port)
          client.socket.on("error", () => {})
          client.socket.pause()
          client.send(request)
          await eventually("it is closed", async () => {
            return (await limitMetric(port, "held", "http-connections")) <= 1
          })
          client.socket.destroy()
        })
      }).pipe(Effect.provide(server({ maxStallMillis: 1_500 })))
    )
})
