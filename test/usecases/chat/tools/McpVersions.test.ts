/** A remote MCP server of each version: asked without a handshake where it knows how, else after one. */
import { expect, it as test, layer } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Either from "effect/Either"
import * as Effect from "effect/Effect"
import type * as Http from "node:http"
import { parseAllowList } from "../../../../src/capabilities/OutboundHttp/AddressRules.ts"
import { layerUndici } from "../../../../src/capabilities/OutboundHttp/Undici.ts"
import { OutboundHttp } from "../../../../src/capabilities/OutboundHttp.ts"
import * as McpHeaders from "../../../../src/capabilities/ToolSources/McpHeaders.ts"
import { mcpSource } from "../../../../src/capabilities/ToolSources/Mcp.ts"
import type { CallingTurn } from "../../../../src/capabilities/ToolSources.ts"
import { ToolDefinition, ToolId } from "../../../../src/domain/agents/Tool.ts"
import { AgentId, RunId, TenantId } from "../../../../src/domain/Ids.ts"
import type { JsonObject } from "../../../../src/domain/Text.ts"
import { serveScoped } from "../../../servers/Loopback.ts"
import * as Schema from "effect/Schema"

interface Asked {
  readonly method: string | undefined
  readonly headers: Http.IncomingHttpHeaders
  readonly body: {
    readonly id?: number
    readonly method: string
    readonly params?: { readonly [name: string]: unknown }
  }
}

interface Reply {
  readonly status?: number
  readonly result?: unknown
  readonly error?: { readonly code?: number; readonly message: string; readonly data?: unknown } | null
  readonly headers?: Readonly<Record<string, string>>
  /** Messages of its own, before the answer in the same stream of events. */
  readonly messages?: ReadonlyArray<unknown>
  /** Whether the stream of events stays open after the answer. */
  readonly staysOpen?: boolean
}

/** A server that answers as `reply` says, for as long as the scope is open. */
const served = (reply: (asked: Asked) => Reply) =>
  Effect.gen(function* () {
    const asked: Array<Asked> = []
    const left: Array<string> = []
    const url = yield* serveScoped((request, response) => {
      const chunks: Array<Buffer> = []
      request.on("data", (chunk: Buffer) => chunks.push(chunk))
      request.on("end", () => {
        const sent = Buffer.concat(chunks).toString()
        const { headers: given, method } = request
        const one: Asked = { method, headers: given, body: JSON.parse(sent === "" ? "{}" : sent) }
        asked.push(one)
        const { headers = {}, messages, staysOpen = false, status = 200, ...rest } = reply(one)
        const answer = { jsonrpc: "2.0", id: one.body.id, ...rest }
        const type = messages === undefined ? "application/json" : "text/event-stream"
        response.writeHead(status, { "content-type": type, ...headers })
        response.on("close", () => left.push(one.body.method))
        response.write(
          messages === undefined
            ? JSON.stringify(answer)
            : [...messages, answer].map((message) => `data: ${JSON.stringify(message)}\n\n`).join("")
        )
        if (!staysOpen) response.end()
      })
    })
    return { url: `${url}/mcp`, asked, left }
  })

const turn: CallingTurn = {
  scope: { tenantId: TenantId.make("ten_1"), agentId: AgentId.make("agt_1") },
  runId: RunId.make("run_1"),
  conversationId: null,
  endUserId: null
}

const toolAt = (url: string) => ({
  _tag: "Configured" as const,
  id: ToolId.make("tol_1"),
  name: "docs",
  version: 1,
  definition: Schema.decodeUnknownSync(ToolDefinition)({ mcp: { url } }),
  credential: Either.right(""),
  bound: Either.right([])
})

const silent = () => Effect.void
const find = (inputSchema: JsonObject, name = "find") => ({ name, description: "Finds.", inputSchema })
const plain = find({ type: "object", properties: { q: { type: "string" } } })

const methods = (asked: ReadonlyArray<Asked>) => asked.map(({ body }) => body.method)

const text = (words: string) => ({ resultType: "complete", content: [{ type: "text", text: words }] })

