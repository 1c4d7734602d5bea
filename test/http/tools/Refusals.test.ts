/** What must not connect a tool: sign-ins of others, old ones, and metadata that leads elsewhere. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { listen, signInAt } from "../accounts/sso/Providers.ts"
import { call, operate, password, cookieOf, signedIn } from "../accounts/AccountsServer.ts"
import { TestDatabase } from "../../TestDatabase.ts"
import {
  returnFromServer,
  beginConnection,
  connect,
  connectionRequired,
  shownConnection,
  callTool,
  world
} from "./ConnectionWorld.ts"
import { redirectUri, server } from "./ToolsWorld.ts"

const live = layer(server.pipe(Layer.provideMerge(TestDatabase)), { excludeTestServices: true })

/** The sentence with which connecting is refused. */
const refusal = ({ cookie, path }: { readonly cookie: string; readonly path: string }) =>
  Effect.map(call("POST", `${path}/connection`, { cookie }), ({ error, status }) => [
    status,
    error?.details?.issues?.[0]?.message ?? error?.message
  ])

live("A sign-in for a tool", (it) => {
  it.scoped("can be completed once, in the session that began it, with its own state", () =>
    Effect.gen(function* () {
      const made = yield* world()
      const agents = `/app/agents?connection=retry`
      const page = yield* beginConnection(made)
      const { searchParams } = yield* Effect.promise(() => signInAt(page, "ada"))
      const second = yield* call("POST", "/api/auth/login", { body: { email: "ada@example.com", password } })
      const stranger = yield* signedIn("eve@example.com")
      for (const cookie of [cookieOf(second), stranger.cookie]) {
        expect(yield* returnFromServer(searchParams, cookie)).toBe(agents)
      }
      expect(yield* returnFromServer(searchParams, "")).toBe("/app/agents?connection=signed-out")
      expect(yield* returnFromServer(searchParams, "spoke_session=none")).toBe(
        "/app/agents?connection=signed-out"
      )
      const wrong = new URLSearchParams(searchParams)
      wrong.set("state", "another")
      expect(yield* returnFromServer(wrong, made.cookie)).toBe(agents)
      expect(made.tokenRequests).toEqual([])
      expect(yield* returnFromServer(searchParams, made.cookie)).toContain("connection=made")
      expect(yield* returnFromServer(searchParams, made.cookie)).toBe(agents)
      expect(made.tokenRequests).toEqual(["/token"])
    })
  )

  it.scoped("needs an admin when it begins and when it ends", () =>
    Effect.gen(function* () {
      const made = yield* world()
      const page = yield* beginConnection(made)
      const { searchParams } = yield* Effect.promise(() => signInAt(page, "ada"))
      const sql = yield* SqlClient.SqlClient
      yield* sql`update users set role = 'agent'`
      expect((yield* call("POST", `${made.path}/connection`, { cookie: made.cookie })).status).toBe(403)
      expect(yield* returnFromServer(searchParams, made.cookie)).toBe("/app/agents?connection=signed-out")
      expect(yield* shownConnection(made)).toBe(null)
    })
  )

  it.scoped("ends after its time limit, with its session, and with a change of the tool's address", () =>
    Effect.gen(function* () {
      const made = yield* world()
      const tools = `/app/agents/${made.agentId}/tools`
      const sql = yield* SqlClient.SqlClient
      const late = yield* beginConnection(made)
      const old = yield* Effect.promise(() => signInAt(late, "ada"))
      yield* sql`update tool_sign_ins set expires_at = now()`
      expect(yield* returnFromServer(old.searchParams, made.cookie)).toBe(`${tools}?connection=retry`)
      const page = yield* beginConnection(made)
      const { searchParams } = yield* Effect.promise(() => signInAt(page, "ada"))
      yield* call("PATCH", made.path, {
        cookie: made.cookie,
        body: { mcp: { url: `${made.mcp.url}/other` } }
      })
      expect(yield* returnFromServer(searchParams, made.cookie)).toBe(`${tools}?connection=retry`)
      yield* beginConnection(made).pipe(Effect.ignore)
      yield* call("POST", "/api/auth/logout", { cookie: made.cookie })
      expect(yield* sql`select tool_id from tool_sign_ins`).toEqual([])
    })
  )

  it.scoped("ends with the refusal of the person or the server", () =>
    Effect.gen(function* () {
      const made = yield* world()
      const tools = `/app/agents/${made.agentId}/tools`
      const answered = (change: (answer: URLSearchParams) => void) =>
        Effect.gen(function* () {
          const page = yield* beginConnection(made)
          const { searchParams } = yield* Effect.promise(() => signInAt(page, "ada"))
          change(searchParams)
          return yield* returnFromServer(searchParams, made.cookie)
        })
      const denied = answered((answer) => {
        answer.delete("code")
        answer.set("error", "access_denied")
      })
      expect(yield* denied).toBe(`${tools}?connection=denied`)
      expect(yield* answered((answer) => answer.set("code", "no-code"))).toBe(`${tools}?connection=retry`)
      expect(yield* answered((answer) => answer.set("iss", "https://other.example"))).toBe(
        `${tools}?connection=provider`
      )
      expect(yield* answered((answer) => answer.delete("iss"))).toBe(`${tools}?connection=provider`)
      made.behaviour.isDown = false
      const down = yield* answered(() => {
        made.behaviour.isDown = true
      })
      expect(down).toBe(`${tools}?connection=provider`)
      expect(yield* shownConnection(made)).toBe(null)
    })
  )

  it.scoped("sends nothing to a server that the token is not for", () =>
    Effect.gen(function* () {
      const made = yield* world()
      made.behaviour.audience = "https://other.example/mcp"
      yield* connect(made)
      expect(yield* callTool(made)).toEqual(connectionRequired)
      expect(yield* shownConnection(made)).toMatchObject({ state: "refused" })
      made.behaviour.audience = null
      yield* connect(made)
      const sent = made.mcp.tokens.length
      const elsewhere = yield* listen((_, response) => response.end())
      const moved = { mcp: { url: `${elsewhere.issuer}/mcp` } }
      yield* call("PATCH", made.path, { cookie: made.cookie, body: moved })
      expect(yield* shownConnection(made)).toBe(null)
      expect(yield* callTool(made)).toEqual(connectionRequired)
      expect(made.mcp.tokens.length).toBe(sent)
    })
  )

  it.scoped("by a program, or for a tool without OAuth, is refused", () =>
    Effect.gen(function* () {
      const made = yield* world({ kind: "none" })
      expect((yield* call("POST", `${made.path}/connection`, { cookie: made.cookie })).status).toBe(409)
      expect((yield* call("DELETE", `${made.path}/connection`, { cookie: made.cookie })).status).toBe(404)
      const unknown = yield* call("POST", "/api/tools/tol_none/connection", { cookie: made.cookie })
      expect(unknown.status).toBe(404)
      expect((yield* operate("POST", `${made.path}/connection`)).status).toBe(401)
    })
  )
})

