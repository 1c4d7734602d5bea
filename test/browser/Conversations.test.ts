import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { removeFolder, type Spoke, start, temporaryFolder } from "../e2e/Spoke.ts"
import { complaints, desktop, hasBrowser, launch, look, phone } from "./Browser.ts"

const owner = { SPOKE_ADMIN_EMAIL: "owner@example.com", SPOKE_ADMIN_PASSWORD: "correct horse battery" }

describe.skipIf(!hasBrowser)("The dashboard's conversations", () => {
  const dataDir = temporaryFolder()
  let spoke: Spoke
  let browser: Browser
  let page: Page
  let wrong: ReadonlyArray<string>
  let id = ""

  const ask = async (message: string, who: object = { conversationId: id }) => {
    const { body, status } = await spoke.request("POST", "/v1/chat", { body: { message, ...who } })
    return { status, code: body.error?.code, conversationId: body.data?.conversationId ?? "" }
  }

  const heard = async () => {
    const { body } = await spoke.request("GET", `/v1/conversations/${id}`)
    return body.data.messages.map((message: { content: string }) => message.content)
  }

  const signIn = async (to: Page) => {
    await to.goto(`${spoke.url}/`)
    await to.getByLabel("E-mail").fill(owner.SPOKE_ADMIN_EMAIL)
    await to.getByLabel("Password").fill(owner.SPOKE_ADMIN_PASSWORD)
    await to.keyboard.press("Enter")
    await to.getByRole("heading", { name: "Start" }).waitFor()
    const menu = to.getByRole("button", { name: "Menu" })
    if (await menu.isVisible()) await menu.click()
    await to.getByRole("link", { name: "Conversations" }).click()
    await to.getByRole("heading", { name: "Conversations", level: 1 }).waitFor()
  }

  beforeAll(async () => {
    spoke = await start(dataDir, owner)
    browser = await launch()
    page = await (await browser.newContext(desktop)).newPage()
    wrong = complaints(page)
    await signIn(page)
  })

  afterAll(async () => {
    await browser.close()
    await spoke.kill()
    removeFolder(dataDir)
  })

  it("appear by themselves, with who wrote and what was said last", async () => {
    await page.getByText("Nobody has written yet").waitFor()
    await look(page, "conversations-empty")
    id = (await ask("How do I start the server?", { externalEndUserId: "ada@example.com" })).conversationId
    await ask("What is a source?", { externalEndUserId: "grace@example.com" })
    await page.getByRole("link", { name: /ada@example\.com/ }).waitFor()
    await page.getByRole("link", { name: /grace@example\.com/ }).waitFor()
    await look(page, "conversations")
  })

  it("show citations and the trace of a reply", async () => {
    await page.getByRole("link", { name: /ada@example\.com/ }).click()
    await page.getByRole("heading", { name: "ada@example.com", level: 1 }).waitFor()
    const reply = page.getByRole("article", { name: "Agent" })
    await reply
      .getByRole("button", { name: /^Citation \d/ })
      .first()
      .click()
    await page.getByRole("dialog", { name: /^Citation \d/ }).waitFor()
    await page.keyboard.press("Escape")
    await reply.getByRole("button", { name: "Trace" }).click()
    await page.getByRole("region", { name: "Trace" }).getByText("Run completed").waitFor()
    await look(page, "conversation")
    const audited = await page.evaluate("fetch('/api/audit').then((response) => response.text())")
    expect(audited).toContain("agent_run.read")
  })

  it("are followed live", async () => {
    await page.getByText(/Not connected/).waitFor({ state: "detached" })
    await ask("And how do I stop it?")
    // Sooner than the page would look by itself.
    await page.getByRole("article").getByText("And how do I stop it?").waitFor({ timeout: 4_000 })
    await page.getByRole("article", { name: "Agent" }).nth(1).waitFor({ timeout: 4_000 })
  })

  it("are taken over and answered by a human, whom the customer hears", async () => {
    await page.getByRole("button", { name: "Take over" }).click()
    await page.getByText("owner@example.com took over").waitFor()
    expect(await ask("Is anybody there?")).toMatchObject({
      status: 409,
      code: "CONVERSATION_NOT_ACTIVE"
    })
    await page.getByLabel("Reply").fill("Ada here. I am looking into it.")
    await page.keyboard.press("Enter")
    await page.getByRole("article", { name: "Team" }).getByText("Ada here.").waitFor()
    expect(await heard()).toContain("Ada here. I am looking into it.")
    await look(page, "conversation-human")
  })

  it("take files along with a reply, by keyboard too", async () => {
    const choosing = page.waitForEvent("filechooser")
    await page.getByRole("button", { name: "Attach files" }).focus()
    await page.keyboard.press("Enter")
    const png = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 1, 2, 3, 4])
    await (
      await choosing
    ).setFiles([
      { name: "plan.png", mimeType: "image/png", buffer: png },
      { name: "other.png", mimeType: "image/png", buffer: png },
      { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("notes") }
    ])
    await page.getByRole("alert").getByText("notes.txt cannot be sent").waitFor()
    await page.getByRole("button", { name: "Remove other.png" }).focus()
    await page.keyboard.press("Enter")
    await look(page, "conversation-files")
    await page.getByLabel("Reply", { exact: true }).fill("Like in this plan.")
    await page.keyboard.press("Enter")
    const sent = page.getByRole("article", { name: "Team" }).filter({ hasText: "Like in this plan." })
    const file = sent.getByRole("link", { name: "plan.png" })
    await file.waitFor()
    expect(await sent.getByRole("listitem").count()).toBe(1)
    const address = await file.getAttribute("href")
    const size = await page.evaluate(
      `fetch(${JSON.stringify(address)}).then((answer) => answer.arrayBuffer()).then((bytes) => bytes.byteLength)`
    )
    expect(size).toBe(png.length)
  })

  it("are printed with all messages, and without controls", async () => {
    const navigation = page.getByRole("navigation", { name: "Main navigation" })
    await page.setViewportSize({ width: 720, height: 400 })
    await page.emulateMedia({ media: "print" })
    expect(await page.getByRole("textbox").filter({ visible: true }).count()).toBe(0)
    const buttons = page.getByRole("button").filter({ visible: true })
    const numbers = await buttons.evaluateAll((all) => all.map((one) => one.getAttribute("aria-label") ?? ""))
    // Numbers of citations are part of the text, and their sources are below it.
    expect(numbers.length).toBeGreaterThan(0)
    expect(numbers.filter((label) => !/^Citation \d+$/u.test(label))).toEqual([])
    expect(await page.getByRole("article").locator("ol > li[value='1']").first().isVisible()).toBe(true)
    expect(await navigation.isVisible()).toBe(false)
    const messages = page.getByRole("article")
    expect(await messages.count()).toBeGreaterThan(3)
    const clipped = await messages.evaluateAll(
      (all) =>
        all.filter((element) => {
          const { body, defaultView, documentElement } = element.ownerDocument
          const { bottom, top } = element.getBoundingClientRect()
          for (let box = element.parentElement; box !== null && box !== body; box = box.parentElement) {
            const edge = box.getBoundingClientRect()
            const clips = defaultView?.getComputedStyle(box).overflowY !== "visible"
            if (clips && (top < edge.top || bottom > edge.bottom)) return true
          }
          return bottom > documentElement.scrollHeight + 1
        }).length
    )
    expect(clipped).toBe(0)
    await page.emulateMedia({ media: null })
    await page.setViewportSize({ width: 1280, height: 860 })
    await navigation.waitFor()
  })

  it("are shown without the agent's name if it cannot be loaded", async () => {
    const colleague = await (await browser.newContext(desktop)).newPage()
    let tries = 0
    // Later tries are not answered.
    await colleague.route("**/api/agents/*", (route) =>
      ++tries === 1 ? route.fulfill({ status: 500 }) : undefined
    )
    await signIn(colleague)
    await colleague.getByRole("link", { name: /grace@example\.com/ }).click()
    await colleague.getByRole("article").getByText("What is a source?").waitFor()
    await colleague.context().close()
  })

  it("say of a message that it was not sent, and send it once when asked again, also if it had arrived", async () => {
    await page.route("**/api/conversations/*/messages", async (route) => {
      await route.fetch()
      await route.abort()
    })
    await page.getByLabel("Reply").fill("It works again.")
    await page.getByRole("button", { name: "Send" }).click()
    const alert = page.getByRole("alert")
    await alert.getByText("Not sent").waitFor()
    await look(page, "conversation-unsent")
    // Only its answer was lost.
    expect(await heard()).toContain("It works again.")
    await page.unroute("**/api/conversations/*/messages")
    await page.getByRole("button", { name: "Try again" }).click()
    await page.getByRole("article", { name: "Team" }).getByText("It works again.").waitFor()
    await alert.waitFor({ state: "detached" })
    expect((await heard()).filter((content: string) => content === "It works again.")).toHaveLength(1)
  })

  it("show a second window what the first one did, and give the conversation back", async () => {
    const colleague = await (await browser.newContext(phone)).newPage()
    await signIn(colleague)
    await colleague.getByRole("link", { name: /ada@example\.com/ }).click()
    await colleague.getByRole("heading", { name: "ada@example.com", level: 1 }).waitFor()
    await colleague.locator("h1 + span").getByText("Human answers").waitFor()
    await look(colleague, "conversation-phone")
    await page.getByRole("button", { name: "Give back to the agent" }).click()
    await colleague.getByText("owner@example.com gave the conversation back to the agent").waitFor()
    await ask("Thanks!")
    await colleague.getByRole("article").getByText("Thanks!", { exact: true }).waitFor()
    await colleague.getByRole("link", { name: "All conversations" }).click()
    await colleague.getByRole("link", { name: /grace@example\.com/ }).waitFor()
    await look(colleague, "conversations-phone")
    await colleague.context().close()
  })

  it("show all of a name on a phone, beside what can be done", async () => {
    const name = "maximiliane.musterfrau@kundendienst.example.com"
    const { conversationId } = await ask("Who am I?", { externalEndUserId: name })
    const small = await (await browser.newContext(phone)).newPage()
    await signIn(small)
    await small.goto(`${spoke.url}/app/conversations/${conversationId}`)
    await small.getByRole("button", { name: "Take over" }).waitFor()
    const heading = small.getByRole("heading", { name, level: 1 })
    const { height, isCut } = await heading.evaluate((node) => ({
      height: node.getBoundingClientRect().height,
      isCut: node.scrollWidth > node.clientWidth || node.scrollHeight > node.clientHeight + 1
    }))
    expect([isCut, height < 120]).toEqual([false, true])
    await look(small, "conversation-name-phone")
    await small.context().close()
  })

  it("have the direction of their first letter, in the list and in the field too", async () => {
    const name = "לקוח (2024)!"
    const { conversationId } = await ask("מתי נפתחת החנות (9:00)?", { externalEndUserId: name })
    const reader = await (await browser.newContext(desktop)).newPage()
    await signIn(reader)
    await reader.goto(`${spoke.url}/app/conversations/${conversationId}`)
    const field = reader.getByLabel("Reply", { exact: true })
    await field.fill("שלום!")
    for (const element of [
      reader.getByRole("heading", { name, level: 1 }).locator("bdi"),
      reader.getByRole("article").getByText("מתי נפתחת"),
      reader.getByRole("link", { name: /מתי נפתחת/u }).getByText("מתי נפתחת"),
      reader.getByRole("link", { name: /מתי נפתחת/u }).getByText(name),
      field
    ]) {
      expect(await element.evaluate((node) => node.matches(":dir(rtl)"))).toBe(true)
    }
    await field.fill("")
    await reader.context().close()
  })

  it("keep a reply that was not sent yet, and show what the customer thinks of the agent's", async () => {
    await page.getByLabel("Reply").fill("Half an answer")
    await page.getByRole("link", { name: /grace@example\.com/ }).click()
    await page.getByRole("link", { name: "Reply to ada@example.com" }).click()
    expect(await page.getByLabel("Reply").inputValue()).toBe("Half an answer")
    await page.getByLabel("Reply").fill("")

    const sdk = async (path: string, body: object) =>
      (await spoke.request("POST", `/api/sdk/${path}`, { body })).body.data
    const { sessionId } = await sdk("init", {})
    await fetch(`${spoke.url}/api/v1/chat/stream`, {
      method: "POST",
      headers: { "x-api-key": spoke.apiKey, "content-type": "application/json" },
      body: JSON.stringify({ sessionId, message: "How do I start the server?" })
    }).then((answer) => answer.text())
    const messages = await spoke.request("GET", `/api/sdk/messages?sessionId=${sessionId}`)
    const messageId = messages.body.data.messages.at(-1).id
    await sdk("feedback", { sessionId, messageId, rating: -1, comment: "It does not start." })
    const line = page.getByRole("link", { name: /1 unhelpful reply/ })
    await line.waitFor()
    await look(page, "conversations-feedback")
    await line.click()
    const reply = page.getByRole("article", { name: "Agent" })
    await reply.getByText("The customer found this not helpful").waitFor()
    await reply.getByText("It does not start.").waitFor()
    await look(page, "conversation-feedback")
    await page.getByRole("link", { name: /ada@example\.com/ }).click()
    await page.getByRole("heading", { name: "ada@example.com", level: 1 }).waitFor()
  })

  it("load older messages on demand", async () => {
    for (let turn = 0; turn < 23; turn += 1) expect((await ask(`Question ${turn}`)).status).toBe(200)
    await page.reload()
    await page.getByRole("article").getByText("Question 22", { exact: true }).waitFor()
    const first = page.getByRole("article").getByText("How do I start the server?", { exact: true })
    expect(await first.count()).toBe(0)
    await page.getByRole("button", { name: "Older messages" }).click()
    await first.waitFor()
    await page.getByRole("button", { name: "Older messages" }).waitFor({ state: "detached" })
  })

  it("are closed for good, and found by their state", async () => {
    await page.getByRole("button", { name: "Close conversation" }).click()
    await page.getByRole("alertdialog").getByRole("button", { name: "Close conversation" }).click()
    await page.getByText("Nobody answers in it any more.", { exact: false }).waitFor()
    expect(await page.getByLabel("Reply").count()).toBe(0)
    await look(page, "conversation-closed")
    await page.getByRole("button", { name: "Filters" }).click()
    await page.getByLabel("State").selectOption("Closed")
    await page.getByRole("link", { name: /grace@example\.com/ }).waitFor({ state: "detached" })
    await page.getByRole("link", { name: /ada@example\.com/ }).waitFor()
    await page.getByLabel("Channel").selectOption("WhatsApp")
    await page.getByText("No conversation is like that").waitFor()
    await page.getByRole("button", { name: "Clear filters" }).first().click()
    await page.getByRole("link", { name: /grace@example\.com/ }).waitFor()
    expect(wrong).toEqual([])
  })
})
