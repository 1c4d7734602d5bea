import type { Browser, CDPSession, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { removeFolder, type Spoke, start, temporaryFolder } from "../../e2e/Spoke.ts"
import { act, complaints, desktop, hasBrowser, launch, look } from "../Browser.ts"
import { freePort } from "../../servers/FreePort.ts"

const owner = { email: "owner@acme.example", password: "correct horse battery" }

describe.skipIf(!hasBrowser)("Passkeys in a browser", () => {
  const dataDir = temporaryFolder()
  let spoke: Spoke
  let browser: Browser
  /** By its name: browsers know no passkeys of an address. */
  let site = ""

  beforeAll(async () => {
    const port = await freePort()
    site = `http://localhost:${port}`
    spoke = await start(dataDir, {
      SPOKE_ADMIN_EMAIL: owner.email,
      SPOKE_ADMIN_PASSWORD: owner.password,
      APP_URL: site,
      PORT: String(port)
    })
    browser = await launch()
  }, 60_000)

  afterAll(async () => {
    await browser.close()
    await spoke.kill()
    removeFolder(dataDir)
  })

  /** The authenticator of a device, whose owner is there and is who they say. */
  const authenticator = async (devtools: CDPSession, isUserVerified = true) => {
    await devtools.send("WebAuthn.enable")
    const { authenticatorId } = await devtools.send("WebAuthn.addVirtualAuthenticator", {
      options: {
        protocol: "ctap2",
        transport: "internal",
        hasResidentKey: true,
        hasUserVerification: true,
        isUserVerified,
        automaticPresenceSimulation: true
      }
    })
    return authenticatorId
  }

  const byPassword = async (page: Page) => {
    await page.goto(`${site}/`)
    await page.getByLabel("E-mail").fill(owner.email)
    await page.getByLabel("Password").fill(owner.password)
    await page.keyboard.press("Enter")
    await page.getByRole("heading", { level: 1, name: "Start" }).waitFor()
  }

  it("are added, signed in with and removed, and one that was removed lets nobody in", async () => {
    const context = await browser.newContext(desktop)
    const page = await context.newPage()
    const wrong = complaints(page)
    const devtools = await context.newCDPSession(page)
    const id = await authenticator(devtools)
    await byPassword(page)
    await page.goto(`${site}/app/sessions`)
    await page.getByText("You have no passkey yet.").waitFor()
    await page.getByLabel("Name").fill("My notebook")
    await page.getByRole("button", { name: "Add a passkey" }).click()
    await page.getByRole("button", { name: /My notebook/ }).waitFor()
    await look(page, "passkeys-listed")
    const { credentials } = await devtools.send("WebAuthn.getCredentials", { authenticatorId: id })
    expect(credentials).toMatchObject([{ isResidentCredential: true, rpId: "localhost" }])
    // The browser has one for this address, and is not given another.
    await page.getByLabel("Name").fill("Again")
    await page.getByRole("button", { name: "Add a passkey" }).click()
    await page.getByText("This device has a passkey of yours already.").waitFor()

    await context.clearCookies()
    await page.goto(`${site}/`)
    await page.getByRole("button", { name: "Continue with a passkey" }).waitFor()
    await look(page, "passkeys-sign-in")
    await page.getByRole("button", { name: "Continue with a passkey" }).click()
    await page.getByRole("heading", { level: 1, name: "Start" }).waitFor()
    await page.goto(`${site}/app/sessions`)
    await page.getByText("Passkey", { exact: true }).first().waitFor()

    await act(page, "Remove", "My notebook")
    await page.getByRole("alertdialog").getByRole("button", { name: "Remove" }).click()
    await page.getByText("You have no passkey yet.").waitFor()
    // What opened the question is gone: the focus is at the beginning of the page.
    await page.locator("main:focus").waitFor()
    await context.clearCookies()
    await page.goto(`${site}/`)
    await page.getByRole("button", { name: "Continue with a passkey" }).click()
    await page.getByText("This passkey is not known here any more. Sign in with your password.").waitFor()
    expect(wrong).toEqual([])
    await context.close()
  }, 90_000)

  it("are not used by somebody whom the device does not know, which is said", async () => {
    const context = await browser.newContext(desktop)
    const page = await context.newPage()
    await authenticator(await context.newCDPSession(page), false)
    await page.goto(`${site}/`)
    await page.getByRole("button", { name: "Continue with a passkey" }).click()
    await page.getByText("The passkey was not used: it was cancelled, or took too long.").waitFor()
    await context.close()
  }, 60_000)
})
