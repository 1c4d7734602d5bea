import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { removeFolder, type Spoke, start, temporaryFolder } from "../../e2e/Spoke.ts"
import { csrf, signIn } from "../../e2e/routes/RouteWorld.ts"
import { clientId, clientSecret, type Person, realProvider } from "../../http/accounts/sso/Providers.ts"
import { complaints, desktop, hasBrowser, launch, look } from "../Browser.ts"

const password = "correct horse battery"

describe.skipIf(!hasBrowser)("Single sign-on in a browser", () => {
  const dataDir = temporaryFolder()
  const scope = Effect.runSync(Scope.make())
  const people = new Map<string, Person>([
    ["ada", { email: "ada@acme.example", email_verified: true, groups: ["staff"] }],
    ["eve", { email: "eve@elsewhere.example", email_verified: true }]
  ])
  let spoke: Spoke
  let browser: Browser

  beforeAll(async () => {
    spoke = await start(dataDir, {
      SPOKE_ADMIN_EMAIL: "owner@acme.example",
      SPOKE_ADMIN_PASSWORD: password,
      SPOKE_FETCH_ALLOW: "127.0.0.1"
    })
    const cookie = await signIn(spoke, "owner@acme.example", password)
    const owner = { key: null, headers: { cookie, ...csrf } }
    const { body: shown } = await spoke.request("GET", "/api/single-sign-on", owner)
    const issuer = await Effect.runPromise(Scope.extend(realProvider(shown.data.redirectUri, people), scope))
    const put = await spoke.request("PUT", "/api/single-sign-on", {
      ...owner,
      body: {
        issuer,
        clientId,
        clientSecret,
        domains: ["acme.example"],
        trustsEmail: false,
        groupsClaim: "groups",
        groupRoles: [{ group: "staff", role: "agent" }],
        defaultRole: null,
        createsPeople: true,
        allowsPasswords: true
      }
    })
    expect(put.status).toBe(200)
    const { body: who } = await spoke.request("GET", "/api/auth/session", owner)
    const confirmed = await spoke.request(
      "PUT",
      `/api/operator/tenants/${who.data.user.tenantId}/domains/acme.example`,
      { key: null, headers: { authorization: `Bearer ${spoke.operatorToken}` } }
    )
    expect(confirmed.status).toBe(200)
    browser = await launch()
  }, 60_000)

  afterAll(async () => {
    await browser.close()
    await spoke.kill()
    await Effect.runPromise(Scope.close(scope, Exit.void))
    removeFolder(dataDir)
  })

  const toProvider = async () => {
    const context = await browser.newContext(desktop)
    const page = await context.newPage()
    const wrong = complaints(page)
    await page.goto(`${spoke.url}/`)
    await page.getByLabel("E-mail").fill("ada@acme.example")
    await page.getByRole("button", { name: "Continue with single sign-on" }).click()
    await page.getByPlaceholder("Enter any login").waitFor()
    return { context, page, wrong }
  }

  it("leads to the provider and back into the dashboard, with the role of the group", async () => {
    const { context, page, wrong } = await toProvider()
    expect(await page.getByPlaceholder("Enter any login").inputValue()).toBe("ada@acme.example")
    await page.getByPlaceholder("Enter any login").fill("ada")
    await page.getByPlaceholder("and password").fill("any")
    await page.getByRole("button", { name: "Sign-in" }).click()
    await page.getByRole("button", { name: "Continue" }).click()
    await page.getByRole("heading", { name: "Agents" }).waitFor()
    await page.goto(`${spoke.url}/app/sessions`)
    await page.getByRole("cell", { name: "Single sign-on" }).waitFor()
    await look(page, "sessions-of-single-sign-on")
    expect(wrong).toEqual([])
    await context.close()
  })

  it("says in plain words why nobody got in, and lets them try again", async () => {
    const { context, page } = await toProvider()
    await page.getByRole("link", { name: "Cancel" }).click()
    await page.getByRole("alert").getByText("Your organisation did not let you in.").waitFor()
    await look(page, "sign-in-denied")
    await page.getByLabel("E-mail").fill("ada@elsewhere.example")
    await page.getByRole("button", { name: "Continue with single sign-on" }).click()
    await page.getByRole("alert").getByText("There is no single sign-on for this address.").waitFor()
    await page.getByLabel("E-mail").fill("owner@acme.example")
    await page.getByLabel("Password").fill(password)
    await page.keyboard.press("Enter")
    await page.getByRole("heading", { name: "Start" }).waitFor()
    await context.close()
  })

  it("asks for the e-mail address where none is entered", async () => {
    const context = await browser.newContext(desktop)
    const page = await context.newPage()
    const asked: Array<string> = []
    await page.route("**/api/auth/sso", (route) => {
      asked.push(route.request().postData() ?? "")
      return route.fulfill({ json: { data: { url: `${spoke.url}/elsewhere` } } })
    })
    await page.goto(`${spoke.url}/`)
    const email = page.getByLabel("E-mail")
    await page.getByLabel("Password").focus()
    await page.getByRole("button", { name: "Continue with single sign-on" }).click()
    const message = page.locator("main [id$=-error]")
    await message.waitFor()
    expect(await email.getAttribute("aria-describedby")).toBe(await message.getAttribute("id"))
    expect(await email.evaluate((field) => field.matches(":focus"))).toBe(true)
    expect(await email.getAttribute("aria-invalid")).toBe("true")
    expect(asked).toEqual([])
    await look(page, "sign-on-without-address")
    await email.fill("ada@acme.example")
    await message.waitFor({ state: "detached" })
    const begun = page.waitForURL("**/elsewhere")
    await page.getByRole("button", { name: "Continue with single sign-on" }).click()
    await begun
    expect(asked).toEqual([JSON.stringify({ email: "ada@acme.example" })])
    await context.close()
  })

  it("can be begun again after the browser's way back to a page that it kept", async () => {
    const context = await browser.newContext(desktop)
    const page = await context.newPage()
    // The provider's page is one that leaves this one where it is.
    const url = `${spoke.url}/elsewhere`
    await page.route(url, (route) => route.fulfill({ status: 204 }))
    await page.route("**/api/auth/sso", (route) => route.fulfill({ json: { data: { url } } }))
    await page.goto(`${spoke.url}/`)
    await page.getByLabel("E-mail").fill("ada@acme.example")
    const button = page.getByRole("button", { name: "Continue with single sign-on" })
    const left = page.waitForRequest(url)
    await button.click()
    await left
    await expect.poll(() => button.getAttribute("aria-disabled")).toBe("true")
    await page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
    await expect.poll(() => button.getAttribute("aria-disabled")).toBe(null)
    const again = page.waitForRequest(url)
    await button.click()
    await again
    await context.close()
  })

  it("is set up with names of groups as directories have them, and shows what another owner changed", async () => {
    const cookie = await signIn(spoke, "owner@acme.example", password)
    const own = { key: null, headers: { cookie, ...csrf } }
    const stored = async () => (await spoke.request("GET", "/api/single-sign-on", own)).body.data.connection
    const context = await browser.newContext(desktop)
    const page = await context.newPage()
    await page.goto(`${spoke.url}/app/single-sign-on`)
    await page.getByLabel("E-mail").fill("owner@acme.example")
    await page.getByLabel("Password").fill(password)
    await page.keyboard.press("Enter")
    await page.getByLabel("Roles of groups").fill("cn=staff,ou=groups,dc=acme = agent")
    const { domains, createdAt: _, updatedAt: __, version: ___, ...rest } = await stored()
    const names = domains.map(({ domain }: { readonly domain: string }) => domain)
    const groupRoles = [{ group: "sales", role: "viewer" }]
    const body = { ...rest, domains: names, groupRoles, createsPeople: false }
    expect((await spoke.request("PUT", "/api/single-sign-on", { ...own, body })).status).toBe(200)
    await page.getByRole("button", { name: "Save" }).click()
    await page.getByRole("alert").getByText("Changed by somebody else in the meantime").waitFor()
    await page.getByText("sales = viewer").waitFor()
    expect(await stored()).toMatchObject({ groupRoles, createsPeople: false })
    await page.getByRole("button", { name: "Save" }).click()
    await page.getByText("Saved", { exact: true }).waitFor()
    expect(await stored()).toMatchObject({
      groupRoles: [{ group: "cn=staff,ou=groups,dc=acme", role: "agent" }],
      createsPeople: false
    })
    await context.close()
  })
})
