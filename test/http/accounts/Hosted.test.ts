import { describe, expect, it as unit, layer } from "@effect/vitest"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { KeyStore } from "../../../src/capabilities/KeyStore.ts"
import { type Role } from "../../../src/domain/accounts/Access.ts"
import { reset, TestDatabase } from "../../TestDatabase.ts"
import { accountsServer, type Answer, appUrl, call, cookieOf, password, signedIn } from "./AccountsServer.ts"
import { expectVersioned } from "../Versions.ts"

const Server = (options?: Parameters<typeof accountsServer>[0]) =>
  accountsServer(options).pipe(Layer.provideMerge(TestDatabase))

const email = "ada@example.com"
const key = { name: "Shop", permissions: ["chat"] }

const outcome = ({ status, error }: Answer) => [status, error?.code]
const pathsOf = (answer: Answer): ReadonlyArray<string> =>
  answer.error.details.issues.map(({ path }: { readonly path: ReadonlyArray<string> }) => path.join("."))

const setRole = (role: Role) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => sql`update users set role = ${role} where email = ${email}`)

const newAgent = (cookie: string) =>
  Effect.map(
    call("POST", "/api/agents", { cookie, body: { name: "Helper" } }),
    ({ data }): string => data.agent.id
  )

layer(Server(), { excludeTestServices: true })("Dashboard routes", (it) => {
  it.effect("create and remove everything for a working key, only over HTTP", () =>
    Effect.gen(function* () {
      yield* reset
      const { cookie, tenantId } = yield* signedIn(email)
      const agent = yield* call("POST", "/api/agents", { cookie, body: { name: " Helper " } })
      expect(agent.status).toBe(201)
      expect(agent.data.agent).toEqual({
        id: expect.stringMatching(/^agt_/),
        name: "Helper",
        instructions: "",
        model: null,
        greeting: null,
        retrieval: { topK: 6, minScore: null },
        tools: [],
        grounding: { mode: "strict", unsupported: "annotate", contextTokens: 6_000, maxSearches: 0 },
        style: { length: "default", tone: "default" },
        masking: null,
        streamReasoning: false,
        version: 1,
        publishedVersion: 1,
        split: null,
        createdAt: expect.any(String),
        updatedAt: expect.any(String)
      })
      const agentId = agent.data.agent.id
      const made = yield* call("POST", `/api/agents/${agentId}/keys`, {
        cookie,
        body: {
          name: "Shop",
          permissions: ["chat", "retrieve", "chat"],
          allowedOrigins: ["HTTPS://Shop.Example:443/", "https://shop.example", "http://localhost:3000"],
          expiresAt: "2999-01-01T00:00:00Z"
        }
      })
      expect(made.status).toBe(201)
      const { secret } = made.data
      expect(secret).toMatch(/^spk_[A-Za-z0-9_-]{43}$/)
      const shown = {
        id: expect.stringMatching(/^key_/),
        name: "Shop",
        prefix: secret.slice(0, 12),
        permissions: ["chat", "retrieve"],
        allowedOrigins: ["https://shop.example", "http://localhost:3000"],
        status: "ACTIVE",
        expiresAt: "2999-01-01T00:00:00.000Z",
        lastUsedAt: null,
        rateLimit: null,
        sourceScope: null,
        version: 1,
        createdAt: expect.any(String)
      }
      expect(made.data.key).toEqual(shown)

      const keyStore = yield* KeyStore
      const find = keyStore.find(Redacted.make(secret))
      expect(Option.getOrNull(yield* find)).toMatchObject({ tenantId, agentId, scope: "agent" })

      const list = yield* call("GET", `/api/agents/${agentId}/keys`, { cookie })
      expect(list.data.keys).toMatchObject([{ id: made.data.key.id, status: "ACTIVE" }])
      expect(list.text).not.toContain(secret)

      const path = `/api/keys/${made.data.key.id}`
      const paused = yield* call("PATCH", path, { cookie, body: { active: false, name: "Paused" } })
      expect(paused.data.key).toMatchObject({ name: "Paused", status: "INACTIVE" })
      expect(yield* find).toEqual(Option.none())
      const resumed = yield* call("PATCH", path, {
        cookie,
        body: { active: true, allowedOrigins: null, expiresAt: null }
      })
      expect(resumed.data.key).toMatchObject({ status: "ACTIVE", allowedOrigins: [], expiresAt: null })
      expect(Option.isSome(yield* find)).toBe(true)

      const revoked = yield* call("DELETE", path, { cookie })
      expect([revoked.status, revoked.data]).toEqual([200, { id: made.data.key.id, deleted: true }])
      expect(yield* find).toEqual(Option.none())
      expect(outcome(yield* call("PATCH", path, { cookie, body: { active: true } }))).toEqual([
        409,
        "CONFLICT"
      ])
      expect((yield* call("DELETE", path, { cookie })).status).toBe(200)
      const after = yield* call("GET", `/api/agents/${agentId}/keys`, { cookie })
      expect(after.data.keys).toMatchObject([{ status: "REVOKED" }])
    })
  )

  it.effect("refuse a change of an agent or a key that was made from an older version", () =>
    Effect.gen(function* () {
      yield* reset
      const { cookie } = yield* signedIn(email)
      const agentId = yield* newAgent(cookie)
      yield* expectVersioned(`/api/agents/${agentId}`, "agent", cookie, (place) => ({
        instructions: `Instructions ${place}`
      }))
      const { data } = yield* call("POST", `/api/agents/${agentId}/keys`, { cookie, body: key })
      yield* expectVersioned(`/api/keys/${data.key.id}`, "key", cookie, (place) => ({
        rateLimit: { requests: place, window: 60 }
      }))
    })
  )

  it.effect("delete an agent's keys with it at once", () =>
    Effect.gen(function* () {
      yield* reset
      const { cookie } = yield* signedIn(email)
      const agentId = yield* newAgent(cookie)
      const { data } = yield* call("POST", `/api/agents/${agentId}/keys`, { cookie, body: key })
      const find = Effect.flatMap(KeyStore, ({ find }) => find(Redacted.make(data.secret)))
      expect(Option.isSome(yield* find)).toBe(true)
      const removed = yield* call("DELETE", `/api/agents/${agentId}`, { cookie })
      expect([removed.status, removed.data]).toEqual([200, { id: agentId, deleted: true }])
      expect(yield* find).toEqual(Option.none())
      expect(outcome(yield* call("GET", `/api/agents/${agentId}`, { cookie }))).toEqual([404, "NOT_FOUND"])
    })
  )

  it.effect("create keys for the whole organisation", () =>
    Effect.gen(function* () {
      yield* reset
      const { cookie } = yield* signedIn(email)
      const made = yield* call("POST", "/api/keys", {
        cookie,
        body: { name: "All", scope: "org", permissions: ["*"] }
      })
      expect([made.status, made.data.key.permissions]).toEqual([201, ["*"]])
      const found = yield* Effect.flatMap(KeyStore, ({ find }) => find(Redacted.make(made.data.secret)))
      expect(Option.getOrNull(found)).toMatchObject({ scope: "org", agentId: null })
      expect((yield* call("DELETE", `/api/keys/${made.data.key.id}`, { cookie })).status).toBe(200)
    })
  )

  it.effect(
    "list agents page by page, newest first, with cursors that are valid only for one tenant's list",
    () =>
      Effect.gen(function* () {
        yield* reset
        const { cookie } = yield* signedIn(email)
        const ids = yield* Effect.replicateEffect(newAgent(cookie), 3)
        const first = yield* call("GET", "/api/agents?limit=2", { cookie })
        const cursor = encodeURIComponent(first.data.nextCursor)
        const second = yield* call("GET", `/api/agents?limit=2&cursor=${cursor}`, { cookie })
        const listed = [...first.data.agents, ...second.data.agents].map(({ id }) => id)
        expect(listed).toEqual(ids.toSorted().toReversed())
        expect(second.data.nextCursor).toBe(null)
        const other = yield* signedIn("eve@example.com")
        const stolen = yield* call("GET", `/api/agents?cursor=${cursor}`, { cookie: other.cookie })
        expect(outcome(stolen)).toEqual([400, "VALIDATION_ERROR"])
        const wrong = yield* call("GET", `/api/agents/${ids[0]}/keys?cursor=${cursor}`, { cookie })
        expect(outcome(wrong)).toEqual([400, "VALIDATION_ERROR"])
      })
  )

  it.effect("find only agents and keys of their own tenant: all others are 404", () =>
    Effect.gen(function* () {
      yield* reset
      const { cookie } = yield* signedIn(email)
      const eve = yield* signedIn("eve@example.com")
      const agentId = yield* newAgent(cookie)
      const made = yield* call("POST", `/api/agents/${agentId}/keys`, { cookie, body: key })
      const keyId = made.data.key.id
      const tries: ReadonlyArray<readonly [method: string, path: string, body?: unknown]> = [
        ["GET", `/api/agents/${agentId}`],
        ["PATCH", `/api/agents/${agentId}`, { name: "Stolen" }],
        ["DELETE", `/api/agents/${agentId}`],
        ["GET", `/api/agents/${agentId}/keys`],
        ["POST", `/api/agents/${agentId}/keys`, key],
        ["PATCH", `/api/keys/${keyId}`, { active: false }],
        ["DELETE", `/api/keys/${keyId}`]
      ]
      for (const [method, path, body] of tries) {
        const theirs = yield* call(method, path, { cookie: eve.cookie, body })
        const nobodys = yield* call(method, path.replace(/(agt|key)_[^/]+/, "$1_none"), { cookie, body })
        expect([method, path, ...outcome(theirs)]).toEqual([method, path, 404, "NOT_FOUND"])
        expect(theirs.error).toEqual(nobodys.error)
      }
      expect((yield* call("GET", "/api/agents", { cookie: eve.cookie })).data.agents).toEqual([])
      const list = yield* call("GET", `/api/agents/${agentId}/keys`, { cookie })
      expect(list.data.keys).toMatchObject([{ id: keyId, status: "ACTIVE" }])
    })
  )

  it.effect("let viewers read agents and admins write them; keys are for admins", () =>
    Effect.gen(function* () {
      yield* reset
      const { cookie } = yield* signedIn(email)
      const agentId = yield* newAgent(cookie)
      const made = yield* call("POST", `/api/agents/${agentId}/keys`, { cookie, body: key })
      const routes: ReadonlyArray<readonly [least: Role, method: string, path: string, body?: unknown]> = [
        ["viewer", "GET", "/api/auth/session"],
        ["viewer", "GET", "/api/agents"],
        ["viewer", "GET", `/api/agents/${agentId}`],
        ["admin", "POST", "/api/agents", { name: "Second" }],
        ["admin", "PATCH", `/api/agents/${agentId}`, { name: "Renamed" }],
        ["admin", "GET", `/api/agents/${agentId}/keys`],
        ["admin", "POST", `/api/agents/${agentId}/keys`, key],
        ["admin", "POST", "/api/keys", { name: "All", scope: "org", permissions: ["chat"] }],
        ["admin", "PATCH", `/api/keys/${made.data.key.id}`, { name: "Renamed" }],
        ["admin", "DELETE", "/api/keys/key_none"],
        ["admin", "DELETE", "/api/agents/agt_none"]
      ]
      const order: ReadonlyArray<Role> = ["viewer", "agent", "admin", "owner"]
      for (const role of order) {
        yield* setRole(role)
        for (const [least, method, path, body] of routes) {
          const answer = yield* call(method, path, { cookie, body })
          const allowed = order.indexOf(role) >= order.indexOf(least)
          expect([role, method, path, answer.status === 403]).toEqual([role, method, path, !allowed])
          expect(answer.status).toBeLessThan(500)
        }
      }
    })
  )

  it.effect("check the origin, then the session, then the role, then the body", () =>
    Effect.gen(function* () {
      yield* reset
      const { cookie } = yield* signedIn(email)
      yield* setRole("viewer")
      const evil = { origin: "https://evil.example" }
      const raw = "{"
      expect(outcome(yield* call("POST", "/api/agents", { raw, headers: evil }))).toEqual([403, "FORBIDDEN"])
      expect(outcome(yield* call("POST", "/api/agents", { raw }))).toEqual([401, "UNAUTHORIZED"])
      expect(outcome(yield* call("POST", "/api/agents", { raw, cookie }))).toEqual([403, "FORBIDDEN"])
      yield* setRole("admin")
      expect(outcome(yield* call("POST", "/api/agents", { raw, cookie }))).toEqual([400, "VALIDATION_ERROR"])
    })
  )

  it.effect("change state only for the app's own origin, or without one with x-spoke-csrf", () =>
    Effect.gen(function* () {
      yield* reset
      const { cookie } = yield* signedIn(email)
      const tries: ReadonlyArray<readonly [headers: Record<string, string>, allowed: boolean]> = [
        [{ origin: appUrl }, true],
        [{ origin: "", "x-spoke-csrf": "1" }, true],
        [{ origin: "" }, false],
        [{ origin: "", "x-spoke-csrf": "0" }, false],
        [{ origin: "null", "x-spoke-csrf": "1" }, false],
        [{ origin: "https://evil.example", "x-spoke-csrf": "1" }, false],
        [{ origin: "https://app.example.evil.example" }, false],
        [{ origin: "http://app.example" }, false]
      ]
      for (const [headers, allowed] of tries) {
        const made = yield* call("POST", "/api/agents", { cookie, headers, body: { name: "Helper" } })
        expect([headers, made.status]).toEqual([headers, allowed ? 201 : 403])
        // People who opened another name of the server learn the right one.
        if (!allowed) expect(made.error.message).toContain(`${appUrl}: open the dashboard there`)
        const login = yield* call("POST", "/api/auth/login", { headers, body: { email, password } })
        expect([headers, login.status]).toEqual([headers, allowed ? 200 : 403])
      }
      const read = yield* call("GET", "/api/agents", { cookie, headers: { origin: "https://evil.example" } })
      expect(read.status).toBe(200)
    })
  )

  it.effect("answer 400 to an invalid body, with the field and without its content", () =>
    Effect.gen(function* () {
      yield* reset
      const { cookie } = yield* signedIn(email)
      const agentId = yield* newAgent(cookie)
      const agents = "/api/agents"
      const keys = `/api/agents/${agentId}/keys`
      const made = yield* call("POST", keys, { cookie, body: key })
      const patch = `/api/keys/${made.data.key.id}`
      const origin = (text: string) => ({ ...key, allowedOrigins: [text] })
      const bad: ReadonlyArray<readonly [method: string, path: string, body: unknown, field: string]> = [
        ["POST", agents, {}, "name"],
        ["POST", agents, { name: "\u0000 " }, "name"],
        ["POST", agents, { name: "A", model: null }, "model"],
        ["POST", agents, { name: "A", retrieval: { topK: 0 } }, "retrieval.topK"],
        ["POST", agents, { name: "A", retrieval: { topK: 21 } }, "retrieval.topK"],
        ["PATCH", `${agents}/${agentId}`, { name: null }, "name"],
        ["PATCH", `${agents}/${agentId}`, { instructions: "SECRET".repeat(6_000) }, "instructions"],
        ["POST", keys, { name: "k" }, "permissions"],
        ["POST", keys, { name: "k", permissions: [] }, "permissions"],
        ["POST", keys, { name: "k", permissions: ["SECRET"] }, "permissions.0"],
        ["POST", keys, { ...key, expiresAt: "2001-01-01T00:00:00Z" }, "expiresAt"],
        ["POST", keys, { ...key, expiresAt: "SECRET" }, "expiresAt"],
        ["POST", keys, { ...key, expiresAt: "+275760-09-13T00:00:00.000Z" }, "expiresAt"],
        ["POST", keys, origin("https://shop.example/SECRET"), "allowedOrigins.0"],
        ["POST", keys, origin("https://shop.example?SECRET"), "allowedOrigins.0"],
        ["POST", keys, origin("https://SECRET@shop.example"), "allowedOrigins.0"],
        ["POST", keys, origin("https://*.shop.example"), "allowedOrigins.0"],
        ["POST", keys, origin("shop.example"), "allowedOrigins.0"],
        ["POST", keys, origin("ftp://shop.example"), "allowedOrigins.0"],
        ["POST", keys, origin("null"), "allowedOrigins.0"],
        ["POST", keys, origin("https://shop.example:99999"), "allowedOrigins.0"],
        ["POST", "/api/keys", { name: "k", permissions: ["chat"] }, "scope"],
        ["PATCH", patch, { name: " " }, "name"],
        ["PATCH", patch, { active: null }, "active"],
        ["PATCH", patch, { expiresAt: "2001-01-01T00:00:00Z" }, "expiresAt"],
        ["POST", "/api/auth/login", { email }, "password"],
        ["POST", "/api/auth/login", { email: "SECRET", password }, "email"],
        ["POST", "/api/auth/login", { email, password: "SECRET".repeat(40) }, "password"]
      ]
      for (const [method, path, body, field] of bad) {
        const answer = yield* call(method, path, { cookie, body })
        expect([field, body, ...outcome(answer)]).toEqual([field, body, 400, "VALIDATION_ERROR"])
        expect(pathsOf(answer)).toContain(field)
        expect(answer.text).not.toContain("SECRET")
      }
    })
  )
})

