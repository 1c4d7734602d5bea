/** The API of an instance in the process of a web framework, asked over HTTP. */
import { Agent, createServer, request as askFor, type Server } from "node:http"
import { connect as connectHttp2 } from "node:http2"
import { connect } from "node:net"
import { serve } from "@hono/node-server"
import express from "express"
import Fastify, { type FastifyInstance } from "fastify"
import { Hono } from "hono"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import type { Spoke } from "../../src/client/Spoke.ts"
import * as ForExpress from "../../src/express.ts"
import * as ForFastify from "../../src/fastify.ts"
import * as ForHono from "../../src/hono.ts"
import { answer } from "../../src/app/mount/NodeRequests.ts"
import { createSpoke } from "../../src/index.ts"
import * as ForNext from "../../src/next.ts"
import { removeFolder, temporaryFolder } from "../e2e/Spoke.ts"

const folder = temporaryFolder()
let spoke: Spoke
let key = ""
const given = () => Promise.resolve(spoke)

beforeAll(async () => {
  spoke = await createSpoke({ dataDir: folder, workers: false })
  const { id } = await spoke.agents.create({ name: "Mounted" })
  key = (await spoke.agent(id).keys.create({ name: "k", permissions: ["*"] })).secret
}, 60_000)

afterAll(async () => {
  await spoke.close()
  removeFolder(folder)
})

const closing: Array<() => unknown> = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

const addressOf = (server: Pick<Server, "address">) => {
  const address = server.address()
  return typeof address === "object" && address !== null ? `http://127.0.0.1:${address.port}` : ""
}

const listen = async (app: Parameters<typeof createServer>[1]) => {
  const server = createServer(app)
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  closing.push(() => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  })
  return addressOf(server)
}

const post = (url: string, body: string | FormData, headers: Readonly<Record<string, string>> = {}) =>
  fetch(url, {
    method: "POST",
    headers: {
      "x-api-key": key,
      ...(typeof body === "string" ? { "content-type": "application/json" } : {}),
      ...headers
    },
    body
  })

const json = async (response: Response): Promise<ReturnType<typeof JSON.parse>> =>
  JSON.parse(await response.text())

/** What holds wherever it is mounted. */
const answers = async (url: string) => {
  expect((await fetch(`${url}/healthz`)).status).toBe(200)
  const refused = await fetch(`${url}/v1/usage`)
  expect([refused.status, (await json(refused)).error.code]).toEqual([401, "UNAUTHORIZED"])
  expect(refused.headers.get("x-request-id")).not.toBeNull()
  const listed = await fetch(`${url}/v1/sources?limit=1`, { headers: { "x-api-key": key } })
  expect([listed.status, Array.isArray((await json(listed)).data.sources)]).toEqual([200, true])
  const turn = await post(`${url}/v1/chat`, JSON.stringify({ message: "Grüße, 漢?" }))
  expect([turn.status, typeof (await json(turn)).data.reply]).toEqual([200, "string"])
  const streamed = await post(`${url}/v1/chat/stream`, JSON.stringify({ message: "Hello" }))
  expect(streamed.headers.get("content-type")).toContain("text/event-stream")
  expect((await streamed.text()).endsWith("data: [DONE]\n\n")).toBe(true)
  const missing = await fetch(`${url}/v1/nothing`)
  expect([missing.status, (await json(missing)).error.code]).toEqual([404, "NOT_FOUND"])
}

/** The status of each answer on one connection. */
const onOneConnection = async (url: string, requests: ReadonlyArray<readonly [string, string, number]>) => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  closing.push(() => agent.destroy())
  const statuses: Array<number | undefined> = []
  for (const [method, path, bytes] of requests) {
    const status = new Promise<number | undefined>((resolve, reject) => {
      const asked = askFor(
        `${url}${path}`,
        { agent, method, headers: { "content-length": bytes } },
        (answer) => answer.resume().on("end", () => resolve(answer.statusCode))
      )
      asked.on("error", reject).setTimeout(5_000, () => asked.destroy(new Error("No answer.")))
      asked.end(Buffer.alloc(bytes, "a"))
    })
    statuses.push(await status)
  }
  return statuses
}

