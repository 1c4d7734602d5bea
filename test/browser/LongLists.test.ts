import * as Fs from "node:fs"
import type { Browser, CDPSession, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { removeFolder, type Spoke, start, temporaryFolder, until } from "../e2e/Spoke.ts"
import { complaints, desktop, hasBrowser, launch, look, phone } from "./Browser.ts"

/** Of the page. */
declare const getComputedStyle: (element: unknown) => { readonly contentVisibility: string }

const owner = { SPOKE_ADMIN_EMAIL: "owner@example.com", SPOKE_ADMIN_PASSWORD: "correct horse battery" }
const operatorToken = "an operator token that is long enough"

/** For figures: a file that they are written to. They depend on the machine, and are of all 10,000 conversations. */
const record = process.env["INTERFACE_FIGURES"] ?? ""

const sourceCount = 1_000
const conversationCount = record === "" ? 1_000 : 10_000
const messageCount = 500

/** Rows of a long list that are rendered at a time: those in a window, and some beside them. */
const maxRendered = 60

interface Figures {
  readonly longestTaskMs: number
  readonly tasksAbove50Ms: number
  readonly heapMiBBefore: number
  readonly heapMiBAfter: number
}

describe.skipIf(!hasBrowser)("Long lists of the dashboard", () => {
  const dataDir = temporaryFolder()
  const figures: Record<string, Figures> = {}
  let spoke: Spoke
  let browser: Browser
  let page: Page
  let devtools: CDPSession
  let wrong: ReadonlyArray<string>
  let agentId = ""

  const heapMiB = async () => {
    await devtools.send("HeapProfiler.collectGarbage")
    const { metrics } = await devtools.send("Performance.getMetrics")
    const used = metrics.find(({ name }) => name === "JSHeapUsedSize")?.value ?? 0
    return Math.round((used / 1_048_576) * 10) / 10
  }

  /** What happens while `scroll` runs, after the page was scrolled once: what it reads for the first time has its cost. */
  const watched = async (name: string, scroll: () => Promise<void>) => {
    await scroll()
    const heapMiBBefore = await heapMiB()
    await page.evaluate("longTasks.length = 0")
    await scroll()
    const tasks = await page.evaluate<ReadonlyArray<number>>("longTasks")
    figures[name] = {
      longestTaskMs: Math.round(Math.max(0, ...tasks)),
      tasksAbove50Ms: tasks.length,
      heapMiBBefore,
      heapMiBAfter: await heapMiB()
    }
  }

  /** Turns the wheel `times` times over `list`, and back, as fast as frames are drawn. */
  const wheel = async (x: number, y: number, times: number) => {
    await page.mouse.move(x, y)
    for (const by of [1_200, -1_200]) {
      for (let turn = 0; turn < times; turn++) {
        await page.mouse.wheel(0, by)
        await page.evaluate("new Promise((resolve) => requestAnimationFrame(() => resolve()))")
      }
    }
  }

  const signIn = async () => {
    await page.goto(`${spoke.url}/`)
    await page.getByLabel("E-mail").fill(owner.SPOKE_ADMIN_EMAIL)
    await page.getByLabel("Password").fill(owner.SPOKE_ADMIN_PASSWORD)
    await page.keyboard.press("Enter")
    await page.getByRole("heading", { name: "Start" }).waitFor()
  }

  const fill = async () => {
    const cookies = await page.context().cookies()
    const headers = {
      cookie: cookies.map(({ name, value }) => `${name}=${value}`).join("; "),
      "x-spoke-csrf": "1"
    }
    const { body } = await spoke.request("GET", "/api/agents", { key: null, headers })
    agentId = body.data.agents[0].id
    const source = (number: number) =>
      spoke.request("POST", "/api/sources", {
        key: null,
        headers,
        body: {
          agentId,
          type: "URL",
          name: `Page ${number} of the handbook, which is a name of some length`,
          config: { url: `https://handbook.example/${number}` },
          autoSync: false
        }
      })
    for (let number = 1; number <= sourceCount; number += 20) {
      await Promise.all(Array.from({ length: 20 }, (_, at) => source(number + at)))
    }
    const at = (minute: number) => new Date(Date.UTC(2026, 0, 1) + minute * 60_000).toISOString()
    const said = (number: number, minute: number) => ({
      role: number % 2 === 0 ? "user" : "assistant",
      content:
        number % 2 === 0
          ? `Question ${number}: when does the branch number ${minute} open?`
          : "It opens at **half past nine**.\n\n- On Saturdays at ten\n- On Sundays it stays closed\n\nSee [hours](https://example.com/hours).",
      createdAt: at(minute)
    })
    const conversation = (number: number) => ({
      id: `conversation-${number}`,
      externalEndUserId: `customer-${number}`,
      messages: [said(0, number), said(1, number)]
    })
    const long = {
      id: "long",
      externalEndUserId: "A customer of long standing",
      messages: Array.from({ length: messageCount }, (_, number) => said(number, conversationCount + number))
    }
    const lines = [
      ...Array.from({ length: conversationCount - 1 }, (_, number) => conversation(number)),
      long
    ]
    for (let from = 0; from < lines.length; from += 1_000) {
      const answer = await fetch(`${spoke.url}/api/operator/import/conversations?agentId=${agentId}`, {
        method: "POST",
        headers: { authorization: `Bearer ${operatorToken}`, "content-type": "application/x-ndjson" },
        body: lines
          .slice(from, from + 1_000)
          .map((line) => JSON.stringify(line))
          .join("\n")
      })
      const told: { readonly data: { readonly problems: ReadonlyArray<unknown> } } = JSON.parse(
        await answer.text()
      )
      expect([answer.status, told.data.problems]).toEqual([200, []])
    }
  }

  beforeAll(async () => {
    spoke = await start(dataDir, { ...owner, SPOKE_OPERATOR_TOKEN: operatorToken })
    browser = await launch()
    page = await (await browser.newContext(desktop)).newPage()
    wrong = complaints(page)
    devtools = await page.context().newCDPSession(page)
    await devtools.send("Performance.enable")
    await page.addInitScript(`
      globalThis.longTasks = []
      new PerformanceObserver((list) => longTasks.push(...list.getEntries().map(({ duration }) => duration)))
        .observe({ type: "longtask", buffered: true })`)
    await signIn()
    await fill()
  }, 600_000)

  afterAll(async () => {
    await browser.close()
    await spoke.kill()
    removeFolder(dataDir)
    if (record !== "") Fs.writeFileSync(record, `${JSON.stringify(figures, null, 2)}\n`)
  })

  it("render the rows in sight of 1,000 sources, and read the pages on the way", async () => {
    await page.goto(`${spoke.url}/app/sources?agent=${agentId}`)
    const table = page.getByRole("table", { name: "Sources" })
    const rows = table.locator("tbody tr[data-index], tbody tr:not([aria-hidden])")
    await table.getByRole("link", { name: "Page 1000 of" }).waitFor()
    const end = table.getByRole("link", { name: "Page 1 of the handbook" })
    await until(
      async () => {
        await page.mouse.move(640, 600)
        await page.mouse.wheel(0, 4_000)
        return end.count()
      },
      (count) => count === 1,
      60_000
    )
    // With the sample's own source and the head.
    expect(await table.getAttribute("aria-rowcount")).toBe(String(sourceCount + 2))
    expect(await rows.count()).toBeLessThan(maxRendered)
    await page.evaluate("scrollTo(0, 0)")
    await table.getByRole("link", { name: "Page 1000 of" }).waitFor()
    await watched("sources", () => wheel(640, 600, 45))
    expect(await rows.count()).toBeLessThan(maxRendered)
    await page.evaluate("scrollTo(0, 20000)")
    await until(
      () => rows.first().getAttribute("data-index"),
      (index) => Number(index) > 300
    )
    await look(page, "sources-long")
    // All that were read are selected, not only those in sight.
    await page.evaluate("scrollTo(0, 0)")
    await table.getByRole("checkbox", { name: "Select all that are shown" }).setChecked(true, { force: true })
    await page.getByText("1,001 selected").waitFor()
    await page.getByRole("button", { name: "Clear selection" }).click()
    await page.setViewportSize(phone.viewport ?? { width: 390, height: 844 })
    await until(
      () => rows.count(),
      (count) => count > 5 && count < maxRendered
    )
    await look(page, "sources-long-phone")
    await page.setViewportSize(desktop.viewport ?? { width: 1280, height: 860 })
  }, 180_000)

  it("render the rows in sight of thousands of conversations", async () => {
    await page.goto(`${spoke.url}/app/conversations`)
    const list = page.getByRole("list", { name: "All conversations" })
    await list.getByRole("link").first().waitFor()
    const box = await list.boundingBox()
    const place = [(box?.x ?? 0) + 40, 500] as const
    await watched("conversations", () => wheel(...place, 100))
    expect(await list.getByRole("listitem").count()).toBeLessThan(maxRendered)
  }, 180_000)

  it("lay out the messages in sight of a thread of 500", async () => {
    await page.goto(`${spoke.url}/app/conversations`)
    await page.getByRole("link", { name: /A customer of long standing/ }).click()
    const log = page.getByRole("log", { name: "Messages" })
    const older = page.getByRole("button", { name: "Older messages" })
    const messages = log.getByRole("article")
    await messages.first().waitFor()
    while ((await messages.count()) < messageCount) {
      const before = await messages.count()
      await older.click()
      await until(
        () => messages.count(),
        (count) => count > before
      )
    }
    expect(await messages.count()).toBe(messageCount)
    const box = await log.boundingBox()
    const place = [(box?.x ?? 0) + 100, (box?.y ?? 0) + 200] as const
    await watched("thread", () => wheel(...place, 60))
    // Far from the window nothing is laid out.
    const skipped = await messages.evaluateAll(
      (all) => all.filter((one) => getComputedStyle(one).contentVisibility === "auto").length
    )
    expect(skipped).toBe(messageCount)
    expect(wrong).toEqual([])
  }, 180_000)
})
