import type { Browser, BrowserContext, Locator, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { removeFolder, type Spoke, start, temporaryFolder, until } from "../e2e/Spoke.ts"
import { act, complaints, desktop, hasBrowser, launch, look, openPart, phone, signOut } from "./Browser.ts"

const owner = { SPOKE_ADMIN_EMAIL: "owner@example.com", SPOKE_ADMIN_PASSWORD: "correct horse battery" }

describe.skipIf(!hasBrowser)("The dashboard's forms", () => {
  const dataDir = temporaryFolder()
  let spoke: Spoke
  let browser: Browser
  let context: BrowserContext
  let page: Page
  let wrong: ReadonlyArray<string>
  let agentId = ""
  let cookie = ""

  const api = async (method: string, path: string, body?: unknown) => {
    const answer = await spoke.request(method, path, {
      key: null,
      headers: { cookie, "x-spoke-csrf": "1" },
      ...(body === undefined ? {} : { body })
    })
    return answer.body.data
  }

  const signIn = async (to: Page) => {
    await to.getByLabel("E-mail").fill(owner.SPOKE_ADMIN_EMAIL)
    await to.getByLabel("Password").fill(owner.SPOKE_ADMIN_PASSWORD)
    await to.keyboard.press("Enter")
  }

  const settingsOf = async (to: Page) => {
    await to.goto(`${spoke.url}/app/agents/${agentId}/settings`)
    await to.getByLabel("Greeting").waitFor()
  }

  const agent = async () => (await api("GET", `/api/agents/${agentId}`)).agent

  beforeAll(async () => {
    spoke = await start(dataDir, owner)
    browser = await launch()
    context = await browser.newContext(desktop)
    page = await context.newPage()
    wrong = complaints(page)
    await page.goto(`${spoke.url}/`)
    await signIn(page)
    await page.getByRole("heading", { name: "Start" }).waitFor()
    cookie = (await context.cookies()).map(({ name, value }) => `${name}=${value}`).join("; ")
    agentId = (await api("POST", "/api/agents", { name: "Support" })).agent.id
  }, 60_000)

  afterAll(async () => {
    await browser.close()
    await spoke.kill()
    removeFolder(dataDir)
  })

  it("lose nothing where two windows change the same settings: both versions are shown, and one is chosen", async () => {
    const other = await context.newPage()
    await settingsOf(page)
    await settingsOf(other)
    await other.getByLabel("Greeting").fill("Good day from the other window!")
    await other.getByLabel("Model", { exact: true }).selectOption("Another model …")
    await other.getByLabel("Name of the model").fill("another-model")
    await other.getByRole("button", { name: "Save" }).click()
    await other.getByText("Saved", { exact: true }).waitFor()

    await page.getByLabel("Greeting").fill("Hello from this one!")
    await page.getByLabel("Instructions").fill("Be brief.")
    await page.getByRole("button", { name: "Save" }).click()
    await page.getByRole("alert").getByText("Changed by somebody else in the meantime").waitFor()
    expect((await agent()).greeting).toBe("Good day from the other window!")
    // What was typed is still there, what the other window saved stands beside it, and what only it changed is here.
    expect(await page.getByLabel("Greeting").inputValue()).toBe("Hello from this one!")
    expect(await page.getByLabel("Instructions").inputValue()).toBe("Be brief.")
    await page.getByText("Good day from the other window!").waitFor()
    expect(await page.getByLabel("Name of the model").inputValue()).toBe("another-model")
    await look(page, "settings-conflict")
    await page.setViewportSize(phone.viewport ?? { width: 390, height: 844 })
    await look(page, "settings-conflict-phone")
    await page.setViewportSize(desktop.viewport ?? { width: 1280, height: 860 })
    await page.getByRole("button", { name: "Save" }).click()
    await page.getByText("Saved", { exact: true }).waitFor()
    expect(await agent()).toMatchObject({
      greeting: "Hello from this one!",
      instructions: "Be brief.",
      model: "another-model"
    })

    // The window that is behind now chooses what the first one has saved.
    await other.getByLabel("Greeting").fill("A third greeting")
    await other.getByRole("button", { name: "Save" }).click()
    await other.getByText("Hello from this one!").waitFor()
    await other.getByRole("button", { name: "Use this instead" }).click()
    expect(await other.getByLabel("Greeting").inputValue()).toBe("Hello from this one!")
    expect(await other.getByRole("alert").count()).toBe(0)
    await other.close()
  })

  it("show a tool that somebody changed while it was edited, and keep what was typed", async () => {
    await api("POST", `/api/agents/${agentId}/tools`, {
      name: "order_status",
      description: "Tells where an order is.",
      parameters: { type: "object", properties: {} },
      http: { method: "GET", url: "https://shop.example/orders" },
      auth: { kind: "none" }
    })
    await page.goto(`${spoke.url}/app/agents/${agentId}/tools`)
    await act(page, "Edit", "order_status")
    const dialog = page.getByRole("dialog")
    await dialog.getByLabel("What it does").fill("Finds a parcel.")
    const [tool] = (await api("GET", `/api/agents/${agentId}/tools`)).tools
    await api("PATCH", `/api/tools/${tool.id}`, {
      description: "Finds an order.",
      http: { method: "GET", url: "https://shop.example/v2/orders" }
    })
    await dialog.getByRole("button", { name: "Save" }).click()
    await dialog.getByRole("alert").getByText("Changed by somebody else in the meantime").waitFor()
    await dialog.getByText("Finds an order.").waitFor()
    expect(await dialog.getByLabel("What it does").inputValue()).toBe("Finds a parcel.")
    expect(await dialog.getByRole("textbox", { name: "Address" }).inputValue()).toBe(
      "https://shop.example/v2/orders"
    )
    await look(page, "tool-conflict")
    await dialog.getByRole("button", { name: "Save" }).click()
    await dialog.waitFor({ state: "hidden" })
    const [saved] = (await api("GET", `/api/agents/${agentId}/tools`)).tools
    expect(saved).toMatchObject({
      description: "Finds a parcel.",
      http: { url: "https://shop.example/v2/orders" }
    })
  })

  it("show a test case that somebody changed while it was edited, and take a token whose channel was changed", async () => {
    const question = "When do you open?"
    const { case: made } = await api("POST", `/api/agents/${agentId}/cases`, { question, note: "First" })
    await page.goto(`${spoke.url}/app/agents/${agentId}/cases`)
    await act(page, "Edit", question)
    const dialog = page.getByRole("dialog")
    await dialog.getByLabel("Note").fill("Mine")
    await api("PUT", `/api/cases/${made.id}`, { question, expectFacts: ["At ten"], note: "Theirs" })
    await dialog.getByRole("button", { name: "Save" }).click()
    await dialog.getByRole("alert").getByText("Changed by somebody else in the meantime").waitFor()
    await dialog.getByText("Theirs", { exact: true }).waitFor()
    expect(await dialog.getByLabel("Expected facts").inputValue()).toBe("At ten")
    const saved = async () => (await api("GET", `/api/agents/${agentId}/cases`)).cases
    expect(await saved()).toMatchObject([{ note: "Theirs" }])
    await dialog.getByRole("button", { name: "Save" }).click()
    await dialog.waitFor({ state: "hidden" })
    expect(await saved()).toMatchObject([{ note: "Mine", expectFacts: ["At ten"] }])

    const account = { channel: "whatsapp", externalId: "777", accessToken: "an-old-token", active: false }
    await api("POST", `/api/agents/${agentId}/channels`, account)
    await page.goto(`${spoke.url}/app/agents/${agentId}/channels`)
    await act(page, "New token", "777")
    await dialog.getByLabel("Access token").fill("a-new-token")
    const [{ id }] = (await api("GET", `/api/agents/${agentId}/channels`)).channels
    await api("PATCH", `/api/channels/${id}`, { accessToken: "another-token" })
    const renewed = page.waitForResponse((response) => response.url().includes("/channels?"))
    await dialog.getByRole("button", { name: "Save" }).click()
    await dialog.getByRole("alert").waitFor()
    await renewed
    await dialog.getByRole("button", { name: "Save" }).click()
    await dialog.waitFor({ state: "hidden" })
    await api("DELETE", `/api/channels/${id}`)
  })

  it("do once what Enter is pressed twice for", async () => {
    await page.goto(`${spoke.url}/app/agents`)
    let release = () => {}
    const held = new Promise<void>((resolve) => (release = resolve))
    await page.route("**/api/agents", async (route) => {
      await held
      await route.continue()
    })
    await page.getByRole("button", { name: "New agent" }).first().click()
    const name = page.getByRole("dialog").getByLabel("Name")
    await name.fill("Twice")
    await name.press("Enter")
    await name.press("Enter")
    release()
    await page.getByRole("dialog").waitFor({ state: "hidden" })
    await page.unroute("**/api/agents")
    const { agents } = await api("GET", "/api/agents")
    const made = agents.filter((one: { readonly name: string }) => one.name === "Twice")
    expect(made).toHaveLength(1)
    await api("DELETE", `/api/agents/${made[0].id}`)
  })

  it("say what failed after their window was closed, and keep what was typed", async () => {
    await page.goto(`${spoke.url}/app/agents`)
    let release = () => {}
    const held = new Promise<void>((resolve) => (release = resolve))
    await page.route("**/api/agents", async (route) => {
      if (route.request().method() !== "POST") return route.continue()
      await held
      await route.fulfill({
        status: 409,
        json: { error: { code: "CONFLICT", message: "There are too many agents." }, meta: { requestId: "r" } }
      })
    })
    await page.getByRole("button", { name: "New agent" }).first().click()
    const name = page.getByRole("dialog").getByLabel("Name")
    await name.fill("Late")
    await name.press("Enter")
    await page.keyboard.press("Escape")
    await page.getByRole("dialog").waitFor({ state: "hidden" })
    release()
    const toasts = page.getByRole("region", { name: "What has just happened" })
    await toasts.getByText("New agent: There are too many agents.").waitFor()
    await page.unroute("**/api/agents")
    await page.getByRole("button", { name: "New agent" }).first().click()
    expect(await name.inputValue()).toBe("Late")
    await page.getByRole("dialog").getByRole("button", { name: "Discard" }).click()
    await page.keyboard.press("Escape")
  })

  it("stay where one is when what they make is there after their window was closed", async () => {
    await page.goto(`${spoke.url}/app/agents`)
    let release = () => {}
    const held = new Promise<void>((resolve) => (release = resolve))
    await page.route("**/api/agents", async (route) => {
      if (route.request().method() === "POST") await held
      await route.continue()
    })
    await page.getByRole("button", { name: "New agent" }).first().click()
    const name = page.getByRole("dialog").getByLabel("Name")
    await name.fill("Afterwards")
    await name.press("Enter")
    await page.keyboard.press("Escape")
    await page.getByRole("dialog").waitFor({ state: "hidden" })
    release()
    await page.getByRole("link", { name: "Afterwards" }).waitFor()
    await page.unroute("**/api/agents")
    expect(new URL(page.url()).pathname).toBe("/app/agents")
    const { agents } = await api("GET", "/api/agents")
    const made = agents.find((one: { readonly name: string }) => one.name === "Afterwards")
    await api("DELETE", `/api/agents/${made.id}`)
  })

  it("keep their window open while a secret is made that is shown once", async () => {
    const { agent: other } = await api("POST", "/api/agents", { name: "Other" })
    await page.goto(`${spoke.url}/app/agents/${other.id}/keys`)
    let release = () => {}
    const held = new Promise<void>((resolve) => (release = resolve))
    await page.route("**/keys", async (route) => {
      if (route.request().method() === "POST") await held
      await route.continue()
    })
    await page.getByRole("button", { name: "New key" }).first().click()
    const dialog = page.getByRole("dialog")
    await dialog.getByLabel("Name").fill("Held")
    await dialog.getByLabel("Name").press("Enter")
    await dialog.locator("[data-busy]").first().waitFor()
    for (const _ of [1, 2, 3]) await page.keyboard.press("Escape")
    for (const name of ["Cancel", "Close"]) await dialog.getByRole("button", { name }).click({ force: true })
    expect(await dialog.getByLabel("Name").isVisible()).toBe(true)
    release()
    await dialog.getByText("Copy it now. It is not shown again.").waitFor()
    await page.unroute("**/keys")
    await page.keyboard.press("Escape")
    await dialog.waitFor({ state: "hidden" })
    await api("DELETE", `/api/agents/${other.id}`)
  })

  it("show a secret until its window is closed, wherever the page goes meanwhile", async () => {
    const { agent: other } = await api("POST", "/api/agents", { name: "Left" })
    await page.goto(`${spoke.url}/app/agents/${other.id}/settings`)
    const dialog = page.getByRole("dialog")
    const once = dialog.getByText("Copy it now. It is not shown again.")
    const create = async (name: string) => {
      await openPart(page, "Keys")
      await page.getByRole("button", { name: "New key" }).first().click()
      await dialog.getByLabel("Name").fill(name)
      await dialog.getByLabel("Name").press("Enter")
    }
    await create("Shown")
    await once.waitFor()
    const secret = await dialog.getByLabel("The key", { exact: true }).textContent()
    await page.goBack()
    await page.waitForURL("**/settings")
    expect(await dialog.getByLabel("The key", { exact: true }).textContent()).toBe(secret)
    // The browser asks before the window is closed.
    const asked = page.waitForEvent("dialog")
    await page.close({ runBeforeUnload: true })
    const question = await asked
    expect(question.type()).toBe("beforeunload")
    await question.dismiss()
    await dialog.getByRole("button", { name: "Done" }).click()
    await dialog.waitFor({ state: "hidden" })
    // The same for a page that is left while the secret is made.
    let release = () => {}
    const held = new Promise<void>((resolve) => (release = resolve))
    await page.route("**/keys", async (route) => {
      if (route.request().method() === "POST") await held
      await route.continue()
    })
    await create("Awaited")
    await dialog.locator("[data-busy]").first().waitFor()
    await page.goBack()
    await dialog.waitFor({ state: "hidden" })
    release()
    await once.waitFor()
    expect(page.url()).toMatch(/settings$/u)
    await dialog.getByRole("button", { name: "Done" }).click()
    await page.unroute("**/keys")
    await openPart(page, "Keys")
    for (const name of ["Shown", "Awaited"]) await page.getByRole("cell", { name }).first().waitFor()
    await api("DELETE", `/api/agents/${other.id}`)
  })

  it("end with buttons that stand below their fields, however wide the window is", async () => {
    const endOf = async (locator: Locator) => {
      const box = await locator.boundingBox()
      return box === null ? null : Math.round(box.x + box.width)
    }
    for (const [path, label, button] of [
      [`agents/${agentId}/settings`, "Greeting", "Save"],
      [`agents/${agentId}/experiments`, "Minimum share of test cases that pass, in percent", "Save"],
      [`agents/${agentId}/widget`, "Greeting", "Save widget"],
      ["single-sign-on", "Issuer", "Save"]
    ] as const) {
      await page.goto(`${spoke.url}/app/${path}`)
      for (const width of [1024, 1440, 1920]) {
        await page.setViewportSize({ width, height: 900 })
        const end = await endOf(page.getByLabel(label))
        expect([path, width, await endOf(page.getByRole("button", { name: button, exact: true }))]).toEqual([
          path,
          width,
          end
        ])
      }
    }
    await page.setViewportSize(desktop.viewport ?? { width: 1280, height: 860 })
  })

  it("take a file in a field that names it, and say what is wrong there", async () => {
    await page.goto(`${spoke.url}/app/agents/${agentId}/cases`)
    await act(page, "Import")
    const dialog = page.getByRole("dialog")
    const file = dialog.getByLabel("File")
    await dialog.getByText("No file chosen").waitFor()
    await dialog.getByRole("button", { name: "Import" }).click()
    expect(await file.getAttribute("aria-invalid")).toBe("true")
    const csv = (text: string) => ({ name: "cases.csv", mimeType: "text/csv", buffer: Buffer.from(text) })
    await file.setInputFiles(csv("unknown\nHow?\n"))
    await dialog.getByText("cases.csv").waitFor()
    await dialog.getByRole("button", { name: "Import" }).click()
    await dialog.getByText(/^line 1: /).waitFor()
    await look(page, "import")
    await file.setInputFiles(csv("question\nHow do I import?\n"))
    await dialog.getByRole("button", { name: "Import" }).click()
    await page.getByRole("table").getByText("How do I import?").waitFor()
    await dialog.waitFor({ state: "hidden" })
  })

  it("offer to discard what was typed beside what says that it is not saved, also on a phone", async () => {
    const { width, height } = page.viewportSize() ?? { width: 1280, height: 860 }
    await page.setViewportSize(phone.viewport ?? { width: 390, height: 844 })
    await page.goto(`${spoke.url}/app/agents`)
    await page.getByRole("button", { name: "New agent" }).first().click()
    const dialog = page.getByRole("dialog")
    await dialog.getByLabel("Name").fill("Unsaved")
    await page.keyboard.press("Escape")
    await page.getByRole("button", { name: "New agent" }).first().click()
    const said = await dialog.getByText("What you had typed before is here again").boundingBox()
    const discard = await dialog.getByRole("button", { name: "Discard" }).boundingBox()
    const middle = (said?.y ?? 0) + (said?.height ?? 0) / 2
    expect(middle).toBeGreaterThan(discard?.y ?? Infinity)
    expect(middle).toBeLessThan((discard?.y ?? 0) + (discard?.height ?? 0))
    await dialog.getByRole("button", { name: "Discard" }).click()
    await page.keyboard.press("Escape")
    await page.setViewportSize({ width, height })
  })

  it("ask for a share in percent, keep the stored one to the digit, and show one that was changed meanwhile", async () => {
    const place = `/api/agents/${agentId}/threshold`
    const share = page.getByLabel("Minimum share of test cases that pass, in percent")
    await api("PUT", place, { minPass: 0.8333, noRegression: false })
    await page.goto(`${spoke.url}/app/agents/${agentId}/experiments`)
    await share.waitFor()
    await page.getByText("Not clearly worse than the version that answers").click()
    await page.getByRole("button", { name: "Save" }).click()
    await page.getByText("Saved", { exact: true }).waitFor()
    expect((await api("GET", place)).threshold).toEqual({ minPass: 0.8333, noRegression: true })
    await share.fill("150")
    await page.getByRole("button", { name: "Save" }).click()
    await page.locator("[aria-invalid=true]").waitFor()
    expect(await page.getByText("A number from 0 to 1.").count()).toBe(0)
    await api("PUT", place, { minPass: 0.5, noRegression: true })
    await share.fill("90")
    await page.getByRole("button", { name: "Save" }).click()
    await page.getByRole("alert").getByText("Changed by somebody else in the meantime").waitFor()
    expect((await api("GET", place)).threshold).toMatchObject({ minPass: 0.5 })
    await page.getByRole("button", { name: "Discard" }).click()
    expect(await share.inputValue()).toBe("50")
    await api("PUT", place, { minPass: null, noRegression: false })
  })

  it("keep what was not saved: on another page, after the window was closed, after the session has ended", async () => {
    await settingsOf(page)
    await page.getByLabel("Instructions").fill("Always say please.")
    await page.getByText("Not saved yet.").waitFor()
    await page.getByRole("link", { name: "All agents" }).click()
    await page.getByRole("link", { name: "Usage" }).click()
    await page.getByRole("heading", { name: "Usage" }).waitFor()
    const kept = page.getByRole("list", { name: "Not saved:" })
    await look(page, "draft-elsewhere")
    await kept.getByRole("link", { name: "Settings of Support" }).click()
    await page.getByText("What you had typed before is here again").waitFor()
    expect(await page.getByLabel("Instructions").inputValue()).toBe("Always say please.")
    await look(page, "draft-restored")

    const warned = page.waitForEvent("dialog")
    await page.evaluate("void setTimeout(() => location.reload())")
    const dialog = await warned
    expect(dialog.type()).toBe("beforeunload")
    await dialog.accept()
    await page.getByText("What you had typed before is here again").waitFor()

    await context.clearCookies()
    await page.getByRole("button", { name: "Save" }).click()
    await page.getByRole("heading", { name: "Sign in" }).waitFor()
    await signIn(page)
    await page.getByText("What you had typed before is here again").waitFor()
    expect(await page.getByLabel("Instructions").inputValue()).toBe("Always say please.")
    expect((await agent()).instructions).toBe("Be brief.")
    await page.getByRole("button", { name: "Save" }).click()
    await page.getByText("Saved", { exact: true }).waitFor()
    cookie = (await context.cookies()).map(({ name, value }) => `${name}=${value}`).join("; ")
    expect((await agent()).instructions).toBe("Always say please.")
    expect(await kept.count()).toBe(0)
  })

  it("keep what is typed while they are saved", async () => {
    await settingsOf(page)
    const instructions = page.getByLabel("Instructions")
    let release = () => {}
    const held = new Promise<void>((resolve) => (release = resolve))
    await page.route("**/api/agents/*", async (route) => {
      if (route.request().method() === "PATCH") await held
      await route.continue()
    })
    await instructions.fill("Always say thanks.")
    const saved = page.waitForResponse((response) => response.request().method() === "PATCH")
    await page.getByRole("button", { name: "Save" }).click()
    await instructions.fill("Always say thanks. And goodbye.")
    release()
    await saved
    await until(agent, (found) => found.instructions === "Always say thanks.")
    await page.getByRole("button", { name: "Save" }).click()
    await until(agent, (found) => found.instructions === "Always say thanks. And goodbye.")
    await page.getByText("Saved", { exact: true }).waitFor()
    // Not before: a request that is under way then would never be answered.
    await page.unroute("**/api/agents/*")
  })

  it("keep the input for one agent apart from that for another", async () => {
    const other = (await api("POST", "/api/agents", { name: "Sales" })).agent.id
    await page.goto(`${spoke.url}/app/agents/${other}/settings`)
    await page.getByLabel("Instructions").fill("Sell nothing.")
    await page.getByText("Not saved yet.").waitFor()
    await page.getByRole("link", { name: "All agents" }).click()
    await page.getByRole("link", { name: "Support" }).first().click()
    await page.getByRole("link", { name: "Settings", exact: true }).click()
    await page.getByLabel("Greeting").waitFor()
    await page
      .getByRole("list", { name: "Not saved:" })
      .getByRole("link", { name: "Settings of Sales" })
      .click()
    await page.getByText("What you had typed before is here again").waitFor()
    expect(await page.getByLabel("Instructions").inputValue()).toBe("Sell nothing.")
    expect((await agent()).instructions).toBe("Always say thanks. And goodbye.")
    await page.getByRole("button", { name: "Save" }).click()
    await page.getByText("Saved", { exact: true }).waitFor()
  })

  it("keep a dialog that was left, but no secret of it, and ask before signing out loses it", async () => {
    await page.goto(`${spoke.url}/app/agents/${agentId}/channels`)
    await page.getByRole("button", { name: "New channel" }).first().click()
    const dialog = page.getByRole("dialog")
    await dialog.getByLabel("Phone number ID").fill("123456")
    await dialog.getByLabel("Access token").fill("a-secret-canary")
    await page.keyboard.press("Escape")
    await dialog.waitFor({ state: "hidden" })
    expect(await page.evaluate("JSON.stringify({ ...localStorage })")).not.toContain("a-secret-canary")
    await page.getByRole("button", { name: "New channel" }).first().click()
    expect(await dialog.getByLabel("Phone number ID").inputValue()).toBe("123456")
    expect(await dialog.getByLabel("Access token").inputValue()).toBe("")
    await page.keyboard.press("Escape")
    await signOut(page)
    await page.getByRole("alertdialog").getByText("New channel").waitFor()
    await page.getByRole("alertdialog").getByRole("button", { name: "Sign out" }).click()
    await page.getByRole("heading", { name: "Sign in" }).waitFor()
    expect(await page.evaluate("JSON.stringify({ ...localStorage })")).not.toContain("123456")
    await signIn(page)
    await page.getByRole("heading", { name: "Channels" }).waitFor()
    cookie = (await context.cookies()).map(({ name, value }) => `${name}=${value}`).join("; ")
  })

  it("choose by arrow keys and by typing, in a choice whose list was never opened", async () => {
    await settingsOf(page)
    const tone = page.getByLabel("Tone")
    const chosen = () => tone.evaluate((field) => Reflect.get(field, "selectedOptions")[0].textContent)
    await tone.focus()
    await page.keyboard.press("ArrowDown")
    await until(chosen, (text) => text.startsWith("Friendly"))
    await page.keyboard.type("Ca")
    await until(chosen, (text) => text.startsWith("Casual"))
    await page.getByRole("button", { name: "Discard" }).click()
    await until(chosen, (text) => text === "No preference")
  })

  it("say what is wrong at the field, and put the focus there", async () => {
    await settingsOf(page)
    await page.getByLabel("Passages per question").fill("99")
    await page.getByRole("button", { name: "Save" }).click()
    const passages = page.getByLabel("Passages per question")
    await until(
      () => passages.evaluate((field) => field.matches(":focus") && field.getAttribute("aria-invalid")),
      (invalid) => invalid === "true"
    )
    expect(await page.getByText("A number from 1 to 20.").count()).toBe(1)
    expect(await page.getByRole("alert").count()).toBe(0)
    await passages.fill("6")
    await page.getByLabel("Minimum score").fill("7")
    await page.getByRole("button", { name: "Save" }).click()
    await page.getByText("A number from 0 to 1.").waitFor()
    expect(await page.getByRole("alert").count()).toBe(0)
    await look(page, "settings-invalid")
    await page.getByRole("button", { name: "Discard" }).click()
    expect(await passages.inputValue()).toBe("6")

    await page.goto(`${spoke.url}/app/agents/${agentId}/keys`)
    await page.getByRole("button", { name: "New key" }).first().click()
    const dialog = page.getByRole("dialog")
    await dialog.getByLabel("Name").fill("Old")
    await dialog.getByText("More options").click()
    await dialog.getByLabel("Until").fill("2001-01-01T00:00")
    await dialog.getByRole("button", { name: "Create" }).click()
    await dialog.getByText("This lies in the past.").waitFor()
    expect(await dialog.getByRole("alert").count()).toBe(0)
    await dialog.getByRole("button", { name: "Discard" }).click()
    await page.keyboard.press("Escape")
  })

  it("show which websites are stored, guess the scheme in the open, and refuse what is none", async () => {
    await page.goto(`${spoke.url}/app/agents/${agentId}/widget`)
    const field = page.getByLabel("Websites that may show it")
    await field.fill("www.Example.com/shop?page=2\nlocalhost:3000\nhttp://plain.example")
    const stored = page.getByRole("status").filter({ hasText: "Stored as:" })
    expect(await stored.locator("code").allTextContents()).toEqual([
      "https://www.example.com",
      "http://localhost:3000",
      "http://plain.example"
    ])
    expect(await stored.getByText("https:// was added.").count()).toBe(1)
    expect(await stored.getByText("http:// was added.").count()).toBe(1)
    await look(page, "origins")
    await field.fill("https://*.example.com")
    await page.getByText("“https://*.example.com” is no website.").waitFor()
    await page.getByRole("button", { name: "Save widget" }).click()
    expect((await api("GET", `/api/agents/${agentId}/keys`)).keys).toEqual([])
    await field.fill("www.example.com\nlocalhost:3000")
    await page.getByRole("button", { name: "Save widget" }).click()
    await page.getByLabel("Script", { exact: true }).waitFor()
    const [key] = (await api("GET", `/api/agents/${agentId}/keys`)).keys
    expect(key.allowedOrigins).toEqual(["https://www.example.com", "http://localhost:3000"])
    expect(wrong).toEqual([])
  })
})
