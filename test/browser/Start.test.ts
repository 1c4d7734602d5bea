import * as Http from "node:http"
import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { removeFolder, type Spoke, start, temporaryFolder, until } from "../e2e/Spoke.ts"
import { complaints, desktop, hasBrowser, launch, look, openPart } from "./Browser.ts"
import { addressOf } from "./GalleryWorld.ts"

/** Of the page. */
declare const getComputedStyle: (element: unknown) => {
  readonly color: string
  readonly backgroundColor: string
}

const owner = { email: "owner@example.com", password: "correct horse battery" }

const pages: Readonly<Record<string, string>> = {
  "/": `<title>Workshop</title><main><h1>Workshop</h1><p>We repair bicycles of all makes in Lisbon.</p>
    <h2>Opening hours</h2><p>The workshop opens at half past nine and closes at seven.</p>
    <a href="/faq">Questions</a></main>`,
  "/faq": `<title>Questions</title><main><h1>Questions</h1><h2>Do you repair electric bikes?</h2>
    <p>Yes, we repair electric bikes, except for their batteries, which go to the maker.</p></main>`
}

describe.skipIf(!hasBrowser)("The guided start", () => {
  const dataDir = temporaryFolder()
  let script = ""
  const site = Http.createServer((request, response) => {
    const page = pages[request.url ?? ""]
    response.writeHead(page === undefined ? 404 : 200, { "content-type": "text/html; charset=utf-8" })
    response.end(page === undefined ? "" : `<!doctype html><html lang="en">${page}</html>`)
  })
  /** The same shop's page with the script on it, on an origin of its own. */
  const shop = Http.createServer((_, response) => {
    response.writeHead(200, { "content-type": "text/html; charset=utf-8" })
    response.end(
      `<!doctype html><html lang="en"><title>Shop</title><main><h1>Shop</h1></main>${script}</html>`
    )
  })
  let spoke: Spoke
  let browser: Browser
  let page: Page
  let wrong: ReadonlyArray<string>

  beforeAll(async () => {
    for (const server of [site, shop]) {
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    }
    spoke = await start(dataDir, {
      SPOKE_ADMIN_EMAIL: owner.email,
      SPOKE_ADMIN_PASSWORD: owner.password,
      SPOKE_FETCH_ALLOW: "127.0.0.1"
    })
    browser = await launch()
    page = await (await browser.newContext(desktop)).newPage()
    wrong = complaints(page)
  })

  afterAll(async () => {
    await browser.close()
    await spoke.kill()
    site.close()
    shop.close()
    removeFolder(dataDir)
  })

  it("is shown first, and finds the pages of a homepage", async () => {
    await page.goto(spoke.url)
    await page.getByLabel("E-mail").fill(owner.email)
    await page.getByLabel("Password").fill(owner.password)
    await page.keyboard.press("Enter")
    await page.getByLabel("Homepage").fill(addressOf(site))
    await page.keyboard.press("Enter")
    await page.getByText("2 pages were found.").waitFor()
    await look(page, "start-found")
    await page.getByRole("button", { name: "Read these 2 pages" }).click()
  })

  it("reads them, and asks what they answer", async () => {
    const question = page.getByRole("button", { name: "Do you repair electric bikes?" })
    await question.waitFor()
    await look(page, "start-questions")
    // In another window, which does not get the code of the chat.
    const other = await page.context().newPage()
    const parts = /\/assets\/(?:TestChat|Workbench|testChat)[^/]*\.js$/u
    await other.route(parts, (route) => route.abort())
    await other.goto(`${spoke.url}/app/start`)
    const same = other.getByRole("button", { name: "Do you repair electric bikes?" })
    await same.click()
    await other.getByRole("alert").getByText("The connection may have broken").waitFor()
    for (const width of [390, 1440]) {
      await other.setViewportSize({ width, height: 900 })
      await look(other, `start-not-loaded-${width}`)
    }
    await other.unroute(parts)
    await other.getByRole("button", { name: "Load again" }).click()
    await same.click()
    await other.waitForURL(/\/try$/u)
    await other.close()
    await question.click()
    await page
      .getByRole("article", { name: "127.0.0.1" })
      .getByText("except for their batteries")
      .first()
      .waitFor()
  })

  it("goes on where it was left, and shows the widget in the customer's colour without sending anything", async () => {
    await page.getByRole("link", { name: "All agents" }).click()
    await page.getByRole("link", { name: "Start", exact: true }).click()
    const frame = page.frameLocator("iframe")
    await frame.getByRole("dialog", { name: /^127/ }).waitFor()
    await page.getByLabel("Your colour").fill("#ffcc00")
    const launcher = frame.locator(".launcher")
    await expect
      .poll(() => launcher.evaluate((button) => getComputedStyle(button).backgroundColor))
      .toBe("rgb(255, 204, 0)")
    // Black on yellow: what is written on the colour can be read.
    expect(await launcher.evaluate((button) => getComputedStyle(button).color)).toBe("rgb(0, 0, 0)")
    const asked: Array<string> = []
    page.on("request", (request) => asked.push(new URL(request.url()).pathname))
    await frame.getByRole("button", { name: "Do you repair electric bikes?" }).click()
    await frame.getByText("This is a preview: nothing is sent.").waitFor()
    expect(asked.filter((path) => path.includes("sdk") || path.includes("chat"))).toEqual([])
    await page.getByLabel("Websites that may show it").fill(addressOf(shop))
    await look(page, "start-look")
    // Somebody else has saved it meanwhile.
    let saved = 0
    await page.route("**/widget", async (route) => {
      if (route.request().method() !== "PATCH") return route.continue()
      saved += 1
      if (saved > 1) return route.continue()
      const headers = { ...route.request().headers() }
      const suggestions = ["Do you repair electric bikes?"]
      const body = JSON.stringify({ avatar: "A", suggestions })
      await page.request.fetch(route.request().url(), { method: "PATCH", headers, data: body })
      await route.continue()
    })
    await page.getByRole("button", { name: "Save and get the script" }).click()
    await page.getByText("Changed by somebody else in the meantime").waitFor()
    await page.getByRole("button", { name: "Save and get the script" }).click()
    await until(
      async () => saved,
      (count) => count === 2
    )
    await page.unroute("**/widget")
    const shown = page.getByLabel("Script", { exact: true })
    await shown.waitFor()
    await look(page, "start-script")
    script = (await shown.textContent()) ?? ""
    expect(script).toMatch(/^<script src="http:.+\/widget\.js" data-agent="wgt_[\w-]{43}" async><\/script>$/u)
    await page.getByText("Everything is set up.").waitFor()
  })

  it("leads to a chat that answers on a page of another origin, and changes there with what is saved", async () => {
    const visitor = await (await browser.newContext(desktop)).newPage()
    const complaintsThere = complaints(visitor)
    await visitor.goto(addressOf(shop))
    const launcher = visitor.getByRole("button", { name: "Open chat" })
    await launcher.waitFor()
    expect(await launcher.evaluate((button) => getComputedStyle(button).backgroundColor)).toBe(
      "rgb(255, 204, 0)"
    )
    await launcher.click()
    await visitor.getByRole("button", { name: "Do you repair electric bikes?" }).click()
    await visitor.locator(".bubble", { hasText: "except for their batteries" }).first().waitFor()
    await look(visitor, "start-on-page")

    await page.getByRole("link", { name: /^Agent: / }).click()
    await openPart(page, "Widget")
    await page.getByLabel("Greeting").fill("Moin!")
    await page.getByLabel("Avatar").fill("🚲")
    await page.getByLabel("Position").selectOption("Left")
    await page.getByLabel("Language").selectOption("Deutsch")
    await page.getByLabel("Consent line").fill("We keep what you write for a month.")
    await page.getByLabel("Link text").fill("Privacy")
    await page.getByLabel("Link address").fill("http://shop.example/privacy")
    await page.getByRole("button", { name: "Save widget" }).click()
    await page.getByLabel("Link address").and(page.locator("[aria-invalid=true]")).waitFor()
    // At this field alone.
    expect(await page.locator("[aria-invalid=true]").count()).toBe(1)
    await page.getByLabel("Link address").fill("https://shop.example/privacy")
    await page.frameLocator("iframe").getByText("Moin!").waitFor()
    await page.getByRole("button", { name: "Save widget" }).click()
    await page.getByText("Saved", { exact: true }).waitFor()
    await look(page, "designer")
    const other = await (await browser.newContext(desktop)).newPage()
    await other.goto(addressOf(shop))
    await other.getByRole("button", { name: "Chat öffnen" }).click()
    await other.getByText("Moin!").first().waitFor()
    await other.getByRole("link", { name: "Privacy" }).waitFor()
    expect(await other.locator("spoke-chat").getAttribute("data-position")).toBe("start")
    await look(other, "designed-on-page")
    expect([wrong, complaintsThere]).toEqual([[], []])
  })
})
