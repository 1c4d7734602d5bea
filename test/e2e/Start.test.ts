import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { signIn } from "./routes/RouteWorld.ts"
import { removeFolder, type Spoke, startFresh, temporaryFolder, until } from "./Spoke.ts"

const owner = { email: "owner@example.com", password: "correct horse battery" }
const origin = "https://shop.example"

describe("The guided start and the widget, over HTTP", () => {
  const dataDir = temporaryFolder()
  let spoke: Spoke
  let cookie = ""

  const own = (method: string, path: string, body?: unknown, headers = {}) =>
    spoke.request(method, path, { key: null, headers: { cookie, "x-spoke-csrf": "1", ...headers }, body })

  beforeAll(async () => {
    spoke = await startFresh(dataDir, {
      SPOKE_ADMIN_EMAIL: owner.email,
      SPOKE_ADMIN_PASSWORD: owner.password
    })
    cookie = await signIn(spoke, owner.email, owner.password)
    await until(
      () => spoke.request("GET", "/v1/sources"),
      ({ body }) => body.data.sources.every(({ status }: { status: string }) => status === "READY"),
      60_000
    )
  }, 90_000)

  afterAll(async () => {
    await spoke.kill()
    removeFolder(dataDir)
  })

  it("the sample agent greets with questions that it answers, as does the line that the first start prints", async () => {
    const [agent] = (await own("GET", "/api/agents")).body.data.agents
    const asked = [...agent.greeting.matchAll(/^- (.+\?)$/gmu)].map(([, question]) => question)
    const [, printed] = /"message": "([^"]+)"/u.exec(spoke.output()) ?? []
    expect([asked.length, printed]).toEqual([3, "How do I add a source?"])
    for (const message of [...asked, printed]) {
      const { body } = await spoke.request("POST", "/v1/chat", { body: { message } })
      expect([message, body.data.citations.length > 0]).toEqual([message, true])
    }
    const { body } = await own("GET", `/api/agents/${agent.id}/questions`)
    expect(body.data.questions).toHaveLength(3)
    for (const message of body.data.questions) {
      const { body: answer } = await spoke.request("POST", "/v1/chat", { body: { message } })
      expect([message, answer.data.citations.length > 0]).toEqual([message, true])
    }
  }, 60_000)

  it("the start knows how far it is, and is put aside", async () => {
    const before = (await own("GET", "/api/start")).body.data
    expect(before).toMatchObject({
      agent: null,
      sample: { name: "Spoke guide" },
      finished: false,
      dismissed: false
    })
    expect((await own("PUT", "/api/start", { dismissed: true })).status).toBe(200)
    expect((await own("GET", "/api/start")).body.data.dismissed).toBe(true)
    const { status } = await own("GET", "/api/start?agentId=agt_nobody")
    expect(status).toBe(404)
  })

  it("a widget has a public name that opens its chat from its websites, and nothing else", async () => {
    const [agent] = (await own("GET", "/api/agents")).body.data.agents
    const path = `/api/agents/${agent.id}/widget`
    expect((await own("GET", path)).body.data.widget).toMatchObject({ publicId: null, version: 0 })
    const change = { color: "#ffcc00", suggestions: ["How do I add a source?"], allowedOrigins: [origin] }
    const saved = await own("PATCH", path, change, { "if-match": '"0"' })
    expect(saved.status).toBe(200)
    const { publicId } = saved.body.data.widget
    expect((await own("PATCH", path, change, { "if-match": '"0"' })).status).toBe(409)
    expect(
      (await own("PATCH", path, { consent: { text: "x", link: { label: "x", url: "http://x.example" } } }))
        .status
    ).toBe(400)
    const ask = (method: string, route: string, from: string, body?: unknown) =>
      spoke.request(method, route, { key: publicId, headers: { origin: from }, body })
    expect((await ask("GET", "/api/sdk/widget", origin)).body.data).toMatchObject({
      name: "Spoke guide",
      color: "#ffcc00",
      suggestions: ["How do I add a source?"],
      greeting: agent.greeting
    })
    expect((await ask("GET", "/api/sdk/widget", "https://evil.example")).status).toBe(403)
    const { sessionId } = (await ask("POST", "/api/sdk/init", origin, {})).body.data
    expect(sessionId).toMatch(/^ses_/u)
    for (const [method, route, body] of [
      ["POST", "/v1/chat", { message: "Hello" }],
      ["POST", "/mcp", { jsonrpc: "2.0", id: 1, method: "tools/list" }],
      ["GET", "/v1/conversations", undefined],
      ["GET", "/v1/sources", undefined]
    ] as const) {
      expect([route, (await ask(method, route, origin, body)).status]).toEqual([route, 403])
    }
    const [entry] = (await own("GET", "/api/audit")).body.data.entries ?? []
    expect(entry?.action).toBe("widget.update")
  })

  it("the page of the preview may be framed by the dashboard alone", async () => {
    const { headers, status } = await fetch(`${spoke.url}/widget-preview`)
    expect(status).toBe(200)
    expect(headers.get("content-security-policy")).toContain("frame-ancestors 'self'")
  })
})
