import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { production, removeFolder, type Spoke, start, temporaryFolder, until } from "../e2e/Spoke.ts"
import * as ModelStub from "../servers/ModelStub.ts"
import { complaints, hasBrowser, launch, look, phone } from "./Browser.ts"
import { freePort } from "../servers/FreePort.ts"

const owner = { SPOKE_ADMIN_EMAIL: "owner@example.com", SPOKE_ADMIN_PASSWORD: "correct horse battery" }

// One server that is there again at the same address.
describe.skipIf(!hasBrowser || production)("The workbench", () => {
  const dataDir = temporaryFolder()
  const scope = Effect.runSync(Scope.make())
  let stub: ModelStub.ModelStub
  let spoke: Spoke
  let browser: Browser
  let page: Page
  let wrong: ReadonlyArray<string>
  let agentId = ""
  let variables: Readonly<Record<string, string>> = {}

  const api = async (path: string) => {
    const cookies = await page.context().cookies()
    const cookie = cookies.map(({ name, value }) => `${name}=${value}`).join("; ")
    return (await spoke.request("GET", path, { key: null, headers: { cookie } })).body.data
  }
  const ask = async (message: string) => {
    await page.getByLabel("Message", { exact: true }).fill(message)
    await page.keyboard.press("Enter")
  }
  /** The greeting is the first. */
  const replies = () => page.getByRole("article", { name: "Spoke guide" })
  const questions = () => page.getByRole("article", { name: "You" })
  const evidence = () => page.getByRole("group", { name: "Evidence" })
  const settled = () => page.getByText("The agent is answering …").waitFor({ state: "detached" })
  const prompted = () => JSON.stringify(stub.requests.at(-1)?.body)
  const signIn = async (one: Page) => {
    await one.goto(`${spoke.url}/`)
    await one.getByLabel(/^E-?mail/iu).fill(owner.SPOKE_ADMIN_EMAIL)
    await one.getByLabel(/^(Password|Passwort)/u).fill(owner.SPOKE_ADMIN_PASSWORD)
    await one.keyboard.press("Enter")
    await one
      .getByRole("heading", { level: 1 })
      .filter({ hasNotText: /Sign|Anmeld/u })
      .waitFor()
  }

  /** What a finger would miss; what stands within a sentence has no room for more. */
  const small = (one: Page) =>
    one.locator("[data-full] :is(button, a, summary)").evaluateAll((all) =>
      all
        .filter(
          (element) =>
            element.checkVisibility() && element.closest("p, [data-part], .visually-hidden") === null
        )
        .filter((element) => !/^(?:Citation|Beleg)/u.test(element.getAttribute("aria-label") ?? ""))
        .map((element) => [element.textContent ?? "", element.getBoundingClientRect().height] as const)
        .filter(([, height]) => height < 44)
    )

  beforeAll(async () => {
    stub = await Effect.runPromise(Scope.extend(ModelStub.make, scope))
    variables = {
      ...owner,
      PORT: String(await freePort()),
      OPENAI_BASE_URL: stub.url,
      OPENAI_API_KEY: "sk-stub",
      SPOKE_EMBEDDING_MODEL: "offline"
    }
    spoke = await start(dataDir, variables)
    browser = await launch()
    const context = await browser.newContext({
      viewport: { width: 1440, height: 900 },
      locale: "en-GB",
      reducedMotion: "reduce",
      permissions: ["clipboard-read", "clipboard-write"]
    })
    page = await context.newPage()
    wrong = complaints(page)
    await signIn(page)
    await page.getByRole("link", { name: "Agents", exact: true }).click()
    await page.getByRole("link", { name: "Spoke guide" }).click()
    await page.getByLabel("Message", { exact: true }).waitFor()
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

  it("tries settings before they are saved, keeps them across pages, and makes a version when they are", async () => {
    const instructions = page.getByLabel("Instructions")
    await instructions.fill("Speak like a pirate who has read everything.")
    stub.script.push({ text: "Arr, run `npm start` [1]." })
    await ask("How do I start the server?")
    await replies().getByText("Arr").waitFor()
    expect(prompted()).toContain("like a pirate")
    await evidence().getByText("with unsaved changes").waitFor()
    expect((await api(`/api/agents/${agentId}`)).agent).toMatchObject({
      version: 1,
      instructions: expect.not.stringContaining("pirate")
    })

    await page.getByRole("link", { name: "Sources", exact: true }).click()
    await page.getByRole("heading", { name: "Sources", level: 1 }).waitFor()
    await page.goBack()
    await until(
      () => instructions.inputValue(),
      (text) => text.includes("pirate")
    )
    await page.reload()
    await until(
      () => instructions.inputValue(),
      (text) => text.includes("pirate")
    )
    await replies().getByText("Arr").waitFor()

    await page.getByRole("button", { name: "Save", exact: true }).click()
    await page.getByText("Saved", { exact: true }).waitFor()
    expect((await api(`/api/agents/${agentId}`)).agent).toMatchObject({
      version: 2,
      instructions: expect.stringContaining("pirate")
    })
    stub.script.push({ text: "Arr again." })
    await ask("And then?")
    await replies().getByText("Arr again.").waitFor()
    await settled()
    expect(await evidence().getByText("with unsaved changes").count()).toBe(0)
  })

  it("offers the models that are known and plain choices of length and tone, tried before they are saved", async () => {
    const choose = (label: string, option: string) =>
      page.getByLabel(label, { exact: true }).selectOption(option)
    const known = await api("/api/models")
    expect(known.models).toContain(known.default)
    await choose("Model", "Another model …")
    await page.getByLabel("Name of the model").fill("a-model-of-the-stub")
    await choose("Length of replies", "Short: up to three sentences")
    await choose("Tone", "Friendly")
    stub.script.push({ text: "Sure." })
    await ask("May I bring a dog?")
    await replies().getByText("Sure.").waitFor()
    expect(prompted()).toContain("at most three sentences")
    expect(prompted()).toContain("warm and friendly tone")
    expect(stub.requests.at(-1)?.body).toMatchObject({ model: "a-model-of-the-stub" })
    expect((await api(`/api/agents/${agentId}`)).agent.style).toEqual({ length: "default", tone: "default" })
    await look(page, "workbench-style")
    await choose("Model", `Default: ${known.default}`)
    await page.getByRole("button", { name: "Save", exact: true }).click()
    await until(
      async () => (await api(`/api/agents/${agentId}`)).agent,
      ({ model, style }) => model === null && style.length === "short" && style.tone === "friendly"
    )
    await choose("Length of replies", "No preference")
    await choose("Tone", "No preference")
    await page.getByRole("button", { name: "Save", exact: true }).click()
    await until(
      async () => (await api(`/api/agents/${agentId}`)).agent.style,
      ({ length, tone }) => length === "default" && tone === "default"
    )
    await settled()
  })

  it("shows the passages of a reply with why they were found, and leads from a citation to its passage", async () => {
    await page.getByRole("button", { name: "New conversation" }).click()
    stub.script.push({ text: "Start it with npm start [1]. More is in the docs [2]." })
    await ask("How do I start the server?")
    await replies().getByRole("button", { name: "Citation 2" }).waitFor()
    await settled()
    const cards = evidence().getByRole("list", { name: "Passages" }).locator("> li")
    await cards.first().waitFor()
    expect(await cards.first().textContent()).toMatch(
      /Score \d+\s?%.*(?:Words \d+\s?%.*Meaning \d+\s?%|Found by its words alone)/su
    )
    await replies().getByRole("button", { name: "Citation 2" }).click()
    await until(
      () => cards.nth(1).evaluate((card) => card.hasAttribute("data-marked")),
      (marked) => marked
    )
    expect(await evidence().locator("[data-marked]").count()).toBe(1)
    await evidence().getByText("Raw JSON").click()
    expect(await evidence().getByLabel("Raw JSON", { exact: true }).textContent()).toContain(
      "retrieval.completed"
    )
    await look(page, "workbench-evidence-1440")
  })

  it("copies a reply as Markdown, asks again and in other words, and forgets what it replaced", async () => {
    await page.getByRole("button", { name: "Copy", exact: true }).click()
    await page.getByText("Copied").first().waitFor()
    expect(await page.evaluate("navigator.clipboard.readText()")).toContain("npm start [1]")
    // As on a page without TLS.
    await page.evaluate("navigator.clipboard.writeText('before')")
    await page.getByText("Copied").first().waitFor({ state: "detached" })
    await page.evaluate("Object.defineProperty(window, 'isSecureContext', { value: false })")
    await page.getByRole("button", { name: "Copy", exact: true }).click()
    await page.getByText("Copied").first().waitFor()
    expect(await page.evaluate("navigator.clipboard.readText()")).toContain("npm start [1]")
    stub.script.push({ text: "The second try." })
    await replies().last().getByRole("button", { name: "Ask again" }).click()
    await replies().getByText("The second try.").waitFor()
    expect([await questions().count(), await replies().count()]).toEqual([1, 2])
    expect(prompted()).not.toContain("More is in the docs")
    await settled()
    await questions().getByRole("button", { name: "Edit and resend" }).click()
    await page.getByLabel("The question in other words").fill("Where are the docs?")
    stub.script.push({ text: "In the folder docs." })
    await page.getByRole("button", { name: "Send again" }).click()
    await replies().getByText("In the folder docs.").waitFor()
    await settled()
    await page.reload()
    await replies().getByText("In the folder docs.").waitFor()
    await questions().getByText("Where are the docs?").waitFor()
    expect([await questions().count(), await replies().count()]).toEqual([1, 2])
  })

  it("asks a question with files again with them, also after a reload", async () => {
    await page.getByRole("button", { name: "New conversation" }).click()
    const png = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 1, 2, 3, 4])
    const choosing = page.waitForEvent("filechooser")
    await page.getByRole("button", { name: "Attach files" }).click()
    await (await choosing).setFiles([{ name: "plan.png", mimeType: "image/png", buffer: png }])
    stub.script.push({ text: "A plan." })
    await ask("What is this?")
    await replies().getByText("A plan.").waitFor()
    await settled()
    for (const [text, reloads] of [
      ["A plan again.", false],
      ["Still a plan.", true]
    ] as const) {
      if (reloads) await page.reload()
      stub.script.push({ text })
      await replies().last().getByRole("button", { name: "Ask again" }).click()
      await replies().getByText(text).waitFor()
      await settled()
      expect([text, prompted().includes(png.toString("base64"))]).toEqual([text, true])
      await questions().getByText("plan.png").waitFor()
      expect(await questions().count()).toBe(1)
    }
    await page.getByRole("button", { name: "New conversation" }).click()
  })

  it("stops a reply, keeps what was said, and goes on", async () => {
    stub.script.push({ text: "One two three four five six seven eight nine ten.", gap: 300 })
    await ask("Count to ten")
    await replies().getByText("One two").waitFor()
    await page.getByRole("button", { name: "Stop" }).click()
    await settled()
    expect(await replies().last().textContent()).not.toContain("ten.")
    stub.script.push({ text: "Gladly." })
    await ask("Thank you")
    await replies().getByText("Gladly.").waitFor()
    expect(prompted()).toContain("Count to ten")
    await settled()
  })

  it("goes on by itself after its server was killed in the middle of a reply, which is there once", async () => {
    await page.getByRole("button", { name: "New conversation" }).click()
    stub.script.push({ text: "One two three four five six seven eight nine ten.", gap: 400 })
    await ask("Count to ten")
    await replies().getByText("One two").waitFor()
    await spoke.kill()
    await page.getByText("The connection was lost.").waitFor()
    expect(await page.getByRole("alert").filter({ hasText: /\w/u }).count()).toBe(0)
    stub.script.splice(0)
    stub.script.push({ text: "Here is the whole answer." })
    spoke = await start(dataDir, variables)
    await replies().getByText("Here is the whole answer.").waitFor()
    await settled()
    expect([await questions().count(), await replies().count()]).toEqual([1, 2])
    await page.reload()
    await replies().getByText("Here is the whole answer.").waitFor()
    expect([await questions().count(), await replies().count()]).toEqual([1, 2])
    expect((await api("/api/inbox")).conversations).toEqual([])
  }, 60_000)

  it("compares two versions on one question, with what sets them apart", async () => {
    await page.getByRole("button", { name: "Compare" }).click()
    await page.getByLabel("Who answers: Right").selectOption("Version 1")
    stub.script.push({ text: "Yes." }, { text: "Yes." })
    await ask("How do I start the server?")
    for (const side of ["Left", "Right"]) {
      const log = page.getByRole("log", { name: `Conversation: ${side}` })
      await log.getByText("Yes.").waitFor()
      expect(await log.getByRole("article", { name: "You" }).count()).toBe(1)
    }
    const asked = stub.requests.slice(-2).map(({ body }) => JSON.stringify(body).includes("pirate"))
    expect(asked.toSorted()).toEqual([false, true])
    const table = page.getByRole("group", { name: "What sets the last answers apart" })
    await table
      .getByRole("row", { name: /Passages/u })
      .first()
      .waitFor()
    expect(await table.textContent()).toContain("Tokens read")
    await look(page, "workbench-compare-1440")
    await page.reload()
    await page.getByRole("log", { name: "Conversation: Left" }).getByText("Yes.").waitFor()
    await page.getByRole("button", { name: "One answer" }).click()
    await replies().getByText("Here is the whole answer.").waitFor()
    expect(wrong).toEqual([])
  })

  it("shows the whole names of the versions that are compared on a phone", async () => {
    for (const locale of ["en-GB", "de-DE"]) {
      const context = await browser.newContext({ ...phone, locale })
      const one = await context.newPage()
      await signIn(one)
      await one.goto(`${spoke.url}/app/agents/${agentId}/try?compare`)
      const choices = one.getByLabel(/^(?:Who answers|Wer antwortet): /u)
      await choices.nth(1).waitFor()
      const cut = await choices.evaluateAll(
        (all) =>
          all.filter((element) => {
            const context = element.ownerDocument.createElement("canvas").getContext("2d")
            const style = element.ownerDocument.defaultView?.getComputedStyle(element)
            if (context === null || style === undefined) return true
            context.font = style.font
            const text = element.querySelector("option:checked")?.textContent ?? ""
            const padding = parseFloat(style.paddingInlineStart) + parseFloat(style.paddingInlineEnd)
            return context.measureText(text).width > element.clientWidth - padding
          }).length
      )
      expect([locale, cut]).toEqual([locale, 0])
      await context.close()
    }
  })

  it.each([
    ["en-GB", { viewport: { width: 1920, height: 1080 } }, 1920],
    ["de-DE", { viewport: { width: 1440, height: 900 } }, 1440],
    ["de-DE", phone, 390],
    ["en-GB", phone, 390]
  ] as const)(
    "is accessible and fits: %s, %o",
    async (locale, size, width) => {
      const context = await browser.newContext({ ...size, locale, reducedMotion: "reduce" })
      const one = await context.newPage()
      await signIn(one)
      const name = (what: string) => `workbench-${what}-${locale.slice(0, 2)}-${width}`
      await one.goto(`${spoke.url}/app/agents/${agentId}`)
      const field = one.getByLabel(/^(Message|Nachricht)$/u)
      await field.waitFor()
      await one.waitForLoadState("networkidle")
      await look(one, name("empty"))
      stub.script.push({
        text: "To start it [1]:\n\n1. **Open** the folder\n2. Run `npm start`\n\nSee the docs [2]."
      })
      await field.fill("How do I start the server?")
      await one.keyboard.press("Enter")
      const chip = one.getByRole("button", { name: /^(Citation|Beleg) 2$/u })
      await chip.waitFor()
      await one.getByRole("button", { name: /^(Save as test case|Als Testfall speichern)$/u }).waitFor()
      await one.waitForLoadState("networkidle")
      await look(one, name("answered"))
      await chip.click()
      await one.locator("[data-marked]").waitFor()
      await look(one, name("evidence"))
      if (width === 390) {
        expect(await small(one)).toEqual([])
        for (const pane of [/^(Settings|Einstellungen)$/u, /^(Chat|Gespräch)$/u]) {
          await one.getByRole("button", { name: pane }).click()
          expect(await small(one)).toEqual([])
        }
        await one.getByRole("button", { name: /^(Settings|Einstellungen)$/u }).click()
        await look(one, name("settings"))
      }
      await context.close()
    },
    60_000
  )
})