const upload = async (url: string) => {
  const form = new FormData()
  form.set("file", new Blob(["x".repeat(300_000)], { type: "text/plain" }), "long.txt")
  return post(`${url}/v1/sources/upload`, form)
}

describe("Spoke in Express", () => {
  it("answers beside the host's own routes, also below a path", async () => {
    const app = express()
    app.get("/hello", (_, response) => void response.send("Hello"))
    app.use("/ai", ForExpress.spoke(given))
    const url = await listen(app)
    expect(await (await fetch(`${url}/hello`)).text()).toBe("Hello")
    await answers(`${url}/ai`)
    expect((await upload(`${url}/ai`)).status).toBe(201)
  })

  it("answers behind a parser of JSON, compressed bodies too, and says what it cannot read again", async () => {
    const app = express()
    app.use(express.json(), express.urlencoded())
    app.use(ForExpress.spoke(given))
    const errors: Array<unknown> = []
    app.use((error: unknown, _: unknown, response: express.Response, _next: unknown) => {
      errors.push(error)
      response.status(500).send("broken")
    })
    const url = await listen(app)
    await answers(url)
    expect((await upload(url)).status).toBe(201)
    const form = await post(`${url}/v1/chat`, "message=Hello", {
      "content-type": "application/x-www-form-urlencoded"
    })
    expect([form.status, errors.map(String)]).toEqual([
      500,
      [
        "TypeError: The body of the request has already been parsed. Mount Spoke before whatever parses bodies of other types than JSON and text."
      ]
    ])
  })

  it("gives a failure to open to the host, and opens it with the next request", async () => {
    let tries = 0
    const app = express()
    app.use(
      ForExpress.spoke(() => (++tries === 1 ? Promise.reject(new Error("not yet")) : Promise.resolve(spoke)))
    )
    app.use((error: Error, _: unknown, response: express.Response, _next: unknown) => {
      response.status(503).send(error.message)
    })
    const url = await listen(app)
    const first = await fetch(`${url}/healthz`)
    expect([first.status, await first.text()]).toEqual([503, "not yet"])
    expect((await fetch(`${url}/healthz`)).status).toBe(200)
  })
})

describe("Spoke in Express", () => {
  it("ends a request whose client left before the host passed it on", async () => {
    const app = express()
    const ended = new Promise<boolean>((resolve) => {
      app.use((request, response) => {
        response.once("close", () => {
          const endless = ({ signal }: Request) =>
            new ReadableStream({
              // More than a client takes that is gone.
              pull: (controller) => controller.enqueue(new Uint8Array(1_048_576)),
              cancel: () => resolve(signal.aborted)
            })
          const watched: Spoke = {
            ...spoke,
            fetch: (asked) => Promise.resolve(new Response(endless(asked)))
          }
          void answer(watched, request, response, "/healthz")
        })
      })
    })
    const url = await listen(app)
    await fetch(`${url}/x`, { signal: AbortSignal.timeout(200) }).catch(() => undefined)
    expect(await ended).toBe(true)
  })
})

describe("Spoke in Express", () => {
  it("answers the next request of a connection whose last body was refused unread", async () => {
    const app = express()
    app.use(ForExpress.spoke(given))
    const url = await listen(app)
    const long = ["POST", "/v1/chat", 1_000_000] as const
    expect(await onOneConnection(url, [long, long, ["GET", "/healthz", 0]])).toEqual([401, 401, 200])
  })

  it("takes whole addresses, as a client of a proxy sends them, and an asterisk", async () => {
    const app = express()
    app.use(ForExpress.spoke(given))
    const url = await listen(app)
    const statusOf = (line: string) =>
      new Promise<string>((resolve) => {
        const socket = connect(Number(new URL(url).port), "127.0.0.1")
        let heard = ""
        socket.on("data", (bytes) => (heard += String(bytes))).on("close", () => resolve(heard.slice(9, 12)))
        socket.write(`${line} HTTP/1.1\r\nhost: 127.0.0.1:3000\r\nconnection: close\r\n\r\n`)
      })
    expect(await statusOf("GET http://127.0.0.1:3000/healthz?a=1")).toBe("200")
    expect(await statusOf("OPTIONS *")).toBe("404")
    // Nothing that a host would report as its own error.
    expect(await statusOf("TRACE /healthz")).toBe("501")
  })
})

