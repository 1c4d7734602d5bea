import * as HttpServer from "@effect/platform/HttpServer"
import { it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Ref from "effect/Ref"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { createConnection, type Socket } from "node:net"
import { describe, expect } from "vitest"
import type { TurnPart } from "../../../src/domain/chat/ChatTurn.ts"
import * as Server from "../../../src/http/server/Server.ts"
import { api, keyHeader, layer as PublicServer, Script, script, turn } from "../PublicServer.ts"
import { TestServer } from "../TestServer.ts"
import { connect } from "../HostileClients.ts"
import { result } from "../chat/UiStream.ts"

const chat = (url: string, signal: AbortSignal) =>
  fetch(`${url}/v1/chat/stream`, {
    method: "POST",
    headers: { ...keyHeader("spk_all"), "content-type": "application/json" },
    body: '{"message":"Hi"}',
    signal
  })

/** A server of its own, closed by closing `scope`. */
const serving = (scope: Scope.Scope, grace: "100 millis" | "10 seconds") =>
  Layer.buildWithScope(
    Server.serve(api).pipe(
      Layer.provideMerge(Server.listen({ host: "127.0.0.1", port: 0, grace })),
      Layer.provideMerge(script)
    ),
    scope
  ).pipe(
    Effect.map((context) => {
      const { address } = Context.get(context, HttpServer.HttpServer)
      const port = address._tag === "TcpAddress" ? address.port : 0
      return { url: `http://127.0.0.1:${port}`, script: Context.get(context, Script) }
    })
  )

describe("the listener", () => {
  it.live("that closes lets a running stream end, and accepts no new connection", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { script, url } = yield* serving(scope, "10 seconds")
      const latch = yield* Effect.makeLatch(false)
      const done: TurnPart = { _tag: "Done", result }
      yield* Ref.set(script.start, () =>
        Effect.succeed(turn(Stream.fromEffect(Effect.as(latch.await, done))))
      )
      const response = yield* Effect.promise((signal) => chat(url, signal))
      const closing = yield* Effect.fork(Scope.close(scope, Exit.void))
      yield* Effect.promise((signal) =>
        chat(url, signal).then(
          () => false,
          () => true
        )
      ).pipe(Effect.repeat({ until: (refused) => refused }))
      yield* latch.open
      expect(yield* Effect.promise(() => response.text())).toContain('"data-done"')
      // The client keeps its connection; the server does not wait for it.
      yield* Effect.timeout(closing.await, "5 seconds")
    })
  )

  it.live("that closes does not wait for a connection without a request", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { url } = yield* serving(scope, "10 seconds")
      const silent = yield* Effect.promise(
        () =>
          new Promise<Socket>((resolve, reject) => {
            const socket = createConnection(Number(new URL(url).port), "127.0.0.1", () => resolve(socket))
            socket.on("error", reject)
          })
      )
      // Accepted by now, since the one after it is answered.
      yield* Effect.promise(() => fetch(`${url}/healthz`).then((response) => response.text()))
      const over = Effect.promise(() => new Promise((resolve) => silent.once("close", resolve).resume()))
      yield* Effect.timeout(Effect.zipRight(Scope.close(scope, Exit.void), over), "5 seconds")
    })
  )

  it.live("answers a request that offers another protocol as if it did not, with its body", () =>
    Effect.gen(function* () {
      const scope = yield* Effect.scope
      const { script, url } = yield* serving(scope, "100 millis")
      const done: TurnPart = { _tag: "Done", result }
      yield* Ref.set(script.start, () => Effect.succeed(turn(Stream.make(done))))
      const body = '{"message":"Hi"}'
      const key = Object.entries(keyHeader("spk_all")).map(([name, value]) => `${name}: ${value}\r\n`)
      const client = yield* Effect.promise(() => connect(Number(new URL(url).port)))
      client.send(
        `POST /v1/chat HTTP/1.1\r\nhost: a\r\n${key.join("")}content-type: application/json\r\n` +
          "connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\n" +
          `content-length: ${body.length}\r\n\r\n`
      )
      yield* Effect.sleep("50 millis")
      client.send(body)
      yield* Effect.sleep("200 millis")
      client.send("GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
      const heard = yield* Effect.timeout(
        Effect.promise(() => client.closed),
        "5 seconds"
      )
      expect(heard.match(/HTTP\/1\.1 200 OK/gu)).toHaveLength(2)
    }).pipe(Effect.scoped)
  )

  it.live("closes the connection of an answered handshake, even if the client sends more", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { url } = yield* serving(scope, "10 seconds")
      const client = yield* Effect.promise(() => connect(Number(new URL(url).port)))
      client.send(
        "GET /api/realtime HTTP/1.1\r\nhost: a\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n"
      )
      yield* Effect.sleep("20 millis")
      client.send("more")
      const heard = yield* Effect.timeout(
        Effect.promise(() => client.closed),
        "5 seconds"
      )
      expect(heard).toMatch(/^HTTP\/1\.1 404 /u)
      yield* Effect.timeout(Scope.close(scope, Exit.void), "5 seconds")
    })
  )

  it.live("closes remaining connections at the end of its grace period", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { script, url } = yield* serving(scope, "100 millis")
      yield* Ref.set(script.start, () => Effect.succeed(turn(Stream.never)))
      const response = yield* Effect.promise((signal) => chat(url, signal))
      yield* Scope.close(scope, Exit.void)
      const cut = yield* Effect.promise(() =>
        response.text().then(
          () => false,
          () => true
        )
      )
      expect(cut).toBe(true)
    })
  )
})

describe("a defect", () => {
  it.live("is logged with its request, and other answers are not", () =>
    Effect.gen(function* () {
      const lines: Array<string> = []
      const collect = Logger.replace(
        Logger.defaultLogger,
        Logger.map(Logger.logfmtLogger, (line) => void lines.push(line))
      )
      yield* Effect.gen(function* () {
        const { call } = yield* TestServer
        yield* call("GET", "/nothing?token=secret")
        yield* call("POST", "/v1/chat", { headers: keyHeader("spk_all"), body: "{" })
        yield* call("POST", "/v1/chat", { headers: keyHeader("spk_nobody"), body: {} })
        expect(lines).toEqual([])
        yield* call("GET", "/test/defect?token=secret", { headers: { "x-request-id": "the-one" } })
        expect(lines).toHaveLength(1)
        expect(lines[0]).toMatch(/level=ERROR/)
        expect(lines[0]).toMatch(/internal detail/)
        expect(lines[0]).toMatch(/requestId=the-one/)
        expect(lines[0]).not.toMatch(/token=secret/)
      }).pipe(Effect.provide(PublicServer.pipe(Layer.provide(collect))))
    })
  )
})
