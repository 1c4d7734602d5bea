/** A service with something of everything to look at: what the pages are pictured with. */
import * as Http from "node:http"
import type { AddressInfo } from "node:net"
import { strToU8, zipSync } from "fflate"
import { type Answer, type Spoke, until } from "../e2e/Spoke.ts"
import { fillMuseum, type Museum } from "./ImproveWorld.ts"

const pages: Readonly<Record<string, string>> = {
  "/": '<title>Workshop</title><main><h1>Workshop</h1><p>We repair bicycles of every make, usually within two days.</p><a href="/hours">Hours</a> <a href="/prices">Prices</a> <a href="/jobs">Jobs</a> <a href="/lost">Lost</a></main>',
  "/hours":
    "<title>Hours</title><main><h1>Hours</h1><p>The workshop opens at half past nine and closes at six.</p></main>",
  "/prices":
    "<title>Prices</title><main><h1>Prices</h1><p>A new chain costs forty euros, fitted while you wait.</p></main>",
  "/jobs": "<title>Jobs</title><main><h1>Jobs</h1><p>We are looking for a mechanic.</p></main>"
}

/** A website to read: two pages that answer, one that is left out, one that is not there. */
export const site = (): Http.Server =>
  Http.createServer((request, response) => {
    const page = pages[request.url ?? ""]
    response.writeHead(page === undefined ? 404 : 200, { "content-type": "text/html; charset=utf-8" })
    response.end(page === undefined ? "" : `<!doctype html>${page}`)
  })

export const addressOf = (server: Http.Server): string =>
  `http://127.0.0.1:${(server.address() as AddressInfo).port}`

const good = ({ body, status }: Answer) => {
  if (status >= 300) throw new Error(`${status} ${JSON.stringify(body)}`)
  return body.data
}

export interface Owner {
  readonly email: string
  readonly password: string
}

/** What the pages are asked for by. */
export interface Gallery {
  readonly agentId: string
  /** An agent that has nothing yet. */
  readonly freshId: string
  readonly sourceId: string
  readonly documentId: string
  readonly failedId: string
  /** In each state. */
  readonly conversations: Readonly<Record<"answered" | "asked" | "taken" | "closed", string>>
  /** E-mail addresses by role, and their password. */
  readonly members: Readonly<Record<"viewer" | "agent" | "password", string>>
  /** An agent about which there is something to improve. */
  readonly museum: Museum
  /** The path on which an invited member chooses a password. */
  readonly invitation: string
}