describe("Spoke in Fastify", () => {
  it("answers over HTTP/2", async () => {
    const app = Fastify({ http2: true })
    await app.register(ForFastify.spoke(given))
    await app.listen({ port: 0, host: "127.0.0.1" })
    const session = connectHttp2(addressOf(app.server))
    closing.push(
      () => session.destroy(),
      () => app.close()
    )
    const ask = (method: string, path: string, body: string) =>
      new Promise<readonly [unknown, string]>((resolve, reject) => {
        let heard = ""
        let status: unknown
        session
          .request({ ":path": path, ":method": method, "x-api-key": key }, { endStream: false })
          .on("response", (headers) => (status = headers[":status"]))
          .on("data", (bytes) => (heard += String(bytes)))
          .on("end", () => resolve([status, heard]))
          .on("error", reject)
          .end(body)
      })
    expect((await ask("GET", "/v1/usage", ""))[0]).toBe(200)
    const [status, parts] = await ask("POST", "/v1/chat/stream", JSON.stringify({ message: "Hello" }))
    expect([status, parts.endsWith("data: [DONE]\n\n")]).toEqual([200, true])
  })

  it("answers a request that it cannot pass on", async () => {
    const app = Fastify()
    await app.register(ForFastify.spoke(given), { prefix: "/ai" })
    await app.listen({ port: 0, host: "127.0.0.1" })
    closing.push(() => app.close())
    const { port } = new URL(addressOf(app.server))
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const asked = askFor({ port: Number(port), host: "127.0.0.1", method: "TRACE", path: "/ai/healthz" })
      asked
        .on("response", ({ statusCode }) => resolve(statusCode))
        .on("error", reject)
        .end()
    })
    expect(status).toBe(501)
  })

  it("answers below its prefix, and leaves the host's own routes and parsers as they are", async () => {
    const app: FastifyInstance = Fastify()
    app.post("/echo", (request) => Promise.resolve({ got: request.body }))
    await app.register(ForFastify.spoke(given), { prefix: "/ai" })
    await app.listen({ port: 0, host: "127.0.0.1" })
    closing.push(() => app.close())
    const url = addressOf(app.server)
    expect(await json(await post(`${url}/echo`, '{"a":1}'))).toEqual({ got: { a: 1 } })
    await answers(`${url}/ai`)
    expect((await upload(`${url}/ai`)).status).toBe(201)
  })
})

describe("Spoke in Hono", () => {
  it("answers what the host has no route for", async () => {
    const app = new Hono()
    const addresses = new Set<string | undefined>()
    const recorded: Spoke["fetch"] = (request, options) => {
      addresses.add(options?.clientAddress)
      return spoke.fetch(request, options)
    }
    app.get("/hello", (context) => context.text("Hello"))
    app.all(
      "*",
      ForHono.spoke(() => Promise.resolve({ ...spoke, fetch: recorded }))
    )
    const server = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" })
    await new Promise<void>((resolve) => server.once("listening", resolve))
    closing.push(() => new Promise((resolve) => server.close(resolve)))
    const url = addressOf(server)
    expect(await (await fetch(`${url}/hello`)).text()).toBe("Hello")
    await answers(url)
    expect((await upload(url)).status).toBe(201)
    // By which failed sign-ins are counted.
    expect([...addresses]).toEqual(["127.0.0.1"])
  })
})

