import { layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as Ref from "effect/Ref"
import * as Stream from "effect/Stream"
import * as Net from "node:net"
import { expect } from "vitest"
import type { TurnPart } from "../../../src/domain/chat/ChatTurn.ts"
import * as Routes from "../../../src/http/Routes.ts"
import { keyHeader, layer as PublicServer, Script, TestApi, turn } from "../PublicServer.ts"
import { expectError, TestServer } from "../TestServer.ts"
import { result } from "../chat/UiStream.ts"

/** Those that do not break on purpose. */
const routes = Routes.table(TestApi).filter(({ group }) => group !== "broken")

const done: TurnPart = { _tag: "Done", result }

const unicode = FastCheck.string({ unit: "binary", maxLength: 50 })
const header = FastCheck.stringMatching(/^[\x21-\x7e]{0,40}$/)
const field = FastCheck.constantFrom(
  "message",
  "query",
  "topK",
  "minScore",
  "type",
  "name",
  "config",
  "url",
  "conversationId",
  "endUserId",
  "persist",
  "context",
  "toolCredentials",
  "autoSync",
  "force",
  "__proto__",
  "constructor"
)
const value = FastCheck.oneof(
  FastCheck.jsonValue({ maxDepth: 3 }),
  FastCheck.constantFrom("URL", "https://example.test/", true, 0, 1, "", null),
  unicode
)
const body = FastCheck.oneof(
  FastCheck.dictionary(field, value).map((fields) => JSON.stringify(fields)),
  FastCheck.json(),
  unicode,
  FastCheck.uint8Array({ maxLength: 100 })
)
const segment = FastCheck.oneof(
  FastCheck.constantFrom(
    "src_1",
    "..",
    ".",
    "%00",
    "%2F",
    "%zz",
    "%",
    "a".repeat(150),
    "a".repeat(250),
    "*",
    ":id"
  ),
  unicode.map((text) => encodeURIComponent(text.toWellFormed()))
)
const query = FastCheck.oneof(
  FastCheck.constant(""),
  FastCheck.dictionary(FastCheck.constantFrom("limit", "cursor", "status", "type"), unicode).map(
    (fields) => `?${new URLSearchParams(fields)}`
  ),
  header.map((text) => `?${text.replaceAll("#", "")}`)
)
const contentType = FastCheck.oneof(
  FastCheck.constantFrom(
    "application/json",
    "application/json; charset=latin1",
    "multipart/form-data; boundary=x"
  ),
  FastCheck.constantFrom("application/x-www-form-urlencoded", "text/plain", "image/png"),
  header
)

layer(PublicServer, { excludeTestServices: true })("every route", (it) => {
  it.effect.prop(
    "answers any request in the envelope, and never crashes",
    {
      route: FastCheck.constantFrom(...routes),
      method: FastCheck.option(
        FastCheck.constantFrom("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
      ),
      segment,
      query,
      contentType,
      key: FastCheck.constantFrom("spk_all", "spk_chat", "spk_nobody", ""),
      requestId: header,
      idempotencyKey: header,
      body
    },
    ({ route, method, segment, query, contentType, key, requestId, idempotencyKey, body }) =>
      Effect.gen(function* () {
        const { call } = yield* TestServer
        const { start } = yield* Script
        yield* Ref.set(start, () => Effect.succeed(turn(Stream.make(done))))
        const verb = method ?? route.method
        const path = route.path.replace(/:\w+/u, segment)
        const headers = {
          ...keyHeader(key),
          "content-type": contentType,
          "x-request-id": requestId,
          "idempotency-key": idempotencyKey
        }
        const bodyless = verb === "GET" || verb === "HEAD"
        const answer = yield* call(verb, `${path}${query}`, { headers, ...(bodyless ? {} : { body }) })
        expect(answer.status).toBeLessThan(500)
        expect(answer.headers.get("x-request-id")).toMatch(/^[A-Za-z0-9._:-]{1,128}$/)
        expect(answer.headers.get("x-content-type-options")).toBe("nosniff")
        if (verb === "HEAD" || answer.status === 204) return
        if (answer.headers.get("content-type") === "text/event-stream") return
        if (answer.status >= 400) expectError(answer, answer.status, answer.json?.error?.code)
        // What OpenAI's clients read has no envelope.
        if (route.group === "openai" && answer.status < 400) return
        expect(answer.json.meta.requestId).toBe(answer.headers.get("x-request-id"))
      }),
    { timeout: 60_000, fastCheck: { numRuns: 400 } }
  )

  it.effect("survives request lines and headers that no client would send", () =>
    Effect.gen(function* () {
      const { call, url } = yield* TestServer
      const lines = [
        "GET //v1//sources?limit=%zz HTTP/1.1",
        "GET /v1/sources?limit=1&limit=2&cursor[]=a HTTP/1.1",
        "GET /v1/sources/%E0%A4%A HTTP/1.1",
        "GET http://other/v1/sources HTTP/1.1",
        "GET * HTTP/1.1",
        "OPTIONS * HTTP/1.1",
        "PROPFIND /v1/sources HTTP/1.1",
        "GET /v1/sources#fragment HTTP/1.1",
        "POST /v1/chat HTTP/1.1\r\ncontent-length: 5\r\nexpect: 100-continue"
      ]
      for (const line of lines) {
        const status = yield* Effect.promise(
          () =>
            new Promise<string>((resolve, reject) => {
              const { hostname, port } = new URL(url)
              const socket = Net.connect(Number(port), hostname)
              let received = ""
              socket.on("data", (data) => (received += data.toString()))
              socket.on("error", reject)
              socket.on("close", () =>
                resolve(
                  received
                    .split("\r\n")
                    .filter((at) => at.startsWith("HTTP"))
                    .at(-1) ?? ""
                )
              )
              socket.end(`${line}\r\nhost: x\r\nconnection: close\r\nx-api-key: spk_all\r\n\r\nhello`)
            })
        )
        expect([line, status]).toEqual([line, expect.stringMatching(/^HTTP\/1\.1 [24]\d\d /)])
      }
      expect((yield* call("GET", "/healthz")).status).toBe(200)
    })
  )

  it.effect(
    "is ready if its checks pass, and 503 SERVICE_UNAVAILABLE otherwise, while it stays healthy",
    () =>
      Effect.gen(function* () {
        const { call } = yield* TestServer
        const { ready } = yield* Script
        const up = yield* call("GET", "/readyz")
        expect([up.status, up.json.data]).toEqual([
          200,
          { status: "ready", checks: [{ name: "database", ok: true }] }
        ])
        yield* Ref.set(ready, false)
        const down = yield* call("GET", "/readyz")
        expectError(down, 503, "SERVICE_UNAVAILABLE")
        expect(down.json.error.details).toEqual({ checks: [{ name: "database", ok: false }] })
        expect((yield* call("GET", "/healthz")).status).toBe(200)
      })
  )
})