live("Settings of OAuth", (it) => {
  it.scoped("are refused if they contradict each other", () =>
    Effect.gen(function* () {
      const { cookie, mcp, tools } = yield* world()
      const auths = [
        { secret: "s" },
        { secret: "s", clientId: "c" },
        { secret: "s", issuer: "https://id.example" },
        { grant: "client_credentials" },
        { grant: "client_credentials", clientId: "c", issuer: "https://id.example" },
        { grant: "password" },
        { slot: "crm" },
        { issuer: "http://id.example" },
        { issuer: "https://id.example?x=1" },
        { scopes: ["two words"] }
      ]
      for (const auth of auths) {
        const body = { name: "other", mcp: { url: mcp.url }, auth: { kind: "oauth", ...auth } }
        expect([JSON.stringify(auth), (yield* call("POST", tools, { cookie, body })).status]).toEqual([
          JSON.stringify(auth),
          400
        ])
      }
      const http = { name: "other", http: { url: "https://shop.example/" }, auth: { kind: "oauth" } }
      expect((yield* call("POST", tools, { cookie, body: http })).status).toBe(400)
    })
  )
})

live("Metadata", (it) => {
  it.scoped("of an MCP server that cannot be followed is refused", () =>
    Effect.gen(function* () {
      const made = yield* world()
      const { behaviour } = made.mcp
      const usual = behaviour.metadata
      const cases: ReadonlyArray<readonly [Record<string, unknown> | null, RegExp]> = [
        [null, /does not say which authorization server/],
        [{ resource: "https://other.example/mcp" }, /another resource/],
        [{ resource: `${new URL(made.mcp.url).origin}/mc` }, /another resource/],
        [{ authorization_servers: [] }, /cannot be read/],
        [{ authorization_servers: "x".repeat(3_000) }, /cannot be read/],
        [{ authorization_servers: ["http://id.example"] }, /no https address/],
        [{ authorization_servers: ["javascript:alert(1)"] }, /no https address/],
        [{ authorization_servers: ["https://169.254.169.254"] }, /not allowed|private|Refused/i],
        [{ padding: "x".repeat(300_000) }, /more than/]
      ]
      for (const [change, sentence] of cases) {
        behaviour.metadata = (document) => (change === null ? null : { ...usual(document), ...change })
        const [status, message] = yield* refusal(made)
        expect([status, message]).toEqual([400, expect.stringMatching(sentence)])
      }
      behaviour.metadata = usual
      for (const place of ["http://id.example/metadata", "file:///etc/passwd", "https://10.0.0.1/metadata"]) {
        behaviour.metadataUrl = () => place
        expect((yield* refusal(made))[0]).toBe(400)
      }
      behaviour.metadataUrl = () => null
      expect((yield* refusal(made))[0]).toBe(200)
    })
  )

  it.scoped("of an authorization server that leads elsewhere is refused", () =>
    Effect.gen(function* () {
      const made = yield* world()
      const cases: ReadonlyArray<readonly [Record<string, unknown>, RegExp]> = [
        [{ issuer: "https://other.example" }, /another issuer/],
        [{ issuer: `${made.issuer}/` }, /another issuer/],
        [{ authorization_endpoint: "javascript:alert(1)" }, /sign-in page is not under https/],
        [{ authorization_endpoint: "http://id.example/authorize" }, /sign-in page is not under https/],
        [{ authorization_endpoint: "https://192.168.0.1/authorize" }, /192\.168\.0\.1/],
        [{ token_endpoint: "http://id.example/token" }, /token endpoint is not under https/],
        [{ registration_endpoint: "https://10.1.2.3/register" }, /10\.1\.2\.3/],
        [{ registration_endpoint: undefined }, /registers no clients/],
        [{ code_challenge_methods_supported: undefined }, /PKCE/],
        [{ code_challenge_methods_supported: ["plain"] }, /PKCE/],
        [{ token_endpoint: 7 }, /cannot be read/]
      ]
      for (const [change, sentence] of cases) {
        made.behaviour.metadata = (document) => ({ ...document, ...change })
        const [status, message] = yield* refusal(made)
        expect([status, message]).toEqual([400, expect.stringMatching(sentence)])
      }
      made.behaviour.isDown = true
      expect((yield* refusal(made))[0]).toBe(503)
      made.behaviour.isDown = false
    })
  )

  it.scoped("that redirects is not followed, and the code is sent nowhere else", () =>
    Effect.gen(function* () {
      const made = yield* world()
      const seen: Array<string> = []
      const other = yield* listen((request, response) => {
        seen.push(String(request.url))
        response.end("{}")
      })
      const moving = yield* listen((_, response) => {
        response.writeHead(307, { location: `${other.issuer}/stolen` }).end()
      })
      made.mcp.behaviour.metadataUrl = () => `${moving.issuer}/metadata`
      expect((yield* refusal(made))[0]).toBe(400)
      made.mcp.behaviour.metadataUrl = (address) => address
      made.behaviour.metadata = (document) => ({ ...document, token_endpoint: `${moving.issuer}/token` })
      expect(yield* connect(made)).toContain("connection=provider")
      expect(seen).toEqual([])
      expect(redirectUri).toBe("https://app.example/api/tool-sign-ins/callback")
    })
  )
})