/** Of version 2026-07-28. */
const stateless =
  (tools: ReadonlyArray<unknown>, more: Readonly<Record<string, unknown>> = {}, called: Reply = {}) =>
  ({ body }: Asked): Reply => {
    switch (body.method) {
      case "server/discover":
        return { result: { resultType: "complete", supportedVersions: ["2026-07-28"], capabilities: {} } }
      case "tools/list":
        return { result: { resultType: "complete", tools, ...more } }
      case "tools/call":
        return { result: text("Found."), ...called }
      default:
        return { status: 404, error: { code: -32_601, message: "Method not found" } }
    }
  }

const environment = layerUndici({ allow: Either.getOrThrow(parseAllowList("127.0.0.1")) })

layer(environment, { excludeTestServices: true })("A remote MCP server", (it) => {
  it.scoped("of version 2026-07-28 gets complete requests without handshake and session", () =>
    Effect.gen(function* () {
      const { asked, url } = yield* served(stateless([plain], { ttlMs: 300_000 }))
      const source = yield* mcpSource
      for (const _ of [1, 2]) {
        const [one] = yield* source.open(toolAt(url), turn)
        expect(one?.declaration.name).toBe("docs_find")
        expect(yield* one!.call({ q: "hats" }, silent)).toBe("Found.")
      }
      expect(methods(asked)).toEqual(["server/discover", "tools/list", "tools/call", "tools/call"])
      for (const { body, headers } of asked) {
        expect(headers).toMatchObject({
          "mcp-protocol-version": "2026-07-28",
          "mcp-method": body.method,
          accept: "application/json, text/event-stream"
        })
        expect(headers["mcp-session-id"]).toBeUndefined()
        expect(body.params?.["_meta"]).toEqual({
          "io.modelcontextprotocol/protocolVersion": "2026-07-28",
          "io.modelcontextprotocol/clientInfo": { name: "spoke", version: "1" },
          "io.modelcontextprotocol/clientCapabilities": {}
        })
      }
      expect(asked.at(-1)?.headers["mcp-name"]).toBe("find")
    })
  )

  it.scoped(
    "gets parameters in headers as its schema requires, and its tools with invalid requirements are not offered",
    () =>
      Effect.gen(function* () {
        const inputSchema: JsonObject = {
          type: "object",
          properties: {
            region: { type: "string", "x-mcp-header": "Region" },
            where: {
              type: "object",
              properties: {
                floor: { type: "integer", "x-mcp-header": "Floor" },
                lit: { type: "boolean", "x-mcp-header": "Lit" }
              }
            },
            none: { type: "string", "x-mcp-header": "None" }
          }
        }
        const wrong: ReadonlyArray<JsonObject> = [
          { type: "string", "x-mcp-header": "" },
          { type: "string", "x-mcp-header": "a b" },
          { type: "number", "x-mcp-header": "A" },
          { type: "array", items: { type: "string", "x-mcp-header": "A" } },
          { anyOf: [{ type: "string", "x-mcp-header": "A" }] }
        ]
        const tools = wrong.map((q, place) => find({ type: "object", properties: { q } }, `wrong${place}`))
        const twice = {
          a: { type: "string", "x-mcp-header": "A" },
          b: { type: "string", "x-mcp-header": "a" }
        }
        const { asked, url } = yield* served(
          stateless([
            find(inputSchema, "größe"),
            ...tools,
            find({ type: "object", properties: twice }, "twice"),
            find({ type: "object", properties: { "x-mcp-header": { type: "string" } } }, "named")
          ])
        )
        const found = yield* (yield* mcpSource).open(toolAt(url), turn)
        expect(found.map(({ declaration }) => declaration.name)).toEqual(["docs_größe", "docs_named"])
        yield* found[0]!.call({ region: "Hello, 世界", where: { floor: 4, lit: true } }, silent)
        const headers = asked.at(-1)?.headers ?? {}
        expect(headers).toMatchObject({
          "mcp-name": "=?base64?Z3LDtsOfZQ==?=",
          "mcp-param-region": "=?base64?SGVsbG8sIOS4lueVjA==?=",
          "mcp-param-floor": "4",
          "mcp-param-lit": "true"
        })
        expect(headers["mcp-param-none"]).toBeUndefined()
      })
  )

  it.scoped("that requests input from a person fails the call", () =>
    Effect.gen(function* () {
      const asking = { result: { resultType: "input_required", inputRequests: {} } }
      const { url } = yield* served(stateless([plain], {}, asking))
      const [one] = yield* (yield* mcpSource).open(toolAt(url), turn)
      expect(yield* Effect.flip(one!.call({}, silent))).toMatchObject({ code: "TOOL_FAILED" })
    })
  )

  it.scoped("may send its own requests before it answers, with any id", () =>
    Effect.gen(function* () {
      const { url } = yield* served((asked) => ({
        ...stateless([plain])(asked),
        messages: [
          { jsonrpc: "2.0", method: "notifications/progress", params: { progress: 1 } },
          { jsonrpc: "2.0", id: asked.body.id, method: "ping" }
        ]
      }))
      const [one] = yield* (yield* mcpSource).open(toolAt(url), turn)
      expect(yield* one!.call({ q: "hats" }, silent)).toBe("Found.")
    })
  )

  it.scoped(
    "may keep the stream of its answer open: the answer is used at once, and the stream is closed",
    () =>
      Effect.gen(function* () {
        const { left, url } = yield* served((asked) => ({
          ...stateless([plain])(asked),
          messages: [{ jsonrpc: "2.0", id: asked.body.id, method: "ping" }],
          staysOpen: true
        }))
        const [one] = yield* (yield* mcpSource).open(toolAt(url), turn)
        expect(yield* Effect.timeout(one!.call({ q: "hats" }, silent), "3 seconds")).toBe("Found.")
        yield* Effect.sleep("50 millis")
        expect(left).toEqual(["server/discover", "tools/list", "tools/call"])
      })
  )

  for (const status of [200, 405]) {
    it.scoped(
      `is informed of the end of its session after the turn, which does not wait; it may answer ${status}`,
      () =>
        Effect.gen(function* () {
          const { asked, url } = yield* served(({ body, method }) => {
            if (method === "DELETE") return { status, messages: [], staysOpen: true }
            if (body.method === "server/discover") return { status: 404 }
            if (body.method === "initialize")
              return { result: { protocolVersion: "2025-06-18" }, headers: { "mcp-session-id": "s1" } }
            if (body.method === "tools/list") return { result: { tools: [plain] } }
            return { result: { content: [{ type: "text", text: "Found." }] } }
          })
          const source = yield* mcpSource
          const ended = () => asked.filter(({ method }) => method === "DELETE")
          const used = Effect.gen(function* () {
            const [one] = yield* source.open(toolAt(url), turn)
            expect(yield* one!.call({ q: "hats" }, silent)).toBe("Found.")
            expect(ended()).toEqual([])
          })
          const [waited] = yield* Effect.timed(Effect.scoped(used))
          expect(Duration.toMillis(waited)).toBeLessThan(3_000)
          yield* Effect.repeat(Effect.sleep("10 millis"), { until: () => ended().length > 0 }).pipe(
            Effect.timeout("3 seconds")
          )
          expect(
            ended().map(({ headers }) => [headers["mcp-session-id"], headers["mcp-protocol-version"]])
          ).toEqual([["s1", "2025-06-18"]])
        })
    )
  }

  it.scoped("answers with the text of a resource that it embeds", () =>
    Effect.gen(function* () {
      const content = [
        { type: "text", text: "Found:" },
        { type: "resource", resource: { uri: "file:///hats.md", text: "Hats are on floor 4." } },
        { type: "resource", resource: { uri: "file:///hat.png", blob: "AAAA" } }
      ]
      const result = { resultType: "complete", content }
      const { url } = yield* served(stateless([plain], {}, { result }))
      const [one] = yield* (yield* mcpSource).open(toolAt(url), turn)
      expect(yield* one!.call({ q: "hats" }, silent)).toBe("Found:\nHats are on floor 4.\n(resource)")
    })
  )

  it.scoped("may send null for members that it leaves out", () =>
    Effect.gen(function* () {
      const { url } = yield* served(({ body }) => {
        if (body.method === "server/discover") return { status: 404 }
        if (body.method === "initialize") return { result: { protocolVersion: "2025-06-18" }, error: null }
        if (body.method === "tools/list") {
          return { result: { tools: [{ ...plain, description: null }], nextCursor: null }, error: null }
        }
        const content = [{ type: "text", text: "Found." }]
        return { result: { content, structuredContent: null, isError: null }, error: null }
      })
      const [one] = yield* (yield* mcpSource).open(toolAt(url), turn)
      expect(one?.declaration.description).toBe("")
      expect(yield* one!.call({ q: "hats" }, silent)).toBe("Found.")
    })
  )

  it.scoped("that has forgotten its session gets a new handshake, and the call once more", () =>
    Effect.gen(function* () {
      let session = 0
      const { asked, url } = yield* served(({ body, headers, method }) => {
        if (method === "DELETE") return {}
        if (body.method === "server/discover") return { status: 404 }
        if (body.method === "initialize") {
          session++
          return { result: { protocolVersion: "2025-06-18" }, headers: { "mcp-session-id": `s${session}` } }
        }
        if (headers["mcp-session-id"] !== `s${session}`) {
          return { status: 404, error: { code: -32_001, message: "Session not found" } }
        }
        if (body.method === "tools/list") return { result: { tools: [plain] } }
        return { result: { content: [{ type: "text", text: "Found." }] } }
      })
      const [one] = yield* (yield* mcpSource).open(toolAt(url), turn)
      session++
      const call = one!.call({ q: "hats" }, silent)
      expect(yield* Effect.all([call, call], { concurrency: 2 })).toEqual(["Found.", "Found."])
      expect(methods(asked).filter((method) => method === "initialize")).toHaveLength(2)
      expect(asked.at(-1)?.headers["mcp-session-id"]).toBe("s3")
    })
  )

  it.scoped("may list its tools on many small pages, of which no more are read than needed", () =>
    Effect.gen(function* () {
      const { asked, url } = yield* served((one) => {
        if (one.body.method !== "tools/list") return stateless([])(one)
        const page = Number(one.body.params?.["cursor"] ?? 0)
        const tools = Array.from({ length: 7 }, (_, at) => find(plain.inputSchema, `find${page * 7 + at}`))
        return { result: { resultType: "complete", tools, nextCursor: String(page + 1) } }
      })
      const found = yield* (yield* mcpSource).open(toolAt(url), turn)
      expect(found.map(({ declaration }) => declaration.name)).toEqual(
        Array.from({ length: 64 }, (_, at) => `docs_find${at}`)
      )
      expect(methods(asked).filter((method) => method === "tools/list")).toHaveLength(10)
    })
  )

  it.scoped("keeps its cached list, however many servers another tenant has", () =>
    Effect.gen(function* () {
      let lists = 0
      const fetch: (typeof OutboundHttp.Service)["fetch"] = ({ body, url }) => {
        const sent: Asked["body"] = JSON.parse(body?.toString() ?? "{}")
        if (sent.method === "tools/list") lists += 1
        const answer = {
          jsonrpc: "2.0",
          id: sent.id,
          ...stateless([plain])({ method: "POST", headers: {}, body: sent })
        }
        const headers = { "content-type": "application/json" }
        return Effect.succeed({ url, status: 200, headers, body: Buffer.from(JSON.stringify(answer)) })
      }
      const source = yield* Effect.provideService(mcpSource, OutboundHttp, { fetch })
      const tool = toolAt("https://mcp.example/mcp")
      yield* source.open(tool, turn)
      const other = { ...turn, scope: { ...turn.scope, tenantId: TenantId.make("ten_2") } }
      for (let at = 0; at < 300; at++)
        yield* source.open({ ...tool, id: ToolId.make(`tol_other${at}`) }, other)
      expect(lists).toBe(301)
      yield* source.open(tool, turn)
      expect(lists).toBe(301)
      // The oldest ones of the other tenant made room.
      yield* source.open({ ...tool, id: ToolId.make("tol_other0") }, other)
      expect(lists).toBe(302)
    })
  )

  it.scoped("may answer with structured content of any kind, also for an error without text", () =>
    Effect.gen(function* () {
      const results = [
        { content: [], structuredContent: [{ id: 1 }] },
        { structuredContent: { code: 7 }, isError: true },
        { content: [{ type: "resource_link", name: "Terms", uri: "https://docs.example/terms" }] }
      ]
      const { url } = yield* served((one) =>
        stateless([plain], { ttlMs: 0 }, { result: { resultType: "complete", ...results[0] } })(one)
      )
      const [tool] = yield* (yield* mcpSource).open(toolAt(url), turn)
      expect(yield* tool!.call({}, silent)).toEqual([{ id: 1 }])
      results.shift()
      expect((yield* Effect.flip(tool!.call({}, silent))).message).toBe('TOOL_FAILED: {"code":7}')
      results.shift()
      expect(yield* tool!.call({}, silent)).toBe("Terms: https://docs.example/terms")
    })
  )

  it.scoped("may write the type of its answer in capitals, and leave out the code of an error", () =>
    Effect.gen(function* () {
      const headers = { "content-type": "Text/Event-Stream; charset=utf-8" }
      const replies: ReadonlyArray<Reply> = [
        { result: text("Found."), messages: [], headers },
        { result: undefined, error: { message: "There is no such order" } }
      ]
      let calls = 0
      const { url } = yield* served((one) => {
        if (one.body.method === "tools/call") calls += 1
        return stateless([plain], {}, replies[calls - 1])(one)
      })
      const [tool] = yield* (yield* mcpSource).open(toolAt(url), turn)
      expect(yield* tool!.call({}, silent)).toBe("Found.")
      const { message } = yield* Effect.flip(tool!.call({}, silent))
      expect(message).toBe("TOOL_FAILED: There is no such order")
    })
  )

  it.scoped("may limit parameters to integers of 64 bits, and models get these limits as numbers", () =>
    Effect.gen(function* () {
      // As long as it is written in JSON.
      const maximum = 2 ** 63
      const { url } = yield* served(stateless([find({ type: "object", properties: { id: { maximum } } })]))
      const [one] = yield* (yield* mcpSource).open(toolAt(url), turn)
      expect(one?.declaration.parameters).toEqual({ type: "object", properties: { id: { maximum } } })
    })
  )

  it.scoped("sets how long its list is cached: not at all for 0", () =>
    Effect.gen(function* () {
      const { asked, url } = yield* served(stateless([plain], { ttlMs: 0 }))
      const source = yield* mcpSource
      yield* source.open(toolAt(url), turn)
      yield* source.open(toolAt(url), turn)
      expect(methods(asked).filter((method) => method === "tools/list")).toHaveLength(2)
    })
  )

  const refusals: Readonly<Record<string, Reply>> = {
    "that does not know the method": { error: { code: -32_601, message: "Method not found" } },
    "that wants a session": { status: 400, error: { code: -32_000, message: "No session" } },
    "that knows other versions": {
      status: 400,
      error: { code: -32_022, message: "Unsupported", data: { supported: ["2025-11-25"], requested: "" } }
    },
    "that breaks": { status: 500 }
  }
  for (const [name, refusal] of Object.entries(refusals)) {
    it.scoped(`of an earlier version, ${name}, gets its handshake`, () =>
      Effect.gen(function* () {
        const { asked, url } = yield* served(({ body, headers }) => {
          if (body.method === "server/discover") return refusal
          if (body.method === "initialize") {
            return { result: { protocolVersion: "2025-06-18" }, headers: { "mcp-session-id": "s1" } }
          }
          if (headers["mcp-session-id"] !== "s1") return { status: 400 }
          if (body.method === "tools/list") return { result: { tools: [plain] } }
          return { result: { content: [{ type: "text", text: "Found." }] } }
        })
        const source = yield* mcpSource
        const [one] = yield* source.open(toolAt(url), turn)
        expect(yield* one!.call({ q: "hats" }, silent)).toBe("Found.")
        expect(methods(asked)).toEqual([
          "server/discover",
          "initialize",
          "notifications/initialized",
          "tools/list",
          "tools/call"
        ])
        expect(JSON.stringify(asked.slice(1))).not.toContain("_meta")
      })
    )
  }

  it.scoped("is reached only through the guarded client", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const guarded = yield* OutboundHttp
      const source = yield* Effect.provideService(mcpSource, OutboundHttp, {
        ...guarded,
        fetch: (request) =>
          Effect.zipRight(
            Effect.sync(() => void seen.push(request.url)),
            guarded.fetch(request)
          )
      })
      const refused = yield* Effect.flip(source.open(toolAt("http://10.0.0.1/mcp"), turn))
      expect([refused.code, new Set(seen).size]).toEqual(["TOOL_FAILED", 1])
    })
  )
})

test("Values of headers are encoded as in the examples of the protocol", () => {
  expect(
    ["us-west1", "", "a b", "Hello, 世界", " padded ", "line1\nline2", "=?base64?literal?="].map(
      McpHeaders.encodeHeaderValue
    )
  ).toEqual([
    "us-west1",
    "",
    "a b",
    "=?base64?SGVsbG8sIOS4lueVjA==?=",
    "=?base64?IHBhZGRlZCA=?=",
    "=?base64?bGluZTEKbGluZTI=?=",
    "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="
  ])
})
