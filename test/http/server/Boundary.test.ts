import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpServer from "@effect/platform/HttpServer"
import { layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Net from "node:net"
import { describe, expect, it as test } from "vitest"
import { MiB } from "../../../src/domain/Bytes.ts"
import * as Boundary from "../../../src/http/server/Boundary.ts"
import { api, keyHeader, layer as PublicServer, script } from "../PublicServer.ts"
import { type Answer, expectData, expectError, TestServer } from "../TestServer.ts"

const chat = (body: unknown, headers: Readonly<Record<string, string>> = {}) =>
  Effect.flatMap(TestServer, ({ call }) =>
    call("POST", "/v1/chat", { headers: { ...keyHeader("spk_all"), ...headers }, body })
  )

const get = (path: string, headers: Readonly<Record<string, string>> = {}) =>
  Effect.flatMap(TestServer, ({ call }) => call("GET", path, { headers }))

const send = (method: string, path: string, headers: Readonly<Record<string, string>> = {}) =>
  Effect.flatMap(TestServer, ({ call }) => call(method, path, { headers }))

const issues = (answer: Answer) => answer.json.error.details.issues

/** What a client that writes its whole request before it reads sees. */
const raw = (url: string, chunks: Iterable<string | Uint8Array>) =>
  Effect.promise(
    () =>
      new Promise<string>((resolve, reject) => {
        const { hostname, port } = new URL(url)
        const socket = Net.connect(Number(port), hostname)
        let received = ""
        socket.on("data", (data) => {
          received += data.toString()
          if (received.includes("\r\n\r\n") && received.trimEnd().endsWith("}")) socket.end()
        })
        socket.on("error", reject)
        socket.on("close", () => resolve(received))
        for (const chunk of chunks) socket.write(chunk)
      })
  )

layer(PublicServer, { excludeTestServices: true })("every response", (it) => {
  it.effect("has the client's request id in meta and header if it is well formed", () =>
    Effect.gen(function* () {
      const answer = yield* chat({ message: "Hi" }, { "x-request-id": "Trace.1:a_b-c" })
      expectData(answer)
      expect(answer.json.meta.requestId).toBe("Trace.1:a_b-c")
    })
  )

  it.effect("has a new request id if the client's is missing or malformed", () =>
    Effect.gen(function* () {
      const given = ["", "a b", "x".repeat(129), "ä", "a,b"]
      const answers = yield* Effect.forEach(given, (id) =>
        chat({ message: "Hi" }, id === "ä" ? {} : { "x-request-id": id })
      )
      for (const answer of answers) {
        expectData(answer)
        expect(answer.json.meta.requestId).toMatch(/^req_[0-9a-z]{26}$/)
      }
      expect(new Set(answers.map(({ json }) => json.meta.requestId)).size).toBe(given.length)
    })
  )

  it.effect("forbids sniffing, caching and framing, and exposes its headers to any origin", () =>
    Effect.gen(function* () {
      const answers = [
        yield* chat({ message: "Hi" }),
        yield* get("/nowhere"),
        yield* get("/v1/chat"),
        yield* get("/test/defect"),
        yield* send("HEAD", "/healthz"),
        yield* send("OPTIONS", "/v1/chat")
      ]
      for (const { headers } of answers) {
        expect(headers.get("x-request-id")).toMatch(/^req_/)
        expect(headers.get("x-content-type-options")).toBe("nosniff")
        expect(headers.get("cache-control")).toBe("no-store")
        expect(headers.get("content-security-policy")).toContain("frame-ancestors 'none'")
        expect(headers.get("access-control-allow-origin")).toBe("*")
        expect(headers.get("access-control-allow-credentials")).toBeNull()
        // Without https, browsers are not told to use it.
        expect(headers.get("strict-transport-security")).toBeNull()
        const exposed = headers.get("access-control-expose-headers")?.split(", ")
        const ours = ["x-request-id", "x-end-user-id", "x-run-id", "retry-after", "www-authenticate"]
        const limits = ["limit", "remaining", "reset", "policy"].map((name) => `ratelimit-${name}`)
        expect(exposed).toEqual(expect.arrayContaining([...ours, ...limits]))
      }
    })
  )

  it.effect("to a preflight is 204, with a request id, and never grants the dashboard's own header", () =>
    Effect.gen(function* () {
      const answer = yield* send("OPTIONS", "/v1/chat", {
        origin: "https://a.test",
        "access-control-request-method": "POST",
        "access-control-request-headers": "x-api-key, Content-Type, X-Spoke-Csrf"
      })
      expect([answer.status, answer.text]).toEqual([204, ""])
      expect(answer.headers.get("access-control-allow-headers")).toBe("x-api-key, content-type")
      expect(answer.headers.get("access-control-allow-methods")).toContain("PATCH")
      expect(answer.headers.get("x-request-id")).toMatch(/^req_/)
    })
  )
})

layer(PublicServer, { excludeTestServices: true })("routing", (it) => {
  it.effect("answers an unknown route with an enveloped 404, without a key too", () =>
    Effect.gen(function* () {
      for (const path of [
        "/v1/nothing",
        "/nothing",
        "/",
        "/v1",
        "/v1/sources/a/b/c",
        "/%zz",
        "/v1/sources/%zz"
      ]) {
        const answer = yield* get(path)
        if (answer.status !== 401) expectError(answer, 404, "NOT_FOUND")
      }
      expectError(yield* send("DELETE", "/v1/nothing"), 404, "NOT_FOUND")
      expectError(yield* send("OPTIONS", "/v1/nothing"), 404, "NOT_FOUND")
    })
  )

  it.effect("distinguishes paths by case, with any letters in their parameters", () =>
    Effect.gen(function* () {
      const { call } = yield* TestServer
      const body = { message: "Hi", query: "fact" }
      for (const path of ["/V1/chat", "/v1/Chat", "/v1/retrievE"]) {
        expectError(yield* call("POST", path, { headers: keyHeader("spk_all"), body }), 404, "NOT_FOUND")
      }
      // In lower case `İ` is two characters.
      expect((yield* get("/v1/chat/stream/%C4%B0/stream", keyHeader("spk_all"))).status).toBe(204)
    })
  )

  it.effect("takes a semicolon and what follows it for part of the path", () =>
    Effect.gen(function* () {
      const { call } = yield* TestServer
      const body = { message: "Hi", query: "fact" }
      for (const path of ["/v1/retrieve;x", "/v1/retrieve;", "/v1/retrieve;x?y=z"])
        expectError(yield* call("POST", path, { headers: keyHeader("spk_all"), body }), 404, "NOT_FOUND")
      expectError(yield* get("/v1/sources/src_1;x", keyHeader("spk_all")), 404, "NOT_FOUND")
      expect((yield* get("/v1/sources/src_1?x=;y", keyHeader("spk_all"))).status).toBe(200)
    })
  )

  it.effect("applies the rules of a route to every spelling of its path", () =>
    Effect.gen(function* () {
      const { call } = yield* TestServer
      const wrong = yield* call("GET", "/v1/%72etrieve", { headers: keyHeader("spk_all") })
      expectError(wrong, 405, "METHOD_NOT_ALLOWED")
    })
  )

  it.effect("answers a known path with the wrong method with an enveloped 405 and allow", () =>
    Effect.gen(function* () {
      const chat = yield* get("/v1/chat")
      expectError(chat, 405, "METHOD_NOT_ALLOWED")
      expect(chat.headers.get("allow")).toBe("OPTIONS, POST")
      const sources = yield* send("PUT", "/v1/sources")
      expectError(sources, 405, "METHOD_NOT_ALLOWED")
      expect(sources.headers.get("allow")).toBe("GET, HEAD, OPTIONS, POST")
      const one = yield* send("POST", "/v1/sources/src_1")
      expectError(one, 405, "METHOD_NOT_ALLOWED")
    })
  )

  it.effect(
    "answers errors at every spelling of OpenAI's addresses, and below them, in OpenAI's format",
    () =>
      Effect.gen(function* () {
        const answers = yield* Effect.all([
          send("POST", "/v1/chat/completions"),
          send("POST", "/v1/chat/completions/"),
          send("POST", "//v1/chat//completions?a=b"),
          send("POST", "/v1/chat/%63ompletions"),
          get("/v1/models/"),
          get("/v1/models/gpt"),
          get("/v1/chat/completions"),
          get("/v1/chat/completions/chatcmpl_1")
        ])
        expect(answers.map(({ json, status }) => [status, json.error.type, json.error.param])).toEqual([
          ...Array.from({ length: 5 }, () => [401, "authentication_error", null]),
          ...[404, 405, 404].map((status) => [status, "invalid_request_error", null])
        ])
        const elsewhere = yield* Effect.all([get("/v1/chat"), get("/v1/modelsx"), get("/v1/chat/completion")])
        for (const { json } of elsewhere) expect(json.error).not.toHaveProperty("type")
      })
  )

  it.effect("joins repeated slashes of a path, but not of a query", () =>
    Effect.gen(function* () {
      const answer = yield* get("//test//echo/?text=https://a.test//b/c&other=//")
      expect(expectData(answer)).toEqual({ text: "https://a.test//b/c" })
    })
  )

  it.effect("answers OPTIONS without a preflight with the methods of the path", () =>
    Effect.gen(function* () {
      const answer = yield* send("OPTIONS", "/v1/sources/")
      expect([answer.status, answer.headers.get("allow")]).toEqual([204, "GET, HEAD, OPTIONS, POST"])
    })
  )

  it.effect("answers HEAD like GET, without a body", () =>
    Effect.gen(function* () {
      const found = yield* send("HEAD", "/v1/sources/src_1", keyHeader("spk_all"))
      expect([found.status, found.text]).toEqual([200, ""])
      expect((yield* send("HEAD", "/nothing")).status).toBe(404)
      expect((yield* send("HEAD", "/v1/chat")).status).toBe(405)
    })
  )
})

layer(PublicServer, { excludeTestServices: true })("a request body", (it) => {
  it.effect("that is malformed JSON is 400 VALIDATION_ERROR", () =>
    Effect.gen(function* () {
      for (const body of ["{", "nope", '{"message":}', '{"message":"a"', "[".repeat(50)]) {
        expectError(yield* chat(body, { "content-type": "application/json" }), 400, "VALIDATION_ERROR")
      }
    })
  )

  it.effect("of another content type is 400 VALIDATION_ERROR", () =>
    Effect.gen(function* () {
      const form = new FormData()
      form.append("message", "Hi")
      expectError(yield* chat(form), 400, "VALIDATION_ERROR")
      for (const type of [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/octet-stream",
        "x"
      ]) {
        expectError(yield* chat("message=Hi", { "content-type": type }), 400, "VALIDATION_ERROR")
      }
      // Also where every field may be missing.
      const { call } = yield* TestServer
      for (const [type, body, status] of [
        ["application/merge-patch+json", '{"force":true}', 400],
        ["application/xml", "<force/>", 400],
        ["application/octet-stream", "", 202]
      ] as const) {
        const headers = { ...keyHeader("spk_all"), "content-type": type }
        expect((yield* call("POST", "/v1/sources/src_1/sync", { headers, body })).status).toBe(status)
      }
    })
  )

  it.effect("that does not fit the schema is 400 with the path of each problem", () =>
    Effect.gen(function* () {
      const answer = yield* chat({ message: "Hi", externalEndUserId: "   " })
      expectError(answer, 400, "VALIDATION_ERROR")
      expect(issues(answer)).toEqual([{ path: ["externalEndUserId"], message: expect.any(String) }])
      const empty = yield* chat("", { "content-type": "application/json" })
      expect(issues(empty)).toEqual([{ path: ["message"], message: "is missing" }])
      const none = yield* chat(undefined)
      expect(issues(none)).toEqual([{ path: ["message"], message: "is missing" }])
      const nothing = yield* chat("null", { "content-type": "application/json" })
      expectError(nothing, 400, "VALIDATION_ERROR")
    })
  )

  it.effect("is never repeated in the error that refuses it", () =>
    Effect.gen(function* () {
      const canary = "CANARY-5f3"
      const bodies = [
        { message: { canary } },
        { message: "Hi", toolCredentials: { slot: { canary } } },
        { message: "Hi", toolCredentials: canary },
        { message: "Hi", context: canary, persist: canary },
        { message: "Hi", conversationId: canary, endUserId: canary },
        canary,
        [canary]
      ]
      for (const body of bodies) {
        const answer = yield* chat(JSON.stringify(body), { "content-type": "application/json" })
        expectError(answer, 400, "VALIDATION_ERROR")
        expect(answer.text).not.toContain(canary)
      }
      for (const query of [
        `limit=${canary}`,
        `limit=5&cursor=${canary}`,
        "limit=0",
        "limit=101",
        "limit=1.5"
      ]) {
        const answer = yield* get(`/v1/sources?${query}`, keyHeader("spk_all"))
        expectError(answer, 400, "VALIDATION_ERROR")
        expect(answer.text).not.toContain(canary)
      }
    })
  )

  it.effect("over the limit is 413, whether its length is declared or not, and the answer arrives", () =>
    Effect.gen(function* () {
      const { url } = yield* TestServer
      for (const size of [MiB + 1, 3 * MiB, 30 * MiB]) {
        expectError(
          yield* chat("x".repeat(size), { "content-type": "application/json" }),
          413,
          "PAYLOAD_TOO_LARGE"
        )
      }
      const head =
        "POST /v1/chat HTTP/1.1\r\nhost: x\r\nx-api-key: spk_all\r\ncontent-type: application/json\r\n"
      const piece = `10000\r\n${"x".repeat(0x10000)}\r\n`
      const chunked = [
        `${head}transfer-encoding: chunked\r\n\r\n`,
        ...Array.from({ length: 64 }, () => piece),
        "0\r\n\r\n"
      ]
      const received = yield* raw(url, chunked)
      expect(received).toMatch(/^HTTP\/1\.1 413 /)
      expect(received).toContain('"PAYLOAD_TOO_LARGE"')
    })
  )

  it.effect("just below the limit is read", () =>
    Effect.gen(function* () {
      const body = JSON.stringify({ message: "Hi", unknown: "x".repeat(MiB - 100) })
      expectData(yield* chat(body, { "content-type": "application/json" }))
    })
  )

  it.effect("with any depth of nesting is refused, without a crash", () =>
    Effect.gen(function* () {
      for (const depth of [150, 10_000, 250_000]) {
        const array = `{"message":"Hi","context":{"a":${"[".repeat(depth)}${"]".repeat(depth)}}}`
        expectError(yield* chat(array, { "content-type": "application/json" }), 400, "VALIDATION_ERROR")
        const object = `${'{"a":'.repeat(depth / 2)}1${"}".repeat(depth / 2)}`
        expectError(yield* chat(object, { "content-type": "application/json" }), 400, "VALIDATION_ERROR")
      }
    })
  )

  it.effect("that ends early does not harm the server", () =>
    Effect.gen(function* () {
      const { url } = yield* TestServer
      const head =
        "POST /v1/chat HTTP/1.1\r\nhost: x\r\nx-api-key: spk_all\r\ncontent-type: application/json\r\n"
      yield* Effect.promise(
        () =>
          new Promise<void>((resolve) => {
            const { hostname, port } = new URL(url)
            const socket = Net.connect(Number(port), hostname, () => {
              socket.write(`${head}content-length: 100\r\n\r\n{"mess`, () => socket.destroy())
            })
            socket.on("close", () => resolve())
          })
      )
      expectData(yield* chat({ message: "Hi" }))
    })
  )
})

layer(PublicServer, { excludeTestServices: true })("an internal error", (it) => {
  it.effect("is 500 INTERNAL_ERROR without any internals", () =>
    Effect.gen(function* () {
      for (const path of ["/test/defect", "/test/documented-defect", "/test/unencodable"]) {
        const answer = yield* get(path)
        expectError(answer, 500, "INTERNAL_ERROR")
        expect(answer.text).not.toMatch(/internal detail|spk_|stack|\.ts/i)
      }
    })
  )

  it.effect("of an unavailable database is 503 with Retry-After, without any internals", () =>
    Effect.gen(function* () {
      const answer = yield* get("/test/outage")
      expectError(answer, 503, "SERVICE_UNAVAILABLE")
      expect(answer.headers.get("retry-after")).toBe("1")
      expect(answer.text).not.toContain("terminated")
    })
  )

  it.effect("in the encoding of a response is 500, not 400", () =>
    Effect.gen(function* () {
      const { call } = yield* TestServer
      const body = { query: "broken" }
      expectError(
        yield* call("POST", "/v1/retrieve", { headers: keyHeader("spk_all"), body }),
        500,
        "INTERNAL_ERROR"
      )
    })
  )
})

describe("the web handler", () => {
  const web = () =>
    HttpApiBuilder.toWebHandler(
      Layer.mergeAll(Boundary.layer.pipe(Layer.provideMerge(api)), HttpServer.layerContext).pipe(
        Layer.provide(script)
      )
    )

  test("answers as the server does: envelope, 404, 405, 400, 413, streams and uploads", async () => {
    const { handler, dispose } = web()
    const post = (body: string, headers: Record<string, string> = {}) =>
      handler(
        new Request("http://x/v1/chat", {
          method: "POST",
          body,
          headers: { "content-type": "application/json", "x-api-key": "spk_all", ...headers }
        })
      )
    const status = async (answer: Promise<Response>) => {
      const response = await answer
      // oxlint-disable-next-line typescript/no-explicit-any -- looked into field by field
      const json: any = await response.json()
      expect(json.meta).toEqual({ requestId: response.headers.get("x-request-id") })
      return [response.status, json.error?.code ?? json.data.reply]
    }
    expect(await status(post('{"message":"Hi"}'))).toEqual([200, "Hello"])
    expect(await status(post("{"))).toEqual([400, "VALIDATION_ERROR"])
    expect(await status(post("x".repeat(2 * MiB)))).toEqual([413, "PAYLOAD_TOO_LARGE"])
    expect(await status(handler(new Request("http://x/v1/chat")))).toEqual([405, "METHOD_NOT_ALLOWED"])
    expect(await status(handler(new Request("http://x/nothing")))).toEqual([404, "NOT_FOUND"])
    expect(await status(handler(new Request("http://x/healthz")))).toEqual([200, undefined])
    const streamed = await handler(
      new Request("http://x/v1/chat/stream", {
        method: "POST",
        body: '{"message":"Hi"}',
        headers: { "x-api-key": "spk_all", "content-type": "application/json" }
      })
    )
    expect(streamed.headers.get("content-type")).toBe("text/event-stream")
    expect(await streamed.text()).toMatch(/^: stream-open\n\n[\s\S]+data: \[DONE\]\n\n$/)
    const form = new FormData()
    form.append("file", new Blob(["# Title"]), "a.md")
    const upload = { method: "POST", body: form, headers: { "x-api-key": "spk_all" } }
    expect((await handler(new Request("http://x/v1/sources/upload", upload))).status).toBe(201)
    await dispose()
  })
})
