import type { Browser, BrowserContext, Page } from "playwright-core"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { removeFolder, type Spoke, start, temporaryFolder } from "../e2e/Spoke.ts"
import { desktop, hasBrowser, launch, openPart } from "./Browser.ts"

const owner = { SPOKE_ADMIN_EMAIL: "owner@example.com", SPOKE_ADMIN_PASSWORD: "correct horse battery" }

describe.skipIf(!hasBrowser)("The dashboard without a connection", () => {
  const dataDir = temporaryFolder()
  let spoke: Spoke
  let browser: Browser
  let context: BrowserContext
  let page: Page
  let address = ""

  const unreachable = () => page.getByText("The server cannot be reached. Check your connection.")

  beforeAll(async () => {
    spoke = await start(dataDir, owner)
    browser = await launch()
    context = await browser.newContext(desktop)
    page = await context.newPage()
    await page.goto(`${spoke.url}/`)
    await page.getByLabel("E-mail").fill(owner.SPOKE_ADMIN_EMAIL)
    await page.getByLabel("Password").fill(owner.SPOKE_ADMIN_PASSWORD)
    await page.keyboard.press("Enter")
    await page.getByRole("heading", { name: "Start" }).waitFor()
    const { body } = await spoke.request("GET", "/api/agents", {
      key: null,
      headers: { cookie: (await context.cookies()).map(({ name, value }) => `${name}=${value}`).join("; ") }
    })
    address = `${spoke.url}/app/agents/${body.data.agents[0].id}`
  }, 60_000)

  beforeEach(() => context.setOffline(false))

  afterAll(async () => {
    await browser.close()
    await spoke.kill()
    removeFolder(dataDir)
  })

  it("says so when something is saved, and saves it once when it is tried again", async () => {
    await page.goto(`${address}/settings`)
    await page.getByLabel("Greeting").fill("Good day!")
    await context.setOffline(true)
    await page.getByRole("button", { name: "Save" }).click()
    await unreachable().waitFor({ timeout: 5_000 })
    await context.setOffline(false)
    expect(await page.getByText("Saved", { exact: true }).count()).toBe(0)
    await page.getByRole("button", { name: "Save" }).click()
    await page.getByText("Saved", { exact: true }).waitFor()
  })

  it("says so on a page that cannot be loaded, and loads it by itself when the connection is back", async () => {
    // The page's code is here, its data is not.
    await page.goto(`${address}/keys`)
    await page.getByRole("table").waitFor()
    await page.goto(`${address}/settings`)
    await page.getByLabel("Greeting").waitFor()
    await context.setOffline(true)
    await openPart(page, "Keys")
    await unreachable().waitFor({ timeout: 15_000 })
    await context.setOffline(false)
    await page.getByRole("table").waitFor({ timeout: 10_000 })
    await context.close()
  })
})
