import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { production, removeFolder, type Spoke, start, temporaryFolder, until } from "../e2e/Spoke.ts"
import { type Served, servePages } from "../servers/Loopback.ts"
import * as ModelStub from "../servers/ModelStub.ts"
import { desktop, hasBrowser, launch, look } from "./Browser.ts"
import { freePort } from "../servers/FreePort.ts"

/** Milliseconds within which the widget goes on once its server is there again. */
const recovery = 10_000

// One server that is there again at the same address.
describe.skipIf(!hasBrowser || production)("The widget, when its server is killed and comes back", () => {
  const dataDir = temporaryFolder()
  const scope = Effect.runSync(Scope.make())
  let stub: ModelStub.ModelStub
  let spoke: Spoke
  let browser: Browser
  let variables: Readonly<Record<string, string>> = {}
  let site: Served

  const visit = async (): Promise<Page> => {
    const page = await (await browser.newContext(desktop)).newPage()
    await page.goto(`${site.url}/`)
    await page.getByRole("dialog").waitFor()
    return page
  }

  const say = async (page: Page, message: string) => {
    await page.getByLabel("Message", { exact: true }).fill(message)
    await page.keyboard.press("Enter")
  }

  const bubbles = (page: Page, text: string) => page.locator(".bubble", { hasText: text })

  beforeAll(async () => {
    stub = await Effect.runPromise(Scope.extend(ModelStub.make, scope))
    variables = {
      PORT: String(await freePort()),
      OPENAI_BASE_URL: stub.url,
      OPENAI_API_KEY: "sk-stub",
      SPOKE_EMBEDDING_MODEL: "offline"
    }
    spoke = await start(dataDir, variables)
    browser = await launch()
    site = await servePages(
      () =>
        `<!doctype html><html lang="en"><title>Shop</title><main><h1>Shop</h1></main><script src="${spoke.url}/widget.js" data-key="${spoke.apiKey}" data-open></script></html>`
    )
  }, 60_000)

  afterAll(async () => {
    await browser.close()
    await spoke.kill()
    site.close()
    removeFolder(dataDir)
    await Effect.runPromise(Scope.close(scope, Exit.void))
  })

  it("shows that the service is unreachable, retries the lost turn, and shows the reply once", async () => {
    const page = await visit()
    stub.script.push({ text: "One two three four five six seven eight nine ten.", gap: 400 })
    await say(page, "Count to ten")
    await bubbles(page, "One two").waitFor()
    await spoke.kill()
    await page.getByText("The chat cannot be reached at the moment.").waitFor()
    await look(page, "widget-unreachable")
    stub.script.splice(0)
    stub.script.push({ text: "Here is the whole answer." })
    spoke = await start(dataDir, variables)
    await bubbles(page, "Here is the whole answer.").waitFor({ timeout: recovery })
    await until(
      () => page.locator(".bubble").allTextContents(),
      (texts) => texts.length === 3
    )
    expect(await bubbles(page, "Count to ten").count()).toBe(1)
    await until(
      () => page.getByRole("alert").filter({ hasText: /\w/u }).count(),
      (alerts) => alerts === 0
    )
    // Everything goes on as before.
    stub.script.push({ text: "Gladly." })
    await say(page, "Thank you")
    await bubbles(page, "Gladly.").waitFor()
    await page.context().close()
  })

  it("returns a message that never arrived to the composer", async () => {
    const page = await visit()
    stub.script.push({ text: "Hello." })
    await say(page, "Hi")
    await page.getByRole("button", { name: "Helpful", exact: true }).waitFor()
    await spoke.kill()
    await say(page, "Is anybody there?")
    await page.getByText("The chat cannot be reached at the moment.").waitFor()
    spoke = await start(dataDir, variables)
    await page.getByText("Your message did not arrive.").waitFor({ timeout: recovery })
    expect(await page.getByLabel("Message", { exact: true }).inputValue()).toBe("Is anybody there?")
    expect(await bubbles(page, "Is anybody there?").count()).toBe(0)
    await look(page, "widget-not-arrived")
    stub.script.push({ text: "Here I am." })
    await page.getByRole("button", { name: "Send" }).click()
    await bubbles(page, "Here I am.").waitFor()
    expect(await bubbles(page, "Is anybody there?").count()).toBe(1)
    await page.context().close()
  })

  it("loses no typed text: after the panel was closed, after a refusal, behind a failing gateway", async () => {
    const page = await visit()
    const field = page.getByLabel("Message", { exact: true })
    await field.fill("Half a question")
    await page.keyboard.press("Escape")
    await page.getByRole("button", { name: "Open chat" }).click()
    expect(await field.inputValue()).toBe("Half a question")

    const stream = "**/api/v1/chat/stream"
    const error = { code: "RATE_LIMITED", message: "Too many." }
    await page.route(stream, async (route) => {
      await field.fill("And this")
      await route.fulfill({ status: 429, json: { error } })
    })
    for (const text of ["Half a question", "Half a question", "Another"]) {
      await say(page, text)
      await until(
        () => field.inputValue(),
        (value) => value === `${text}\nAnd this`
      )
    }

    // Nobody knows whether the message has arrived, so the widget looks.
    await page.unroute(stream)
    await page.route(stream, (route) => route.fulfill({ status: 502, body: "<h1>Bad gateway</h1>" }))
    await say(page, "Through the gateway")
    await page.getByText("Your message did not arrive.").waitFor({ timeout: recovery })
    expect(await field.inputValue()).toBe("Through the gateway")
    await page.context().close()
  })

  it("offers a retry after a failed turn, and shows the question and the reply once", async () => {
    const page = await visit()
    stub.script.push({ status: 401 })
    await say(page, "Why?")
    await page.getByText("The reply could not be finished.").waitFor()
    expect(await page.locator("spoke-chat").evaluate((host) => host.shadowRoot?.textContent)).not.toMatch(
      /key|provider/u
    )
    await look(page, "widget-failed")
    await page.reload()
    await page.getByText("The reply could not be finished.").waitFor()
    stub.script.push({ text: "Because." })
    await page.getByRole("button", { name: "Ask again" }).click()
    await bubbles(page, "Because.").waitFor()
    await until(
      () => page.locator(".bubble").allTextContents(),
      (texts) => texts.length === 3
    )
    expect(await bubbles(page, "Why?").count()).toBe(1)
    await page.getByText("The reply could not be finished.").waitFor({ state: "detached" })
    await page.context().close()
  })

  it("begins automatically once the server is available", async () => {
    const page = await visit()
    await page.route("**/api/sdk/**", (route) => route.abort())
    await page.reload()
    await page.getByText("There is no connection.").waitFor()
    await page.unroute("**/api/sdk/**")
    await page.getByRole("button", { name: "Talk to a person" }).waitFor({ timeout: recovery })
    await page.getByText("There is no connection.").waitFor({ state: "detached" })
    await page.context().close()
  })
})