describe("Spoke in a route file of Next.js", () => {
  it("closes while it opens, and opens again after it has closed", async () => {
    const own = temporaryFolder()
    const mounted = ForNext.spoke({ dataDir: own, workers: false })
    const ask = () => mounted.GET(new Request("http://localhost/healthz"))
    expect((await ask()).status).toBe(200)
    const closed = mounted.close()
    // It would use the folder of the one that closes.
    expect((await ask()).status).toBe(200)
    await closed
    await mounted.close()
    const broken = ForNext.spoke({ dataDir: `${own}/other`, appUrl: "no address" })
    const refused = broken.GET(new Request("http://localhost/healthz"))
    await Promise.all([broken.close(), expect(refused).rejects.toMatchObject({ code: "INVALID_CONFIG" })])
    removeFolder(own)
  }, 60_000)

  it("refuses other settings for a database that is mounted, and shares it with the same ones", () => {
    const settings = { dataDir: `${folder}/other`, workers: false, log: () => undefined }
    const first = ForNext.spoke(settings)
    const again = ForNext.spoke({ ...settings, log: () => undefined, env: { NEXT_RUNTIME: "nodejs" } })
    expect(again.close).toBe(first.close)
    expect(() => ForNext.spoke({ ...settings, appUrl: "https://shop.example" })).toThrow(
      "spoke/next has mounted this database with other settings."
    )
    expect(() => ForNext.spoke({ ...settings, env: { SPOKE_TRUSTED_PROXIES: "10.0.0.1" } })).toThrow(
      expect.objectContaining({ code: "INVALID_CONFIG" })
    )
  })

  it("counts failed sign-ins by the addresses that trusted proxies forward, and by none that a client may choose", async () => {
    const signIn = async (to: (request: Request) => Promise<Response>, forwardedFor: string) => {
      const answered = await to(
        new Request("http://localhost/api/auth/login", {
          method: "POST",
          headers: {
            "content-type": "application/json",
            "x-forwarded-for": forwardedFor,
            "x-spoke-csrf": "1"
          },
          body: JSON.stringify({ email: "nobody@example.com", password: "a wrong password" })
        })
      )
      return answered.status
    }
    const failTen = (to: (request: Request) => Promise<Response>, addressOf: (at: number) => string) =>
      Promise.all(Array.from({ length: 10 }, (_, at) => signIn(to, addressOf(at))))
    const [own, other] = [temporaryFolder(), temporaryFolder()]
    const behindProxy = ForNext.spoke({
      dataDir: own,
      workers: false,
      env: { SPOKE_TRUSTED_PROXIES: "10.0.0.0/8" }
    })
    await failTen(behindProxy.POST, (at) => `198.51.100.${at}, 203.0.113.9, 10.0.0.2`)
    expect(await signIn(behindProxy.POST, "203.0.113.9")).toBe(429)
    expect(await signIn(behindProxy.POST, "203.0.113.8")).toBe(401)
    await behindProxy.close()
    const direct = ForNext.spoke({ dataDir: other, workers: false })
    await failTen(direct.POST, (at) => `198.51.100.${at}`)
    expect(await signIn(direct.POST, "203.0.113.7")).toBe(429)
    await direct.close()
    for (const each of [own, other]) removeFolder(each)
  }, 60_000)

  it("is opened by the first request, once, and answers every method", async () => {
    const own = temporaryFolder()
    const first = ForNext.spoke({ dataDir: own, workers: false })
    // The file is loaded again while a development server runs.
    const again = ForNext.spoke({ dataDir: own, workers: false })
    const ask = (path: string, init?: RequestInit) => new Request(`http://localhost${path}`, init)
    const [one, other] = await Promise.all([first.GET(ask("/healthz")), again.GET(ask("/healthz"))])
    expect([one.status, other.status]).toEqual([200, 200])
    expect((await again.POST(ask("/v1/chat", { method: "POST", body: "{}" }))).status).toBe(401)
    expect((await first.OPTIONS(ask("/v1/chat", { method: "OPTIONS" }))).status).toBe(204)
    await first.close()
    removeFolder(own)
  }, 60_000)
})