export const fill = async (spoke: Spoke, { email, password }: Owner, workshop: string): Promise<Gallery> => {
  const login = await spoke.request("POST", "/api/auth/login", {
    key: null,
    headers: { "x-spoke-csrf": "1" },
    body: { email, password }
  })
  const cookie = login.headers.get("set-cookie")?.split(";")[0] ?? ""
  const headers = { cookie, "x-spoke-csrf": "1" }
  const own = async (method: string, path: string, body?: unknown) =>
    good(await spoke.request(method, path, { key: null, headers, ...(body === undefined ? {} : { body }) }))

  const [{ id: agentId }] = (await own("GET", "/api/agents")).agents
  const { agent: fresh } = await own("POST", "/api/agents", { name: "Support of the northern branches" })
  await own("PATCH", `/api/agents/${agentId}`, { greeting: "Good day! What would you like to know?" })

  const ready = async (id: string) =>
    until(
      () => own("GET", `/api/sources/${id}`),
      ({ status }) => status === "READY" || status === "FAILED",
      30_000
    )
  const add = async (name: string, config: object): Promise<string> => {
    const { source } = await own("POST", "/api/sources", { agentId, type: "URL", name, config })
    await ready(source.id)
    return source.id
  }
  const sourceId = await add("Workshop site", {
    url: `${workshop}/`,
    maxDepth: 1,
    excludePatterns: [`${workshop}/jobs`]
  })
  const failedId = await add("Old price list", { url: `${workshop}/gone` })
  const form = new FormData()
  form.set("agentId", agentId)
  const zip = zipSync({
    "prices.md": strToU8("# Prices\n\nA bell costs twelve euros."),
    "empty.txt": strToU8("")
  })
  form.set("file", new Blob([zip]), "documents-of-the-workshop-2024-to-2026.zip")
  const uploaded = await fetch(`${spoke.url}/api/sources/bulk-upload`, {
    method: "POST",
    headers,
    body: form
  })
  if (!uploaded.ok) throw new Error(await uploaded.text())

  const keysOf = `/api/agents/${agentId}/keys`
  await own("POST", keysOf, {
    name: "Website",
    permissions: ["chat"],
    allowedOrigins: ["https://www.example.com", "https://shop.example.com"],
    rateLimit: { requests: 1000, window: 60 }
  })
  const old = await own("POST", keysOf, {
    name: "Nightly import of the warehouse",
    permissions: ["ingest", "retrieve", "usage.read", "trace_read"],
    expiresAt: "2099-12-31T22:00:00.000Z"
  })
  await own("DELETE", `/api/keys/${old.key.id}`)
  await own("POST", `/api/agents/${agentId}/tools`, {
    name: "order_status",
    description: "Tells where an order is, and when it will arrive, by the number on its receipt.",
    parameters: { type: "object", properties: { number: { type: "string" } }, required: ["number"] },
    http: { method: "GET", url: "https://shop.example/orders/{number}" },
    bindings: [{ from: "/customer/id", to: "header:X-Customer" }],
    auth: { kind: "bearer", slot: "shop" }
  })
  await own("POST", `/api/agents/${agentId}/tools`, {
    name: "handbook",
    description: "Searches the handbook of the workshop. Needs a person who connects it.",
    mcp: { url: "https://mcp.example.com/handbook" },
    auth: { kind: "oauth", scopes: ["handbook.read"] }
  })
  await own("POST", `/api/agents/${agentId}/cases`, {
    question: "When does the workshop open on a Saturday?",
    expectSources: ["https://shop.example/hours"],
    expectFacts: ["ten o'clock"],
    note: "Customers ask this most often."
  })
  await own("POST", `/api/agents/${agentId}/experiments`, {})
  await own("POST", `/api/agents/${agentId}/channels`, {
    channel: "whatsapp",
    externalId: "1098765432",
    accessToken: "a-token-of-the-provider"
  })

  const talk = async (externalEndUserId: string, ...messages: ReadonlyArray<string>): Promise<string> => {
    let id = ""
    for (const message of messages) {
      const who = id === "" ? { externalEndUserId } : { conversationId: id }
      id = good(await spoke.request("POST", "/v1/chat", { body: { message, ...who } })).conversationId
    }
    return id
  }
  const answered = await talk(
    "ada@example.com",
    "When does the workshop open?",
    "What does a new chain cost?"
  )
  const asked = await talk(
    "grace.brewster.murray.hopper@a-very-long-domain-name.example.com",
    "How do I start the server?"
  )
  const taken = await talk("Jean Bartik", "Can I bring my bicycle tomorrow?")
  const closed = await talk("kay", "What is a source?")
  const sdk = await spoke.request("POST", "/api/sdk/init", { body: {} })
  await spoke.request("POST", "/api/sdk/handoff", { body: { sessionId: good(sdk).sessionId } })
  await own("POST", `/api/conversations/${taken}/takeover`)
  await own("POST", `/api/conversations/${taken}/messages`, {
    content: "Certainly. We open at half past nine."
  })
  await own("POST", `/api/conversations/${closed}/close`)
  await own("POST", `/api/conversations/${taken}/notes`, {
    content: "Rides a tandem: needs the large stand."
  })
  const { label } = await own("POST", "/api/inbox/labels", { name: "Repair", tone: "accent" })
  const { label: urgent } = await own("POST", "/api/inbox/labels", { name: "Urgent", tone: "bad" })
  await own("PUT", `/api/conversations/${taken}/labels`, { labelIds: [label.id, urgent.id] })
  const me = (await own("GET", "/api/auth/session")).user.id
  await own("PUT", `/api/conversations/${taken}/assignee`, { userId: me })
  await own("POST", "/api/inbox/views", { name: "My repairs", filter: { assignee: "me", label: label.id } })
  await own("POST", "/api/inbox/replies", {
    shortcut: "hours",
    content: "We open at half past nine, {{name}}."
  })

  const documentId = (await own("GET", `/api/sources/${sourceId}/documents`)).documents[0].id

  const museum = await fillMuseum(spoke, own)
  const members = {
    agent: "colleague@example.com",
    viewer: "viewer@example.com",
    password: "a long enough password"
  }
  for (const role of ["agent", "viewer"] as const) {
    await own("POST", "/api/users", { email: members[role], role, password: members.password })
  }
  // Nobody signs in there: what an owner sees of it.
  await own("PUT", "/api/single-sign-on", {
    issuer: "https://login.example.com",
    clientId: "spoke",
    clientSecret: "a secret of the tests",
    domains: ["example.com"],
    trustsEmail: false,
    groupsClaim: "groups",
    groupRoles: [{ group: "support", role: "agent" }],
    defaultRole: "viewer",
    createsPeople: true,
    allowsPasswords: true
  })
  await own("POST", "/api/single-sign-on/scim")
  const invited = await own("POST", "/api/users", { email: "invited.person@example.com", role: "viewer" })
  const invitation = new URL(invited.invitation?.url ?? invited.url ?? `${spoke.url}/app/welcome#none`)
  return {
    agentId,
    freshId: fresh.id,
    sourceId,
    documentId,
    failedId,
    conversations: { answered, asked, taken, closed },
    members,
    museum,
    invitation: `${invitation.pathname}${invitation.hash}`
  }
}
