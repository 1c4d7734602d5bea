/** Events of a billing provider, as callers of the API see their effects: period, limits, credits, and the end of a plan. */
import { Stripe } from "stripe"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { april, checkout, event, may, subscription } from "../http/billing/BillingEvents.ts"
import { removeFolder, type Spoke, start, temporaryFolder } from "./Spoke.ts"
import { makeTeam, type Team } from "./Team.ts"

const secret = "whsec_of_this_suite"
const plan = (turns: number, publicApi: boolean) => ({
  publicApi,
  turns,
  ingestionJobs: 20,
  sources: 10,
  overageEnabled: false
})

const dataDir = temporaryFolder()
let spoke: Spoke
let team: Team
let key = ""

beforeAll(async () => {
  spoke = await start(dataDir, {
    BILLING_WEBHOOK_SECRET: secret,
    SPOKE_PLANS: JSON.stringify({ pro: plan(2, true), free: plan(1, false) }),
    SPOKE_DEFAULT_PLAN: "free"
  })
  team = await makeTeam(spoke)
  key = (await team.key()).secret
}, 60_000)

afterAll(async () => {
  await spoke.kill()
  removeFolder(dataDir)
})

const tell = async (told: unknown) => {
  const payload = JSON.stringify(told)
  const response = await fetch(`${spoke.url}/api/webhooks/billing`, {
    method: "POST",
    headers: { "billing-signature": Stripe.webhooks.generateTestHeaderString({ payload, secret }) },
    body: payload
  })
  expect([response.status, JSON.parse(await response.text()).data]).toEqual([200, { received: true }])
}

const iso = (seconds: number) => new Date(seconds * 1_000).toISOString()
const outcome = async (method: string, path: string, body?: unknown) => {
  const { status, body: answer } = await spoke.request(method, path, {
    key,
    ...(body === undefined ? {} : { body })
  })
  return answer.error === undefined ? status : `${status} ${answer.error.code}`
}
const chat = () => outcome("POST", "/v1/chat", { message: "Hello?" })
const usage = async () => (await spoke.request("GET", "/v1/usage", { key })).body.data

describe("A subscription that the billing provider tells of", () => {
  it("decides at once, on every process, what the tenant's keys may do and in which period", async () => {
    const month = await usage()
    expect(month.turns).toEqual({ used: 0, limit: 1_000_000, overageEnabled: false })
    const sold = { tenantId: team.tenantId, id: `sub_${team.tenantId}` }
    const created = event("customer.subscription.created", 10, subscription(sold), `evt_a_${team.tenantId}`)
    await tell(created)
    await tell(created)
    for (const _ of spoke.each) {
      expect(await usage()).toMatchObject({
        period: { start: iso(april.start), end: iso(april.end) },
        turns: { used: 0, limit: 2 },
        ingestionJobs: { used: 0, limit: 20 },
        sources: { active: 0, limit: 10 }
      })
    }
    expect([await chat(), await chat(), await chat()]).toEqual([200, 200, "429 TURN_LIMIT_EXCEEDED"])
    // A credit is used once the period's turns are gone, and told of twice it is one.
    const bought = checkout(team.tenantId, "1", { payment_intent: `pi_${team.tenantId}` })
    await tell(event("checkout.session.completed", 11, bought, `evt_b_${team.tenantId}`))
    await tell(event("checkout.session.completed", 11, bought, `evt_b_${team.tenantId}`))
    expect([await chat(), await chat()]).toEqual([200, "429 TURN_LIMIT_EXCEEDED"])
    expect((await usage()).turns).toEqual({ used: 3, limit: 2, overageEnabled: false })
    // The next period has its own turns.
    const renewed = subscription({ ...sold, period: may })
    await tell(event("customer.subscription.updated", 20, renewed, `evt_c_${team.tenantId}`))
    expect(await usage()).toMatchObject({
      period: { start: iso(may.start), end: iso(may.end) },
      turns: { used: 0, limit: 2 }
    })
    expect(await chat()).toBe(200)
    // The end is told of before an update that happened earlier.
    const ended = subscription({ ...sold, status: "canceled", period: may })
    await tell(event("customer.subscription.deleted", 40, ended, `evt_d_${team.tenantId}`))
    await tell(event("customer.subscription.updated", 30, renewed, `evt_e_${team.tenantId}`))
    for (const _ of spoke.each) expect(await chat()).toBe("403 PLAN_RESTRICTED")
    for (const _ of spoke.each) expect(await outcome("GET", "/v1/usage")).toBe("403 PLAN_RESTRICTED")
  }, 60_000)

  it("changes nothing for other tenants, nor when somebody else has signed it", async () => {
    const other = await makeTeam(spoke)
    key = (await other.key()).secret
    const payload = JSON.stringify(
      event("customer.subscription.created", 10, subscription({ tenantId: other.tenantId, id: "sub_forged" }))
    )
    const forged = Stripe.webhooks.generateTestHeaderString({ payload, secret: "whsec_of_somebody_else" })
    const response = await fetch(`${spoke.url}/api/webhooks/billing`, {
      method: "POST",
      headers: { "billing-signature": forged },
      body: payload
    })
    expect([response.status, JSON.parse(await response.text()).error.code]).toEqual([
      400,
      "INVALID_SIGNATURE"
    ])
    expect((await usage()).turns).toEqual({ used: 0, limit: 1_000_000, overageEnabled: false })
    expect(await chat()).toBe(200)
  }, 60_000)
})
