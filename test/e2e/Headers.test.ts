/** The headers for browsers and caches, on every declared route and for every kind of caller (docs/security.md). */
import * as Fs from "node:fs"
import * as Path from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { keyOf } from "../../src/http/Routes.ts"
import { unknownResourcePath, routes } from "./routes/RouteRequests.ts"
import { ask, csrf, makeTenant, password, type Received } from "./routes/RouteWorld.ts"
import { removeFolder, root, type Spoke, start, temporaryFolder } from "./Spoke.ts"

/** Files and descriptions, which are everybody's. */
const shared = [
  "/openapi.json",
  "/openapi.full.json",
  "/openapi.compact.json",
  "/docs",
  "/docs/guide",
  "/docs/guide/chat",
  "/docs/search.json",
  "/widget.js",
  "/widget-markdown.js"
]
const pages = ["/", "/app", "/app/agents", "/app/%2e%2e/%2e%2e/package.json"]

/** What is wrong with the headers of an answer; `cacheable` are those of files. */
const problems = ({ headers, status, text }: Received, cacheable: boolean) => {
  const value = (name: string) => headers.get(name)
  const policy = value("content-security-policy") ?? ""
  const json = (value("content-type") ?? "").startsWith("application/json")
  const found: Array<string> = []
  const must = (holds: boolean, what: string) => {
    if (!holds) found.push(`${what} (${status} ${text.slice(0, 60)})`)
  }
  must(policy.includes("default-src 'none'"), "no content-security-policy")
  must(policy.includes("frame-ancestors 'none'"), "frames are not forbidden")
  must(!/script-src[^;]*(?:\*|'unsafe-eval'|https?:|data:)/u.test(policy), "scripts of anywhere")
  must(value("x-content-type-options") === "nosniff", "no nosniff")
  must(value("referrer-policy") === "no-referrer", "no referrer-policy")
  must(value("strict-transport-security") === "max-age=63072000", "no strict-transport-security")
  must(value("access-control-allow-origin") === "*", "no origin allowed")
  must(value("access-control-allow-credentials") === null, "credentials allowed")
  must(value("server") === null && value("x-powered-by") === null, "names its make")
  must(/^[\w.:-]+$/u.test(value("x-request-id") ?? ""), "no id")
  must(cacheable || /^no-(?:store|cache)/u.test(value("cache-control") ?? ""), "kept by caches")
  must(!json || cacheable || value("cache-control") === "no-store", "JSON is kept")
  for (const cookie of headers.getSetCookie()) {
    must(/^spoke_(?:passkey|session|sso)=/u.test(cookie), "another cookie")
    must(/SameSite=(?:Lax|Strict)/u.test(cookie), "a cookie for other sites")
    for (const flag of ["HttpOnly", "Secure", "Path=/"]) {
      must(cookie.includes(flag), `a cookie without ${flag}`)
    }
    must(!/domain=/iu.test(cookie), "a cookie for other hosts")
  }
  return found
}

describe("Every answer", () => {
  const folder = temporaryFolder()
  let spoke: Spoke
  let cookie = ""

  beforeAll(async () => {
    spoke = await start(folder, { APP_URL: "https://spoke.example", SPOKE_EMBEDDING_MODEL: "offline" })
    await makeTenant(spoke, "headers")
    const entered = await ask(spoke, "POST", "/api/auth/login", {
      headers: csrf,
      body: { email: "headers@example.com", password }
    })
    expect([entered.status, problems(entered, false)]).toEqual([200, []])
    expect(entered.headers.getSetCookie().length).toBe(1)
    cookie = entered.headers.getSetCookie()[0]?.split(";")[0] ?? ""
  }, 120_000)

  afterAll(async () => {
    await spoke.kill()
    removeFolder(folder)
  })

  it("of a declared route carries them, for strangers and for those who may ask", async () => {
    const found: Array<string> = []
    expect(routes.length).toBeGreaterThan(90)
    const made = await ask(spoke, "POST", "/api/tokens", {
      cookie,
      headers: csrf,
      body: { name: "Headers", scopes: ["*"] }
    })
    const token: string = JSON.parse(made.text).data.secret
    for (const route of routes.filter(({ path }) => path !== "/api/auth/logout")) {
      const { method } = route
      const body = method === "GET" || method === "HEAD" ? undefined : {}
      const operator = { authorization: `Bearer ${spoke.operatorToken}` }
      const path = unknownResourcePath(route)
      const key = spoke.apiKey
      const mine = route.path.startsWith("/api/operator/")
        ? { headers: operator }
        : route.scope !== undefined
          ? { headers: { authorization: `Bearer ${token}` } }
          : route.role === undefined
            ? { key }
            : { cookie, headers: csrf }
      for (const who of [{}, mine]) {
        const received = await ask(spoke, method, path, { ...who, body })
        found.push(...problems(received, false).map((problem) => `${keyOf(route)}: ${problem}`))
      }
      const preflight = await ask(spoke, "OPTIONS", path, {
        headers: { origin: "https://evil.example", "access-control-request-method": method }
      })
      found.push(...problems(preflight, false).map((problem) => `OPTIONS ${path}: ${problem}`))
    }
    const out = await ask(spoke, "POST", "/api/auth/logout", { cookie, headers: csrf })
    expect(out.headers.getSetCookie().length).toBe(1)
    found.push(...problems(out, false))
    expect(found).toEqual([])
  }, 120_000)

  it("of a page, a file, a description, and for what is not there, carries them", async () => {
    const assets = Fs.readdirSync(Path.join(root, "dist/ui"))
      .filter((name) => /\.(?:css|js|svg)$/u.test(name))
      .map((name) => `/assets/${name}`)
    expect(assets.length).toBeGreaterThan(2)
    const found: Array<string> = []
    const look = async (method: string, path: string, cacheable: boolean, body?: unknown) => {
      const received = await ask(spoke, method, path, { body })
      found.push(...problems(received, cacheable).map((problem) => `${method} ${path}: ${problem}`))
      return received.status
    }
    for (const path of [...shared, ...assets])
      expect([path, await look("GET", path, true)]).toEqual([path, 200])
    for (const path of pages.slice(0, 3)) {
      const { headers } = await ask(spoke, "GET", path)
      // The dashboard's own scripts and sheets are files of its own, but for one sheet that is known by its hash.
      expect(headers.get("content-security-policy")).toContain("script-src 'self';")
      expect(headers.get("content-security-policy")).not.toContain("unsafe-")
    }
    for (const path of [...pages, "/metrics", "/mcp"]) await look("GET", path, false)
    expect(await look("GET", "/assets/..%2f..%2f..%2fpackage.json", false)).toBe(404)
    expect(await look("GET", "/nothing", false)).toBe(404)
    expect(await look("POST", "/mcp", false, {})).toBe(401)
    expect(await look("DELETE", "/v1/chat", false)).toBe(405)
    expect(await look("POST", "/api/webhooks/whatsapp", false, {})).toBeGreaterThanOrEqual(400)
    expect(await look("POST", "/v1/chat", false, { message: "x".repeat(2_000_000) })).toBe(401)
    expect(found).toEqual([])
  })
})
