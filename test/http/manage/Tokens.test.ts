import { expect, layer } from "@effect/vitest"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { reset, TestDatabase } from "../../TestDatabase.ts"
import {
  accountsServer,
  type Answer,
  call,
  cookieOf,
  password,
  signedIn
} from "../accounts/AccountsServer.ts"

const Server = accountsServer().pipe(Layer.provideMerge(TestDatabase))

const outcome = ({ status, error }: Answer) => [status, error?.code]

const manage = (secret: string, method: string, path: string, body?: unknown) =>
  call(method, `/api/manage/v1${path}`, {
    headers: { authorization: `Bearer ${secret}`, origin: "" },
    ...(body === undefined ? {} : { body })
  })

const newToken = (cookie: string, scopes: ReadonlyArray<string>, more: object = {}) =>
  Effect.map(
    call("POST", "/api/tokens", { cookie, body: { name: "Deploy", scopes, ...more } }),
    ({ data }): { id: string; secret: string } => ({ id: data.token.id, secret: data.secret })
  )

const helper = { name: "Helper" }

layer(Server, { excludeTestServices: true })("An access token", (it) => {
  it.effect("is shown with its secret once, listed without it, and revoked for good", () =>
    Effect.gen(function* () {
      yield* reset
      const { cookie } = yield* signedIn("ada@example.com")
      const made = yield* call("POST", "/api/tokens", {
        cookie,
        body: { name: " Deploy ", scopes: ["agents:*", "agents:*"], expiresAt: "2999-01-01T00:00:00Z" }
      })
      expect(made.status).toBe(201)
      expect(made.data.secret).toMatch(/^spt_[A-Za-z0-9_-]{43}$/)
      const shown = {
        id: expect.stringMatching(/^tok_/),
        name: "Deploy",
        prefix: made.data.secret.slice(0, 12),
        scopes: ["agents:*"],
        status: "ACTIVE",
        user: { id: expect.stringMatching(/^mbr_/), email: "ada@example.com" },
        expiresAt: "2999-01-01T00:00:00.000Z",
        lastUsedAt: null,
        createdAt: expect.any(String)
      }
      expect(made.data.token).toEqual(shown)
      const listed = yield* call("GET", "/api/tokens?limit=1", { cookie })
      expect(listed.data).toEqual({ tokens: [shown], nextCursor: null })
      const sql = yield* SqlClient.SqlClient
      const rows = yield* sql<{ readonly row: string }>`select t::text as row from access_tokens t`
      expect(rows.some(({ row }) => row.includes(made.data.secret.slice(13)))).toBe(false)

      const { secret } = made.data
      expect(outcome(yield* manage(secret, "GET", "/agents"))).toEqual([200, undefined])
      const path = `/api/tokens/${made.data.token.id}`
      expect((yield* call("DELETE", path, { cookie })).data).toEqual({
        id: made.data.token.id,
        deleted: true
      })
      expect(outcome(yield* manage(secret, "GET", "/agents"))).toEqual([401, "UNAUTHORIZED"])
      expect((yield* call("DELETE", path, { cookie })).status).toBe(200)
      expect((yield* call("GET", "/api/tokens", { cookie })).data.tokens[0].status).toBe("REVOKED")
      const { data } = yield* call("GET", "/api/audit", { cookie })
      expect(data.entries.map(({ action }: { readonly action: string }) => action)).toEqual([
        "token.revoke",
        "token.revoke",
        "token.create"
      ])
    })
  )

  it.effect("is refused with the reason, and nothing is created", () =>
    Effect.gen(function* () {
      yield* reset
      const { cookie } = yield* signedIn("ada@example.com")
      for (const [body, path] of [
        [{ name: "A", scopes: [] }, "scopes"],
        [{ name: "A", scopes: ["agents:delete"] }, "scopes"],
        [{ name: "A", scopes: ["tokens:write"] }, "scopes"],
        [{ name: "A", scopes: ["agents"] }, "scopes"],
        [{ name: "", scopes: ["*"] }, "name"],
        [{ name: "A", scopes: ["*"], expiresAt: "2001-01-01T00:00:00Z" }, "expiresAt"]
      ] as const) {
        const refused = yield* call("POST", "/api/tokens", { cookie, body })
        expect(outcome(refused)).toEqual([400, "VALIDATION_ERROR"])
        expect(refused.error.details.issues[0].path[0]).toBe(path)
      }
      const unknown = yield* call("POST", "/api/tokens", {
        cookie,
        body: { name: "A", scopes: ["shop:read"] }
      })
      expect(unknown.error.details.issues[0].message).toContain("resource:verb")
      expect((yield* call("GET", "/api/tokens", { cookie })).data.tokens).toEqual([])
    })
  )

  it.effect("may do only what its scopes allow, and is named in the audit trail", () =>
    Effect.gen(function* () {
      yield* reset
      const { cookie } = yield* signedIn("ada@example.com")
      for (const [scopes, reads, writes] of [
        [["agents:read"], 200, 403],
        [["agents:write"], 200, 201],
        [["agents:*"], 200, 201],
        [["*:read"], 200, 403],
        [["*:write"], 200, 201],
        [["*"], 200, 201],
        [["sources:*", "team:write"], 403, 403]
      ] as const) {
        const { secret } = yield* newToken(cookie, scopes)
        const read = yield* manage(secret, "GET", "/agents")
        const wrote = yield* manage(secret, "POST", "/agents", helper)
        expect([scopes, read.status, wrote.status]).toEqual([scopes, reads, writes])
      }
      const { id, secret } = yield* newToken(cookie, ["agents:write"])
      const made = yield* manage(secret, "POST", "/agents", helper)
      const seen = yield* call("GET", `/api/agents/${made.data.agent.id}`, { cookie })
      expect(seen.data).toEqual(made.data)
      const { data } = yield* call("GET", "/api/audit?limit=1", { cookie })
      expect(data.entries[0]).toMatchObject({
        actor: { type: "token", id },
        action: "agent.create",
        target: made.data.agent.id
      })
    })
  )

  it.effect("is limited by the current role of its creator, and ends with them", () =>
    Effect.gen(function* () {
      yield* reset
      const owner = yield* signedIn("ada@example.com")
      const grace = yield* call("POST", "/api/users", {
        cookie: owner.cookie,
        body: { email: "grace@example.com", role: "admin", password }
      })
      const login = yield* call("POST", "/api/auth/login", { body: { email: "grace@example.com", password } })
      const { secret } = yield* newToken(cookieOf(login), ["*"])
      const path = `/api/users/${grace.data.user.id}`
      const become = (role: string) => call("PATCH", path, { cookie: owner.cookie, body: { role } })
      const tried = Effect.all([
        Effect.map(manage(secret, "GET", "/agents"), ({ status }) => status),
        Effect.map(manage(secret, "POST", "/agents", helper), ({ status }) => status)
      ])
      expect(yield* tried).toEqual([200, 201])
      expect((yield* become("viewer")).status).toBe(200)
      expect(yield* tried).toEqual([200, 403])
      expect((yield* become("admin")).status).toBe(200)
      expect(yield* tried).toEqual([200, 201])
      expect((yield* call("DELETE", path, { cookie: owner.cookie })).status).toBe(200)
      expect(yield* tried).toEqual([401, 401])
    })
  )

  it.effect("ends when the password is replaced, because anyone who knew it may have created the token", () =>
    Effect.gen(function* () {
      yield* reset
      const { cookie } = yield* signedIn("ada@example.com")
      const grace = yield* call("POST", "/api/users", {
        cookie,
        body: { email: "grace@example.com", role: "admin", password }
      })
      const login = yield* call("POST", "/api/auth/login", { body: { email: "grace@example.com", password } })
      const { secret } = yield* newToken(cookieOf(login), ["*"])
      const invited = yield* call("POST", `/api/users/${grace.data.user.id}/invitation`, { cookie })
      const { token } = invited.data.invitation
      expect((yield* manage(secret, "GET", "/agents")).status).toBe(200)
      const chosen = yield* call("POST", "/api/auth/password", { body: { token, password: "another horse" } })
      expect(chosen.status).toBe(200)
      expect(outcome(yield* manage(secret, "GET", "/agents"))).toEqual([401, "UNAUTHORIZED"])
    })
  )

  it.effect("ends at its expiry", () =>
    Effect.gen(function* () {
      yield* reset
      const { cookie } = yield* signedIn("ada@example.com")
      const { id, secret } = yield* newToken(cookie, ["*"], { expiresAt: "2999-01-01T00:00:00Z" })
      const sql = yield* SqlClient.SqlClient
      yield* sql`update access_tokens set expires_at = now() - interval '1 second' where id = ${id}`
      expect(outcome(yield* manage(secret, "GET", "/agents"))).toEqual([401, "UNAUTHORIZED"])
      expect((yield* call("GET", "/api/tokens", { cookie })).data.tokens[0].status).toBe("EXPIRED")
    })
  )

  it.effect("stores when it was last used, at most once a minute", () =>
    Effect.gen(function* () {
      yield* reset
      const { cookie } = yield* signedIn("ada@example.com")
      const { secret } = yield* newToken(cookie, ["*"])
      const sql = yield* SqlClient.SqlClient
      const row = Effect.map(
        sql<{ readonly at: string | null; readonly xmin: string }>`
          select last_used_at::text as at, xmin::text as xmin from access_tokens`,
        ([found]) => found
      )
      yield* manage(secret, "GET", "/agents")
      const first = yield* row
      expect(first?.at).not.toBe(null)
      yield* manage(secret, "GET", "/agents")
      expect(yield* row).toEqual(first)
      yield* sql`update access_tokens set last_used_at = now() - interval '61 seconds'`
      const old = yield* row
      yield* manage(secret, "GET", "/agents")
      expect((yield* row)?.at).not.toBe(old?.at)
    })
  )

  it.effect("is created, listed and revoked only by sessions of admins", () =>
    Effect.gen(function* () {
      yield* reset
      const { cookie } = yield* signedIn("ada@example.com")
      const { secret } = yield* newToken(cookie, ["*"])
      const headers = { authorization: `Bearer ${secret}` }
      expect((yield* call("GET", "/api/tokens", { headers })).status).toBe(401)
      expect((yield* manage(secret, "GET", "/tokens")).status).toBe(404)
      yield* call("POST", "/api/users", {
        cookie,
        body: { email: "eve@example.com", role: "agent", password }
      })
      const login = yield* call("POST", "/api/auth/login", { body: { email: "eve@example.com", password } })
      const body = { name: "Mine", scopes: ["*"] }
      expect((yield* call("POST", "/api/tokens", { cookie: cookieOf(login), body })).status).toBe(403)
    })
  )
})
