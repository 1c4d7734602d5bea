import * as Fs from "node:fs"
import * as Path from "node:path"
import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { removeFolder, root, type Spoke, start, temporaryFolder, until } from "../e2e/Spoke.ts"
import {
  act,
  complaints,
  desktop,
  hasBrowser,
  launch,
  look,
  openPart,
  phone,
  watchRequests
} from "./Browser.ts"

const owner = { SPOKE_ADMIN_EMAIL: "owner@example.com", SPOKE_ADMIN_PASSWORD: "correct horse battery" }

/** Bytes of files of the dashboard, as they are sent. */
const sizeOf = (requested: ReadonlyArray<string>) =>
  requested
    .filter((name) => /\.(?:js|css|html)$/.test(name))
    .map((name) => Fs.statSync(Path.join(root, "dist/ui", `${name}.gz`)).size)
    .reduce((sum, size) => sum + size, 0)

describe.skipIf(!hasBrowser)("The dashboard's agents", () => {
  const dataDir = temporaryFolder()
  let spoke: Spoke
  let browser: Browser
  let page: Page
  let wrong: ReadonlyArray<string>

  beforeAll(async () => {
    spoke = await start(dataDir, owner)
    browser = await launch()
    page = await (await browser.newContext(desktop)).newPage()
    wrong = complaints(page)
  })

  afterAll(async () => {
    await browser.close()
    await spoke.kill()
    removeFolder(dataDir)
  })

  it("load at most 180 kB compressed for the first page, with what the next press needs", async () => {
    const loadedBy = async (path: string, show: (window: Page) => Promise<void>) => {
      const window = await page.context().newPage()
      const quiet = watchRequests(window)
      const requested = new Set(["index.html"])
      window.on("response", (response) => {
        const { pathname } = new URL(response.url())
        if (pathname.startsWith("/assets/")) requested.add(pathname.slice("/assets/".length))
      })
      await window.goto(`${spoke.url}${path}`)
      await show(window)
      await quiet()
      await window.close()
      expect(requested.size).toBeGreaterThan(2)
      return sizeOf([...requested])
    }
    const bySignIn = await loadedBy("/", async (window) => {
      await window.getByLabel("E-mail").fill(owner.SPOKE_ADMIN_EMAIL)
      await window.getByLabel("Password").fill(owner.SPOKE_ADMIN_PASSWORD)
      await window.keyboard.press("Enter")
      await window.getByRole("heading", { name: "Start" }).waitFor()
    })
    const byAgents = await loadedBy("/app/agents", (window) =>
      window.getByRole("row").nth(1).getByRole("link").waitFor()
    )
    expect(bySignIn).toBeLessThan(180_000)
    expect(byAgents).toBeLessThan(180_000)
    await page.goto(`${spoke.url}/`)
    await page.getByRole("heading", { name: "Start" }).waitFor()
  })

  it("are requested before the code that shows them, whose files are in the page's headers", async () => {
    const window = await page.context().newPage()
    const quiet = watchRequests(window)
    const requested: Array<string> = []
    window.on("request", (request) => requested.push(request.url().slice(spoke.url.length)))
    const answer = await window.goto(`${spoke.url}/app/agents`)
    await window.getByRole("row").nth(1).getByRole("link").waitFor()
    await quiet()
    const named = [...((await answer?.headerValue("link")) ?? "").matchAll(/<([^>]+)>; rel=modulepreload/gu)]
    const files = named.map(([, file]) => file ?? "")
    expect(files.length).toBeGreaterThan(0)
    const lists = requested.filter((path) => path.startsWith("/api/agents?"))
    expect(lists).toHaveLength(1)
    const list = requested.indexOf(lists[0] ?? "")
    for (const file of files) {
      expect([file, requested.filter((path) => path === file).length]).toEqual([file, 1])
      expect(requested.indexOf(file)).toBeLessThan(list)
    }
    await window.close()
  })

  it("are made, and told what to say", async () => {
    await page.getByRole("link", { name: "Agents" }).click()
    await page.getByRole("button", { name: "New agent" }).click()
    await page.getByRole("dialog").getByLabel("Name").fill("Support")
    await page.getByRole("dialog").getByLabel("Instructions").fill("Be brief.")
    await page.getByRole("dialog").getByRole("button", { name: "Create" }).click()
    await page.getByRole("heading", { name: "Workbench" }).waitFor()
    await openPart(page, "Settings")
    await page.getByLabel("Greeting").fill("Good day!")
    await page.getByLabel("Passages per question").fill("99")
    await page.getByRole("button", { name: "Save" }).click()
    await page.getByText("A number from 1 to 20.").waitFor()
    await look(page, "agent-settings-problem")
    await page.getByLabel("Passages per question").fill("8")
    await page.getByRole("button", { name: "Save" }).click()
    await page.getByText("Saved", { exact: true }).waitFor()
    await page.reload()
    expect(await page.getByLabel("Greeting").inputValue()).toBe("Good day!")
    expect(await page.getByLabel("Passages per question").inputValue()).toBe("8")
    await look(page, "agent-settings")
  })

  it("get keys whose secret is shown once, works, and stops working when revoked", async () => {
    await openPart(page, "Keys")
    await page.getByRole("button", { name: "New key" }).first().click()
    const dialog = page.getByRole("dialog")
    await dialog.getByLabel("Name").fill("Website")
    await dialog.getByText("More options").click()
    await dialog.getByLabel("Until").fill("2099-12-31T23:59")
    await dialog.getByLabel("Requests at most").fill("1000")
    await look(page, "key-new")
    await dialog.getByRole("button", { name: "Create" }).click()
    const secret = (await dialog.getByLabel("The key", { exact: true }).textContent()) ?? ""
    expect(secret).toMatch(/^spk_/)
    await look(page, "key-secret")
    // A slip of the hand does not lose what is shown once.
    await page.mouse.click(5, 5)
    expect(await dialog.getByLabel("The key", { exact: true }).textContent()).toBe(secret)
    await dialog.getByRole("button", { name: "Done" }).click()
    expect(await page.getByText(secret).count()).toBe(0)
    const ask = () => spoke.request("POST", "/v1/chat", { key: secret, body: { message: "Hello" } })
    expect((await ask()).status).toBe(200)
    await page.getByText(/^Until .*2099/u).waitFor()
    await look(page, "agent-keys")
    await page.getByRole("cell", { name: "1,000 in 60 s" }).waitFor()
    await act(page, "Limit", "Website")
    await dialog.getByLabel("Requests at most").fill("2000000")
    await dialog.getByRole("button", { name: "Save" }).click()
    await dialog.getByText(/^A number from 1 to/).waitFor()
    await dialog.getByLabel("Requests at most").fill("1")
    await dialog.getByLabel("In how many seconds").fill("3600")
    await look(page, "key-limit")
    await dialog.getByRole("button", { name: "Save" }).click()
    await page.getByRole("cell", { name: "1 in 3,600 s" }).waitFor()
    const limited = async () => (await ask()).status
    await until(limited, (status) => status === 429)
    await act(page, "Limit", "Website")
    await dialog.getByLabel("Requests at most").fill("")
    await dialog.getByRole("button", { name: "Save" }).click()
    await page.getByRole("cell", { name: "Default" }).first().waitFor()
    await dialog.waitFor({ state: "hidden" })
    await until(limited, (status) => status === 200)
    await act(page, "Revoke", "Website")
    await page.getByRole("alertdialog").getByRole("button", { name: "Revoke" }).click()
    await page.getByRole("cell", { name: "Revoked" }).waitFor()
    expect((await ask()).status).toBe(401)
  })

  it("get tools", async () => {
    await openPart(page, "Tools")
    await page.getByRole("button", { name: "New tool" }).first().click()
    const dialog = page.getByRole("dialog")
    await dialog.getByLabel("Name", { exact: true }).fill("order_status")
    await dialog.getByLabel("What it does").fill("Tells where an order is.")
    await dialog.getByRole("textbox", { name: "Address" }).fill("https://shop.example/orders/{id}")
    await dialog.getByLabel("Variables").fill("/order/id → path:id")
    await look(page, "tool-new")
    await dialog.getByRole("button", { name: "Save" }).click()
    await dialog.waitFor({ state: "hidden" })
    await page.getByText("https://shop.example/orders/{id}").waitFor()
    await look(page, "agent-tools")
    await act(page, "Edit", "order_status")
    await dialog.getByLabel("What it does").fill("Tells where a parcel is.")
    // A long address leaves room for the name.
    const address = `https://shop.example/orders/{id}/${"status/".repeat(30)}`
    await dialog.getByRole("textbox", { name: "Address" }).fill(address)
    await dialog.getByRole("button", { name: "Save" }).click()
    await page.getByText("Tells where a parcel is.").waitFor()
    const name = await page.getByRole("table", { name: "Tools" }).getByText("order_status").boundingBox()
    expect(name?.height).toBeLessThan(30)
  })

  it("get test cases that expect support by sources and an object, which is checked before it is sent", async () => {
    await openPart(page, "Test cases")
    await page.getByRole("button", { name: "New test case" }).first().click()
    const dialog = page.getByRole("dialog")
    await dialog.getByLabel("Question").fill("Which ports are open?")
    await dialog.getByLabel("Support by sources").selectOption({ label: "Required" })
    const schema = dialog.getByLabel("JSON Schema of the reply")
    await schema.fill("{type")
    await dialog.getByText("This is no JSON object.").waitFor()
    await schema.fill('{"type": "array"}')
    await dialog.getByRole("button", { name: "Save" }).click()
    await dialog.getByText('the schema needs "type": "object"').waitFor()
    await schema.fill('{"type": "object"}')
    await dialog.getByLabel("Refusal").selectOption({ label: "It has to decline to answer" })
    await dialog.getByRole("button", { name: "Save" }).click()
    await dialog.getByText("A refusal cites nothing").waitFor()
    await dialog.getByLabel("Refusal").selectOption({ label: "Either is fine" })
    await look(page, "test-case-new")
    await dialog.getByRole("button", { name: "Save" }).click()
    await dialog.waitFor({ state: "hidden" })
    await page.getByText("supported by sources, a JSON object").waitFor()
    await look(page, "agent-cases")
    await act(page, "Edit", "Which ports are open?")
    expect(await schema.inputValue()).toBe('{\n  "type": "object"\n}')
    await schema.fill("")
    await dialog.getByRole("button", { name: "Save" }).click()
    await page.getByText("supported by sources", { exact: true }).waitFor()
  })

  it("are connected to messaging channels, and told what the provider has to know", async () => {
    await openPart(page, "Channels")
    await page.getByRole("button", { name: "New channel" }).first().click()
    const dialog = page.getByRole("dialog")
    await dialog.getByLabel("Phone number ID").fill("1234567890")
    await dialog.getByLabel("Access token").fill("a-token-of-the-provider")
    await dialog.getByRole("button", { name: "Create" }).click()
    await page.getByRole("cell", { name: "1234567890", exact: true }).waitFor()
    await look(page, "agent-channels")
    await act(page, "Switch off", "1234567890")
    await page.getByRole("cell", { name: "Off" }).waitFor()
  })

  it("use only the sources that a channel may read, by default those without labels", async () => {
    const scope = page.getByText(/^Sources: /)
    const dialog = page.getByRole("dialog")
    const limited = dialog.getByRole("switch", { name: "Only some sources" })
    expect(await scope.count()).toBe(0)
    await act(page, "Sources", "1234567890")
    expect(await limited.isChecked()).toBe(true)
    await dialog.getByLabel("Labels").fill("partners, staff")
    await look(page, "channel-sources")
    await dialog.getByRole("button", { name: "Save" }).click()
    await page.getByText("Sources: partners, staff").waitFor()
    await act(page, "Sources", "1234567890")
    expect(await dialog.getByLabel("Labels").inputValue()).toBe("partners, staff")
    await dialog.getByText("Only some sources").click()
    await dialog.getByRole("button", { name: "Save" }).click()
    await page.getByText("Sources: all, also with labels").waitFor()
    await look(page, "agent-channels-all-sources")
  })

  it("keep a channel that may read no source as it is, until sources are chosen", async () => {
    const dialog = page.getByRole("dialog")
    const agentId = /agents\/([^/]+)/.exec(page.url())?.[1]
    const status = await page.evaluate(
      `fetch("/api/agents/${agentId}/channels").then((one) => one.json()).then(({ data: { channels: [{ id }] } }) =>
        fetch("/api/channels/" + id, {
          method: "PATCH",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ sourceScope: { labels: ["staff"], sourceIds: [] } })
        })).then((answer) => answer.status)`
    )
    expect(status).toBe(200)
    await page.reload()
    await page.getByText("Sources: nothing").waitFor()
    await act(page, "Sources", "1234567890")
    const chosen = dialog.getByRole("switch", { name: "Of those, only chosen ones" })
    expect(await chosen.isChecked()).toBe(true)
    await dialog.getByLabel("Labels").fill("partners")
    await dialog.getByRole("button", { name: "Save" }).click()
    await dialog.waitFor({ state: "detached" })
    await page.getByText("Sources: nothing").waitFor()
    await act(page, "Sources", "1234567890")
    await look(page, "channel-sources-none")
    await dialog.getByText("Of those, only chosen ones").click()
    await dialog.getByRole("button", { name: "Save" }).click()
    await page.getByText("Sources: partners").waitFor()
  })

  it("say where one looks that a channel, a tool or the model fails, since when, why, and what to do", async () => {
    const agentId = /agents\/([^/]+)/.exec(page.url())?.[1]
    const target = await page.evaluate(
      `fetch("/api/agents/${agentId}/channels").then((one) => one.json()).then(({ data }) => data.channels[0].id)`
    )
    const agent = { agentId, agentName: "Support", since: new Date(Date.now() - 7_200_000).toISOString() }
    const reason = "The provider refused the channel's access (code 190)."
    const channel = { ...agent, kind: "channel", target, name: "whatsapp:1234567890", reason }
    const tool = { ...agent, kind: "tool", target: "order_status", name: "order_status" }
    const problems = [
      channel,
      { ...tool, reason: "TOOL_FAILED: the address answered with status 401" },
      { ...agent, kind: "model", target: null, name: null, reason: "key_refused" }
    ]
    // What the service knows is tested over its route: here only what becomes of it.
    await page.route("**/api/agent-problems", (route) => route.fulfill({ json: { data: { problems } } }))
    await page.reload()
    const parts = page.getByRole("navigation")
    await parts
      .getByRole("link", { name: /^Channels/ })
      .getByText("1 problem")
      .waitFor()
    await parts
      .getByRole("link", { name: /^Tools/ })
      .getByText("1 problem")
      .waitFor()
    const row = page.getByRole("row", { name: /1234567890/ })
    await row.getByText("Failing").waitFor()
    await row.getByText(reason).waitFor()
    const notices = page.getByRole("status").filter({ hasText: "The channel whatsapp:1234567890 fails." })
    await notices.getByText(reason).waitFor()
    await notices.getByText("If it refused the token, enter a new one under “Channels”.").waitFor()
    await look(page, "agent-channels-failing")
    await notices.getByRole("link", { name: "To the tools" }).click()
    const tools = page.getByRole("table", { name: "Tools" })
    await tools.getByText("the address answered with status 401").waitFor()
    await page.getByRole("link", { name: "All agents" }).click()
    const link = page.getByRole("navigation").getByRole("link", { name: /Agents/ })
    await link.getByText("3 problems").waitFor()
    const support = page.getByRole("row", { name: /^Support/ })
    await support.getByText("The tool order_status fails.").waitFor()
    await support.getByText("The model gives no answer.").waitFor()
    await page
      .getByRole("row", { name: /Spoke guide/ })
      .getByText("Works")
      .waitFor()
    await look(page, "agents-failing")
    await page.unroute("**/api/agent-problems")
    await page.reload()
    await support.getByText("Works").waitFor()
    await link.getByText(/problem/).waitFor({ state: "detached" })

    await page.getByRole("link", { name: "Support", exact: true }).click()
    await openPart(page, "Channels")
    await act(page, "New token", "1234567890")
    const dialog = page.getByRole("dialog")
    await dialog.getByLabel("Access token").fill("a-new-token-of-the-provider")
    await look(page, "channel-token")
    await dialog.getByRole("button", { name: "Save" }).click()
    await dialog.waitFor({ state: "hidden" })
  })

  it("are told what a mailbox needs, and where it may not send", async () => {
    await page.getByRole("button", { name: "New channel" }).first().click()
    const dialog = page.getByRole("dialog")
    await dialog.getByLabel("Provider").selectOption("E-mail")
    await dialog.getByLabel("E-mail address").fill("support@example.com")
    await dialog.getByLabel("Mail server").fill("smtp://127.0.0.1:25")
    await dialog.getByLabel("Password").fill("a-password")
    await dialog.getByLabel("Signing secret").fill("a-secret-of-the-receiving-service")
    await look(page, "agent-channels-email")
    await dialog.getByRole("button", { name: "Create" }).click()
    await dialog.getByText("The mail server has an address that this service may not connect to.").waitFor()
    await dialog.getByRole("button", { name: "Cancel" }).click()
    await dialog.waitFor({ state: "detached" })
  })

  it("get a script for a page, with a key that only chats from there", async () => {
    await openPart(page, "Widget")
    // What was typed stays if the content has no questions.
    await page.route("**/questions", (route) => route.fulfill({ json: { data: { questions: [] } } }))
    const suggestions = page.getByLabel("Suggested questions")
    await suggestions.fill("What do you sell?")
    await page.getByRole("button", { name: "Suggest from the content" }).click()
    await page.getByText("The content has nothing to suggest yet.").waitFor()
    expect(await suggestions.inputValue()).toBe("What do you sell?")
    await page.unroute("**/questions")
    await page.getByLabel("Websites that may show it").fill("https://www.example.com")
    await page.getByRole("button", { name: "Save widget" }).click()
    const script = (await page.getByLabel("Script", { exact: true }).textContent()) ?? ""
    const [, key] = /data-agent="(wgt_[^"]+)" async/.exec(script) ?? []
    await look(page, "agent-widget")
    const ask = (origin: string) =>
      spoke.request("POST", "/api/sdk/init", { key: key ?? "", headers: { origin }, body: {} })
    expect((await ask("https://www.example.com")).status).toBe(200)
    // What stands on the page opens the chat, and nothing else.
    const direct = await spoke.request("POST", "/v1/chat", {
      key: key ?? "",
      headers: { origin: "https://www.example.com" },
      body: { message: "Hello" }
    })
    expect([direct.status, direct.body.error.code]).toEqual([403, "FORBIDDEN"])
    expect((await ask("https://evil.example")).status).toBe(403)
  })

  it("are tried in a chat that streams, cites, and shows its trace", async () => {
    await page.getByRole("link", { name: "All agents" }).click()
    await page.getByRole("link", { name: "Spoke guide" }).click()
    await page.getByLabel("Message").fill("How do I start the server?")
    await page.keyboard.press("Enter")
    const reply = page.getByRole("article", { name: "Spoke guide" })
    await reply
      .getByRole("button", { name: /^Citation \d/ })
      .first()
      .click()
    // It leads to the passage, beside the chat.
    await page.locator("[data-passage][data-marked]").waitFor()
    await look(page, "agent-try")
    const trace = page.getByRole("region", { name: "Trace" })
    await trace.getByText("Run completed").waitFor()
    await trace.getByText("Details").first().click()
    await page.getByLabel("Message").fill("And how do I stop it?")
    await page.getByRole("button", { name: "Send", exact: true }).click()
    // The trace also shows the question.
    const question = page.getByRole("article", { name: "You" }).getByText("And how do I stop it?")
    await question.waitFor()
    await page.getByRole("article").nth(3).waitFor()
    await page.getByRole("button", { name: "New conversation" }).click()
    await question.waitFor({ state: "detached" })

    // What is refused is said in a sentence; the offline model reads no pictures.
    const choosing = page.waitForEvent("filechooser")
    await page.getByRole("button", { name: "Attach files" }).click()
    await (
      await choosing
    ).setFiles([
      { name: "plan.gif", mimeType: "image/gif", buffer: Buffer.from("GIF89a plan") },
      { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("notes") }
    ])
    await page.getByRole("alert").getByText("notes.txt cannot be sent").waitFor()
    await page.getByLabel("Message").fill("What is on it?")
    await page.keyboard.press("Enter")
    await page.getByRole("article", { name: "You" }).getByText("plan.gif").waitFor()
    const refusal = page.getByRole("alert").filter({ hasText: "No answer" })
    await refusal.getByText("UNSUPPORTED_ATTACHMENT_TYPE").waitFor()
    expect(await refusal.textContent()).not.toContain("{")
    await look(page, "agent-try-refused")
    await page.getByRole("button", { name: "New conversation" }).click()
  })

  it("fit a phone, and are gone when deleted", async () => {
    await page.setViewportSize(phone.viewport ?? { width: 390, height: 844 })
    await look(page, "agent-try-phone")
    expect(await page.getByRole("navigation").count()).toBe(0)
    await page.getByRole("button", { name: "Menu" }).click()
    await look(page, "menu-phone")
    await page.getByRole("link", { name: "All agents" }).click()
    await page.getByRole("link", { name: "Support", exact: true }).click()
    await page.getByRole("navigation").waitFor({ state: "detached" })
    // What is shown begins in the upper third.
    const log = await page.getByRole("log").boundingBox()
    expect(log?.y).toBeLessThan(260)
    await openPart(page, "Tools")
    await page.getByRole("table", { name: "Tools" }).waitFor()
    await look(page, "agent-tools-phone")
    await openPart(page, "Improve")
    await page.getByRole("link", { name: "What went wrong" }).waitFor()
    for (const tab of await page
      .getByRole("navigation", { name: "What can be improved" })
      .getByRole("link")
      .all()) {
      const box = await tab.boundingBox()
      expect((box?.x ?? 0) + (box?.width ?? 0)).toBeLessThan(390)
    }
    await look(page, "agent-improve-phone")
    await openPart(page, "Settings")
    await page.getByLabel("Greeting").waitFor()
    await look(page, "agent-settings-phone")
    await act(page, "Delete agent")
    await page.getByRole("alertdialog").getByRole("button", { name: "Delete" }).click()
    await page.getByRole("heading", { name: "Agents" }).waitFor()
    await page.getByRole("link", { name: "Support", exact: true }).waitFor({ state: "detached" })
    expect(wrong).toEqual([])
  })
})
