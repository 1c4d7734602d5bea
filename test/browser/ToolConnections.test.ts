import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { removeFolder, type Spoke, start, temporaryFolder } from "../e2e/Spoke.ts"
import { csrf, signIn } from "../e2e/routes/RouteWorld.ts"
import { authorizationServer, mcpServer } from "../http/tools/ToolServers.ts"
import { complaints, desktop, hasBrowser, launch, look, phone } from "./Browser.ts"

const owner = { email: "owner@example.com", password: "correct horse battery" }

const sizes = [
  ["wide", { width: 1920, height: 1080 }],
  ["desktop", { width: 1440, height: 900 }],
  ["phone", { width: 390, height: 844 }]
] as const

describe.skipIf(!hasBrowser)("A tool with OAuth in a browser", () => {
  const dataDir = temporaryFolder()
  const scope = Effect.runSync(Scope.make())
  const scoped = <A>(effect: Effect.Effect<A, never, Scope.Scope>) =>
    Effect.runPromise(Scope.extend(effect, scope))
  let spoke: Spoke
  let browser: Browser
  let authorization: Effect.Effect.Success<ReturnType<typeof authorizationServer>>
  let mcp: Effect.Effect.Success<ReturnType<typeof mcpServer>>
  let agentId = ""
  let cookie = ""

  beforeAll(async () => {
    spoke = await start(dataDir, {
      SPOKE_ADMIN_EMAIL: owner.email,
      SPOKE_ADMIN_PASSWORD: owner.password,
      SPOKE_FETCH_ALLOW: "127.0.0.1"
    })
    authorization = await scoped(authorizationServer(`${spoke.url}/api/tool-sign-ins/callback`))
    mcp = await scoped(mcpServer(authorization))
    cookie = await signIn(spoke, owner.email, owner.password)
    const as = { key: null, headers: { cookie, ...csrf } }
    agentId = (await spoke.request("GET", "/api/agents", as)).body.data.agents[0].id
    const body = {
      name: "handbook",
      description: "Everything that the handbook of the company says.",
      mcp: { url: mcp.url },
      auth: { kind: "oauth" }
    }
    const made = await spoke.request("POST", `/api/agents/${agentId}/tools`, { ...as, body })
    expect(made.status).toBe(201)
    browser = await launch()
  }, 120_000)

  afterAll(async () => {
    await browser.close()
    await spoke.kill()
    await Effect.runPromise(Scope.close(scope, Exit.void))
    removeFolder(dataDir)
  })

  const pictures = async (page: Page, name: string) => {
    for (const [size, viewport] of sizes) {
      await page.setViewportSize(viewport)
      await look(page, `tool-${name}-${size}`)
    }
    await page.setViewportSize(sizes[0][1])
  }

  const opened = async (options: typeof desktop) => {
    const context = await browser.newContext(options)
    const page = await context.newPage()
    const wrong = complaints(page)
    await page.goto(`${spoke.url}/`)
    await page.getByLabel(/^E-?mail/i).fill(owner.email)
    await page.getByLabel(/^(Password|Passwort)/).fill(owner.password)
    await page.keyboard.press("Enter")
    await page.getByRole("heading", { name: /^(Start|Erste Schritte)$/ }).waitFor()
    await page.goto(`${spoke.url}/app/agents/${agentId}/tools`)
    return { context, page, wrong }
  }

  /** The turn of a customer, for which the tool is opened. */
  const ask = async () => {
    const { status } = await spoke.request("POST", "/v1/chat", { body: { message: "How do I start it?" } })
    expect(status).toBe(200)
  }

  it("is connected at the authorization server, says that more scopes are needed, and gets them", async () => {
    const { context, page, wrong } = await opened(desktop)
    await page.getByText("Not connected").waitFor()
    await pictures(page, "unconnected")

    await page.getByRole("button", { name: "Connect: handbook" }).click()
    await page.getByPlaceholder("Enter any login").fill("ada")
    await page.getByPlaceholder("and password").fill("any")
    await page.getByRole("button", { name: "Sign-in" }).click()
    await page.getByRole("button", { name: "Continue" }).click()
    await page.getByRole("status").getByText("The tool is connected.").waitFor()
    expect(page.url()).toBe(`${spoke.url}/app/agents/${agentId}/tools?connection=made`)
    await page.getByText("Connected", { exact: true }).waitFor()
    await page.getByText(authorization.issuer).waitFor()
    await pictures(page, "connected")
    await ask()
    expect(mcp.tokens.length).toBeGreaterThan(0)

    // The list of tools is cached for a token: a new connection has another one.
    await page.getByRole("button", { name: "Connect again: handbook" }).click()
    await page.getByRole("button", { name: "Continue" }).click()
    await page.getByRole("status").getByText("The tool is connected.").waitFor()
    mcp.behaviour.requiredScopes = () => ["mcp:write"]
    await ask()
    await page.goto(`${spoke.url}/app/agents/${agentId}/tools`)
    await page.getByText("More scopes needed").waitFor()
    await page.getByText("mcp:write", { exact: true }).waitFor()
    await pictures(page, "insufficient")

    await page.getByRole("button", { name: "Connect again: handbook" }).click()
    await page.getByText("mcp:write").waitFor()
    await page.getByRole("button", { name: "Continue" }).click()
    await page.getByText("Connected", { exact: true }).waitFor()
    await ask()
    expect(authorization.scopesOf(mcp.tokens.at(-1) ?? "")).toEqual(["mcp:tools", "mcp:write"])
    expect(wrong).toEqual([])
    await context.close()
  }, 120_000)

  it("says in German on a phone what to do, and that the server refused the sign-in", async () => {
    mcp.behaviour.requiredScopes = () => ["mcp:admin"]
    const { context, page, wrong } = await opened({ ...phone, locale: "de-DE" })
    await page.getByText("Verbunden", { exact: true }).waitFor()
    await page.getByRole("button", { name: "Neu verbinden: handbook" }).click()
    await page.getByPlaceholder("Enter any login").waitFor()
    await page.getByRole("link", { name: "Cancel" }).click()
    await page.getByRole("alert").getByText("Der Autorisierungsserver hat die Anmeldung abgelehnt.").waitFor()
    await page.getByText("Verbunden", { exact: true }).waitFor()
    await look(page, "tool-denied-german")
    // A new token, for which the list is asked for again.
    await page.getByRole("button", { name: "Neu verbinden: handbook" }).click()
    await page.getByPlaceholder("Enter any login").fill("ada")
    await page.getByPlaceholder("and password").fill("any")
    await page.getByRole("button", { name: "Sign-in" }).click()
    await page.getByRole("button", { name: "Continue" }).click()
    await page.getByRole("status").getByText("Das Werkzeug ist verbunden.").waitFor()
    await ask()
    await page.reload()
    await page.getByText("braucht mehr Rechte").waitFor()
    await look(page, "tool-insufficient-german")
    expect(wrong).toEqual([])
    await context.close()
  }, 120_000)
})
