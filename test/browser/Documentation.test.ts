/** The documentation of a running installation: the reference of the API, the guides and their search. */
import * as Fs from "node:fs"
import * as Path from "node:path"
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { removeFolder, root, type Spoke, start, temporaryFolder } from "../e2e/Spoke.ts"
import { complaints, desktop, hasBrowser, launch, look, phone } from "./Browser.ts"

const maxReferenceBytes = 300_000

describe.skipIf(!hasBrowser)("The documentation in the application", () => {
  const dataDir = temporaryFolder()
  let spoke: Spoke
  let browser: Browser

  beforeAll(async () => {
    spoke = await start(dataDir)
    browser = await launch()
  })

  afterAll(async () => {
    await browser.close()
    await spoke.kill()
    removeFolder(dataDir)
  })

  it("lists every operation of the description, and sends a request from the page", async () => {
    const context = await browser.newContext(desktop)
    const page = await context.newPage()
    const wrong = complaints(page)
    let bytes = 0
    page.on("response", (response) => {
      void response
        .request()
        .sizes()
        .then(({ responseBodySize }) => (bytes += responseBodySize))
    })
    await page.goto(`${spoke.url}/docs`)
    await page.getByRole("heading", { name: "Run a chat turn and return the complete reply" }).waitFor()
    expect(bytes).toBeLessThan(maxReferenceBytes)
    await look(page, "docs-reference")

    const description = JSON.parse(await (await fetch(`${spoke.url}/openapi.json`)).text())
    const operations = Object.values<Record<string, { operationId: string }>>(description.paths).flatMap(
      (of) => Object.values(of).map(({ operationId }) => operationId)
    )
    expect(
      await page
        .locator("section.operation")
        .evaluateAll((all: ReadonlyArray<{ readonly id: string }>) => all.map(({ id }) => id))
    ).toEqual(expect.arrayContaining(operations))

    await page.getByLabel("API key, for requests").fill(spoke.apiKey)
    const retrieve = page.locator("#retrieve\\.retrieve")
    await retrieve.getByText("Try it").click()
    await retrieve.getByRole("textbox", { name: "Body" }).fill('{"query": "How do I add a source?"}')
    expect(await retrieve.locator("pre", { hasText: "curl" }).textContent()).not.toContain(spoke.apiKey)
    await retrieve.getByRole("button", { name: "Send" }).click()
    await retrieve.getByText("200 OK").waitFor()
    await retrieve.locator('pre[aria-label="Answer"]', { hasText: '"chunks"' }).waitFor()
    await look(page, "docs-try")

    const chat = page.locator("#chat\\.stream")
    await chat.getByText("Try it").click()
    await chat.getByRole("textbox", { name: "Body" }).fill('{"message": "How do I add a source?"}')
    await chat.getByRole("button", { name: "Send" }).click()
    await chat.locator('pre[aria-label="Answer"]', { hasText: "[DONE]" }).waitFor()

    // A stream that goes on and on is not kept open for what is not shown.
    await page.evaluate(`globalThis.fetch = (_, { signal }) => {
      signal.addEventListener("abort", () => (globalThis.isAborted = true))
      let sent = 0
      const pull = (controller) => {
        sent += 1
        if (sent > 5) return new Promise(() => {})
        controller.enqueue(new TextEncoder().encode("x".repeat(50_000)))
      }
      return Promise.resolve(new Response(new ReadableStream({ pull })))
    }`)
    await chat.getByRole("button", { name: "Send" }).click()
    await chat.getByText("cut off after 200,000 characters").waitFor()
    expect(await page.evaluate("globalThis.isAborted")).toBe(true)
    await chat.getByRole("button", { name: "Send" }).waitFor()
    expect(wrong).toEqual([])
    await context.close()
  })

  it("finds a section by the words of a question, with the keyboard only, and links to the dashboard", async () => {
    const context = await browser.newContext(desktop)
    const page = await context.newPage()
    const wrong = complaints(page)
    await page.goto(`${spoke.url}/docs/guide`)
    await page.getByRole("heading", { name: "The documentation", level: 1 }).waitFor()
    await look(page, "docs-start")
    let asked = 0
    await page.route("**/docs/search.json", async (route) => {
      asked += 1
      if (asked === 1) return route.abort()
      await new Promise((resolve) => setTimeout(resolve, 500))
      await route.continue()
    })
    await page.keyboard.press("/")
    await page.keyboard.type("rotate webhook secret", { delay: 5 })
    await page.getByRole("list", { name: "Results" }).getByRole("link").first().waitFor()
    // Once more after the first attempt failed, and not for every letter.
    expect(asked).toBe(2)
    await look(page, "docs-search")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await page.waitForURL(/\/docs\/guide\/events/)
    await page.getByRole("heading", { name: "Events", level: 1 }).waitFor()
    await look(page, "docs-guide")
    expect(await page.getByRole("link", { name: "Events", exact: true }).getAttribute("aria-current")).toBe(
      "page"
    )
    await page.getByLabel("Search the documentation").fill("xyzzyqwert")
    await page.getByText("Nothing found.").waitFor()
    await page.getByRole("link", { name: "Dashboard" }).click()
    await page.getByRole("heading", { name: "Sign in" }).waitFor()
    expect(wrong).toEqual([])
    await context.close()
  })

  it("fits a phone, and every link of every guide leads to a page and a heading", async () => {
    const context = await browser.newContext(phone)
    const page = await context.newPage()
    await page.goto(`${spoke.url}/docs`)
    await page.getByRole("heading", { name: "Run a chat turn and return the complete reply" }).waitFor()
    await look(page, "docs-reference-phone")
    await page.goto(`${spoke.url}/docs/guide/retrieval`)
    await look(page, "docs-guide-phone")
    await context.close()

    const names = Fs.readdirSync(Path.join(root, "docs"))
      .filter((name) => name.endsWith(".md") && name !== "README.md")
      .map((name) => `/docs/guide/${name.slice(0, -".md".length)}`)
    const pages = new Map<string, string>()
    for (const place of ["/docs/guide", ...names]) {
      const answer = await fetch(`${spoke.url}${place}`)
      expect([place, answer.status]).toEqual([place, 200])
      pages.set(place, await answer.text())
    }
    const broken = [...pages].flatMap(([from, html]) =>
      [...html.matchAll(/(?:href|src)="(\/docs\/guide[^"#]*|)(?:#([^"]*))?"/g)].flatMap(
        ([, place = "", anchor]) => {
          const target = pages.get(place === "" ? from : place)
          if (anchor === "contents") return []
          const isThere =
            target !== undefined &&
            (anchor === undefined || target.includes(`id="${decodeURIComponent(anchor)}"`))
          return isThere ? [] : [`${from}: ${place}#${anchor}`]
        }
      )
    )
    expect(broken).toEqual([])
    expect((await fetch(`${spoke.url}/docs/guide/..%2fpackage`)).status).toBe(404)
    expect((await fetch(`${spoke.url}/docs/guide/nothing`)).status).toBe(404)
  })
})
