import type { Browser } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { removeFolder, type Spoke, start, temporaryFolder } from "../../e2e/Spoke.ts"
import { complaints, desktop, hasBrowser, launch, look, phone, signOut } from "../Browser.ts"

const owner = { SPOKE_ADMIN_EMAIL: "owner@example.com", SPOKE_ADMIN_PASSWORD: "correct horse battery" }

describe.skipIf(!hasBrowser)("The dashboard, signed out", () => {
  const dataDir = temporaryFolder()
  let spoke: Spoke
  let browser: Browser

  beforeAll(async () => {
    spoke = await start(dataDir, owner)
    browser = await launch()
  })

  afterAll(async () => {
    await browser.close()
    await spoke.kill()
    removeFolder(dataDir)
  })

  it("asks who is there, says when the password is wrong, lets its owner in by keyboard alone, and out again", async () => {
    const context = await browser.newContext(desktop)
    const page = await context.newPage()
    const wrong = complaints(page)
    await page.goto(`${spoke.url}/`)
    await page.getByRole("heading", { name: "Sign in" }).waitFor()
    await look(page, "sign-in")

    await page.keyboard.type("owner@example.com")
    await page.keyboard.press("Tab")
    await page.keyboard.type("not the password")
    await page.keyboard.press("Enter")
    await page.getByRole("alert").waitFor()

    await page.getByLabel("Password").fill("correct horse battery")
    await page.keyboard.press("Enter")
    await page.getByRole("heading", { name: "Start" }).waitFor()
    await look(page, "start")
    expect(await page.title()).toBe("Start · Spoke")

    await page.getByRole("button", { name: "Your account" }).click()
    await page.getByLabel("Appearance").selectOption("Dark")
    const ground = () => page.evaluate("getComputedStyle(document.body.parentElement).backgroundColor")
    const dark = await ground()
    await page.emulateMedia({ colorScheme: "light" })
    expect(await ground()).toBe(dark)
    await page.reload()
    await page.getByRole("heading", { name: "Start" }).waitFor()
    await signOut(page)
    await page.getByRole("heading", { name: "Sign in" }).waitFor()
    await page.reload()
    await page.getByRole("heading", { name: "Sign in" }).waitFor()
    expect(await ground()).toBe(dark)
    expect(wrong).toEqual([])
    await context.close()
  })

  it("fits a phone, and speaks German where that is preferred", async () => {
    const context = await browser.newContext({ ...phone, locale: "de-DE" })
    const page = await context.newPage()
    await page.goto(`${spoke.url}/`)
    await page.getByRole("heading", { name: "Anmelden" }).waitFor()
    expect(await page.locator("html").getAttribute("lang")).toBe("de")
    await look(page, "sign-in-phone")
    await page.getByLabel("E-Mail").fill("owner@example.com")
    await page.getByLabel("Passwort").fill("not the password")
    await page.getByRole("button", { name: "Anmelden" }).click()
    await page.getByRole("alert").getByText("Die E-Mail-Adresse oder das Passwort ist falsch.").waitFor()
    await page.getByLabel("Passwort").fill("correct horse battery")
    await page.getByRole("button", { name: "Anmelden" }).click()
    await page.getByRole("heading", { name: "Erste Schritte" }).waitFor()
    await look(page, "start-phone")
    await context.close()
  })

  it("forgets what it told whoever has signed out", async () => {
    const context = await browser.newContext(desktop)
    const page = await context.newPage()
    const signIn = async () => {
      await page.getByLabel("E-mail").fill("owner@example.com")
      await page.getByLabel("Password").fill("correct horse battery")
      await page.keyboard.press("Enter")
      await page.getByRole("heading", { name: "Conversations", level: 1 }).waitFor()
    }
    await page.goto(`${spoke.url}/app/conversations`)
    await signIn()
    await page.getByRole("button", { name: "Filters" }).click()
    await page.getByRole("button", { name: "Mark all as read" }).click()
    const told = page.getByRole("status").getByText("Everything is marked as read")
    await told.waitFor()
    await signOut(page)
    await signIn()
    expect(await told.count()).toBe(0)
    await context.close()
  })

  it("works where the browser keeps nothing for it", async () => {
    const context = await browser.newContext(desktop)
    const page = await context.newPage()
    const wrong = complaints(page)
    await page.addInitScript(`
      for (const name of ["localStorage", "sessionStorage"]) {
        Object.defineProperty(window, name, { get: () => { throw new DOMException("Blocked.", "SecurityError") } })
      }`)
    await page.goto(`${spoke.url}/`)
    await page.getByLabel("E-mail").fill("owner@example.com")
    await page.getByLabel("Password").fill("correct horse battery")
    await page.keyboard.press("Enter")
    await page.getByRole("heading", { name: "Start" }).waitFor()
    await page.getByRole("button", { name: "Your account" }).click()
    await page.getByLabel("Appearance").selectOption("Dark")
    expect(await page.locator("html").getAttribute("data-scheme")).toBe("dark")
    await page.getByLabel("Language").selectOption("Deutsch")
    await page.getByRole("link", { name: "Agenten", exact: true }).click()
    await page.getByRole("link", { name: "Spoke guide" }).click()
    await page.getByLabel("Nachricht").fill("What is Spoke?")
    await page.keyboard.press("Enter")
    await page.getByRole("article", { name: "Spoke guide" }).waitFor()
    await page.getByRole("button", { name: "Ihr Konto" }).click()
    await page.getByRole("button", { name: "Abmelden" }).click()
    await page.getByRole("heading", { name: "Anmelden" }).waitFor()
    expect(wrong).toEqual([])
    await context.close()
  })
})
