/**
 * One member of each closed set is added to a copy of the sources: a source type, a channel, a permission, an error code
 * and an endpoint, with a plan from the settings. The compiler names every file that lacks something; once it compiles,
 * a real server does the whole of it.
 */
import { Stripe } from "stripe"
import { afterAll, beforeAll, expect, it } from "vitest"
import { removeFolder, type Spoke, start, temporaryFolder, until } from "../e2e/Spoke.ts"
import { ask, csrf, makeTenant } from "../e2e/routes/RouteWorld.ts"
import { event, subscription } from "../http/billing/BillingEvents.ts"
import { completion, incomplete, records } from "./Additions.ts"
import { type Copy, makeCopy } from "./Copy.ts"

const plan = { publicApi: true, turns: 77, ingestionJobs: 9, sources: 5, overageEnabled: false }
const secret = "whsec_of_this_suite"
const variables = { BILLING_WEBHOOK_SECRET: secret, SPOKE_PLANS: JSON.stringify({ harbour: plan }) }
const dataDir = temporaryFolder()
let copy: Copy
let spoke: Spoke
let cookie = ""
let agentId = ""
let tenantId = ""
let key = ""

const parsed = async (received: ReturnType<typeof ask>) => {
  const { status, text } = await received
  return { status, body: JSON.parse(text) }
}
const asOwner = (method: string, path: string, body?: unknown) =>
  parsed(ask(spoke, method, path, { cookie, headers: csrf, ...(body === undefined ? {} : { body }) }))
const withKey = (method: string, path: string, body?: unknown, secret = key) =>
  parsed(ask(spoke, method, path, { key: secret, ...(body === undefined ? {} : { body }) }))
const keyWith = async (...permissions: ReadonlyArray<string>): Promise<string> => {
  const made = await asOwner("POST", `/api/agents/${agentId}/keys`, { name: permissions.join(), permissions })
  expect(made.status).toBe(201)
  return made.body.data.secret
}

beforeAll(async () => {
  copy = makeCopy()
}, 60_000)

afterAll(async () => {
  await spoke?.kill()
  removeFolder(dataDir)
  removeFolder(copy.folder)
})

it("does not compile while a part of an addition is missing, and names each file that lacks one", async () => {
  for (const addition of records.added) copy.add(addition)
  for (const insertion of records.inserted) copy.insert(insertion)
  expect(await copy.filesWithErrors()).toEqual(incomplete)
}, 900_000)

it("compiles, builds and starts once each of these files has its part", async () => {
  for (const addition of completion.added) copy.add(addition)
  for (const insertion of completion.inserted) copy.insert(insertion)
  expect(await copy.filesWithErrors()).toEqual([])
  spoke = await start(dataDir, variables, [], await copy.build())
  const tenant = await makeTenant(spoke, "harbour")
  cookie = tenant.cookie
  tenantId = tenant.tenantId
  agentId = (await asOwner("POST", "/api/agents", { name: "Harbour" })).body.data.agent.id
  key = await keyWith("*")
}, 900_000)

it("reads a source of the new type, lists it by its type, and finds what it says", async () => {
  const config = { words: "The key of the lighthouse hangs behind the kitchen door." }
  const made = await withKey("POST", "/v1/sources", { type: "NOTE", name: "Lighthouse", config })
  expect(made.status).toBe(201)
  const { id } = made.body.data.source
  const wrong = await withKey("POST", "/v1/sources", { type: "NOTE", name: "Lighthouse", config: {} })
  expect([wrong.status, wrong.body.error.code]).toEqual([400, "VALIDATION_ERROR"])
  await until(
    () => withKey("GET", `/v1/sources/${id}`),
    ({ body }) => body.data.status === "READY"
  )
  const listed = await withKey("GET", "/v1/sources?type=NOTE")
  expect(listed.body.data.sources.map(({ config: stored }: { config: unknown }) => stored)).toEqual([config])
  const found = await withKey("POST", "/v1/retrieve", { query: "Where is the key of the lighthouse?" })
  expect(JSON.stringify(found.body)).toContain("behind the kitchen door")
})

it("asks for the new permission, and answers with the new code, as described", async () => {
  expect(await withKey("GET", "/v1/agents/me", undefined, await keyWith("agents:read"))).toMatchObject({
    status: 200,
    body: { data: { id: agentId } }
  })
  const refused = await withKey("GET", "/v1/agents/me", undefined, await keyWith("chat"))
  expect([refused.status, refused.body.error.code]).toEqual([403, "FORBIDDEN"])
  const asleep = await withKey("GET", "/v1/agents/me?asleep=yes")
  expect([asleep.status, asleep.body.error.code]).toEqual([409, "AGENT_ASLEEP"])
  const description = await withKey("GET", "/openapi.json")
  expect(Object.keys(description.body.paths["/v1/agents/me"].get.responses)).toContain("409")
})

it("answers on the new channel, once for each message", async () => {
  const made = await asOwner("POST", `/api/agents/${agentId}/channels`, {
    channel: "pager",
    externalId: "line-1",
    accessToken: "line-1-token"
  })
  expect(made.status).toBe(201)
  const deliver = (token: string) =>
    parsed(
      ask(spoke, "POST", "/api/webhooks/pager/line-1", {
        headers: { "x-pager-token": token },
        body: { id: "1", from: "555-0100", text: "Where is the key of the lighthouse?" }
      })
    )
  expect((await deliver("line-2-token")).status).toBe(401)
  expect((await deliver("line-1-token")).body.data).toMatchObject({ enqueued: 1 })
  expect((await deliver("line-1-token")).body.data).toMatchObject({ enqueued: 0, dedupedCount: 1 })
  const conversations = await until(
    () => asOwner("GET", "/api/conversations?channel=pager"),
    ({ body }) => body.data.conversations.length === 1
  )
  const [{ id }] = conversations.body.data.conversations
  const read = await until(
    () => asOwner("GET", `/api/conversations/${id}/messages`),
    ({ body }) => JSON.stringify(body).includes('"status":"sent"')
  )
  const roles = read.body.data.messages.map(({ role }: { role: string }) => role)
  expect(roles.toSorted()).toEqual(["assistant", "user"])
})

it("applies the new plan to a tenant that subscribes to it", async () => {
  const told = event(
    "customer.subscription.created",
    10,
    subscription({ tenantId, plan: "harbour" }),
    "evt_1"
  )
  const payload = JSON.stringify(told)
  const answer = await fetch(`${spoke.url}/api/webhooks/billing`, {
    method: "POST",
    headers: { "billing-signature": Stripe.webhooks.generateTestHeaderString({ payload, secret }) },
    body: payload
  })
  expect(answer.status).toBe(200)
  const { body } = await withKey("GET", "/v1/usage")
  expect(body.data).toMatchObject({
    turns: { limit: 77 },
    ingestionJobs: { limit: 9 },
    sources: { limit: 5 }
  })
})
