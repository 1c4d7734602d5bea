import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { removeFolder, type Spoke, start, temporaryFolder, until } from "../e2e/Spoke.ts"
import { complaints, desktop, hasBrowser, launch, look, phone } from "./Browser.ts"

const owner = { SPOKE_ADMIN_EMAIL: "owner@example.com", SPOKE_ADMIN_PASSWORD: "correct horse battery" }

describe.skipIf(!hasBrowser)("The team's inbox", () => {
  const dataDir = temporaryFolder()
  let spoke: Spoke
  let browser: Browser
  let page: Page
  let wrong: ReadonlyArray<string>

  const ask = async (message: string, who: object) =>
    (await spoke.request("POST", "/v1/chat", { body: { message, ...who } })).body.data.conversationId

  const handOver = async () => {
    const sdk = await spoke.request("POST", "/api/sdk/init", { body: {} })
    const { sessionId } = sdk.body.data
    await fetch(`${spoke.url}/api/v1/chat/stream`, {
      method: "POST",
      headers: { "x-api-key": spoke.apiKey, "content-type": "application/json" },
      body: JSON.stringify({ sessionId, message: "May I speak to somebody?" })
    }).then((answer) => answer.text())
    await spoke.request("POST", "/api/sdk/handoff", { body: { sessionId } })
  }

  const signIn = async (to: Page) => {
    await to.goto(`${spoke.url}/`)
    await to.getByLabel("E-mail").fill(owner.SPOKE_ADMIN_EMAIL)
    await to.getByLabel("Password").fill(owner.SPOKE_ADMIN_PASSWORD)
    await to.keyboard.press("Enter")
    await to.getByRole("heading", { name: "Start" }).waitFor()
    await to.goto(`${spoke.url}/app/conversations`)
    await to.getByRole("heading", { name: "Conversations", level: 1 }).waitFor()
  }

  const lines = (to: Page) => to.getByRole("list", { name: "All conversations" }).getByRole("link")

  beforeAll(async () => {
    spoke = await start(dataDir, owner)
    browser = await launch()
    page = await (await browser.newContext(desktop)).newPage()
    wrong = complaints(page)
    await signIn(page)
    await ask("How do I start the server?", { externalEndUserId: "ada@example.com" })
    await ask("What does a source hold?", { externalEndUserId: "grace@example.com" })
    await handOver()
  })

  afterAll(async () => {
    await browser.close()
    await spoke.kill()
    removeFolder(dataDir)
  })

  it("puts who waits first, calls everybody something, and says what they asked", async () => {
    const first = lines(page).first()
    await page.getByText("Waiting for a human").waitFor()
    expect(await first.textContent()).toMatch(/Visitor [0-9A-Z]{4}.*May I speak to somebody\?/u)
    // The list loads waiting customers and the others one after the other.
    await until(
      async () => (await lines(page).nth(1).textContent()) ?? "",
      (text) => /grace@example\.com.*What does a source hold\?/u.test(text),
      20_000
    )
  })

  it("counts what is unread in the navigation and in the title, until it is read", async () => {
    const inbox = page.getByRole("link", { name: "Conversations 1 unread" })
    await inbox.waitFor({ timeout: 20_000 })
    expect(await page.title()).toBe("(1) Conversations · Spoke")
    await lines(page).first().click()
    await page.getByRole("article", { name: /^Customer: Visitor/ }).waitFor()
    await page.getByText("A human was asked for: The person asked for a human.").waitFor()
    await inbox.waitFor({ state: "detached" })
    expect(await page.title()).toMatch(/^Visitor [0-9A-Z]{4} · Spoke$/u)
    await look(page, "inbox")
  })

  it("is assigned and labelled, and takes it back", async () => {
    const details = page.getByRole("complementary", { name: "Details" })
    await details.getByLabel("Assigned to").selectOption("owner@example.com (you)")
    await page.getByText("owner@example.com took on the conversation").waitFor()
    const toasts = page.getByRole("region", { name: "What has just happened" })
    await look(page, "inbox-toast")
    await toasts.getByRole("button", { name: "Undo" }).click()
    await page.getByText("owner@example.com removed the assignment").waitFor()
    await details.getByRole("button", { name: "Edit labels" }).click()
    await details.getByLabel("New label").fill("Billing")
    await details.getByRole("button", { name: "Add" }).click()
    await page.getByText("owner@example.com added the label Billing").waitFor()
    await lines(page).first().getByText("Billing").waitFor()
    await details.getByLabel("New label").fill("Refund")
    await details.getByRole("button", { name: "Add" }).click()
    await page.getByText("owner@example.com added the label Refund").waitFor()
    // The first of two quick changes takes long: the second one is of both.
    let held = 0
    await page.route("**/labels", async (route) => {
      held += 1
      if (held === 1) await new Promise((resolve) => setTimeout(resolve, 1_500))
      await route.continue()
    })
    let answered = 0
    page.on("response", (response) => {
      if (response.url().endsWith("/labels")) answered += 1
    })
    for (const label of ["Billing", "Refund"]) {
      await details.getByRole("button", { name: label, pressed: true }).click()
    }
    await until(
      async () => answered,
      (count) => count === 2
    )
    await page.getByText("owner@example.com removed the label Refund").waitFor()
    await page.getByText("owner@example.com removed the label Billing").waitFor()
    await until(
      () => page.evaluate("fetch('/api/inbox?limit=1').then((answer) => answer.json())"),
      (answer) => JSON.stringify(answer).includes('"labelIds":[]'),
      10_000
    )
    expect(await details.getByRole("button", { pressed: true }).count()).toBe(0)
    await page.unroute("**/labels")
    await details.getByRole("button", { name: "Billing" }).click()
    await page.getByText("owner@example.com added the label Billing").nth(1).waitFor()
  })

  it("writes notes that no customer hears", async () => {
    await page.getByRole("button", { name: "Note", exact: true }).click()
    await page.getByLabel("Note", { exact: true }).fill("Owes us forty euros.")
    await page.getByRole("button", { name: "Add note", exact: true }).waitFor()
    await look(page, "inbox-note")
    await page.keyboard.press("Enter")
    const note = page.getByRole("article", { name: "Private note by owner@example.com" })
    await note.getByText("Owes us forty euros.").waitFor()
    await page.getByText("owner@example.com took over").waitFor({ state: "detached" })
  })

  it("inserts canned replies by their names", async () => {
    await page.getByRole("button", { name: "Reply", exact: true }).click()
    await page.getByRole("button", { name: "Canned replies" }).click()
    const dialog = page.getByRole("dialog", { name: "Canned replies" })
    await dialog.getByLabel("Name").fill("hello")
    await dialog.getByLabel("Text").fill("Good day {{name}}, how can I help?")
    await dialog.getByRole("button", { name: "Add" }).click()
    await dialog.getByText("/hello").waitFor()
    await look(page, "inbox-canned")
    await dialog.getByRole("button", { name: "Close" }).click()
    const field = page.getByLabel("Reply", { exact: true })
    await field.fill("/he")
    await page.getByRole("option", { name: /hello/ }).waitFor()
    await look(page, "inbox-offered")
    await page.keyboard.press("Enter")
    expect(await field.inputValue()).toBe("Good day, how can I help?")
    await field.fill("")
  })

  it("sends neither a reply that is too long nor a composition, and pastes cells as text", async () => {
    const field = page.getByLabel("Reply", { exact: true })
    await field.focus()
    await page.keyboard.insertText("a".repeat(32_001))
    await page.keyboard.press("Enter")
    const tooLong = page.getByText("The message is too long. It may have 32,000 characters.")
    await tooLong.waitFor()
    expect((await field.inputValue()).length).toBe(32_001)
    await field.fill("こんにちは")
    await tooLong.waitFor({ state: "hidden" })
    const dispatch = (event: string) =>
      page.evaluate(`(() => {
        const clipboardData = new DataTransfer()
        clipboardData.setData("text/plain", "1, 2")
        clipboardData.setData("text/html", "<table><tr><td>1<td>2</table>")
        clipboardData.items.add(new File(["a"], "image.png", { type: "image/png" }))
        const options = { bubbles: true, cancelable: true, clipboardData, key: "Enter", keyCode: 229 }
        return document.activeElement.dispatchEvent(${event})
      })()`)
    await field.focus()
    // Safari ends the composition before the key event that ended it.
    expect(await dispatch('new KeyboardEvent("keydown", options)')).toBe(true)
    expect(await dispatch('new ClipboardEvent("paste", options)')).toBe(true)
    expect(await field.inputValue()).toBe("こんにちは")
    await field.fill("")
  })

  it("says that it loads while its labels load, and shows the list without them if they cannot be loaded", async () => {
    const other = await page.context().newPage()
    let answer = (): void => undefined
    const asked = new Promise<void>((resolve) => {
      answer = resolve
    })
    await other.route("**/api/inbox/items", async (route) => {
      await asked
      await route.fulfill({ status: 500, json: { error: { code: "INTERNAL_ERROR", message: "" } } })
    })
    await other.goto(`${spoke.url}/app/conversations`)
    const list = other.getByRole("region", { name: "Conversations" })
    await list.getByText("Loading …").waitFor({ state: "attached" })
    expect(await lines(other).count()).toBe(0)
    answer()
    await lines(other).first().waitFor()
    await other.close()
  })

  it("finds by words and by people, and keeps a view", async () => {
    const search = page.getByLabel("Search messages and people")
    await search.fill("grac")
    await lines(page).filter({ hasText: "ada@" }).waitFor({ state: "detached" })
    await until(
      () => lines(page).count(),
      (count) => count === 1,
      20_000
    )
    await page.getByRole("button", { name: "Filters" }).click()
    const viewName = page.getByLabel("Save this view as")
    await viewName.fill("Grace")
    await page.route("**/api/inbox/views", (route) => route.abort())
    await page.getByRole("button", { name: "Save" }).click()
    await page.getByText("The server cannot be reached. Check your connection.").waitFor()
    expect(await viewName.inputValue()).toBe("Grace")
    await page.unroute("**/api/inbox/views")
    await page.getByRole("button", { name: "Save" }).click()
    await page.getByRole("button", { name: "Grace", exact: true }).waitFor()
    await search.fill("forty euros")
    await lines(page).filter({ hasText: "Visitor" }).waitFor()
    await page.getByRole("button", { name: "Clear search" }).click()
    await lines(page).filter({ hasText: "ada@" }).waitFor()
    await page.getByRole("button", { name: "Grace", exact: true }).click()
    await lines(page).filter({ hasText: "ada@" }).waitFor({ state: "detached" })
    await look(page, "inbox-filters")
    await page.getByRole("button", { name: "Clear filters" }).click()
    await page.getByRole("button", { name: "Filters" }).click()
  })

  it("goes by single keys, but never while somebody types", async () => {
    await page.goto(`${spoke.url}/app/agents`)
    await page.getByRole("heading", { name: "Agents", level: 1 }).waitFor()
    await page.keyboard.press("g")
    await page.keyboard.press("i")
    await page.getByRole("heading", { name: "Conversations", level: 1 }).waitFor()
    await lines(page).first().waitFor()
    await page.keyboard.press("j")
    await page.getByRole("heading", { name: /^Visitor/, level: 1 }).waitFor()
    await page.keyboard.press("j")
    await page.getByRole("heading", { name: "grace@example.com", level: 1 }).waitFor()
    await page.getByLabel("Reply", { exact: true }).waitFor()
    await page.keyboard.press("r")
    await page.keyboard.type("just jkne?")
    expect(await page.getByLabel("Reply", { exact: true }).inputValue()).toBe("just jkne?")
    await page.getByLabel("Reply", { exact: true }).fill("")
    await page.getByRole("heading", { name: "grace@example.com", level: 1 }).click()
    await page.locator("body").evaluate("document.activeElement.blur()")
    await page.keyboard.press("?")
    const sheet = page.getByRole("dialog", { name: "Keyboard shortcuts" })
    await sheet.waitFor()
    await look(page, "inbox-shortcuts")
    await page.keyboard.press("Escape")
    await sheet.waitFor({ state: "detached" })
    await page.keyboard.press("e")
    await page.getByRole("alertdialog").waitFor()
    await page.keyboard.press("Escape")
  })

  it("draws the rows in sight alone, however many there are", async () => {
    const line = (id: number) =>
      JSON.stringify({
        id: `old-${id}`,
        externalEndUserId: `customer-${id}`,
        messages: [{ role: "user", content: `Question ${id}`, createdAt: "2026-01-01T00:00:00Z" }]
      })
    const agentId = await page.evaluate<string>(
      "fetch('/api/agents').then((answer) => answer.json()).then(({ data }) => data.agents[0].id)"
    )
    const imported = await fetch(`${spoke.url}/api/operator/import/conversations?agentId=${agentId}`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${spoke.operatorToken}`,
        "content-type": "application/x-ndjson"
      },
      body: Array.from({ length: 400 }, (_, id) => line(id)).join("\n")
    })
    expect(imported.status).toBe(200)
    await page.goto(`${spoke.url}/app/conversations`)
    await lines(page).first().waitFor()
    const frame = page.getByRole("list", { name: "All conversations" }).locator("..")
    for (let step = 0; step < 30; step += 1) {
      await frame.evaluate((box) => box.scrollTo({ top: box.scrollHeight }))
      await page.waitForTimeout(100)
      expect(await lines(page).count()).toBeLessThan(60)
    }
    await until(
      () => frame.evaluate((box) => box.scrollHeight),
      // Every one of them has its place, of at least 4 rem.
      (height) => height >= 400 * 4 * 16,
      20_000
    )
  }, 60_000)

  it("gives a phone's whole screen to the thread, with a way back", async () => {
    const pocket = await (await browser.newContext(phone)).newPage()
    await signIn(pocket)
    await look(pocket, "inbox-phone")
    await lines(pocket).first().click()
    await pocket.getByRole("heading", { name: /^Visitor/, level: 1 }).waitFor()
    expect(await pocket.getByRole("button", { name: "Menu" }).isVisible()).toBe(false)
    await look(pocket, "inbox-phone-thread")
    await pocket.getByRole("button", { name: "Details" }).click()
    await pocket.getByRole("complementary", { name: "Details" }).getByText("Other conversations").waitFor()
    await look(pocket, "inbox-phone-details")
    await pocket.getByRole("button", { name: "Hide details" }).click()
    await pocket.getByRole("link", { name: "All conversations" }).click()
    await lines(pocket).first().waitFor()
    await pocket.context().close()
    expect(wrong).toEqual([])
  })

  it("counts what arrives in a browser that lets a page show no notifications by itself", async () => {
    const context = await browser.newContext(desktop)
    // As on a phone with Android, in a window that is hidden.
    await context.addInitScript(`
      localStorage.setItem("spoke.notifications", "on")
      class Notification { static permission = "granted"; constructor() { throw new TypeError("Illegal constructor") } }
      Object.defineProperty(window, "Notification", { value: Notification })
      Object.defineProperty(document, "visibilityState", { value: "hidden" })
    `)
    const other = await context.newPage()
    const failures = complaints(other)
    await signIn(other)
    await other.getByRole("link", { name: "Conversations" }).first().waitFor()
    const waiting = async () => Number(/^\((\d+)\)/u.exec(await other.title())?.[1] ?? 0)
    await other.waitForLoadState("networkidle")
    const before = await waiting()
    await handOver()
    await until(waiting, (count) => count === before + 1, 30_000)
    expect(failures).toEqual([])
    await context.close()
  })
})
