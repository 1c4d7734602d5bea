import { expect, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { reset, TestDatabase } from "../../TestDatabase.ts"
import { accountsServer, type Answer, call, cookieOf, operate, password, signedIn } from "./AccountsServer.ts"

const Server = accountsServer().pipe(Layer.provideMerge(TestDatabase))

const outcome = ({ status, error }: Answer) => [status, error?.code]

const signIn = (email: string, secret = password) =>
  call("POST", "/api/auth/login", { body: { email, password: secret } })

const add = (cookie: string, email: string, role: string) =>
  call("POST", "/api/users", { cookie, body: { email, role, password } })

layer(Server, { excludeTestServices: true })("The team", (it) => {
  it.effect("invites with a token that is shown once and sets one password", () =>
    Effect.gen(function* () {
      yield* reset
      const { cookie, tenantId } = yield* signedIn("ada@example.com")
      const made = yield* call("POST", "/api/users", {
        cookie,
        body: { email: "Bob@Example.com", role: "agent" }
      })
      expect(made.status).toBe(201)
      expect(made.data.user).toEqual({
        id: expect.stringMatching(/^mbr_/),
        tenantId,
        email: "bob@example.com",
        role: "agent",
        invited: true,
        active: true,
        createdAt: expect.any(String)
      })
      const { token } = made.data.invitation
      const listed = yield* call("GET", "/api/users", { cookie })
      expect(listed.data.users.map(({ email }: { email: string }) => email)).toEqual([
        "ada@example.com",
        "bob@example.com"
      ])
      expect(listed.text).not.toContain(token)
      const body = { token, password: "bob's own password" }
      const chosen = yield* call("POST", "/api/auth/password", { body })
      expect([chosen.status, chosen.data.user.invited]).toEqual([200, false])
      const { data: trail } = yield* call("GET", "/api/audit?limit=1", { cookie })
      const { id } = made.data.user
      expect(trail.entries).toMatchObject([
        { action: "user.password", actor: { type: "user", id }, target: id }
      ])
      expect(outcome(yield* call("POST", "/api/auth/password", { body }))).toEqual([401, "UNAUTHORIZED"])
      expect((yield* signIn("bob@example.com", body.password)).status).toBe(200)
      expect(outcome(yield* add(cookie, "ada@example.com", "viewer"))).toEqual([409, "CONFLICT"])
    })
  )

  it.effect("voids the older invitation, and ends sessions when a new password is chosen", () =>
    Effect.gen(function* () {
      yield* reset
      const { cookie } = yield* signedIn("ada@example.com")
      const { data } = yield* add(cookie, "bob@example.com", "viewer")
      expect([data.invitation, data.user.invited]).toEqual([null, false])
      const bob = cookieOf(yield* signIn("bob@example.com"))
      const path = `/api/users/${data.user.id}/invitation`
      const first = (yield* call("POST", path, { cookie })).data.invitation.token
      const second = (yield* call("POST", path, { cookie })).data.invitation.token
      const choose = (token: string) =>
        call("POST", "/api/auth/password", { body: { token, password: "another password" } })
      expect(outcome(yield* choose(first))).toEqual([401, "UNAUTHORIZED"])
      expect((yield* call("GET", "/api/auth/session", { cookie: bob })).status).toBe(200)
      expect((yield* choose(second)).status).toBe(200)
      expect((yield* call("GET", "/api/auth/session", { cookie: bob })).status).toBe(401)
      expect((yield* signIn("bob@example.com")).status).toBe(401)
    })
  )

  it.effect("keeps its last owner, and lets only owners change owners", () =>
    Effect.gen(function* () {
      yield* reset
      const { cookie } = yield* signedIn("ada@example.com")
      const ada = (yield* call("GET", "/api/auth/session", { cookie })).data.user.id
      expect(outcome(yield* call("PATCH", `/api/users/${ada}`, { cookie, body: { role: "admin" } }))).toEqual(
        [409, "CONFLICT"]
      )
      expect(outcome(yield* call("DELETE", `/api/users/${ada}`, { cookie }))).toEqual([409, "CONFLICT"])
      const { data } = yield* add(cookie, "bob@example.com", "admin")
      const bob = cookieOf(yield* signIn("bob@example.com"))
      for (const [method, path, body] of [
        ["PATCH", `/api/users/${ada}`, { role: "viewer" }],
        ["PATCH", `/api/users/${data.user.id}`, { role: "owner" }],
        ["DELETE", `/api/users/${ada}`, undefined],
        ["POST", `/api/users/${ada}/invitation`, undefined],
        ["POST", "/api/users", { email: "eve@example.com", role: "owner" }]
      ] as const) {
        const refused = yield* call(method, path, { cookie: bob, ...(body === undefined ? {} : { body }) })
        expect([method, path, ...outcome(refused)]).toEqual([method, path, 403, "FORBIDDEN"])
      }
      // Two owners who demote each other at the same time: one of them stays.
      yield* call("PATCH", `/api/users/${data.user.id}`, { cookie, body: { role: "owner" } })
      const demote = (id: string, by: string) =>
        call("PATCH", `/api/users/${id}`, { cookie: by, body: { role: "viewer" } })
      const both = yield* Effect.all([demote(ada, bob), demote(data.user.id, cookie)], { concurrency: 2 })
      expect(both.filter(({ status }) => status === 200)).toHaveLength(1)
    })
  )

  it.effect("signs out demoted and removed members at once", () =>
    Effect.gen(function* () {
      yield* reset
      const { cookie } = yield* signedIn("ada@example.com")
      const { data } = yield* add(cookie, "bob@example.com", "admin")
      const path = `/api/users/${data.user.id}`
      const open = Effect.map(signIn("bob@example.com"), cookieOf)
      const status = (session: string) =>
        Effect.map(call("GET", "/api/auth/session", { cookie: session }), (answer) => answer.status)
      const before = yield* open
      yield* call("PATCH", path, { cookie, body: { role: "viewer" } })
      expect(yield* status(before)).toBe(401)
      const demoted = yield* open
      expect(outcome(yield* call("GET", "/api/audit", { cookie: demoted }))).toEqual([403, "FORBIDDEN"])
      expect(outcome(yield* add(demoted, "eve@example.com", "viewer"))).toEqual([403, "FORBIDDEN"])
      expect((yield* call("DELETE", path, { cookie })).data).toEqual({ id: data.user.id, deleted: true })
      expect(yield* status(demoted)).toBe(401)
      const stranger = yield* signedIn("sue@example.org")
      const theirs = yield* call("GET", "/api/users", { cookie: stranger.cookie })
      expect(theirs.data.users).toHaveLength(1)
      const ada = (yield* call("GET", "/api/auth/session", { cookie })).data.user.id
      expect(outcome(yield* call("DELETE", `/api/users/${ada}`, { cookie: stranger.cookie }))).toEqual([
        404,
        "NOT_FOUND"
      ])
    })
  )
})

layer(Server, { excludeTestServices: true })("The audit trail", (it) => {
  it.effect(
    "lists who changed agents, keys, users and subscriptions, by ids, newest first, page by page",
    () =>
      Effect.gen(function* () {
        yield* reset
        const { cookie, tenantId } = yield* signedIn("ada@example.com")
        const ada = (yield* call("GET", "/api/auth/session", { cookie })).data.user.id
        const agent = (yield* call("POST", "/api/agents", { cookie, body: { name: "Helper" } })).data.agent.id
        yield* call("PATCH", `/api/agents/${agent}`, { cookie, body: { name: "Other" } })
        yield* call("PATCH", "/api/agents/agt_none", { cookie, body: { name: "Other" } })
        const key = (yield* call("POST", `/api/agents/${agent}/keys`, {
          cookie,
          body: { name: "Shop", permissions: ["chat"] }
        })).data.key.id
        yield* call("PATCH", `/api/keys/${key}`, { cookie, body: { active: false } })
        yield* call("DELETE", `/api/keys/${key}`, { cookie })
        const bob = (yield* add(cookie, "bob@example.com", "viewer")).data.user.id
        yield* call("DELETE", `/api/users/${bob}`, { cookie })
        yield* call("DELETE", `/api/agents/${agent}`, { cookie, headers: { "x-request-id": "mine" } })
        yield* operate("PUT", `/api/operator/tenants/${tenantId}/subscription`, {
          body: {
            plan: "pro",
            entitlements: { publicApi: true, turns: 1, ingestionJobs: 1, sources: 1, overageEnabled: false }
          }
        })
        const first = yield* call("GET", "/api/audit?limit=4", { cookie })
        const cursor = encodeURIComponent(first.data.nextCursor)
        const second = yield* call("GET", `/api/audit?limit=100&cursor=${cursor}`, { cookie })
        expect(second.data.nextCursor).toBe(null)
        const entries = [...first.data.entries, ...second.data.entries]
        expect(entries.map(({ action, target }) => [action, target])).toEqual([
          ["subscription.update", tenantId],
          ["agent.delete", agent],
          ["user.delete", bob],
          ["user.create", bob],
          ["key.revoke", key],
          ["key.update", key],
          ["key.create", key],
          ["agent.update", agent],
          ["agent.create", agent]
        ])
        expect(entries[0].actor).toEqual({ type: "operator", id: "operator" })
        expect(entries[1]).toEqual({
          id: expect.stringMatching(/^aud_/),
          at: expect.any(String),
          actor: { type: "user", id: ada },
          actorName: "ada@example.com",
          action: "agent.delete",
          target: agent,
          // It is gone.
          targetName: null,
          requestId: "mine"
        })
        const stranger = yield* signedIn("sue@example.org")
        expect((yield* call("GET", "/api/audit", { cookie: stranger.cookie })).data.entries).toEqual([])
      })
  )

  it.effect("is available to the tenant, and the subscription to the operator", () =>
    Effect.gen(function* () {
      yield* reset
      const { cookie, tenantId } = yield* signedIn("ada@example.com")
      const path = `/api/operator/tenants/${tenantId}/subscription`
      expect((yield* operate("GET", path)).data).toMatchObject({
        subscription: { plan: "self-hosted", status: "active", period: null },
        credits: { granted: 0, used: 0 }
      })
      expect(outcome(yield* operate("GET", "/api/operator/tenants/ten_none/subscription"))).toEqual([
        404,
        "NOT_FOUND"
      ])
      const usage = yield* call("GET", "/api/usage", { cookie })
      expect(usage.data).toMatchObject({ turns: { used: 0, limit: 1_000_000 }, agents: [], days: [] })
    })
  )
})
