import * as HttpServer from "@effect/platform/HttpServer"
import { it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { createConnection } from "node:net"
import { describe, expect } from "vitest"
import * as Overload from "../../../src/http/server/Overload.ts"
import * as Server from "../../../src/http/server/Server.ts"
import { ask, connect, portOf } from "../HostileClients.ts"
import { api, keyHeader, layer as PublicServer, Script, script, turn } from "../PublicServer.ts"
import { TestServer } from "../TestServer.ts"
import { result } from "../chat/UiStream.ts"

/** The server on a database that does not answer before `healed`. */
const onSlowDatabase = (maxWait: Duration.DurationInput) =>
  Effect.gen(function* () {
    const healed = yield* Effect.makeLatch(false)
    const scope = yield* Scope.make()
    const built = yield* Layer.buildWithScope(
      Server.serve(api).pipe(
        Layer.provideMerge(Server.listen({ host: "127.0.0.1", port: 0, grace: "10 seconds" })),
        Layer.provideMerge(script),
        Layer.provide(Layer.succeed(Overload.DatabaseProbe, healed.await)),
        Layer.provide(Layer.succeed(Overload.MaxWait, Duration.decode(maxWait)))
      ),
      scope
    )
    const close = Scope.close(scope, Exit.void)
    yield* Effect.addFinalizer(() => close)
    const { address } = Context.get(built, HttpServer.HttpServer)
    const url = `http://127.0.0.1:${address._tag === "TcpAddress" ? address.port : 0}`
    let begun = 0
    yield* Ref.set(Context.get(built, Script).start, () =>
      Effect.suspend(() => {
        begun++
        return Effect.as(healed.await, turn(Stream.succeed({ _tag: "Done", result })))
      })
    )
    const chat = () =>
      fetch(`${url}/v1/chat/stream`, {
        method: "POST",
        headers: { ...keyHeader("spk_all"), "content-type": "application/json", "x-request-id": "mine" },
        body: '{"message":"Hi"}'
      }).then(async (response) => ({
        status: response.status,
        headers: response.headers,
        text: await response.text()
      }))
    const metric = (name: string) =>
      Effect.promise(async () => {
        const text = await (await fetch(`${url}/metrics`)).text()
        return Number(new RegExp(`^${name} (\\S+)$`, "mu").exec(text)?.[1] ?? 0)
      })
    /** Sends requests, one after the other, until one has to wait. */
    const crowd = Effect.gen(function* () {
      const answers: Array<ReturnType<typeof chat>> = []
      while ((yield* metric("spoke_http_waiting")) === 0) {
        answers.push(chat())
        yield* Effect.sleep("10 millis")
      }
      return answers
    })
    return { begun: () => begun, chat, close, crowd, healed, metric, url }
  })

/** Sends a complete request, then resets the connection. */
const askAndLeave = (port: number) =>
  new Promise<void>((resolve, reject) => {
    const head = `POST /v1/chat/stream HTTP/1.1\r\nhost: a\r\nx-api-key: spk_all\r\ncontent-type: application/json\r\n`
    const socket = createConnection(port, "127.0.0.1", () =>
      socket.write(`${head}content-length: 16\r\n\r\n{"message":"Hi"}`, () => {
        socket.once("close", () => resolve())
        // Wait until the server has read it.
        setTimeout(() => socket.resetAndDestroy(), 50)
      })
    ).on("error", reject)
  })

describe("a server whose database is slow", () => {
  it.live("answers 503 to requests that it cannot begin in time, and completes those that it has begun", () =>
    Effect.gen(function* () {
      const { begun, chat, crowd, healed, metric, url } = yield* onSlowDatabase("200 millis")
      const before = yield* metric("spoke_http_refused_total")
      const answers = yield* crowd
      for (let times = 0; times < 200; times++) answers.push(chat())
      const refused = yield* Effect.repeat(
        Effect.zipLeft(metric("spoke_http_refused_total"), Effect.sleep("10 millis")),
        { until: (count) => count - before >= 100 }
      )
      expect(refused).toBeGreaterThan(before)
      for (const path of ["/healthz", "/readyz"])
        expect((yield* Effect.promise(() => fetch(`${url}${path}`))).status).toBe(200)
      yield* healed.open
      const all = yield* Effect.promise(() => Promise.all(answers))
      const busy = all.filter(({ status }) => status === 503)
      expect(all.filter(({ status }) => status === 200)).toHaveLength(begun())
      expect(begun()).toBeGreaterThanOrEqual(16)
      expect(busy).toHaveLength(all.length - begun())
      expect(busy.length).toBeGreaterThanOrEqual(100)
      for (const { headers, text } of busy) {
        expect(JSON.parse(text)).toEqual({
          error: {
            code: "SERVICE_UNAVAILABLE",
            message: "The server has too much to do. Try again later."
          },
          meta: { requestId: "mine" }
        })
        expect(headers.get("x-request-id")).toBe("mine")
        expect(headers.get("access-control-allow-origin")).toBe("*")
        expect(Number(headers.get("retry-after"))).toBeGreaterThanOrEqual(1)
      }
    }).pipe(Effect.scoped)
  )

  it.live("queues upgrade requests too, and answers 503 when they waited too long", () =>
    Effect.gen(function* () {
      const { crowd, healed, url } = yield* onSlowDatabase("200 millis")
      const answers = yield* crowd
      const port = Number(new URL(url).port)
      const heard = yield* Effect.promise(() =>
        Promise.all(
          Array.from({ length: 50 }, async () => {
            const client = await connect(port)
            client.send(
              "GET /api/realtime HTTP/1.1\r\nhost: a\r\nconnection: Upgrade\r\nupgrade: websocket\r\n" +
                "sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
            )
            return client.closed
          })
        )
      )
      const refused = heard.filter((text) => text.startsWith("HTTP/1.1 503 "))
      // A few requests begin even under overload: they are the measurement.
      expect(refused.length).toBeGreaterThan(25)
      for (const text of refused) expect(text).toMatch(/^retry-after: \d+\r$/mu)
      // This server has no realtime socket.
      expect(heard.every((text) => /^HTTP\/1\.1 (?:404|503) /u.test(text))).toBe(true)
      yield* healed.open
      yield* Effect.promise(() => Promise.all(answers))
    }).pipe(Effect.scoped)
  )

  it.live("begins every request when the time limit allows it", () =>
    Effect.gen(function* () {
      const { begun, chat, crowd, healed } = yield* onSlowDatabase("1 minute")
      const answers = yield* crowd
      for (let times = 0; times < 100; times++) answers.push(chat())
      yield* healed.open
      const all = yield* Effect.promise(() => Promise.all(answers))
      expect(all.every(({ status }) => status === 200)).toBe(true)
      expect(begun()).toBe(all.length)
    }).pipe(Effect.scoped)
  )

  it.live("drops queued requests of clients that have disconnected", () =>
    Effect.gen(function* () {
      const { begun, crowd, healed, url } = yield* onSlowDatabase("1 minute")
      const answers = yield* crowd
      const leavers = Array.from({ length: 100 }, () => askAndLeave(Number(new URL(url).port)))
      yield* Effect.promise(() => Promise.all(leavers))
      yield* healed.open
      yield* Effect.promise(() => Promise.all(answers))
      // A few requests begin even under overload: they are the measurement.
      expect(begun() - answers.length).toBeLessThan(50)
    }).pipe(Effect.scoped)
  )
})

/** A request on a connection of its own, and the server's answer; `reset` without one. */
const outcomeOf = async (port: number) => {
  const { headers, status, text } = await ask(port, "/v1/chat/stream", {
    method: "POST",
    headers: { ...keyHeader("spk_all"), "content-type": "application/json", connection: "keep-alive" },
    body: '{"message":"Hi"}'
  })
  if (status === 0) return text
  if (status !== 503) return String(status)
  return headers["retry-after"] === undefined || headers.connection !== "close" ? "503 without a word" : "503"
}

describe("a server that closes", () => {
  it.live("answers or refuses each waiting and arriving request", () =>
    Effect.gen(function* () {
      const { begun, crowd, healed, url, close } = yield* onSlowDatabase("1 minute")
      const port = Number(new URL(url).port)
      const first = yield* crowd
      const waiting = Array.from({ length: 600 }, () => outcomeOf(port))
      yield* Effect.sleep("300 millis")
      // The server has accepted only some of the connections by now.
      const late = Array.from({ length: 200 }, () => outcomeOf(port))
      const closing = yield* Effect.fork(close)
      yield* Effect.sleep("300 millis")
      yield* healed.open
      const outcomes = yield* Effect.promise(() => Promise.all([...waiting, ...late]))
      yield* Fiber.join(closing)
      const counts = new Map<string, number>()
      for (const outcome of outcomes) counts.set(outcome, (counts.get(outcome) ?? 0) + 1)
      expect([...counts.keys()].filter((outcome) => outcome !== "200" && outcome !== "503")).toEqual([])
      expect(counts.get("503")).toBeGreaterThan(500)
      const answered = yield* Effect.promise(() => Promise.all(first))
      expect(answered.filter(({ status }) => status === 200).length + (counts.get("200") ?? 0)).toBe(begun())
    }).pipe(Effect.scoped)
  )

  it.live("keeps no connection open after it has begun to drain", () =>
    Effect.gen(function* () {
      const begins = yield* Effect.makeLatch(false)
      const built = yield* Layer.build(
        Server.serve(api).pipe(
          Layer.provideMerge(Server.listen({ host: "127.0.0.1", port: 0, grace: "1 second" })),
          Layer.provideMerge(script),
          Layer.provide(Layer.succeed(Overload.DrainBegins, begins.await))
        )
      )
      const port = yield* Effect.provide(portOf, built)
      const headers = { connection: "keep-alive" }
      const before = yield* Effect.promise(() => ask(port, "/healthz", { headers }))
      expect([before.status, before.headers.connection]).toEqual([200, "keep-alive"])
      yield* begins.open
      yield* Effect.sleep("10 millis")
      const after = yield* Effect.promise(() => ask(port, "/healthz", { headers }))
      expect([after.status, after.headers.connection]).toEqual([200, "close"])
    }).pipe(Effect.scoped)
  )
})

describe("a server that is starting or stopping", () => {
  it.live("answers 503 instead of leaving connections without an answer", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const built = yield* Layer.buildWithScope(
        Server.listen({ host: "127.0.0.1", port: 0, grace: "1 second" }),
        scope
      )
      const { address } = Context.get(built, HttpServer.HttpServer)
      const port = address._tag === "TcpAddress" ? address.port : 0
      const response = yield* Effect.promise(() => fetch(`http://127.0.0.1:${port}/v1/sources`))
      expect(response.status).toBe(503)
      expect(response.headers.get("retry-after")).toBe("1")
      const openAi = yield* Effect.promise(() =>
        fetch(`http://127.0.0.1:${port}/v1/chat/completions?a=b`, { method: "POST" })
      )
      expect([openAi.status, openAi.headers.get("x-should-retry")]).toEqual([503, "true"])
      const message = "The server is starting or stopping. Try again."
      expect(yield* Effect.promise(() => openAi.json())).toMatchObject({
        error: { code: "SERVICE_UNAVAILABLE", message, param: null, type: "server_error" }
      })
      const scim = yield* Effect.promise(() => fetch(`http://127.0.0.1:${port}/scim/v2/Users`))
      expect(scim.headers.get("content-type")).toContain("application/scim+json")
      yield* Scope.close(scope, Exit.void)
    })
  )
})

describe("a server that keeps up", () => {
  it.live("refuses no request, however many streams are open", () =>
    Effect.gen(function* () {
      const { url } = yield* TestServer
      const { start } = yield* Script
      const ended = yield* Effect.makeLatch(false)
      yield* Ref.set(start, () =>
        Effect.succeed(turn(Stream.fromEffect(Effect.as(ended.await, { _tag: "Done", result } as const))))
      )
      const open = Array.from({ length: 300 }, () =>
        fetch(`${url}/v1/chat/stream`, {
          method: "POST",
          headers: { ...keyHeader("spk_all"), "content-type": "application/json" },
          body: '{"message":"Hi"}'
        })
      )
      const responses = yield* Effect.promise(() => Promise.all(open))
      expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]))
      yield* ended.open
      const texts = yield* Effect.promise(() => Promise.all(responses.map((response) => response.text())))
      expect(texts.every((text) => text.includes('"data-done"'))).toBe(true)
    }).pipe(Effect.provide(PublicServer))
  )
})
