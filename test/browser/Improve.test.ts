import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { removeFolder, type Spoke, start, temporaryFolder, until } from "../e2e/Spoke.ts"
import { complaints, desktop, hasBrowser, launch, look, openPart } from "./Browser.ts"
import { found, openMuseum, type Own } from "./ImproveWorld.ts"

const owner = { email: "owner@example.com", password: "correct horse battery" }

describe.skipIf(!hasBrowser)("What can be improved about an agent", () => {
  const dataDir = temporaryFolder()
  let spoke: Spoke
  let browser: Browser
  let page: Page
  let wrong: ReadonlyArray<string>
  let own: Own
  let agentId: string

  beforeAll(async () => {
    spoke = await start(dataDir, {
      SPOKE_ADMIN_EMAIL: owner.email,
      SPOKE_ADMIN_PASSWORD: owner.password
    })
    const login = await spoke.request("POST", "/api/auth/login", {
      key: null,
      headers: { "x-spoke-csrf": "1" },
      body: owner
    })
    const headers = { cookie: login.headers.get("set-cookie")?.split(";")[0] ?? "", "x-spoke-csrf": "1" }
    own = async (method, path, body) => {
      const sent = body === undefined ? {} : { body }
      const answer = await spoke.request(method, path, { key: null, headers, ...sent })
      if (answer.status >= 300) throw new Error(`${answer.status} ${JSON.stringify(answer.body)}`)
      return answer.body.data
    }
    ;({ agentId } = await openMuseum(spoke, own))
    browser = await launch()
    page = await (await browser.newContext(desktop)).newPage()
    wrong = complaints(page)
    await page.goto(`${spoke.url}/`)
    await page.getByLabel("E-mail").fill(owner.email)
    await page.getByLabel("Password").fill(owner.password)
    await page.keyboard.press("Enter")
    await page.getByRole("heading", { name: "Start" }).waitFor()
  }, 120_000)

  afterAll(async () => {
    await browser.close()
    await spoke.kill()
    removeFolder(dataDir)
  })

  it("is a group under the name that the model gave it, above its most typical question", async () => {
    await page.route("**/api/insights?*", async (route) => {
      const response = await route.fetch()
      const body = await response.json()
      const groups = body.data.groups.map((group: object) => ({ ...group, name: "Umbrella stand" }))
      await route.fulfill({ response, json: { ...body, data: { ...body.data, groups } } })
    })
    await page.goto(`${spoke.url}/app/agents/${agentId}/improve?part=wrong`)
    const group = page
      .getByRole("listitem")
      .filter({ has: page.getByRole("heading", { name: "Umbrella stand" }) })
    await group
      .getByRole("paragraph")
      .getByText(/^Where is the umbrella stand of/u)
      .waitFor()
    await look(page, "improve-named")
    await page.unroute("**/api/insights?*")
  })

  it("can be asked for again where the comparison of the agents was refused", async () => {
    const compared = /\/api\/measures\?.*by=/u
    await page.route(compared, (route) => route.fulfill({ status: 400, json: {} }))
    await page.goto(`${spoke.url}/app/insights`)
    await page.getByRole("alert").waitFor()
    await page.unroute(compared)
    await page.getByRole("button", { name: "Try again" }).click()
    await page.getByLabel("Compare by").waitFor()
    expect(await page.getByRole("alert").count()).toBe(0)
  })

  it("is the right answer to a group: drafted from the team's reply, previewed, and live once approved", async () => {
    await page.goto(`${spoke.url}/app/agents/${agentId}`)
    await openPart(page, "Improve")
    await page.getByRole("button", { name: /^Write the right answer: Where is the umbrella stand/u }).click()
    await page.getByRole("heading", { name: "The right answer" }).waitFor()
    await page.getByText("From the team's reply").waitFor()
    const answer = page.getByLabel("Answer", { exact: true })
    expect(await answer.inputValue()).toBe("It stands behind the cloakroom, on the left.")
    expect(await page.getByRole("button", { name: "Approve" }).count()).toBe(0)

    // What is refused stands at its field.
    await page.getByLabel("Question", { exact: true }).fill(" ")
    await page.getByRole("button", { name: "Save", exact: true }).click()
    await page.locator("[aria-invalid=true]").waitFor()
    await page.getByLabel("Question", { exact: true }).fill("Where is the umbrella stand of the house?")
    expect(await page.locator("[aria-invalid=true]").count()).toBe(0)
    await answer.fill("The umbrella stand is behind the cloakroom, on the left.")

    // Looking saves what was typed.
    await page.getByRole("button", { name: "See what would change" }).click()
    const headline = page.getByRole("heading", { name: /^These \d of \d past answers would change:$/u })
    await headline.waitFor()
    const [{ preview }] = (await own("GET", `/api/agents/${agentId}/corrections`)).corrections
    expect(preview.changed).toBeGreaterThanOrEqual(2)
    expect(await headline.textContent()).toBe(
      `These ${preview.changed} of ${preview.asked} past answers would change:`
    )
    const change = page.getByRole("listitem").filter({ hasText: "umbrella stand of that house" })
    await change.getByText("Before", { exact: true }).waitFor()
    expect(await change.textContent()).toContain("behind the cloakroom, on the left")
    await look(page, "improve-preview")
    expect((await own("GET", `/api/agents/${agentId}/corrections`)).corrections).toMatchObject([
      { status: "draft", answer: "The umbrella stand is behind the cloakroom, on the left." }
    ])

    // A change takes the approval away until somebody has looked again.
    await answer.fill("The umbrella stand is behind the cloakroom.")
    await page.getByText(/has changed since/u).waitFor()
    expect(await page.getByRole("button", { name: "Approve" }).count()).toBe(0)
    await page.getByRole("button", { name: "Look again" }).click()
    const approve = page.getByRole("button", { name: "Approve" })
    await approve.waitFor()

    // What somebody else wrote in the meantime is neither approved unread nor overwritten.
    const [{ id }] = (await own("GET", `/api/agents/${agentId}/corrections`)).corrections
    const draft = async () => (await own("GET", `/api/corrections/${id}`)).correction
    await own("PATCH", `/api/corrections/${id}`, { answer: "It was moved to the cellar." })
    await own("POST", `/api/corrections/${id}/preview`, {})
    await until(draft, (one) => one.preview?.isComplete === true, 30_000)
    await approve.click()
    await page.getByRole("alert").getByText("It was changed in the meantime").waitFor()
    expect(await draft()).toMatchObject({ status: "draft" })
    expect(await answer.inputValue()).toBe("It was moved to the cellar.")
    await answer.fill("The umbrella stand is behind the cloakroom.")
    await own("PATCH", `/api/corrections/${id}`, { answer: "It was sold." })
    await page.getByRole("button", { name: "Save", exact: true }).click()
    await page.getByRole("alert").getByText("Changed by somebody else in the meantime").waitFor()
    await page.getByText("It was sold.").waitFor()
    expect(await draft()).toMatchObject({ answer: "It was sold." })

    await page.getByRole("button", { name: /^(?:Look again|See what would change)$/u }).click()
    await approve.click()
    await page.getByText(/can be changed in its source/u).waitFor()
    await page.getByRole("link", { name: "All corrections" }).click()
    await page.getByRole("cell", { name: "Approved", exact: true }).waitFor()
    expect((await own("GET", `/api/agents/${agentId}/cases`)).cases).toMatchObject([
      { question: "Where is the umbrella stand of the house?" }
    ])
  }, 90_000)

  it("is a draft that can be discarded, after which the list says what to do next", async () => {
    await page.getByRole("link", { name: "What went wrong" }).click()
    await page
      .getByRole("button", { name: /^Write the right answer/u })
      .first()
      .click()
    await page.getByRole("button", { name: "Discard", exact: true }).click()
    await page.getByRole("alertdialog").getByRole("button", { name: "Discard" }).click()
    await page.getByRole("cell", { name: "Approved", exact: true }).waitFor()
    expect((await own("GET", `/api/agents/${agentId}/corrections`)).corrections).toHaveLength(1)
  })

  it("is a finding that is dismissed and taken back, by the keyboard", async () => {
    await found(own, agentId)
    await page.goto(`${spoke.url}/app/agents/${agentId}/improve?part=findings`)
    await page.getByRole("heading", { name: /^The numbers differ: (?:30 and 14|14 and 30)\.$/u }).waitFor()
    const marks = page.locator("mark")
    expect((await marks.allTextContents()).filter((text) => /^\d+$/u.test(text)).toSorted()).toEqual([
      "14",
      "30"
    ])
    await page.getByRole("button", { name: "Duplicates 1" }).click()
    await page.getByRole("heading", { name: /stands in the other one, too/u }).waitFor()
    expect(await page.getByRole("heading", { name: /^The numbers differ/u }).count()).toBe(0)
    await page.getByRole("button", { name: /^Dismiss: / }).focus()
    await page.keyboard.press("Enter")
    await page.getByText("Nothing found").waitFor()
    expect((await own("GET", `/api/agents/${agentId}/findings`)).counts.duplicate).toBe(0)
    await page.getByRole("button", { name: "Undo" }).focus()
    await page.keyboard.press("Enter")
    await page.getByRole("heading", { name: /stands in the other one, too/u }).waitFor()
    expect((await own("GET", `/api/agents/${agentId}/findings`)).counts.duplicate).toBe(1)
  }, 120_000)

  it("is what sources are worth, in a table and a file", async () => {
    await page.getByRole("link", { name: "Value of sources" }).click()
    await page.getByRole("cell", { name: "Opening hours" }).waitFor()
    const saving = page.waitForEvent("download")
    await page.getByRole("button", { name: /^Download CSV/u }).click()
    const file = await saving
    expect(file.suggestedFilename()).toMatch(/^sources-20\d\d-\d\d\.csv$/u)
    const chunks: Array<Buffer> = []
    for await (const chunk of await file.createReadStream()) chunks.push(Buffer.from(chunk))
    const [header, ...rows] = Buffer.concat(chunks).toString("utf8").split("\r\n").slice(0, -1)
    expect(header).toBe(
      '\uFEFFSource,Shown,Cited,Helpful,Not helpful,"Tokens, about",Documents,Storage in bytes'
    )
    expect(rows.map((row) => row.split(",")[0]).toSorted()).toEqual([
      "Corrections",
      "Guide",
      "Leaflet",
      "Opening hours",
      "Questions",
      "Terms"
    ])
    expect(wrong).toEqual([])
  })

  it("is read on a phone whatever the names of sources are", async () => {
    const { sources } = await own("GET", `/api/sources?agentId=${agentId}`)
    for (const { id } of sources)
      await own("PATCH", `/api/sources/${id}`, { name: "Zugangsvoraussetzungen".repeat(8) })
    await page.setViewportSize({ width: 390, height: 844 })
    for (const part of ["wrong", "values", "findings"]) {
      await page.goto(`${spoke.url}/app/agents/${agentId}/improve?part=${part}`)
      await page
        .getByText(/Zugangsvoraussetzungen/u)
        .first()
        .waitFor()
      await look(page, `improve-${part}-long`)
    }
  }, 120_000)
})
