import * as Http from "node:http"
import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { removeFolder, type Spoke, startFresh, temporaryFolder } from "../e2e/Spoke.ts"
import { complaints, desktop, hasBrowser, launch, look, openPart, signOut } from "./Browser.ts"
import { addressOf, site } from "./GalleryWorld.ts"

describe.skipIf(!hasBrowser)("The first five minutes", () => {
  const dataDir = temporaryFolder()
  const workshop = site()
  let script = ""
  /** A shop on an origin of its own. */
  const shop = Http.createServer((_, response) => {
    response.writeHead(200, { "content-type": "text/html; charset=utf-8" })
    response.end(
      `<!doctype html><html lang="en"><title>Shop</title><main><h1>Shop</h1></main>${script}</body></html>`
    )
  })
  let spoke: Spoke
  let browser: Browser
  let page: Page
  let wrong: ReadonlyArray<string>

  beforeAll(async () => {
    for (const server of [workshop, shop]) {
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    }
    spoke = await startFresh(dataDir, { SPOKE_FETCH_ALLOW: "127.0.0.1" })
    browser = await launch()
    page = await (await browser.newContext(desktop)).newPage()
    wrong = complaints(page)
  })

  afterAll(async () => {
    await browser.close()
    await spoke.kill()
    workshop.close()
    shop.close()
    removeFolder(dataDir)
  })

  it("begin with the address and the password that the terminal showed", async () => {
    const [, email = ""] = /^\s*(?:E-mail|Owner|Sign in)\D*?(\S+@\S+)/mu.exec(spoke.output()) ?? []
    const [, password = ""] = /password\W+(\S+)/iu.exec(spoke.output()) ?? []
    await page.goto(spoke.url)
    await page.getByLabel("E-mail").fill(email)
    await page.getByLabel("Password").fill(password)
    await page.keyboard.press("Enter")
    await page.getByRole("heading", { name: "Start" }).waitFor()
  })

  it("make an agent, which says what it lacks and where to give it that", async () => {
    await page.getByRole("link", { name: "Agents" }).click()
    await page.getByRole("button", { name: "New agent" }).click()
    await page.getByRole("dialog").getByLabel("Name").fill("Workshop")
    await page.keyboard.press("Enter")
    await page.getByRole("heading", { name: "Workbench" }).waitFor()
    await page.getByText("This agent knows nothing yet.").waitFor()
    await look(page, "first-agent")
    await page.getByRole("link", { name: "Add a source" }).click()
    await page.getByText("Nothing to know yet").waitFor()
    expect(await page.getByRole("button", { name: "Add source" }).count()).toBe(1)
    await page.getByRole("button", { name: "Add source" }).click()
    const dialog = page.getByRole("dialog")
    await dialog.getByLabel("Address", { exact: true }).fill(`${addressOf(workshop)}/hours`)
    await page.keyboard.press("Enter")
    await dialog.waitFor({ state: "hidden" })
    await page.getByRole("row", { name: /hours/ }).getByText("Ready").waitFor()
  })

  it("ask it something, and see where the answer comes from", async () => {
    await openPart(page, "Workbench")
    await page.getByLabel("Message").fill("When does the workshop open?")
    await page.keyboard.press("Enter")
    const reply = page.getByRole("article", { name: "Workshop" })
    await reply.getByText("half past nine").waitFor()
    await reply.getByRole("button", { name: "Citation 1" }).click()
    await page.locator("[data-passage][data-marked]").getByText("half past nine").waitFor()
    await look(page, "first-answer")
    // Elsewhere and back: what was said is still there.
    await openPart(page, "Settings")
    await page.getByLabel("Greeting").waitFor()
    await openPart(page, "Workbench")
    await reply.getByText("half past nine").waitFor()
    await page.getByLabel("Message").fill("And when does it close?")
    await page.keyboard.press("Enter")
    await page.getByRole("article").nth(3).waitFor()
    await page.getByRole("button", { name: "New conversation" }).click()
    await reply.first().waitFor({ state: "detached" })
  })

  it("put the chat on a page of somebody else, whose address is pasted as it is", async () => {
    await openPart(page, "Widget")
    await page.getByLabel("Websites that may show it").fill(`${addressOf(shop)}/catalogue?page=2`)
    await page.getByRole("button", { name: "Save widget" }).click()
    script = (await page.getByLabel("Script", { exact: true }).textContent()) ?? ""
    expect(script).toMatch(/^<script src="http:.+ data-agent="wgt_[^"]+" async><\/script>$/u)
    await page.goto(addressOf(shop))
    await page.getByRole("button", { name: "Open chat" }).click()
    await page.getByLabel("Message", { exact: true }).fill("When does the workshop open?")
    await page.keyboard.press("Enter")
    await page.getByRole("button", { name: /^Source 1/ }).waitFor()
    await page.getByText("half past nine").first().waitFor()
  })

  it("take over from a second window, and be heard on that page", async () => {
    const second = await page.context().newPage()
    await second.goto(`${spoke.url}/app/conversations`)
    await second
      .getByRole("list", { name: "All conversations" })
      .getByRole("link", { name: /Website/ })
      .click()
    await second.getByRole("button", { name: "Take over" }).click()
    await second.locator("h1 + span").getByText("Human answers").waitFor()
    await second.getByLabel("Reply", { exact: true }).fill("Ada here. We are open on Sunday too.")
    await second.keyboard.press("Enter")
    await page.getByText("Ada here. We are open on Sunday too.").first().waitFor()
    await page.getByText("You are talking with a person.").waitFor()
    await page.getByLabel("Message", { exact: true }).fill("See you then!")
    await page.keyboard.press("Enter")
    await second
      .getByRole("article", { name: /^Customer/ })
      .getByText("See you then!")
      .waitFor()
    expect(await second.getByRole("article", { name: /^Agent/ }).count()).toBe(1)
    await second.close()
    expect(wrong).toEqual([])
  })

  it("ask who is there as soon as somebody signs out in another window", async () => {
    await page.goto(`${spoke.url}/app/agents`)
    await page.getByRole("heading", { name: "Agents" }).waitFor()
    const other = await page.context().newPage()
    await other.goto(`${spoke.url}/app/agents`)
    await signOut(other)
    await other.getByRole("heading", { name: "Sign in" }).waitFor()
    await page.getByRole("heading", { name: "Sign in" }).waitFor()
  })
})