layer(Server(), { excludeTestServices: true })("Signing in", (it) => {
  it.effect("answers with the user, and a cookie that scripts and other sites cannot read", () =>
    Effect.gen(function* () {
      yield* reset
      const { tenantId } = yield* signedIn(email)
      const login = yield* call("POST", "/api/auth/login", { body: { email: " ADA@example.com", password } })
      const user = { id: expect.stringMatching(/^mbr_/), email, role: "owner", tenantId }
      expect([login.status, login.data]).toEqual([200, { user }])
      const [cookie = ""] = login.headers.getSetCookie()
      expect(cookie).toMatch(/^spoke_session=[A-Za-z0-9_-]{43}; /)
      const attributes = cookie.split("; ").slice(1)
      expect(attributes.toSorted()).toEqual([
        "HttpOnly",
        "Max-Age=2592000",
        "Path=/",
        "SameSite=Lax",
        "Secure"
      ])
      const session = yield* call("GET", "/api/auth/session", { cookie: cookieOf(login) })
      expect([session.status, session.data]).toEqual([200, { user }])
    })
  )

  it.effect("ends with a sign-out: the cookie is removed and its session is deleted", () =>
    Effect.gen(function* () {
      yield* reset
      const { cookie } = yield* signedIn(email)
      const out = yield* call("POST", "/api/auth/logout", { cookie })
      expect([out.status, out.data]).toEqual([200, { signedOut: true }])
      expect(out.headers.getSetCookie()[0]).toMatch(/^spoke_session=; Max-Age=0; /)
      expect(outcome(yield* call("GET", "/api/auth/session", { cookie }))).toEqual([401, "UNAUTHORIZED"])
      expect(outcome(yield* call("POST", "/api/auth/logout", { cookie }))).toEqual([401, "UNAUTHORIZED"])
    })
  )

  it.effect("is 401 without telling whether e-mail address or password was wrong", () =>
    Effect.gen(function* () {
      yield* reset
      yield* signedIn(email)
      const wrong = yield* call("POST", "/api/auth/login", { body: { email, password: "wrong" } })
      const unknown = yield* call("POST", "/api/auth/login", { body: { email: "no@example.com", password } })
      expect(outcome(wrong)).toEqual([401, "UNAUTHORIZED"])
      expect(unknown.error).toEqual(wrong.error)
      expect(wrong.headers.getSetCookie()).toEqual([])
      for (const cookie of ["", "spoke_session=", "spoke_session=x", "spoke_session=%00%ff"]) {
        expect(outcome(yield* call("GET", "/api/auth/session", { cookie }))).toEqual([401, "UNAUTHORIZED"])
      }
    })
  )

  it.effect("is 429 with retry-after once ten attempts have failed, with the right password too", () =>
    Effect.gen(function* () {
      yield* reset
      yield* signedIn(email)
      const guess = call("POST", "/api/auth/login", { body: { email, password: "wrong" } })
      for (const _ of Array(10)) expect((yield* guess).status).toBe(401)
      const right = yield* call("POST", "/api/auth/login", { body: { email, password } })
      expect(outcome(right)).toEqual([429, "RATE_LIMITED"])
      const seconds = Number(right.headers.get("retry-after"))
      expect(seconds > 880 && seconds <= 900).toBe(true)
      const other = { email: "eve@example.com", password }
      expect((yield* call("POST", "/api/auth/login", { body: other })).status).toBe(401)
    })
  )
})

describe("An app that is served over http", () => {
  unit.scopedLive("has a cookie that is not Secure", () =>
    Effect.gen(function* () {
      yield* reset
      yield* signedIn(email)
      const headers = { origin: "http://127.0.0.1:3000" }
      const login = yield* call("POST", "/api/auth/login", { headers, body: { email, password } })
      expect(login.headers.getSetCookie()[0]).not.toContain("Secure")
    }).pipe(Effect.provide(Server({ appUrl: "http://127.0.0.1:3000/" })))
  )
})
