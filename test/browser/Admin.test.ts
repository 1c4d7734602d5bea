import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { removeFolder, type Spoke, start, temporaryFolder, until } from "../e2e/Spoke.ts"
import { act, complaints, desktop, hasBrowser, launch, look, phone } from "./Browser.ts"

const owner = { SPOKE_ADMIN_EMAIL: "owner@example.com", SPOKE_ADMIN_PASSWORD: "correct horse battery" }

describe.skipIf(!hasBrowser)("The dashboard's usage, team, people and audit", () => {
  const dataDir = temporaryFolder()
  let spoke: Spoke
  let browser: Browser
  let page: Page
  let wrong: ReadonlyArray<string>

  const heading = (name: string) => page.getByRole("heading", { name, level: 1 }).waitFor()
  const visit = async (name: string) => {
    await page.getByRole("link", { name, exact: true }).click()
    await heading(name)
  }

  beforeAll(async () => {
    spoke = await start(dataDir, owner)
    await spoke.request("POST", "/v1/chat", { body: { message: "What is Spoke?", externalEndUserId: "ada" } })
    browser = await launch()
    page = await (await browser.newContext(desktop)).newPage()
    wrong = complaints(page)
    await page.goto(`${spoke.url}/`)
    await page.getByLabel("E-mail").fill(owner.SPOKE_ADMIN_EMAIL)
    await page.getByLabel("Password").fill(owner.SPOKE_ADMIN_PASSWORD)
    await page.keyboard.press("Enter")
    await heading("Start")
  })

  afterAll(async () => {
    await browser.close()
    await spoke.kill()
    removeFolder(dataDir)
  })

  it("say so where a page cannot be loaded, and load it when asked again", async () => {
    // Another window: the browser itself complains of what is withheld here.
    const other = await page.context().newPage()
    const usage = other.getByRole("link", { name: "Usage", exact: true })
    const parts = "**/assets/Usage-*"
    await other.route(parts, (route) => route.abort())
    await other.goto(`${spoke.url}/app/agents`)
    await usage.click()
    await other.getByRole("alert").getByText("The connection may have broken").waitFor()
    await look(other, "not-loaded")
    // The rest of the dashboard goes on.
    await other.getByRole("link", { name: "Team", exact: true }).click()
    await other.getByRole("heading", { name: "Team", level: 1 }).waitFor()
    await usage.click()
    await other.unroute(parts)
    await other.getByRole("button", { name: "Load again" }).click()
    await other.getByRole("heading", { name: "Usage", level: 1 }).waitFor()
    await other.close()
  })

  it("show what the period has used, as figures, bars and a table", async () => {
    await visit("Usage")
    // By keyboard and screen reader one is at the page's beginning, not at the link that led there.
    expect(await page.getByRole("main", { name: "Usage" }).evaluate((node) => node.matches(":focus"))).toBe(
      true
    )
    await page.getByRole("row", { name: /Spoke guide/ }).waitFor()
    await page.getByText("Turns by day").first().waitFor()
    await page.getByText("As a table").first().click()
    await page.getByRole("table", { name: "Turns by day" }).waitFor()
    await look(page, "usage")
  })

  it("invite somebody, who chooses a password by the link and sees no more than the role allows", async () => {
    await visit("Team")
    await page.getByRole("button", { name: "Invite somebody" }).click()
    const dialog = page.getByRole("dialog")
    await dialog.getByLabel("E-mail").fill("viewer@example.com")
    await dialog.getByLabel("Role").selectOption("Viewer")
    await dialog.getByRole("button", { name: "Invite somebody" }).click()
    const link = (await dialog.getByLabel("Invitation link", { exact: true }).textContent()) ?? ""
    expect(link).toContain("/app/welcome#")
    await dialog.getByRole("button", { name: "Done" }).click()
    await page
      .getByRole("row", { name: /viewer@example.com/ })
      .getByText("Invited")
      .waitFor()
    await look(page, "team")

    const other = await browser.newContext(phone)
    const guest = await other.newPage()
    await guest.goto(link)
    await guest.getByLabel("New password").waitFor()
    await look(guest, "welcome-phone")
    await guest.getByLabel("New password").fill("a long enough password")
    await guest.getByRole("button", { name: "Choose password" }).click()
    await guest.getByLabel("E-mail").fill("viewer@example.com")
    await guest.getByLabel("Password").fill("a long enough password")
    await guest.keyboard.press("Enter")
    await guest.getByRole("heading", { name: "Agents" }).waitFor()
    expect(await guest.getByRole("button", { name: "New agent" }).count()).toBe(0)
    expect(await guest.getByRole("link", { name: "Audit" }).count()).toBe(0)
    await guest.goto(`${spoke.url}/app/team`)
    await guest.getByRole("heading", { name: "Team" }).waitFor()
    expect(await guest.getByRole("button", { name: "Invite somebody" }).count()).toBe(0)
    await look(guest, "team-phone")
    await other.close()
  })

  it("find a person by their id, hand out what is stored and erase it", async () => {
    await visit("People")
    await page.getByLabel("Your own ID of the person").fill("ada")
    await page.getByRole("button", { name: "Search" }).click()
    await page.getByRole("cell", { name: /^ada /u }).waitFor()
    await look(page, "people")
    const download = page.waitForEvent("download")
    await act(page, "Export", "ada")
    expect((await download).suggestedFilename()).toMatch(/\.ndjson$/)
    await act(page, "Erase", "ada")
    await page.getByRole("alertdialog").getByRole("button", { name: "Erase" }).click()
    await page.getByRole("heading", { name: "Nobody here" }).waitFor()
  })

  it("say that a confirmed action failed, also after its question was closed", async () => {
    const other = await page.context().newPage()
    await other.goto(`${spoke.url}/app/team`)
    const answers: Array<() => void> = []
    await other.route("**/api/users/*", async (route) => {
      await new Promise<void>((resolve) => answers.push(resolve))
      await route.fulfill({
        status: 403,
        json: { error: { code: "FORBIDDEN", message: "Not this one." }, meta: { requestId: "r" } }
      })
    })
    const question = other.getByRole("alertdialog")
    const closings: ReadonlyArray<() => Promise<void>> = [
      () => other.keyboard.press("Escape"),
      () => other.mouse.click(4, 4),
      () => question.getByRole("button", { name: "Close" }).click(),
      () => other.getByRole("link", { name: "Usage", exact: true }).dispatchEvent("click")
    ]
    for (const close of closings) {
      await act(other, "Remove", "viewer@example.com")
      await question.getByRole("button", { name: "Cancel" }).waitFor()
      await question.getByRole("button", { name: "Remove" }).click()
      await until(
        async () => answers.length,
        (count) => count === 1
      )
      await close()
      await question.waitFor({ state: "detached" })
      answers.shift()?.()
      const told = other.getByRole("status").getByText("Remove: Not this one.")
      await told.waitFor()
      await other.getByRole("button", { name: "Dismiss" }).click()
      await told.waitFor({ state: "detached" })
    }
    await other.close()
  })

  it("tell who did what", async () => {
    await visit("Audit")
    await page.getByRole("row", { name: /Person erased .*owner@example\.com/ }).waitFor()
    await look(page, "audit")
    await page.setViewportSize(phone.viewport ?? { width: 390, height: 844 })
    await look(page, "audit-phone")
    expect(wrong).toEqual([])
  })
})
