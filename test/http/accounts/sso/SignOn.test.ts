import * as SqlClient from "@effect/sql/SqlClient"
import { expect, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Runtime from "effect/Runtime"
import * as Layer from "effect/Layer"
import { reset, TestDatabase } from "../../../TestDatabase.ts"
import { accountsServer, call, operate, signedIn } from "../AccountsServer.ts"
import { clientId, clientSecret, fakeProvider, type Person, realProvider } from "./Providers.ts"
import {
  auditActions,
  returnFromProvider,
  beginSignOn,
  connectedTenant,
  redirectUri,
  settings,
  signIn,
  sessionUser
} from "./SignOnWorld.ts"

const Server = accountsServer().pipe(Layer.provideMerge(TestDatabase))

layer(Server, { excludeTestServices: true })("Single sign-on at a real provider", (it) => {
  it.scoped("adds a user at the first sign-in, and identifies them afterwards only by their subject", () =>
    Effect.gen(function* () {
      const people = new Map<string, Person>([["a1", { email: "ada@acme.example", email_verified: true }]])
      const issuer = yield* realProvider(redirectUri, people)
      const { cookie } = yield* connectedTenant(issuer)
      const first = yield* signIn("a1")
      expect(first.location).toBe("/app")
      expect(yield* sessionUser(first.session)).toEqual({ email: "ada@acme.example", role: "viewer" })
      expect(yield* auditActions(cookie)).toContain("user.create")
      people.set("a1", { email: "another@elsewhere.example", email_verified: false })
      const second = yield* signIn("a1")
      expect(yield* sessionUser(second.session)).toEqual({ email: "ada@acme.example", role: "viewer" })
      const { users } = (yield* call("GET", "/api/users", { cookie })).data
      expect(users.map(({ email, invited }: Record<string, unknown>) => [email, invited])).toEqual([
        ["owner@acme.example", false],
        ["ada@acme.example", false]
      ])
    })
  )

  it.scoped("links a member by a verified address, once: another person with it is refused", () =>
    Effect.gen(function* () {
      const people = new Map<string, Person>([
        ["b1", { email: "owner@acme.example", email_verified: true }],
        ["b2", { email: "owner@acme.example", email_verified: true }]
      ])
      const { cookie } = yield* connectedTenant(yield* realProvider(redirectUri, people))
      const linked = yield* signIn("b1")
      expect(yield* sessionUser(linked.session)).toEqual({ email: "owner@acme.example", role: "owner" })
      expect(yield* auditActions(cookie)).toContain("user.link")
      expect((yield* signIn("b2")).location).toBe("/app?sso=account")
    })
  )

  it.scoped(
    "takes over no account: not by an address of another tenant, of another domain, or without verification",
    () =>
      Effect.gen(function* () {
        const people = new Map<string, Person>([
          ["c1", { email: "eve@elsewhere.example", email_verified: true }],
          ["c2", { email: "boss@acme.example", email_verified: true }],
          ["c3", { email: "owner@acme.example", email_verified: false }],
          ["c4", { email: "owner@acme.example" }],
          ["c5", {}],
          ["c6", { email: "eve@sub.acme.example", email_verified: true }]
        ])
        yield* connectedTenant(yield* realProvider(redirectUri, people))
        // A user of another tenant, with an address in this tenant's domain.
        yield* signedIn("boss@acme.example")
        for (const [login, location] of [
          ["c1", "/app?sso=account"],
          ["c2", "/app?sso=account"],
          ["c3", "/app?sso=email"],
          ["c4", "/app?sso=email"],
          ["c5", "/app?sso=email"],
          ["c6", "/app?sso=account"]
        ] as const) {
          const refused = yield* signIn(login)
          expect([login, refused.location, refused.session]).toEqual([login, location, undefined])
        }
        const sql = yield* SqlClient.SqlClient
        expect(yield* sql`select 1 from user_identities`).toEqual([])
      })
  )

  it.scoped("trusts an unverified address only if the connection allows it", () =>
    Effect.gen(function* () {
      const people = new Map<string, Person>([["d1", { email: "ada@acme.example" }]])
      yield* connectedTenant(yield* realProvider(redirectUri, people), { trustsEmail: true })
      expect((yield* signIn("d1")).location).toBe("/app")
    })
  )

  it.scoped("gives the highest role of the groups at each sign-in, and none without a group", () =>
    Effect.gen(function* () {
      const ada = (groups: ReadonlyArray<string>): Person => ({
        email: "ada@acme.example",
        email_verified: true,
        groups
      })
      const people = new Map<string, Person>([["e1", ada(["staff"])]])
      const { cookie } = yield* connectedTenant(yield* realProvider(redirectUri, people), {
        groupRoles: [
          { group: "staff", role: "agent" },
          { group: "it", role: "admin" }
        ],
        defaultRole: null
      })
      const first = yield* signIn("e1")
      expect(yield* sessionUser(first.session)).toMatchObject({ role: "agent" })
      people.set("e1", ada(["it", "staff"]))
      const second = yield* signIn("e1")
      expect(yield* sessionUser(second.session)).toMatchObject({ role: "admin" })
      const token = yield* call("POST", "/api/tokens", {
        cookie: second.session ?? "",
        body: { name: "Deploy", scopes: ["*"] }
      })
      const headers = { authorization: `Bearer ${token.data.secret}` }
      expect((yield* call("GET", "/api/manage/v1/agents", { headers })).status).toBe(200)
      people.set("e1", ada(["staff"]))
      const third = yield* signIn("e1")
      expect(yield* sessionUser(third.session)).toMatchObject({ role: "agent" })
      // A demotion ends what was open.
      expect(yield* sessionUser(second.session)).toBe(401)
      people.set("e1", ada([]))
      expect((yield* signIn("e1")).location).toBe("/app?sso=role")
      expect((yield* auditActions(cookie)).filter((action: string) => action === "user.update")).toHaveLength(
        2
      )
    })
  )

  it.scoped("ends the sessions of a user whose groups no longer give a role", () =>
    Effect.gen(function* () {
      const person = { email: "ada@acme.example", email_verified: true }
      const people = new Map<string, Person>([["h1", { ...person, groups: ["staff"] }]])
      yield* connectedTenant(yield* realProvider(redirectUri, people), {
        groupRoles: [{ group: "staff", role: "admin" }],
        defaultRole: null
      })
      const { session } = yield* signIn("h1")
      expect(yield* sessionUser(session)).toMatchObject({ role: "admin" })
      people.set("h1", { ...person, groups: [] })
      expect((yield* signIn("h1")).location).toBe("/app?sso=role")
      expect(yield* sessionUser(session)).toBe(401)
      people.set("h1", { ...person, groups: ["staff"] })
      expect(yield* sessionUser((yield* signIn("h1")).session)).toMatchObject({ role: "admin" })
    })
  )

  it.scoped("never demotes the last owner", () =>
    Effect.gen(function* () {
      const people = new Map<string, Person>([
        ["f1", { email: "owner@acme.example", email_verified: true, groups: ["staff"] }]
      ])
      yield* connectedTenant(yield* realProvider(redirectUri, people), {
        groupRoles: [{ group: "staff", role: "viewer" }],
        defaultRole: null
      })
      const signed = yield* signIn("f1")
      expect(yield* sessionUser(signed.session)).toEqual({ email: "owner@acme.example", role: "owner" })
      people.set("f1", { email: "owner@acme.example", email_verified: true, groups: [] })
      expect(yield* sessionUser((yield* signIn("f1")).session)).toMatchObject({ role: "owner" })
    })
  )

  it.scoped("adds nobody if the connection forbids it", () =>
    Effect.gen(function* () {
      const people = new Map<string, Person>([["g1", { email: "ada@acme.example", email_verified: true }]])
      yield* connectedTenant(yield* realProvider(redirectUri, people), { createsPeople: false })
      expect((yield* signIn("g1")).location).toBe("/app?sso=account")
    })
  )
})

layer(Server, { excludeTestServices: true })("What a provider answers", (it) => {
  const attempt = (change: (provider: Effect.Effect.Success<typeof fakeProvider>) => void) =>
    Effect.gen(function* () {
      const provider = yield* fakeProvider
      yield* connectedTenant(provider.issuer)
      change(provider)
      const { flow, page } = yield* beginSignOn()
      const returned = yield* returnFromProvider(new URLSearchParams(provider.approve(page)), flow)
      return [returned.location, returned.session !== undefined] as const
    })
  const over = (claims: Readonly<Record<string, unknown>>) =>
    attempt(({ answers }) => (answers.claims = (made) => ({ ...made, ...claims })))
  const now = () => Math.floor(Date.now() / 1_000)

  it.scoped("signs in if everything is correct", () =>
    Effect.gen(function* () {
      expect(yield* attempt(() => undefined)).toEqual(["/app", true])
      // Clocks differ a little.
      expect(yield* over({ iat: now() + 30, exp: now() + 300 })).toEqual(["/app", true])
    })
  )

  it.scoped("is refused with a wrong nonce, audience, issuer, time or authorized party", () =>
    Effect.gen(function* () {
      const wrong: ReadonlyArray<Readonly<Record<string, unknown>>> = [
        { nonce: "another" },
        { nonce: undefined },
        { aud: "another-client" },
        { aud: [clientId, "another-client"], azp: "another-client" },
        { iss: "https://accounts.example" },
        { exp: now() - 120 },
        { exp: undefined },
        { iat: now() + 3_600, exp: now() + 7_200 },
        { iat: undefined },
        { sub: "" },
        { sub: undefined }
      ]
      for (const claims of wrong) {
        expect([claims, yield* over(claims)]).toEqual([claims, ["/app?sso=provider", false]])
      }
    })
  )

  it.scoped(
    "is refused without a signature, signed with the client's secret, and signed with another key",
    () =>
      Effect.gen(function* () {
        expect(yield* attempt(({ answers }) => (answers.alg = "none"))).toEqual(["/app?sso=provider", false])
        expect(yield* attempt(({ answers }) => (answers.alg = "HS256"))).toEqual(["/app?sso=provider", false])
        expect(yield* attempt(({ answers }) => (answers.forged = true))).toEqual(["/app?sso=provider", false])
      })
  )

  it.scoped("is verified with a new key at once after the provider has rotated it", () =>
    Effect.gen(function* () {
      const provider = yield* fakeProvider
      yield* connectedTenant(provider.issuer)
      const once = Effect.gen(function* () {
        const { flow, page } = yield* beginSignOn()
        return (yield* returnFromProvider(new URLSearchParams(provider.approve(page)), flow)).location
      })
      expect(yield* once).toBe("/app")
      expect(yield* once).toBe("/app")
      // The description and the keys are kept.
      expect(provider.requests.filter((line) => line === "GET /keys")).toHaveLength(1)
      provider.rotate("second")
      expect(yield* once).toBe("/app")
    })
  )

  it.scoped(
    "is refused from another browser, a second time, with another state, and from another issuer",
    () =>
      Effect.gen(function* () {
        const provider = yield* fakeProvider
        yield* connectedTenant(provider.issuer)
        const { flow, page } = yield* beginSignOn()
        const other = yield* beginSignOn()
        const good = provider.approve(page)
        const go = (query: Record<string, string>, cookie: string) =>
          Effect.map(returnFromProvider(new URLSearchParams(query), cookie), ({ location }) => location)
        expect(yield* go(good, "")).toBe("/app?sso=retry")
        expect(yield* go(good, other.flow)).toBe("/app?sso=retry")
        expect(yield* go({ ...good, state: "another" }, flow)).toBe("/app?sso=retry")
        expect(yield* go(good, "spoke_sso=v1.x.y")).toBe("/app?sso=retry")
        expect(yield* go({ ...good, iss: "https://evil.example" }, flow)).toBe("/app?sso=provider")
        const { iss: _, ...withoutIssuer } = good
        expect(yield* go(withoutIssuer, flow)).toBe("/app?sso=provider")
        expect(
          yield* go({ state: good["state"] ?? "", iss: provider.issuer, error: "access_denied" }, flow)
        ).toBe("/app?sso=denied")
        expect(yield* go(good, flow)).toBe("/app")
        expect(yield* go(good, flow)).toBe("/app?sso=provider")
      })
  )

  it.scoped("is refused when the connection was changed meanwhile", () =>
    Effect.gen(function* () {
      const provider = yield* fakeProvider
      const another = yield* fakeProvider
      const { cookie } = yield* connectedTenant(provider.issuer)
      const { flow, page } = yield* beginSignOn()
      yield* call("PUT", "/api/single-sign-on", { cookie, body: settings(another.issuer) })
      const { location } = yield* returnFromProvider(new URLSearchParams(provider.approve(page)), flow)
      expect(location).toBe("/app?sso=retry")
    })
  )

  it.scoped(
    "is refused when the connection is removed while the provider answers, and opens no session",
    () =>
      Effect.gen(function* () {
        const provider = yield* fakeProvider
        const { cookie } = yield* connectedTenant(provider.issuer)
        const { flow, page } = yield* beginSignOn()
        const running = yield* Effect.runtime<Effect.Effect.Context<ReturnType<typeof call>>>()
        provider.answers.beforeToken = () =>
          Runtime.runPromise(running)(call("DELETE", "/api/single-sign-on", { cookie }))
        const { location } = yield* returnFromProvider(new URLSearchParams(provider.approve(page)), flow)
        expect(location).toBe("/app?sso=retry")
        const sql = yield* SqlClient.SqlClient
        expect(yield* sql`select 1 from user_sessions where method = 'sso'`).toEqual([])
        expect(yield* sql`select 1 from user_identities`).toEqual([])
      })
  )

  it.scoped("calls no provider if the client secret cannot be decrypted", () =>
    Effect.gen(function* () {
      const provider = yield* fakeProvider
      const { tenantId } = yield* connectedTenant(provider.issuer)
      const { flow, page } = yield* beginSignOn()
      const sql = yield* SqlClient.SqlClient
      yield* sql`update sso_connections set client_secret = 'v1.x.y' where tenant_id = ${tenantId}`
      const { location } = yield* returnFromProvider(new URLSearchParams(provider.approve(page)), flow)
      expect(location).toBe("/app?sso=provider")
      const { error, status } = yield* call("POST", "/api/auth/sso", { body: { email: "ada@acme.example" } })
      expect([status, error.code]).toEqual([503, "SERVICE_UNAVAILABLE"])
    })
  )

  it.scoped("is not requested if its metadata names another issuer, or a page that is not a web page", () =>
    Effect.gen(function* () {
      for (const change of [
        { issuer: "https://accounts.example" },
        { authorization_endpoint: "javascript:alert(1)" },
        { jwks_uri: undefined }
      ]) {
        const provider = yield* fakeProvider
        yield* connectedTenant(provider.issuer)
        provider.answers.discovery = (document) => ({ ...document, ...change })
        const { error, status } = yield* call("POST", "/api/auth/sso", {
          body: { email: "ada@acme.example" }
        })
        expect([change, status, error.code]).toEqual([change, 503, "SERVICE_UNAVAILABLE"])
      }
    })
  )
})

layer(Server, { excludeTestServices: true })("The connection of a tenant", (it) => {
  const issuer = "https://accounts.example"

  it.effect("never shows its secret, and does not use it for another issuer", () =>
    Effect.gen(function* () {
      const { cookie } = yield* connectedTenant(issuer)
      const shown = yield* call("GET", "/api/single-sign-on", { cookie })
      expect(shown.text).not.toContain(clientSecret)
      expect(shown.data).toMatchObject({ redirectUri, connection: { issuer, allowsPasswords: true } })
      const { clientSecret: _, ...rest } = settings(issuer)
      const kept = yield* call("PUT", "/api/single-sign-on", { cookie, body: { ...rest, trustsEmail: true } })
      expect([kept.status, kept.data.connection.trustsEmail]).toEqual([200, true])
      const moved = yield* call("PUT", "/api/single-sign-on", {
        cookie,
        body: { ...rest, issuer: "https://evil.example" }
      })
      expect([moved.status, moved.error.code]).toEqual([400, "VALIDATION_ERROR"])
      const sql = yield* SqlClient.SqlClient
      const [row] = yield* sql<{
        readonly secret: string
      }>`select client_secret as secret from sso_connections`
      expect(row?.secret).toMatch(/^v1\./)
    })
  )

  it.effect("applies to a domain once the operator has confirmed it, and for one tenant only", () =>
    Effect.gen(function* () {
      yield* reset
      const one = yield* signedIn("one@acme.example")
      const two = yield* signedIn("two@other.example")
      for (const { cookie } of [one, two]) {
        yield* call("PUT", "/api/single-sign-on", { cookie, body: settings(issuer) })
      }
      const asked = call("POST", "/api/auth/sso", { body: { email: "ada@acme.example" } })
      expect((yield* asked).status).toBe(404)
      const domain = (tenantId: string, name = "acme.example") =>
        `/api/operator/tenants/${tenantId}/domains/${name}`
      expect((yield* operate("PUT", domain(one.tenantId))).status).toBe(200)
      expect((yield* operate("PUT", domain(one.tenantId))).status).toBe(200)
      expect((yield* operate("PUT", domain(two.tenantId))).status).toBe(409)
      expect((yield* operate("PUT", domain(two.tenantId, "unclaimed.example"))).status).toBe(404)
      // The provider is unreachable in this test, which has an answer of its own.
      expect((yield* asked).status).toBe(503)
      expect((yield* operate("DELETE", domain(one.tenantId))).status).toBe(200)
      expect((yield* asked).status).toBe(404)
      expect((yield* operate("PUT", domain(two.tenantId))).status).toBe(200)
    })
  )

  it.scoped("ends its sessions when it is removed", () =>
    Effect.gen(function* () {
      const provider = yield* fakeProvider
      const { cookie } = yield* connectedTenant(provider.issuer)
      const { flow, page } = yield* beginSignOn()
      const { session } = yield* returnFromProvider(new URLSearchParams(provider.approve(page)), flow)
      expect(yield* sessionUser(session)).toMatchObject({ email: "ada@acme.example" })
      expect((yield* call("DELETE", "/api/single-sign-on", { cookie })).status).toBe(200)
      expect(yield* sessionUser(session)).toBe(401)
      expect((yield* call("DELETE", "/api/single-sign-on", { cookie })).status).toBe(404)
      expect((yield* call("GET", "/api/single-sign-on", { cookie })).data.connection).toBeNull()
    })
  )

  it.scoped("cannot be removed while no owner has another way to sign in", () =>
    Effect.gen(function* () {
      const provider = yield* fakeProvider
      const { cookie, tenantId } = yield* connectedTenant(provider.issuer)
      const sql = yield* SqlClient.SqlClient
      const [owner] = yield* sql<{ readonly hash: string }>`
        select password_hash as hash from users where tenant_id = ${tenantId} and role = 'owner'`
      yield* sql`update users set password_hash = null where tenant_id = ${tenantId}`
      const refused = yield* call("DELETE", "/api/single-sign-on", { cookie })
      expect([refused.status, refused.error.code]).toEqual([409, "CONFLICT"])
      expect((yield* call("GET", "/api/single-sign-on", { cookie })).data.connection).not.toBeNull()
      yield* sql`update users set password_hash = ${owner?.hash ?? ""} where tenant_id = ${tenantId}`
      expect((yield* call("DELETE", "/api/single-sign-on", { cookie })).status).toBe(200)
    })
  )

  it.effect("is refused with an invalid issuer, domain or role", () =>
    Effect.gen(function* () {
      yield* reset
      const { cookie } = yield* signedIn("owner@acme.example")
      for (const wrong of [
        { issuer: "http://accounts.example" },
        { issuer: "https://a:b@accounts.example" },
        { issuer: "https://accounts.example/?a=b" },
        { issuer: "file:///etc/passwd" },
        { domains: ["acme"] },
        { domains: ["*.example"] },
        { groupRoles: [{ group: "a", role: "root" }] },
        { defaultRole: "root" },
        { clientSecret: "" }
      ]) {
        const { error, status } = yield* call("PUT", "/api/single-sign-on", {
          cookie,
          body: { ...settings(issuer), ...wrong }
        })
        expect([wrong, status, error?.code]).toEqual([wrong, 400, "VALIDATION_ERROR"])
      }
    })
  )
})
