import * as Fs from "node:fs"
import type { Browser, CDPSession, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { removeFolder, type Spoke, start, temporaryFolder, until } from "../e2e/Spoke.ts"
import { complaints, desktop, hasBrowser, launch, look } from "./Browser.ts"

/** Of the page. */
declare const getComputedStyle: (element: unknown) => { readonly contentVisibility: string }

const owner = { SPOKE_ADMIN_EMAIL: "owner@example.com", SPOKE_ADMIN_PASSWORD: "correct horse battery" }

/** For figures: a file that they are written to. They depend on the machine, and are of all 10,000 conversations. */
const record = process.env["INTERFACE_FIGURES"] ?? ""

const sourceCount = 1_000
const conversationCount = record === "" ? 1_000 : 10_000
const messageCount = 500

/** Windows that are open at one conversation. */
const tabCount = 20

/** Conversations that are rendered at a time: those in sight, and some beside them. */
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

  /** For figures, `scroll` runs once more, watched: what the page reads for the first time has its cost. */
  const watched = async (name: string, scroll: () => Promise<void>) => {
    await scroll()
    if (record === "") return
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
        headers: { authorization: `Bearer ${spoke.operatorToken}`, "content-type": "application/x-ndjson" },
        body: lines
          .slice(from, from + 1_000)
          .map((line) => JSON.stringify(line))
          .join("\n")
      })
      const text = await answer.text()
      expect([answer.status, text]).toEqual([200, expect.stringContaining('"problems":[]')])
    }
  }

  beforeAll(async () => {
    spoke = await start(dataDir, owner)
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

  it("show all of 1,000 sources, to choose, to sync and to search", async () => {
    await page.goto(`${spoke.url}/app/sources?agent=${agentId}`)
    const table = page.getByRole("table", { name: "Sources" })
    const links = table.getByRole("link")
    await table.getByRole("link", { name: "Page 1000 of" }).waitFor()
    const more = page.getByRole("button", { name: "Load more" })
    while ((await more.count()) > 0) {
      const before = await links.count()
      await more.click()
      await until(
        () => links.count(),
        (count) => count > before
      )
    }
    // With the sample's own source.
    expect(await links.count()).toBe(sourceCount + 1)
    const names = await links.allTextContents()
    expect(new Set(names).size).toBe(sourceCount + 1)
    await table.getByRole("link", { name: "Page 1 of the handbook" }).waitFor()
    await page.evaluate("scrollTo(0, 0)")
    await watched("sources", () => wheel(640, 600, 60))

    // One choice, of a row in the middle, and all.
    const one = table.getByRole("checkbox", { name: "Select Page 500 of" })
    await one.setChecked(true, { force: true })
    await page.getByText("1 selected").waitFor()
    const all = table.getByRole("checkbox", { name: "Select all that are shown" })
    await all.setChecked(true, { force: true })
    await page.getByText("1,001 selected").waitFor()
    await one.setChecked(false, { force: true })
    await page.getByText("1,000 selected").waitFor()
    await page.getByRole("button", { name: "Clear selection" }).click()
    expect(await table.getByRole("checkbox", { checked: true }).count()).toBe(0)

    // A row shows its new state; the others stay.
    const row = table.getByRole("row", { name: /Page 1000 of/ })
    await row.getByRole("button", { name: /^Sync now/ }).click()
    await row.getByText("Not synced yet").waitFor({ state: "detached" })
    expect(await table.getByText("Not synced yet").count()).toBe(sourceCount - 1)

    const search = page.getByRole("search", { name: "Find a source" }).getByRole("textbox")
    await search.fill("Page 77")
    await search.press("Enter")
    await until(
      () => links.count(),
      (count) => count === 11
    )
    await table.getByRole("link", { name: "Page 77 of" }).waitFor()
    await table.getByRole("link", { name: "Page 779 of" }).waitFor()
    await look(page, "sources-long")
    await search.fill("")
    await search.press("Enter")
    await table.getByRole("link", { name: "Page 1000 of" }).waitFor()
    expect(wrong).toEqual([])
  }, 240_000)

  it("reach the first of thousands of conversations, and find one by its text", async () => {
    await page.goto(`${spoke.url}/app/conversations`)
    const list = page.getByRole("list", { name: "All conversations" })
    await list.getByRole("link").first().waitFor()
    const box = await list.boundingBox()
    const place = [(box?.x ?? 0) + 40, 500] as const
    await page.mouse.move(...place)
    // A page of the list that is refused is asked for again when its reader says so.
    const refused = /\/api\/inbox\?.*cursor=/u
    await page.route(refused, (route) =>
      route.fulfill({
        status: 400,
        contentType: "application/json",
        body: JSON.stringify({ error: { code: "VALIDATION_ERROR", message: "Refused for the test." } })
      })
    )
    const more = page.getByRole("button", { name: "Load more" })
    await until(
      async () => {
        await page.mouse.wheel(0, 20_000)
        return more.count()
      },
      (count) => count === 1,
      30_000
    )
    await page.unroute(refused)
    await more.click()
    await more.waitFor({ state: "detached" })
    const first = list.getByRole("link", { name: "branch number 0 open?" })
    await until(
      async () => {
        await page.mouse.wheel(0, 20_000)
        return first.count()
      },
      (count) => count === 1,
      240_000
    )
    expect(await list.getByRole("listitem").count()).toBeLessThan(maxRendered)
    const frame = list.locator("xpath=..")
    const height = await frame.evaluate(({ scrollHeight }: { readonly scrollHeight: number }) => scrollHeight)
    // A row of at least 4 rem for each.
    expect(height).toBeGreaterThanOrEqual(conversationCount * 4 * 16)
    const turns = Math.ceil(height / 1_200)
    await page.mouse.wheel(0, -height)
    await watched("conversations", () => wheel(...place, turns))
    const search = page.getByRole("searchbox")
    await search.fill("branch number 777")
    const found = list.getByRole("link", { name: "branch number 777 open?" })
    await found.waitFor()
    await found.click()
    await page.getByRole("log", { name: "Messages" }).getByText("branch number 777 open?").waitFor()
    expect(wrong).toEqual([])
  }, 600_000)

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
    expect(await older.count()).toBe(0)
    const box = await log.boundingBox()
    const place = [(box?.x ?? 0) + 100, (box?.y ?? 0) + 200] as const
    await watched("thread", () => wheel(...place, 60))
    // Far from the window nothing is laid out, but for the newest, which are there at once.
    const skipped = await messages.evaluateAll(
      (all) => all.filter((one) => getComputedStyle(one).contentVisibility === "auto").length
    )
    expect(skipped).toBe(messageCount - 20)
    expect(wrong).toEqual([])
  }, 180_000)

  it("reach 20 tabs at one conversation over its stream", async () => {
    const ask = (body: object) => spoke.request("POST", "/v1/chat", { body })
    const { body } = await ask({ message: "Is anybody there?" })
    const id: string = body.data.conversationId
    const tabs = await Promise.all(Array.from({ length: tabCount }, () => page.context().newPage()))
    const complained = tabs.map(complaints)
    for (const tab of tabs) {
      await tab.goto(`${spoke.url}/app/conversations/${id}`)
      await tab.getByRole("log", { name: "Messages" }).getByText("Is anybody there?").waitFor()
      // Said while there is no stream.
      await tab.getByText("Not connected.").waitFor({ state: "detached" })
    }
    for (const message of ["When do you open?", "And on Sundays?"]) {
      expect((await ask({ message, conversationId: id })).status).toBe(200)
      for (const tab of tabs) {
        const log = tab.getByRole("log", { name: "Messages" })
        await log.getByText(message, { exact: true }).waitFor()
        expect(await tab.getByText("Not connected.").count()).toBe(0)
      }
    }
    for (const tab of tabs) {
      const articles = tab.getByRole("log", { name: "Messages" }).getByRole("article")
      await until(
        () => articles.count(),
        (count) => count === 6
      )
    }
    expect(complained.flat()).toEqual([])
    await Promise.all(tabs.map((tab) => tab.close()))
  }, 240_000)

  it("find one of 150 agents and of 120 test cases, on whichever page it is", async () => {
    const cookies = await page.context().cookies()
    const headers = {
      cookie: cookies.map(({ name, value }) => `${name}=${value}`).join("; "),
      "x-spoke-csrf": "1"
    }
    const make = async (path: string, bodies: ReadonlyArray<object>) => {
      for (const body of bodies) await spoke.request("POST", path, { key: null, headers, body })
    }
    await make(
      "/api/agents",
      Array.from({ length: 150 }, (_, number) => ({ name: `Branch ${number}.` }))
    )
    await make(
      `/api/agents/${agentId}/cases`,
      Array.from({ length: 120 }, (_, number) => ({ question: `When does branch ${number}. open?` }))
    )
    for (const [path, ...names] of [
      ["agents", "Branch 3.", "Branch 149."],
      [`agents/${agentId}/cases`, "branch 3.", "branch 119."]
    ] as const) {
      await page.goto(`${spoke.url}/app/${path}`)
      const rows = page.getByRole("main").locator("tbody tr")
      const search = page.getByRole("search").getByRole("searchbox", { name: "Search" })
      for (const name of names) {
        await search.fill(` ${name.toUpperCase()} `)
        await until(
          () => rows.allTextContents(),
          (texts) => texts.length === 1 && texts[0]?.includes(name) === true
        )
      }
      await search.fill("no such name")
      await page.getByText("Nothing matches.").waitFor()
      await search.fill("")
      await rows.nth(30).waitFor()
    }
  })
})
