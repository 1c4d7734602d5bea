import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { removeFolder, type Spoke, start, temporaryFolder, until } from "../e2e/Spoke.ts"
import * as ModelStub from "../servers/ModelStub.ts"
import { complaints, desktop, hasBrowser, launch, look } from "./Browser.ts"

const owner = { SPOKE_ADMIN_EMAIL: "owner@example.com", SPOKE_ADMIN_PASSWORD: "correct horse battery" }

/** What a reply is made of, with something of everything. */
const markdown =
  "To start it [1]:\n\n1. **Open** the folder\n\n   It has a `package.json`.\n\n2. Run\n\n   ```\n   npm start\n   ```\n\nThen:\n\n3. Look\n\n| Product | Window | Who pays | Refund |\n|---|---|---|---|\n| Lamps | 30 days | We do | 5 working days |\n\nSee [Foo](https://en.wikipedia.org/wiki/Foo_(bar)) or <https://example.com> [9]."

describe.skipIf(!hasBrowser)("Trying an agent", () => {
  const dataDir = temporaryFolder()
  const scope = Effect.runSync(Scope.make())
  let stub: ModelStub.ModelStub
  let spoke: Spoke
  let browser: Browser
  let page: Page
  let wrong: ReadonlyArray<string>
  let agentId = ""

  const api = async (path: string) => {
    const cookies = await page.context().cookies()
    const cookie = cookies.map(({ name, value }) => `${name}=${value}`).join("; ")
    return (await spoke.request("GET", path, { key: null, headers: { cookie } })).body.data
  }

  const ask = async (message: string) => {
    await page.getByLabel("Message").fill(message)
    await page.keyboard.press("Enter")
  }

  const log = () => page.getByRole("log", { name: "Conversation" })
  const reply = () => page.getByRole("article", { name: "Spoke guide" }).last()

  /** Everything that the log has shown until the returned function is called. */
  const watched = async () => {
    await page.evaluate(`(() => {
      window.seen = []
      const box = document.querySelector('[role=log]')
      new MutationObserver(() => window.seen.push(box.innerText)).observe(box, { childList: true, subtree: true, characterData: true })
    })()`)
    return async () => (await page.evaluate("window.seen")) as ReadonlyArray<string>
  }

  beforeAll(async () => {
    stub = await Effect.runPromise(Scope.extend(ModelStub.make, scope))
    spoke = await start(dataDir, {
      ...owner,
      OPENAI_BASE_URL: stub.url,
      OPENAI_API_KEY: "sk-canary-of-the-provider",
      SPOKE_EMBEDDING_MODEL: "offline"
    })
    browser = await launch()
    page = await (await browser.newContext({ ...desktop, reducedMotion: "reduce" })).newPage()
    wrong = complaints(page)
    await page.goto(`${spoke.url}/`)
    await page.getByLabel("E-mail").fill(owner.SPOKE_ADMIN_EMAIL)
    await page.getByLabel("Password").fill(owner.SPOKE_ADMIN_PASSWORD)
    await page.keyboard.press("Enter")
    await page.getByRole("link", { name: "Spoke guide" }).click()
    await page.getByLabel("Message").waitFor()
    agentId = /agt_[\w-]+/u.exec(page.url())?.[0] ?? ""
    await until(
      () => spoke.request("GET", "/v1/sources"),
      ({ body }) => body.data.sources.every(({ status }: { status: string }) => status === "READY"),
      30_000
    )
  }, 60_000)

  afterAll(async () => {
    await browser.close()
    await spoke.kill()
    removeFolder(dataDir)
    await Effect.runPromise(Scope.close(scope, Exit.void))
  })

  it("shows a reply as what it means from its first word on: chips for marks, numbers, whole words in tables", async () => {
    const seen = await watched()
    stub.script.push({ text: markdown, gap: 25 })
    await ask("How do I start the server?")
    // While the rest of the reply is still being written.
    await reply().getByRole("button", { name: "Citation 1" }).waitFor()
    expect(await page.getByText("The agent is answering …").count()).toBe(1)
    await reply().getByRole("link", { name: "https://example.com" }).waitFor()
    await page.getByText("The agent is answering …").waitFor({ state: "detached" })
    expect((await seen()).filter((text) => /\*\*|\[\d|\]\(|```|\|/u.test(text))).toEqual([])
    await reply().getByRole("link", { name: "Foo (https://en.wikipedia.org/wiki/Foo_(bar))" }).waitFor()
    expect(
      await reply()
        .locator("ol")
        .evaluateAll((lists) => lists.map((list) => list.getAttribute("start")))
    ).toEqual([null, "3"])
    expect(await reply().locator("ol pre").textContent()).toContain("npm start")
    // A listener hears words, not marks.
    const spoken = page.getByRole("status").filter({ hasText: "To start it" })
    expect(await spoken.textContent()).toContain("1. Open the folder")
    expect(await spoken.textContent()).not.toMatch(/\*\*|\[\d|```|\|/u)
    await look(page, "try-markdown")
    const heights = await reply()
      .locator("th")
      .evaluateAll((cells) => cells.map((cell) => cell.clientHeight))
    expect(Math.max(...heights)).toBeLessThan(40)
  })

  it("saves a turn as a test case with one press: its question, and what its reply cites", async () => {
    await page.getByRole("button", { name: "Save as test case" }).click()
    await page.getByText("Saved as test case").waitFor()
    const { cases } = await api(`/api/agents/${agentId}/cases`)
    expect(cases).toMatchObject([{ question: "How do I start the server?", origin: "run" }])
    expect(cases[0].expectSources).toHaveLength(1)
  })

  it("frames what has the focus, and not the page around it", async () => {
    await page.getByRole("button", { name: "Compare" }).focus()
    await page.keyboard.press("Tab")
    await page.keyboard.press("Shift+Tab")
    const framed = await page.evaluate(`[...document.querySelectorAll("main, main *")]
      .filter((element) => getComputedStyle(element).outlineStyle !== "none")
      .map((element) => element.textContent)`)
    expect(framed).toEqual(["Compare"])
  })

  it("stays where one reads while a reply is written, and goes to the end for one's own message", async () => {
    const box = log()
    // In a low window a reply is longer than its pane.
    await page.setViewportSize({ width: 1280, height: 520 })
    const place = () => box.evaluate((element) => element.scrollTop)
    const isAtEnd = () =>
      box.evaluate(({ clientHeight, scrollHeight, scrollTop }) => scrollHeight - scrollTop - clientHeight < 5)
    stub.script.push({ text: `${"A long line of a long reply. ".repeat(200)}\n\nEnd.`, gap: 15 })
    await ask("Tell me more")
    await until(isAtEnd, (end) => end)
    await reply().getByText("A long line").waitFor()
    // A list that is scrolled near its end follows new messages.
    await until(
      () => box.evaluate(({ clientHeight, scrollHeight }) => scrollHeight - clientHeight),
      (room) => room > 250
    )
    await box.evaluate((element) => element.scrollTo({ top: 20 }))
    const kept = await place()
    const before = (await reply().textContent())?.length ?? 0
    await until(
      async () => (await reply().textContent())?.length ?? 0,
      (length) => length > before + 400
    )
    expect(await place()).toBe(kept)
    await page.getByText("The agent is answering …").waitFor({ state: "detached" })
    expect(await place()).toBe(kept)
    stub.script.push({ text: "Gladly." })
    await ask("Thank you!")
    await reply().getByText("Gladly.").waitFor()
    await until(isAtEnd, (end) => end)
    await page.setViewportSize({ width: 1280, height: 860 })
  })

  it("keeps the start of a long reply and its question in view", async () => {
    const box = log()
    stub.script.push({ text: `${"A long line of a long reply. ".repeat(300)}\n\nEnd.`, gap: 2 })
    await ask("Tell me everything")
    await reply().getByText("End.").waitFor()
    await page.getByText("The agent is answering …").waitFor({ state: "detached" })
    const tops = await box.evaluate((list) => {
      const edge = list.getBoundingClientRect()
      return [...list.querySelectorAll("article")].slice(-2).map((one) => {
        const { top } = one.getBoundingClientRect()
        return top >= edge.top && top < edge.bottom
      })
    })
    expect(tops).toEqual([true, true])
  })

  it("goes on after the window was loaded again in the middle of a reply, and is in nobody's inbox", async () => {
    await page.getByRole("button", { name: "New conversation" }).click()
    const asked = stub.requests.length
    stub.script.push({ text: "One two three four five six seven eight nine ten eleven twelve.", gap: 250 })
    await ask("Count to twelve")
    await reply().getByText("One two").waitFor()
    await page.reload()
    await page.getByRole("article", { name: "You" }).getByText("Count to twelve").waitFor()
    await page.getByText("The agent is answering …").waitFor()
    await reply().getByText("eleven twelve.").waitFor()
    await page.getByText("The agent is answering …").waitFor({ state: "detached" })
    expect(await page.getByRole("article", { name: "You" }).count()).toBe(1)
    expect(stub.requests.length - asked).toBe(1)
    // The conversation goes on, also after it was settled.
    await page.reload()
    await reply().getByText("eleven twelve.").waitFor()
    stub.script.push({ text: "Twelve." })
    await ask("What was the last one?")
    // The reply before it ends in the same word.
    await reply().getByText("Twelve.", { exact: true }).waitFor()
    expect(JSON.stringify(stub.requests.at(-1)?.body)).toContain("Count to twelve")
    expect(await page.getByRole("article", { name: "You" }).count()).toBe(2)

    const { conversations } = await api("/api/inbox?channel=test")
    expect(conversations).toHaveLength(2)
    expect((await api("/api/inbox")).conversations).toEqual([])
    expect((await api("/api/conversations")).conversations).toEqual([])
    expect((await api("/api/end-users")).endUsers).toEqual([])
    await page.goto(`${spoke.url}/app/conversations`)
    await page.getByText("Nobody has written yet").waitFor()
    await page.goto(`${spoke.url}/app/conversations?channel=test`)
    await page.getByRole("link", { name: /Twelve\./ }).click()
    await page.getByRole("button", { name: "Trace" }).first().click()
    await page.getByRole("region", { name: "Trace" }).getByText("Run completed").waitFor()
  })

  it("says that the provider refused the key: in the chat, its trace, on the agent's page and in the inbox", async () => {
    const reason = "The model provider refused the key."
    await page.goto(`${spoke.url}/app/agents/${agentId}`)
    stub.script.push({ status: 401 })
    await ask("Does it work?")
    await page.getByRole("alert").getByText(reason).waitFor()
    await page.getByRole("region", { name: "Trace" }).getByText(reason).waitFor()
    await page.reload()
    await page
      .getByRole("status")
      .filter({ hasText: "The last message to this agent got no answer." })
      .waitFor()
    // The question and why it failed are there again.
    await page.getByRole("alert").getByText(reason).waitFor()
    await look(page, "try-key-refused")

    stub.script.push({ status: 401 })
    const refused = await spoke.request("POST", "/v1/chat", {
      body: { message: "Is anybody there?", externalEndUserId: "ada@example.com" }
    })
    expect([refused.status, refused.body.error.code]).toEqual([500, "TURN_FAILED"])
    expect(JSON.stringify(refused.body)).not.toMatch(/key|provider|sk-/iu)
    await page.goto(`${spoke.url}/app/conversations`)
    const line = page.getByRole("link", { name: /ada@example\.com/ })
    await line.getByText("No answer").waitFor()
    await line.getByText(reason).waitFor()
    await look(page, "conversations-failed")
    await line.click()
    const question = page.getByRole("article", { name: "Customer" })
    await question.getByText(reason).waitFor()
    await question.getByRole("button", { name: "Trace" }).click()
    await page.getByRole("region", { name: "Trace" }).getByText("Run failed").waitFor()
    await look(page, "conversation-failed")
    expect(await page.content()).not.toContain("sk-canary")

    await page.goto(`${spoke.url}/app/agents/${agentId}`)
    stub.script.push({ text: "It works again." })
    // The last turn is followed to its end first.
    await page.getByRole("alert").getByRole("button", { name: "Ask again" }).waitFor()
    await ask("And now?")
    await reply().getByText("It works again.").waitFor()
    await page.reload()
    await reply().getByText("It works again.").waitFor()
    expect(await page.getByText("The last message to this agent got no answer.").count()).toBe(0)
    expect(wrong).toEqual([])
  })
})
