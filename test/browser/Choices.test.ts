import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { csrf, signIn } from "../e2e/routes/RouteWorld.ts"
import { removeFolder, type Spoke, start, temporaryFolder, until } from "../e2e/Spoke.ts"
import { complaints, desktop, hasBrowser, launch, look, openPart } from "./Browser.ts"

const owner = { SPOKE_ADMIN_EMAIL: "owner@example.com", SPOKE_ADMIN_PASSWORD: "correct horse battery" }

/** More than one page of each. */
const agentCount = 101
const memberCount = 101
const keyCount = 51
const versionCount = 21

describe.skipIf(!hasBrowser)("Choices of the dashboard, and names that it looks up", () => {
  const dataDir = temporaryFolder()
  let spoke: Spoke
  let browser: Browser
  let page: Page
  let wrong: ReadonlyArray<string>
  let agentId = ""
  /** The owner, and who joined last: one of them is not on the first page of the team. */
  let ends: ReadonlyArray<{ readonly id: string; readonly email: string }> = []

  const caller = async (email: string) => {
    const cookie = await signIn(spoke, email, owner.SPOKE_ADMIN_PASSWORD)
    return async (method: string, path: string, body?: object, headers: object = {}) => {
      const options = { key: null, headers: { cookie, ...csrf, ...headers } }
      const answer = await spoke.request(method, path, body === undefined ? options : { ...options, body })
      expect([path, answer.status < 300]).toEqual([path, true])
      return answer.body.data
    }
  }
  const times = async (count: number, work: (number: number) => Promise<unknown>) => {
    for (let number = 1; number <= count; number++) await work(number)
  }
  const optionsOf = (label: string) => () =>
    page.getByLabel(label, { exact: true }).locator("option").allTextContents()
  const visit = async (path: string, heading: string) => {
    await page.goto(`${spoke.url}/app${path}`)
    await page.getByRole("heading", { name: heading, level: 1 }).first().waitFor()
  }

  beforeAll(async () => {
    spoke = await start(dataDir, owner)
    const asOwner = await caller(owner.SPOKE_ADMIN_EMAIL)
    agentId = (await asOwner("GET", "/api/agents")).agents[0].id
    await times(agentCount, (number) => asOwner("POST", "/api/agents", { name: `Agent ${number}` }))
    await times(memberCount - 1, (number) =>
      asOwner("POST", "/api/users", { email: `person-${number}@example.com`, role: "agent" })
    )
    const { user: last } = await asOwner("POST", "/api/users", {
      email: "last@example.com",
      role: "admin",
      password: owner.SPOKE_ADMIN_PASSWORD
    })
    ends = [(await asOwner("GET", "/api/auth/session")).user, last]
    await times(keyCount, (number) =>
      asOwner("POST", `/api/agents/${agentId}/keys`, { name: `Key ${number}`, permissions: ["chat"] })
    )
    const makeVersion = async (call: typeof asOwner) => {
      const { agent } = await call("GET", `/api/agents/${agentId}`)
      const change = { instructions: `Answer in a sentence, ${agent.version}.` }
      await call("PATCH", `/api/agents/${agentId}`, change, { "if-match": `"${agent.version}"` })
    }
    await times(versionCount - 2, () => makeVersion(asOwner))
    // Of each end of the team.
    for (const call of [asOwner, await caller("last@example.com")]) await makeVersion(call)
    await spoke.request("POST", "/v1/chat", { body: { message: "What is Spoke?", externalEndUserId: "ada" } })
    browser = await launch()
    page = await (await browser.newContext(desktop)).newPage()
    wrong = complaints(page)
    await page.goto(`${spoke.url}/`)
    await page.getByLabel("E-mail").fill(owner.SPOKE_ADMIN_EMAIL)
    await page.getByLabel("Password").fill(owner.SPOKE_ADMIN_PASSWORD)
    await page.keyboard.press("Enter")
    await page.getByRole("heading", { name: "Start" }).waitFor()
  }, 120_000)

  afterAll(async () => {
    await browser.close()
    await spoke.kill()
    removeFolder(dataDir)
  })

  it("offer every agent, in the inbox and to measure", async () => {
    await visit("/insights", "Insights")
    // Those that were made, that of the start, and all of them.
    await until(optionsOf("Agent"), (names) => names.length === agentCount + 2)
    await visit("/conversations", "Conversations")
    await page.getByRole("button", { name: "Filters" }).click()
    await until(optionsOf("Agent"), (names) => names.length === agentCount + 2)
  })

  it("offer everybody who may answer as the assignee of a conversation", async () => {
    await visit("/conversations", "Conversations")
    await page.getByRole("list", { name: "All conversations" }).getByRole("link").click()
    // With the owner and nobody.
    await until(optionsOf("Assigned to"), (people) => people.length === memberCount + 2)
    await page.getByLabel("Assigned to").selectOption("last@example.com")
    await page.getByText("Assigned to last@example.com").waitFor()
  })

  it("offer every key to limit what it costs", async () => {
    await visit("/usage", "Usage")
    await page.getByRole("button", { name: "Set budget" }).click()
    const dialog = page.getByRole("dialog")
    await dialog.getByLabel("For", { exact: true }).selectOption(agentId)
    const names = await until(optionsOf("API key"), (all) => all.length > keyCount)
    expect(names).toEqual(expect.arrayContaining(["Key 1", `Key ${keyCount}`]))
    await look(page, "budget-of-many-keys")
    await page.keyboard.press("Escape")
  })

  it("offer every version to try", async () => {
    await page.goto(`${spoke.url}/app/agents/${agentId}/try`)
    // Those that were made, and the first.
    const versions = await until(optionsOf("Who answers"), (all) => all.length > versionCount)
    expect(versions.at(-1)).toBe("Version 1")
  })

  it("name the authors of versions and whose sessions are shown, whoever of the team it is", async () => {
    await page.goto(`${spoke.url}/app/agents/${agentId}`)
    await openPart(page, "Versions")
    const table = page.getByRole("table", { name: "Versions" })
    await table.getByText("last@example.com").waitFor()
    await table.getByText(owner.SPOKE_ADMIN_EMAIL).first().waitFor()
    for (const { email, id } of ends) {
      await visit(`/team/${id}/sessions`, "Sessions")
      await page.getByText(`Where ${email} is signed in.`).waitFor()
    }
    expect(wrong).toEqual([])
  })
})
