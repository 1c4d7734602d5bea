import * as Fs from "node:fs"
import * as Http from "node:http"
import type { AddressInfo } from "node:net"
import * as Path from "node:path"
import { strToU8, zipSync } from "fflate"
import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { removeFolder, type Spoke, start, temporaryFolder, until } from "../e2e/Spoke.ts"
import { act, complaints, desktop, hasBrowser, launch, look, phone } from "./Browser.ts"

const owner = { SPOKE_ADMIN_EMAIL: "owner@example.com", SPOKE_ADMIN_PASSWORD: "correct horse battery" }

const pages: Readonly<Record<string, string>> = {
  "/": '<title>Workshop</title><main><h1>Workshop</h1><p>We repair bicycles.</p><a href="/hours">Hours</a> <a href="/jobs">Jobs</a> <a href="/staff">Staff</a> <a href="https://elsewhere.example/">Friends</a></main>',
  "/robots.txt": "User-agent: *\nDisallow: /staff\n",
  "/hours":
    '<title>Hours</title><main><h1>Hours</h1><p>The workshop opens at half past nine.</p><a href="/deep">Holidays</a></main>',
  "/jobs": "<title>Jobs</title><main><h1>Jobs</h1><p>We are looking for a mechanic.</p></main>"
}

describe.skipIf(!hasBrowser)("The dashboard's sources", () => {
  const dataDir = temporaryFolder()
  const site = Http.createServer((request, response) => {
    const page = pages[request.url ?? ""]
    const isText = request.url === "/robots.txt"
    const type = `text/${isText ? "plain" : "html"}; charset=utf-8`
    response.writeHead(page === undefined ? 404 : 200, { "content-type": type })
    response.end(page === undefined || isText ? page : `<!doctype html>${page}`)
  })
  let address = ""
  let spoke: Spoke
  let browser: Browser
  let page: Page
  let wrong: ReadonlyArray<string>

  beforeAll(async () => {
    await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve))
    address = `http://127.0.0.1:${(site.address() as AddressInfo).port}`
    spoke = await start(dataDir, { ...owner, SPOKE_FETCH_ALLOW: "127.0.0.1" })
    browser = await launch()
    page = await (await browser.newContext(desktop)).newPage()
    wrong = complaints(page)
    await page.goto(`${spoke.url}/`)
    await page.getByLabel("E-mail").fill(owner.SPOKE_ADMIN_EMAIL)
    await page.getByLabel("Password").fill(owner.SPOKE_ADMIN_PASSWORD)
    await page.keyboard.press("Enter")
    await page.getByRole("link", { name: "Sources" }).click()
    await page.getByRole("heading", { name: "Sources", level: 1 }).waitFor()
  })

  afterAll(async () => {
    await browser.close()
    await spoke.kill()
    site.close()
    removeFolder(dataDir)
  })

  it("preview which pages of a website would be read and why not the others, and show it getting ready", async () => {
    await page.getByRole("button", { name: "Add source" }).first().click()
    const dialog = page.getByRole("dialog")
    await dialog.getByLabel("Address", { exact: true }).fill(`${address}/`)
    await dialog.getByLabel("How far to follow links").selectOption("1 link away")
    await dialog.getByText("More options").click()
    await dialog.getByLabel("Never addresses like").fill(`${address}/jobs`)
    await dialog.getByRole("button", { name: "Preview" }).click()
    const lines = async (title: string) =>
      (await dialog.getByRole("list", { name: title }).getByRole("listitem").allTextContents()).toSorted()
    await dialog.getByRole("list", { name: "2 pages would be read" }).waitFor()
    expect(await lines("2 pages would be read")).toEqual([
      `${address}/The address itself`,
      `${address}/hours1 link away`
    ])
    // Each with its reason: a pattern, the site's own rules, another site, and too far away.
    expect(await lines("4 pages would not be read")).toEqual([
      `${address}/deepMore links away than are followed.`,
      `${address}/jobsIt matches a pattern of “Never addresses like”. ${address}/jobs`,
      `${address}/staffThe website's robots.txt does not allow reading it.`,
      "https://elsewhere.example/It belongs to another website."
    ])
    await look(page, "source-add")
    await dialog.getByLabel("Only addresses like").fill(`${address}/nothing/**`)
    await dialog.getByText("The settings have changed since.").waitFor()
    await dialog.getByLabel("Only addresses like").fill("")
    await dialog.getByText("The settings have changed since.").waitFor({ state: "detached" })
    await dialog.getByLabel("Name").fill("Workshop site")
    await dialog.getByRole("button", { name: "Add source" }).click()
    await dialog.waitFor({ state: "hidden" })
    const row = page.getByRole("row", { name: /Workshop site/ })
    await row.getByText("Ready").waitFor()
    await look(page, "sources")

    await row.getByRole("link", { name: "Workshop site" }).click()
    await page.getByRole("heading", { name: "Workshop site" }).waitFor()
    await page
      .getByRole("cell", { name: /\/hours/ })
      .first()
      .waitFor()
    await look(page, "source")
    expect(await page.getByRole("row", { name: /\/jobs/ }).textContent()).toContain("Left out")
  })

  it("show what was read, leave a passage out of search until it is taken back, and take a correction", async () => {
    const found = async () => {
      await page.getByRole("link", { name: "Sources" }).click()
      const question = "Does the workshop that can repair bicycles open at half past nine?"
      await page.getByLabel("Question", { exact: true }).fill(question)
      await page.getByRole("button", { name: "Find passages" }).click()
    }
    await page.getByRole("table", { name: "Content" }).getByRole("link", { name: "Hours" }).click()
    await page.getByRole("heading", { name: "Hours", level: 1 }).waitFor()
    const passage = page.getByRole("article", { name: "Passage 1" })
    await passage.getByText("The workshop opens at half past nine.").waitFor()
    await passage.getByText("Not cited lately").waitFor()
    await passage.getByRole("button", { name: "Exclude" }).click()
    await passage.getByText("Excluded from search").waitFor()
    await page.getByRole("button", { name: "Dismiss" }).click()
    await look(page, "source-document")
    const address = page.url()
    await found()
    const passages = page.getByRole("list", { name: "Passages" })
    await passages.getByText("We repair bicycles.").waitFor()
    await look(page, "sources-search")
    expect(await passages.getByText("half past nine").count()).toBe(0)
    await page.goto(address)
    await passage.getByRole("button", { name: "Take back" }).click()
    await passage.getByText("Excluded from search").waitFor({ state: "detached" })
    await passage.getByRole("button", { name: "Write a correction" }).click()
    const dialog = page.getByRole("dialog")
    expect(await dialog.getByLabel("Answer").inputValue()).toContain("half past nine")
    await look(page, "source-correction")
    await dialog.getByLabel("Question", { exact: true }).fill("When do you open?")
    await dialog.getByLabel("Answer").fill("At ten, since last week.")
    await dialog.getByLabel("Name").fill("Corrections")
    await dialog.getByRole("button", { name: "Add source" }).click()
    await dialog.waitFor({ state: "hidden" })
    await page.getByRole("link", { name: "Sources" }).click()
    await page
      .getByRole("row", { name: /Corrections/ })
      .getByText("Ready")
      .waitFor()
    await found()
    await passages.getByText("half past nine").first().waitFor()
  })

  it("are found by name, type and state, and synced or deleted together", async () => {
    const table = page.getByRole("table", { name: "Sources" })
    const choose = (name: string) => table.getByRole("checkbox", { name }).setChecked(true, { force: true })
    const box = page.getByRole("textbox", { name: "Find a source by its name" })
    const find = async (name: string) => {
      await box.fill(name)
      await page.keyboard.press("Enter")
    }
    await find("correc")
    await table.getByRole("row", { name: /Workshop site/ }).waitFor({ state: "detached" })
    expect(await box.evaluate((field) => field.matches(":focus"))).toBe(true)
    expect(await table.getByRole("row").count()).toBe(2)
    await choose("Select all that are shown")
    await page.getByText("1 selected").waitFor()
    await page.getByLabel("Type").selectOption("Website")
    await page.getByText("No source is like that.").waitFor()
    await page.getByLabel("Type").selectOption("All types")
    // The address contains the filter.
    await page.reload()
    await table.getByRole("row", { name: /Corrections/ }).waitFor()
    expect([await table.getByRole("row").count(), await box.inputValue()]).toEqual([2, "correc"])
    await table.getByRole("link", { name: "Corrections" }).click()
    await page.getByRole("heading", { name: "Corrections", level: 1 }).waitFor()
    await page.goBack()
    await table.getByRole("row", { name: /Corrections/ }).waitFor()
    expect([await table.getByRole("row").count(), await box.inputValue()]).toEqual([2, "correc"])
    await choose("Select all that are shown")
    await find("")
    await table.getByRole("row", { name: /Workshop site/ }).waitFor()
    await choose("Select Workshop site")
    await page.getByText("2 selected").waitFor()
    await look(page, "sources-chosen")
    await page.getByRole("button", { name: "Sync", exact: true }).click()
    // The selection is gone once both have been asked for.
    await page.getByRole("button", { name: "Clear selection" }).waitFor({ state: "detached" })
    await table
      .getByRole("row", { name: /Corrections/ })
      .getByText("Ready")
      .waitFor()
    await choose("Select Corrections")
    await page.getByRole("button", { name: "Delete", exact: true }).click()
    await page.getByRole("alertdialog").getByRole("button", { name: "Delete" }).click()
    await table.getByRole("row", { name: /Corrections/ }).waitFor({ state: "detached" })
    await table.getByRole("link", { name: "Workshop site" }).click()
    await page.getByRole("heading", { name: "Workshop site" }).waitFor()
  })

  it("can be renamed, read again and deleted for good", async () => {
    const path = new URL(page.url()).pathname.replace("/app", "/api")
    const cookie = (await page.context().cookies()).map(({ name, value }) => `${name}=${value}`).join("; ")
    const own = { key: null, headers: { cookie, "x-spoke-csrf": "1" } }
    const configOf = async () => (await spoke.request("GET", path, own)).body.data.config
    const metadata = { audience: "staff" }
    const body = { config: { ...(await configOf()), metadata } }
    expect((await spoke.request("PATCH", path, { ...own, body })).status).toBe(200)
    await page.reload()
    await page.getByRole("button", { name: "Edit" }).click()
    await page.getByRole("dialog").getByLabel("Name").fill("The workshop")
    await page.getByRole("dialog").getByRole("button", { name: "Save" }).click()
    await page.getByRole("heading", { name: "The workshop" }).waitFor()
    // Turns and keys filter by what programs have noted of it.
    expect(await configOf()).toMatchObject({ metadata, maxDepth: 1 })
    const asked = page.waitForResponse((response) => response.request().method() === "POST")
    await page.getByRole("button", { name: "Sync", exact: true }).click()
    await asked
    // A source is not deleted while it is read.
    const job = () =>
      page.evaluate(`fetch(location.pathname.replace("/app", "/api")).then((one) => one.json())`)
    await until(job, (one) => Reflect.get(Object(one), "data").latestJob.status === "SUCCEEDED")
    await page.getByRole("cell", { name: "Unchanged" }).first().waitFor()
    await page.getByRole("main").locator("header").getByText("Ready").waitFor()
    await act(page, "Delete source")
    await page.getByRole("alertdialog").getByRole("button", { name: "Delete" }).click()
    await page.getByRole("heading", { name: "Sources", level: 1 }).waitFor()
    await page.getByRole("row", { name: /The workshop/ }).waitFor({ state: "detached" })
  })

  it("say at the field what a reader of the installation refuses", async () => {
    const plan = { name: "plan", kind: "choice", required: true, label: { en: "Plan" }, choices: ["a", "b"] }
    const reader = { name: "tickets", title: { en: "Tickets" }, description: { en: "All." }, fields: [plan] }
    await page.route("**/api/source-readers", (route) =>
      route.fulfill({ json: { data: { readers: [reader] } } })
    )
    let place = ["config", "settings", "plan"]
    await page.route("**/api/sources", (route) =>
      route.fulfill({
        status: 400,
        json: {
          error: {
            code: "VALIDATION_ERROR",
            message: "The request does not have the expected form.",
            details: { issues: [{ path: place, message: "is missing" }] }
          },
          meta: { requestId: "req_1" }
        }
      })
    )
    await page.reload()
    await page.getByRole("button", { name: "Add source" }).first().click()
    const dialog = page.getByRole("dialog")
    await dialog.getByLabel("What it is").selectOption("Tickets")
    // Nothing seems to be chosen that is not sent.
    expect(await dialog.getByLabel("Plan").inputValue()).toBe("")
    expect(await dialog.getByLabel("Plan").locator("option").first().textContent()).toBe("Not set")
    await dialog.getByRole("button", { name: "Add source" }).click()
    await dialog.getByText("This is missing.").waitFor()
    place = ["config", "reader"]
    await dialog.getByRole("button", { name: "Add source" }).click()
    await dialog.getByRole("alert").getByText("config › reader: This is missing.").waitFor()
    await dialog.getByRole("button", { name: "Discard" }).click()
    await page.keyboard.press("Escape")
    await page.unroute("**/api/source-readers")
    await page.unroute("**/api/sources")
    await page.reload()
  })

  it("take a ZIP of documents", async () => {
    const zip = Path.join(dataDir, "documents.zip")
    Fs.writeFileSync(
      zip,
      zipSync({
        "prices.md": strToU8("# Prices\n\nA new chain costs forty euros."),
        "story/history.txt": strToU8("The workshop was founded in 1987 by two sisters.")
      })
    )
    await page.getByRole("button", { name: "Add source" }).first().click()
    const dialog = page.getByRole("dialog")
    await dialog.getByLabel("What it is").selectOption("ZIP of documents from this computer")
    await dialog.getByLabel("File").setInputFiles(zip)
    await dialog.getByRole("button", { name: "Add source" }).click()
    await dialog.waitFor({ state: "hidden" })
    await page
      .getByRole("row", { name: /documents.zip/ })
      .getByText("Ready")
      .waitFor()
  })

  it("say of one that nobody has had read that it is not, and read it when asked", async () => {
    const cookies = await page.context().cookies()
    const cookie = cookies.map(({ name, value }) => `${name}=${value}`).join("; ")
    const headers = { cookie, "x-spoke-csrf": "1" }
    const { body } = await spoke.request("GET", "/api/agents", { key: null, headers })
    const agentId = body.data.agents[0].id
    const config = { url: `${address}/hours` }
    await spoke.request("POST", "/api/sources", {
      key: null,
      headers,
      body: { agentId, type: "URL", name: "Later", config, autoSync: false }
    })
    await page.reload()
    const row = page.getByRole("row", { name: /Later/ })
    await row.getByText("Not synced yet").waitFor()
    await look(page, "sources-untouched")
    await row.getByRole("link", { name: "Later" }).click()
    await page.getByRole("main").locator("header").getByText("Not synced yet").waitFor()
    await page.getByRole("button", { name: "Sync now" }).waitFor()
    await page.goBack()
    await page.getByRole("button", { name: "Sync now: Later" }).click()
    await row.getByText("Ready").waitFor()
    expect(await page.getByRole("button", { name: "Sync now: Later" }).count()).toBe(0)
  })

  it("say that there is none at an address, in both languages, with a link to all of them", async () => {
    for (const [locale, titles, links] of [
      [
        "en-GB",
        ["There is no such source", "There is no such agent", "There is no such member"],
        ["All sources", "All agents", "The team"]
      ],
      [
        "de-DE",
        ["Diese Quelle gibt es nicht", "Diesen Agenten gibt es nicht", "Dieses Mitglied gibt es nicht"],
        ["Alle Quellen", "Alle Agenten", "Das Team"]
      ]
    ] as const) {
      const context = await browser.newContext({
        ...desktop,
        locale,
        storageState: await page.context().storageState()
      })
      const other = await context.newPage()
      for (const [place, path] of [
        "sources/src_nobody",
        "agents/agt_nobody",
        "team/usr_nobody/sessions"
      ].entries()) {
        await other.goto(`${spoke.url}/app/${path}`)
        await other.getByRole("heading", { name: titles[place] ?? "", level: 1 }).waitFor()
        await other
          .getByRole("main")
          .getByRole("link", { name: links[place] ?? "" })
          .click()
        await other.waitForURL(`${spoke.url}/app/${path.split("/")[0]}**`)
      }
      await context.close()
    }
  })

  it("have ids that are copied by the keyboard, which says so", async () => {
    const context = await browser.newContext({
      ...desktop,
      locale: "de-DE",
      permissions: ["clipboard-read", "clipboard-write"],
      storageState: await page.context().storageState()
    })
    const other = await context.newPage()
    const copied = () => other.evaluate("navigator.clipboard.readText()")
    await other.goto(`${spoke.url}/app/agents`)
    await other.getByRole("main").getByRole("table").getByRole("link").first().click()
    const agentId = /agt_\w+/u.exec(other.url())?.[0]
    await other.goto(`${spoke.url}/app/agents/${agentId}/keys`)
    const button = other.getByRole("button", { name: "Kopieren: ID des Agenten" })
    await button.focus()
    await other.keyboard.press("Enter")
    const message = other.getByRole("status").filter({ hasText: "Kopiert" })
    await message.waitFor({ state: "attached" })
    expect(await copied()).toBe(agentId)
    expect(await button.evaluate((element) => element.matches(":focus"))).toBe(true)
    await message.waitFor({ state: "detached" })
    await other
      .getByRole("button", { name: /^Weitere Aktionen: / })
      .first()
      .click()
    await other.getByRole("menuitem", { name: "ID kopieren" }).click()
    await message.waitFor()
    expect(await copied()).toMatch(/^key_\w+$/u)
    await other.goto(`${spoke.url}/app/sources`)
    await other.getByRole("main").getByRole("table").getByRole("link").first().click()
    await other.getByRole("button", { name: "Kopieren: ID", exact: true }).click()
    await until(copied, (text) => text === /src_\w+/u.exec(other.url())?.[0])
    await context.close()
  })

  it("are chosen by agent, of all agents and not only of the first page", async () => {
    await page.route("**/api/agents?*", async (route) => {
      const response = await route.fetch({
        url: route
          .request()
          .url()
          .replace(/&cursor=more/u, "")
      })
      const { data } = await response.json()
      const isSecond = route.request().url().includes("cursor=more")
      const agents = isSecond ? [{ ...data.agents[0], id: "agt_far", name: "Far away" }] : data.agents
      await route.fulfill({ json: { data: { agents, nextCursor: isSecond ? null : "more" } } })
    })
    await page.goto(`${spoke.url}/app/sources`)
    const names = () => page.getByLabel("Agent", { exact: true }).locator("option").allTextContents()
    await until(names, (all) => all.includes("Far away"))
    await page.unroute("**/api/agents?*")
    await page.goto(`${spoke.url}/app/sources`)
  })

  it("fit the window, although their names are long and have no spaces", async () => {
    const reader = await page.context().newPage()
    await reader.goto(`${spoke.url}/app/agents`)
    const send = (method: string, path: string, body?: object) =>
      reader.evaluate(
        `fetch("${path}", { method: "${method}", ${body === undefined ? "" : `headers: { "content-type": "application/json" }, body: ${JSON.stringify(JSON.stringify(body))}`} })
          .then((answer) => answer.json()).then(({ data }) => data)`
      )
    const { agents } = (await send("GET", "/api/agents")) as { agents: ReadonlyArray<{ id: string }> }
    const agentId = agents[0]?.id ?? ""
    const config = { text: "Nothing." }
    const name = `https://${"sub.".repeat(40)}example.com/`
    const { source } = (await send("POST", "/api/sources", { agentId, type: "TEXT", name, config })) as {
      source: { id: string }
    }
    for (const viewport of [desktop.viewport, phone.viewport]) {
      await reader.setViewportSize(viewport ?? { width: 390, height: 844 })
      for (const path of [`sources/${source.id}`, `agents/${agentId}/widget`]) {
        await reader.goto(`${spoke.url}/app/${path}`)
        // The widget's form lists sources to choose from. Its draft is kept for the other viewport.
        const choose = "Of those, only chosen ones"
        if (path.endsWith("/widget") && !(await reader.getByRole("switch", { name: choose }).isChecked()))
          await reader.getByText(choose).click()
        await reader.getByText(name).first().waitFor()
        const overflow = await reader.evaluate("document.documentElement.scrollWidth - innerWidth")
        expect([path, viewport?.width, overflow]).toEqual([path, viewport?.width, 0])
      }
    }
    await send("DELETE", `/api/sources/${source.id}`)
    await reader.close()
  })

  it("say why one failed, and fit a phone", async () => {
    await page.getByRole("button", { name: "Add source" }).first().click()
    const dialog = page.getByRole("dialog")
    await dialog.getByLabel("Address", { exact: true }).fill(`${address}/gone`)
    await dialog.getByRole("button", { name: "Add source" }).click()
    await page.getByText(/404/).first().waitFor()
    await page.setViewportSize(phone.viewport ?? { width: 390, height: 844 })
    await look(page, "sources-phone")
    expect(wrong).toEqual([])
  })
})
