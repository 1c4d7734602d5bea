/** The Model Context Protocol, spoken by the protocol's own client: over HTTP, and over the command's standard input. */
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { command, removeFolder, type Spoke, start, temporaryFolder, until } from "../Spoke.ts"

describe("Spoke as an MCP server", () => {
  const folder = temporaryFolder()
  let spoke: Spoke
  let key = ""
  let cookie = ""

  const dashboard = async (method: string, path: string, body: unknown) => {
    const response = await fetch(`${spoke.url}${path}`, {
      method,
      headers: { cookie, "content-type": "application/json", "x-spoke-csrf": "1" },
      body: JSON.stringify(body)
    })
    return { response, data: JSON.parse(await response.text()).data }
  }

  const makeKey = async (options: Readonly<Record<string, unknown>>) => {
    const agents = await fetch(`${spoke.url}/api/agents`, { headers: { cookie } })
    const [agent] = JSON.parse(await agents.text()).data.agents
    const made = await dashboard("POST", `/api/agents/${agent.id}/keys`, { name: "mcp", ...options })
    return made.data as { readonly key: { readonly id: string }; readonly secret: string }
  }

  beforeAll(async () => {
    spoke = await start(folder, {
      SPOKE_ADMIN_EMAIL: "ada@mcp.example",
      SPOKE_ADMIN_PASSWORD: "correct horse battery"
    })
    key = spoke.apiKey
    const { response } = await dashboard("POST", "/api/auth/login", {
      email: "ada@mcp.example",
      password: "correct horse battery"
    })
    cookie = response.headers
      .getSetCookie()
      .map((one) => one.split(";")[0])
      .join("; ")
  }, 60_000)

  afterAll(async () => {
    await spoke.kill()
    removeFolder(folder)
  })

  const http = (secret: string, headers: Readonly<Record<string, string>> = {}) =>
    new StreamableHTTPClientTransport(new URL(`${spoke.url}/mcp`), {
      requestInit: { headers: { authorization: `Bearer ${secret}`, ...headers } }
    })

  const connected = async (transport: Transport) => {
    const client = new Client({ name: "test", version: "1" })
    await client.connect(transport)
    return client
  }

  const stdio = () =>
    new StdioClientTransport({
      command: process.execPath,
      args: [command, "mcp", "--url", spoke.url, "--key", key]
    })

  for (const [name, transport] of [
    ["over HTTP", () => http(key)],
    ["over standard input and output", stdio]
  ] as const) {
    it(`lists its tools, searches and answers, ${name}`, async () => {
      const client = await connected(transport())
      expect(client.getServerVersion()?.name).toBe("spoke")
      await client.ping()
      const { tools } = await client.listTools()
      expect(tools.map((tool) => tool.name)).toEqual(["retrieve", "chat"])
      expect(tools.every(({ description, title }) => description !== undefined && title !== undefined)).toBe(
        true
      )
      const found = await client.callTool({ name: "retrieve", arguments: { query: "Spoke", topK: 2 } })
      expect(found.isError).toBeUndefined()
      expect((found.structuredContent as { chunks: unknown[] }).chunks.length).toBeGreaterThan(0)
      const told: Array<string | undefined> = []
      const reply = await client.callTool(
        { name: "chat", arguments: { message: "What is Spoke?" } },
        undefined,
        { onprogress: ({ message }) => told.push(message) }
      )
      const first = reply.structuredContent as { reply: string; conversationId: string; runId: string }
      expect(first.reply.length).toBeGreaterThan(0)
      expect(first.runId).toMatch(/^run_/)
      expect(told).toContain("Searched the knowledge base")
      const next = await client.callTool({
        name: "chat",
        arguments: { message: "And what else?", conversationId: first.conversationId }
      })
      expect(next.structuredContent).toMatchObject({ conversationId: first.conversationId })
      const unknown = await client.callTool({
        name: "chat",
        arguments: { message: "Hi", conversationId: "cnv_missing" }
      })
      expect(unknown.isError).toBe(true)
      expect(JSON.stringify(unknown.content)).toMatch(/CONVERSATION_NOT_FOUND|VALIDATION_ERROR/)
      await expect(client.callTool({ name: "nothing" })).rejects.toThrow("no such tool")
      await client.close()
    }, 60_000)
  }

  it("offers a key what it may do, and nothing to others", async () => {
    const { key: made, secret } = await makeKey({ permissions: ["retrieve"] })
    const client = await connected(http(secret))
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["retrieve"])
    const refused = await client.callTool({ name: "chat", arguments: { message: "Hi" } })
    expect(refused.isError).toBe(true)
    expect(JSON.stringify(refused.content)).toContain("FORBIDDEN")
    await dashboard("DELETE", `/api/keys/${made.id}`, {})
    // Within a second, by every process.
    const refusal = () => client.listTools().then(() => "", String)
    expect(await until(refusal, (text) => text !== "", 5_000)).toContain("UNAUTHORIZED")
    await expect(connected(http("spk_nobody"))).rejects.toThrow("UNAUTHORIZED")
    const { secret: ingesting } = await makeKey({ permissions: ["ingest"] })
    await expect(connected(http(ingesting))).rejects.toThrow("FORBIDDEN")
  })

  it("refuses pages of other origins that the key does not name", async () => {
    await expect(connected(http(key, { origin: "https://evil.example" }))).rejects.toThrow("FORBIDDEN")
    await connected(http(key, { origin: spoke.url }))
    const { secret } = await makeKey({ permissions: ["chat"], allowedOrigins: ["https://good.example"] })
    await connected(http(secret, { origin: "https://good.example" }))
  })

  it("holds a key to its rate limit", async () => {
    const { secret } = await makeKey({ permissions: ["retrieve"], rateLimit: { requests: 3, window: 3600 } })
    const client = await connected(http(secret))
    await client.listTools()
    await expect(client.listTools()).rejects.toThrow("RATE_LIMITED")
  })

  const version = "2026-07-28"
  const prefix = "io.modelcontextprotocol/"
  const own = { [`${prefix}protocolVersion`]: version, [`${prefix}clientCapabilities`]: {} }

  /** A request of version 2026-07-28; what is given replaces what it would be. */
  const alone = async (
    method: string,
    params: Readonly<Record<string, unknown>> = {},
    headers: Readonly<Record<string, string>> = {}
  ) => {
    const response = await fetch(`${spoke.url}/mcp`, {
      method: "POST",
      headers: {
        "x-api-key": key,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": version,
        "mcp-method": method,
        ...(typeof params["name"] === "string" ? { "mcp-name": params["name"] } : {}),
        ...headers
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: "one", method, params: { _meta: own, ...params } })
    })
    return { status: response.status, text: await response.text() }
  }

  it("serves whole requests of version 2026-07-28, without a handshake", async () => {
    const resultOf = ({ text }: { readonly text: string }) => JSON.parse(text).result
    const whole = { resultType: "complete", _meta: { [`${prefix}serverInfo`]: { name: "spoke" } } }
    const discovered = resultOf(await alone("server/discover"))
    expect(discovered).toMatchObject({ ...whole, capabilities: { tools: {} }, cacheScope: "private" })
    expect(discovered.supportedVersions[0]).toBe(version)
    const listed = resultOf(await alone("tools/list"))
    expect(listed).toMatchObject({ ...whole, cacheScope: "private", ttlMs: 60_000 })
    expect(listed.tools.map((tool: { readonly name: string }) => tool.name)).toEqual(["retrieve", "chat"])
    const call = { name: "retrieve", arguments: { query: "Spoke", topK: 1 } }
    expect(resultOf(await alone("tools/call", call))).toMatchObject(whole)
    const encoded = { "mcp-name": `=?base64?${Buffer.from("retrieve").toString("base64")}?=` }
    expect(resultOf(await alone("tools/call", call, encoded))).toMatchObject(whole)
    const asked = {
      name: "chat",
      arguments: { message: "What is Spoke?" },
      _meta: { ...own, progressToken: 7 }
    }
    const frames = (await alone("tools/call", asked)).text
      .split("\n")
      .filter((line) => line.startsWith("data: "))
    const told = frames.map((line) => JSON.parse(line.slice("data: ".length)))
    expect(told[0]).toMatchObject({ method: "notifications/progress", params: { progressToken: 7 } })
    expect(told.at(-1)).toMatchObject({ id: "one", result: whole })
  })

  it("refuses requests of version 2026-07-28 that are incomplete or contradict themselves", async () => {
    const codeOf = async (answer: ReturnType<typeof alone>) => {
      const { status, text } = await answer
      return [status, JSON.parse(text).error.code]
    }
    const call = { name: "retrieve", arguments: { query: "Spoke" } }
    const without = { [`${prefix}protocolVersion`]: version }
    expect(await codeOf(alone("tools/list", { _meta: without }))).toEqual([400, -32_602])
    expect(await codeOf(alone("tools/list", { _meta: {} }))).toEqual([400, -32_602])
    expect(await codeOf(alone("tools/list", {}, { "mcp-method": "tools/call" }))).toEqual([400, -32_020])
    expect(await codeOf(alone("tools/call", call, { "mcp-name": "chat" }))).toEqual([400, -32_020])
    expect(await codeOf(alone("tools/list", {}, { "mcp-protocol-version": "2025-11-25" }))).toEqual([
      400, -32_020
    ])
    for (const method of ["initialize", "ping", "subscriptions/listen"]) {
      expect(await codeOf(alone(method))).toEqual([404, -32_601])
    }
    const later = { ...own, [`${prefix}protocolVersion`]: "2030-01-01" }
    const { status, text } = await alone(
      "tools/list",
      { _meta: later },
      { "mcp-protocol-version": "2030-01-01" }
    )
    expect(status).toBe(400)
    expect(JSON.parse(text)).toMatchObject({
      id: "one",
      error: { code: -32_022, data: { requested: "2030-01-01" } }
    })
    expect(JSON.parse(text).error.data.supported).toContain(version)
  })

  it("answers what is no proper request with JSON-RPC errors, and GET with 405", async () => {
    const post = (body: string, headers: Readonly<Record<string, string>> = {}) =>
      fetch(`${spoke.url}/mcp`, {
        method: "POST",
        headers: { "x-api-key": key, "content-type": "application/json", ...headers },
        body
      })
    const codeOf = async (response: Response) => [
      response.status,
      JSON.parse(await response.text()).error.code
    ]
    expect(await codeOf(await post("{"))).toEqual([400, -32_700])
    expect(await codeOf(await post("[]"))).toEqual([400, -32_600])
    expect(await codeOf(await post('{"jsonrpc":"2.0","id":1,"method":"none"}'))).toEqual([200, -32_601])
    const old = { "mcp-protocol-version": "1999-01-01" }
    expect(await codeOf(await post('{"jsonrpc":"2.0","id":1,"method":"ping"}', old))).toEqual([400, -32_600])
    expect((await post('{"jsonrpc":"2.0","method":"notifications/cancelled"}')).status).toBe(202)
    expect((await post(" ".repeat(1_100_000))).status).toBe(413)
    const nobody = await fetch(`${spoke.url}/mcp`, { method: "POST" })
    expect([nobody.status, nobody.headers.get("www-authenticate")]).toEqual([401, "Bearer"])
    expect((await fetch(`${spoke.url}/mcp`)).status).toBe(405)
  })
})
