/** A host's own source of tools in the place of a built-in one: only what it replaces changes. */
import * as Fs from "node:fs"
import * as Http from "node:http"
import * as Os from "node:os"
import * as Path from "node:path"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { createSpoke } from "../../src/app/library/Library.ts"
import type { Spoke } from "../../src/index.ts"
import { OtherToolSources, type ToolSource } from "../../src/effect.ts"
import * as ModelStub from "../servers/ModelStub.ts"

const root = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-replaced-tools-"))
const scope = Effect.runSync(Scope.make())
const origin = "http://127.0.0.1:3000"
const admin = { email: "owner@example.com", password: "correct horse battery" }
const secret = "crm-4711-correct-horse"

let stub: ModelStub.ModelStub
let spoke: Spoke | undefined
/** What the servers of tools were asked. */
const asked: Array<string> = []
let address = ""

const server = Http.createServer((request, response) => {
  let body = ""
  request.on("data", (chunk) => (body += String(chunk)))
  request.on("end", () => {
    asked.push(`${request.method} ${request.url}`)
    if (request.url === "/shop") return void response.end('{"from": "the server"}')
    const { id, method } = JSON.parse(body)
    const results: Readonly<Record<string, unknown>> = {
      initialize: {
        protocolVersion: "2025-06-18",
        capabilities: {},
        serverInfo: { name: "t", version: "1" }
      },
      "tools/list": { tools: [{ name: "find", inputSchema: { type: "object" } }] },
      "tools/call": { content: [{ type: "text", text: "from the MCP server" }] }
    }
    response.setHeader("content-type", "application/json")
    response.end(JSON.stringify({ jsonrpc: "2.0", id, result: results[method] ?? {} }))
  })
})

beforeAll(async () => {
  stub = await Effect.runPromise(Scope.extend(ModelStub.make, scope))
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve))
  const bound = server.address()
  address = `http://127.0.0.1:${typeof bound === "object" && bound !== null ? bound.port : 0}`
}, 60_000)

afterEach(async () => {
  await spoke?.close()
  asked.length = 0
  stub.reset()
})

afterAll(async () => {
  server.closeAllConnections()
  server.close()
  Fs.rmSync(root, { recursive: true, force: true })
  await Effect.runPromise(Scope.close(scope, Exit.void))
})

/** Answers calls of the tools with such a target itself. */
const sourceNamed = (name: "http" | "mcp"): ToolSource => ({
  name,
  offered: new Set(),
  has: (tool) => tool._tag === "Configured" && tool.definition[name] !== undefined,
  open: (tool) =>
    Effect.succeed([
      {
        declaration: { name: tool.name, description: "The host's own.", parameters: { type: "object" } },
        timeoutMillis: 1_000,
        call: () => Effect.succeed({ from: "the host", with: secret })
      }
    ])
})

/** Answers of both tools of an agent, where the host's source has that name; with all that is seen of the turn. */
const answers = async (name: "http" | "mcp") => {
  const opened = await createSpoke(
    {
      dataDir: Path.join(root, name),
      admin,
      fetchAllow: ["127.0.0.1/32"],
      openai: { apiKey: "sk-stub-4711", baseUrl: stub.url, embeddingModel: "offline" }
    },
    { replace: Layer.succeed(OtherToolSources, [Effect.succeed(sourceNamed(name))]) }
  )
  spoke = opened
  const send = (path: string, body: unknown, cookie = "") =>
    opened.fetch(
      new Request(`${origin}${path}`, {
        method: "POST",
        headers: { origin, cookie, "content-type": "application/json" },
        body: JSON.stringify(body)
      }),
      { clientAddress: "192.0.2.1" }
    )
  const login = await send("/api/auth/login", admin)
  const cookie = login.headers.getSetCookie()[0]?.split(";")[0] ?? ""
  const { id } = await opened.agents.create({ name: "Shop" })
  const auth = { kind: "bearer", secret }
  const parameters = { type: "object", properties: {} }
  for (const tool of [
    { name: "shop", parameters, http: { url: `${address}/shop` }, auth },
    { name: "docs", mcp: { url: `${address}/mcp` }, auth }
  ]) {
    expect((await send(`/api/agents/${id}/tools`, tool, cookie)).status).toBe(201)
  }
  const docs = name === "mcp" ? "docs" : "docs_find"
  const calls = ["shop", docs].map((one) => ({ name: one, arguments: "{}" }))
  stub.script.push({ calls }, { text: "Done." })
  const agent = opened.agent(id)
  const { runId } = await agent.chat({ message: "Go" })
  const { events } = await agent.runs.get(runId ?? "", { limit: 100 })
  const seen = JSON.stringify([events, stub.requests.map(({ body }) => body)])
  expect(seen).not.toContain(secret)
  return events
    .filter(({ type }) => type === "tool.completed")
    .map(({ payload }) => JSON.stringify(payload?.["output"]))
    .toSorted()
}

const own = '{"from":"the host","with":"[redacted]"}'

describe("A source of the host", () => {
  it("named http answers for HTTP tools, without a request, and MCP servers are still asked", async () => {
    expect(await answers("http")).toEqual(['"from the MCP server"', own].toSorted())
    expect(asked).not.toContain("POST /shop")
    expect(asked).not.toContain("GET /shop")
    expect(asked).toContain("POST /mcp")
  })

  it("named mcp answers for MCP servers, without a request, and HTTP tools are still called", async () => {
    expect(await answers("mcp")).toEqual([own, '{"from":"the server"}'].toSorted())
    expect(asked).toEqual(["GET /shop"])
  })
})
