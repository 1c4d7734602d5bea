import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as Http from "node:http"
import type { AddressInfo } from "node:net"
import { removeFolder, type Spoke, start, temporaryFolder, until } from "./Spoke.ts"

describe("From nothing, over HTTP alone", () => {
  const dataDir = temporaryFolder()
  const site = Http.createServer((_, response) => {
    response.setHeader("content-type", "text/html; charset=utf-8")
    response.end(`<!doctype html><title>Opening hours</title><main><h1>Opening hours</h1>
      <p>The workshop in Lisbon opens at half past nine and closes at seven in the evening.</p></main>`)
  })
  let spoke: Spoke
  let address = ""

  beforeAll(async () => {
    await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve))
    address = `http://127.0.0.1:${(site.address() as AddressInfo).port}/hours`
    spoke = await start(dataDir, { SPOKE_FETCH_ALLOW: "127.0.0.1" })
  })

  afterAll(async () => {
    await spoke.kill()
    site.close()
    removeFolder(dataDir)
  })

  it("an operator creates a tenant, its owner an agent and a key, which chats until it is revoked", async () => {
    const operator = { authorization: `Bearer ${spoke.operatorToken}` }
    const owner = { email: "ada@example.com", password: "correct horse battery" }
    const tenant = await spoke.request("POST", "/api/operator/tenants", {
      key: null,
      headers: operator,
      body: { name: "Acme", owner }
    })
    expect(tenant.status).toBe(201)
    expect(tenant.body.data.owner).toMatchObject({ email: "ada@example.com", role: "owner" })

    const csrf = { "x-spoke-csrf": "1" }
    const login = await spoke.request("POST", "/api/auth/login", { key: null, headers: csrf, body: owner })
    expect(login.status).toBe(200)
    const cookie = login.headers.get("set-cookie") ?? ""
    expect(cookie).toMatch(/HttpOnly/i)
    expect(cookie).toMatch(/SameSite=Lax/i)
    const session = { ...csrf, cookie: cookie.split(";")[0] ?? "" }

    const agent = await spoke.request("POST", "/api/agents", {
      key: null,
      headers: session,
      body: { name: "Shop" }
    })
    expect(agent.status).toBe(201)
    const made = await spoke.request("POST", `/api/agents/${agent.body.data.agent.id}/keys`, {
      key: null,
      headers: session,
      body: { name: "Website", permissions: ["chat", "ingest"] }
    })
    expect(made.status).toBe(201)
    const key: string = made.body.data.secret
    expect(key).toMatch(/^spk_/)

    const source = await spoke.request("POST", "/v1/sources", {
      key,
      body: { type: "URL", name: "Hours", config: { url: address } }
    })
    expect(source.status).toBe(201)
    const foreign = await spoke.request("GET", `/v1/ingestion-jobs/${source.body.data.ingestionJob.id}`)
    expect(foreign.status).toBe(404)
    const own = await until(
      () => spoke.request("GET", `/v1/ingestion-jobs/${source.body.data.ingestionJob.id}`, { key }),
      ({ body }) => body.data.status === "SUCCEEDED"
    )
    expect(own.body.data).toMatchObject({ progress: 100, chunksCreated: 1, error: null })

    const chat = await spoke.request("POST", "/v1/chat", {
      key,
      body: { message: "When does the workshop open?" }
    })
    expect(chat.status).toBe(200)
    expect(chat.body.data.reply).toContain("half past nine")
    expect(chat.body.data.citations[0]).toMatchObject({ sourceName: "Hours", url: address })
    expect((await spoke.request("POST", "/v1/retrieve", { key, body: { query: "hours" } })).status).toBe(403)

    const revoked = await spoke.request("DELETE", `/api/keys/${made.body.data.key.id}`, {
      key: null,
      headers: session
    })
    expect(revoked.body.data).toEqual({ id: made.body.data.key.id, deleted: true })
    const after = await until(
      () => spoke.request("POST", "/v1/chat", { key, body: { message: "Hello?" } }),
      ({ status }) => status === 401,
      1_000
    )
    expect(after.body.error.code).toBe("UNAUTHORIZED")
  })
})
