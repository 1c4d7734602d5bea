import * as Http from "node:http"
import * as Net from "node:net"
import type { AddressInfo } from "node:net"
import { it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { describe, expect } from "vitest"
import {
  type BodyLimits,
  collect,
  RequestBodies,
  RequestBodyLimits,
  stream
} from "../../../src/http/server/RequestBody.ts"
import * as Server from "../../../src/http/server/Server.ts"
import { TestDatabase } from "../../TestDatabase.ts"
import { type Answer, ask, connect, eventually, limitMetric, portOf } from "../HostileClients.ts"
import { api, keyHeader, script } from "../PublicServer.ts"
import { appSecret, signatureOf, webhookServer, whatsapp } from "../channels/WebhookServer.ts"

const KiB = 1_024

const limits: BodyLimits = {
  maxBufferedBytes: 1_024 * KiB,
  graceMillis: 60_000,
  minBytesPerSecond: 1_024,
  lingerMillis: 1_000
}

const withLimits = (changed: Partial<BodyLimits>) =>
  Layer.succeed(RequestBodyLimits, { ...limits, ...changed })

/** The public API, with its own routes for metrics. */
const publicServer = (changed: Partial<BodyLimits> = {}) =>
  Server.serve(api).pipe(
    Layer.provideMerge(Server.listen({ host: "127.0.0.1", port: 0, grace: "1 second" })),
    Layer.provideMerge(script),
    Layer.provide(withLimits(changed))
  )

const head = (path: string, headers: string, length: number | "chunked") =>
  `POST ${path} HTTP/1.1\r\nhost: a\r\n${headers}content-type: application/json\r\n` +
  (length === "chunked" ? "transfer-encoding: chunked\r\n\r\n" : `content-length: ${length}\r\n\r\n`)

/** Sends the first `size` bytes of a body that is said to be larger. */
const half = async (port: number, path: string, size: number, from: string, headers = "") => {
  const client = await connect(port, from)
  client.socket.on("error", () => {})
  client.send(head(path, headers, size * 2))
  client.send(Buffer.alloc(size, " "))
  return client
}

const statusOf = (heard: string) => Number(/^HTTP\/1\.1 (\d+)/.exec(heard)?.[1] ?? 0)

describe("Bodies of requests", () => {
  it.live("stay within their memory budget, and the holder of the most memory is refused first", () =>
    Effect.gen(function* () {
      const port = yield* portOf
      const key = "x-api-key: spk_all\r\n"
      yield* Effect.promise(async () => {
        const hostile = await Promise.all(
          Array.from({ length: 40 }, () => half(port, "/v1/chat", 100 * KiB, "127.0.0.2", key))
        )
        const answered = () => hostile.filter((client) => client.received() !== "")
        await eventually("what is too much is refused", () => answered().length >= 25)
        expect(await limitMetric(port, "held", "request-body-bytes")).toBeLessThanOrEqual(1_024 * KiB)
        for (const client of answered()) {
          expect(statusOf(client.received())).toBe(503)
          expect(client.received()).toMatch(/^retry-after: 1\r$/imu)
          expect(client.received()).toMatch(/^connection: close\r$/imu)
          expect(client.received()).toContain("SERVICE_UNAVAILABLE")
        }
        // Others have their bodies read: large ones, too.
        const large = JSON.stringify({ message: "Hi", ignored: "x".repeat(300 * KiB) })
        const answers: Array<Answer> = []
        for (let times = 0; times < 5; times++)
          answers.push(
            await ask(port, "/v1/chat", {
              method: "POST",
              from: `127.0.0.${times + 3}`,
              headers: { ...keyHeader("spk_all"), "content-type": "application/json" },
              body: large
            })
          )
        expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
        for (const { socket } of hostile) socket.destroy()
        await eventually(
          "everything is given back",
          async () => (await limitMetric(port, "held", "request-body-bytes")) === 0
        )
      })
    }).pipe(Effect.provide(publicServer()))
  )

  it.live("are no longer read when there is no memory for them", () =>
    Effect.promise(async () => {
      const bodies = new RequestBodies({ ...limits, maxBufferedBytes: 64 * KiB })
      let read = (): number => 0
      let client: Net.Socket | undefined
      const refused = new Promise<void>((resolve) => {
        const server = Http.createServer((request, response) => {
          bodies.register(request, response, "a", () => {})()
          read = () => request.socket.bytesRead
          collect(request, 1_024 * 1_024 * KiB, (body) => {
            expect(Either.isLeft(body) && body.left._tag).toBe("SERVICE_UNAVAILABLE")
            resolve()
          })
          request.socket.once("close", () => server.close())
        }).listen(0, "127.0.0.1", () => {
          client = Net.connect((server.address() as AddressInfo).port, "127.0.0.1")
          client.on("error", () => {})
          client.write(head("/", "", 64 * 1_024 * KiB))
          client.write(Buffer.alloc(64 * 1_024 * KiB))
        })
      })
      await refused
      const before = read()
      await new Promise((resolve) => setTimeout(resolve, 200))
      expect(read() - before).toBeLessThan(1_024 * KiB)
      expect(before).toBeLessThan(2 * 1_024 * KiB)
      client?.destroy()
    })
  )

  for (const raw of [true, false])
    it.live(
      `of webhooks are counted before anybody knows who sends them (${raw ? "raw" : "through the router"})`,
      () =>
        Effect.gen(function* () {
          const port = yield* portOf
          yield* Effect.promise(async () => {
            const hostile = await Promise.all(
              Array.from({ length: 20 }, () => half(port, "/api/webhooks/whatsapp", 500 * KiB, "127.0.0.2"))
            )
            await eventually("what is too much is refused", () => {
              const refused = hostile.filter((client) => statusOf(client.received()) === 503)
              return refused.length >= 15
            })
            const body = JSON.stringify(whatsapp([`wamid.${raw}`]))
            const delivered = await ask(port, "/api/webhooks/whatsapp", {
              method: "POST",
              from: "127.0.0.3",
              headers: { "x-hub-signature-256": signatureOf(body, appSecret) },
              body
            })
            expect([delivered.status, JSON.parse(delivered.text).data.enqueued]).toEqual([200, 1])
            for (const { socket } of hostile) socket.destroy()
          })
        }).pipe(
          Effect.provide(webhookServer({ raw }).pipe(Layer.provide(withLimits({})))),
          Effect.provide(TestDatabase)
        )
    )

  it.live("that stop or arrive too slowly are refused; one that arrives fast enough is not", () =>
    Effect.gen(function* () {
      const port = yield* portOf
      yield* Effect.promise(async () => {
        const key = "x-api-key: spk_all\r\n"
        const stopped = await half(port, "/v1/chat", 10, "127.0.0.2", key)
        const slow = await half(port, "/v1/chat", 10_000, "127.0.0.2", key)
        const dripping = setInterval(() => slow.send(" "), 50)
        const fast = await connect(port, "127.0.0.3")
        const message = JSON.stringify({ message: "Hi", ignored: "x".repeat(40_000) })
        fast.send(head("/v1/chat", key, message.length))
        for (let at = 0; at < message.length; at += 4_000) {
          fast.send(message.slice(at, at + 4_000))
          await new Promise((resolve) => setTimeout(resolve, 300))
        }
        for (const client of [stopped, slow]) {
          expect(statusOf(await client.closed)).toBe(400)
          expect(client.received()).toContain("too slowly")
        }
        clearInterval(dripping)
        await eventually("the fast one is answered", () => fast.received() !== "")
        expect(statusOf(fast.received())).toBe(200)
        fast.socket.destroy()
      })
    }).pipe(Effect.provide(publicServer({ graceMillis: 1_000, minBytesPerSecond: 8_000 })))
  )

  it.live("that continue after the answer are discarded for a while, then the connection is closed", () =>
    Effect.gen(function* () {
      const port = yield* portOf
      yield* Effect.promise(async () => {
        const client = await connect(port)
        client.socket.on("error", () => {})
        client.send(head("/v1/chat", "", 1_000_000_000))
        const endless = setInterval(() => client.send(Buffer.alloc(1_000)), 5)
        const heard = await client.closed
        clearInterval(endless)
        expect(statusOf(heard)).toBe(401)
      })
    }).pipe(Effect.provide(publicServer({ lingerMillis: 500 })))
  )
})

/** A server of Node's that hands each request to `use`, as overload control does. */
const rawServer = async (
  use: (bodies: RequestBodies, request: Http.IncomingMessage, response: Http.ServerResponse) => void
) => {
  const bodies = new RequestBodies(limits)
  const server = Http.createServer((request, response) => {
    response.once("close", () => bodies.end(request))
    use(bodies, request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return {
    bodies,
    port: (server.address() as AddressInfo).port,
    close: () => server.close().closeAllConnections()
  }
}

describe("Bodies in thousands of chunks", () => {
  const pieces = 20_000
  const chunked = `${"1\r\nx\r\n".repeat(pieces)}0\r\n\r\n`

  it("arrive as a few large chunks, before and after the request is begun", async () => {
    const counts: Array<number> = []
    const server = await rawServer((bodies, request, response) => {
      const begin = bodies.register(request, response, "a", () => {})
      const later = request.url === "/later"
      const read = () => {
        let count = 0
        let length = 0
        request.on("data", (chunk: Buffer) => {
          count++
          length += chunk.length
        })
        request.on("end", () => {
          counts.push(count)
          response.end(String(length))
        })
        begin()
      }
      if (later) setTimeout(read, 300)
      else read()
    })
    for (const path of ["/now", "/later"]) {
      const client = await connect(server.port)
      client.send(head(path, "", "chunked") + chunked)
      await eventually("it is answered", () => client.received().endsWith(String(pieces)))
      client.socket.destroy()
    }
    server.close()
    for (const count of counts) expect(count).toBeLessThan(30)
  })

  it("are complete and in order, both collected and streamed", async () => {
    const server = await rawServer((bodies, request, response) => {
      bodies.register(request, response, "a", () => {})()
      if (request.url === "/stream") {
        void Effect.runPromise(
          Stream.runFold(
            stream(request, 1_000_000),
            "",
            (text, chunk) => text + Buffer.from(chunk).toString()
          )
        ).then((text) => response.end(text))
      } else collect(request, 1_000_000, (body) => response.end(Buffer.from(Either.getOrThrow(body))))
    })
    const text = Array.from({ length: 3_000 }, (_, place) => `${place},`)
    for (const path of ["/collect", "/stream"]) {
      const client = await connect(server.port)
      client.send(head(path, "", "chunked"))
      for (const piece of text) client.send(`${piece.length.toString(16)}\r\n${piece}\r\n`)
      client.send("0\r\n\r\n")
      const whole = text.join("")
      await eventually("all of it comes back", () => client.received().includes(whole))
      client.socket.destroy()
    }
    server.close()
    await eventually("nothing is held any more", () => server.bodies.memory.held === 0)
  })
})
