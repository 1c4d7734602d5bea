import { expect, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { TestDatabase } from "../../../TestDatabase.ts"
import { accountsServer, call, cookieOf, operate, password } from "../AccountsServer.ts"
import { fakeProvider } from "./Providers.ts"
import { returnFromProvider, beginSignOn, connectedTenant, settings, sessionUser } from "./SignOnWorld.ts"

const Server = accountsServer().pipe(Layer.provideMerge(TestDatabase))

type Provider = Effect.Effect.Success<typeof fakeProvider>

const enter = (provider: Provider, email: string) =>
  Effect.gen(function* () {
    provider.answers.claims = (claims) => ({ ...claims, sub: email, email })
    const { flow, page } = yield* beginSignOn(email)
    const { session } = yield* returnFromProvider(new URLSearchParams(provider.approve(page)), flow)
    return session ?? ""
  })

const login = (email: string) => call("POST", "/api/auth/login", { body: { email, password } })

/** A tenant whose people sign in at the provider alone; the owner's session is of there. */
const withoutPasswords = Effect.gen(function* () {
  const provider = yield* fakeProvider
  const made = yield* connectedTenant(provider.issuer)
  const owner = yield* enter(provider, "owner@acme.example")
  const invited = yield* call("POST", "/api/users", {
    cookie: made.cookie,
    body: { email: "bob@acme.example", role: "agent" }
  })
  const put = yield* call("PUT", "/api/single-sign-on", {
    cookie: owner,
    body: { ...settings(provider.issuer), allowsPasswords: false }
  })
  expect([put.status, put.data.connection.allowsPasswords]).toEqual([200, false])
  return { ...made, provider, owner, invitation: String(invited.data.invitation.token) }
})

layer(Server, { excludeTestServices: true })("Sign-in without passwords", (it) => {
  it.scoped(
    "can be enabled only after an owner has signed in at the provider, and stays enabled when the issuer changes",
    () =>
      Effect.gen(function* () {
        const provider = yield* fakeProvider
        const { cookie } = yield* connectedTenant(provider.issuer)
        const off = call("PUT", "/api/single-sign-on", {
          cookie,
          body: { ...settings(provider.issuer), allowsPasswords: false }
        })
        expect((yield* off).status).toBe(409)
        yield* enter(provider, "ada@acme.example")
        // A viewer is no way in for owners.
        expect((yield* off).status).toBe(409)
        const owner = yield* enter(provider, "owner@acme.example")
        expect((yield* off).status).toBe(200)
        const another = yield* fakeProvider
        const moved = yield* call("PUT", "/api/single-sign-on", {
          cookie: owner,
          body: { ...settings(another.issuer), allowsPasswords: false }
        })
        expect([moved.status, moved.error.code]).toEqual([409, "CONFLICT"])
        expect((yield* call("GET", "/api/single-sign-on", { cookie: owner })).data.connection.issuer).toBe(
          provider.issuer
        )
      })
  )

  it.scoped("keeps a confirmed domain, without which nobody could sign in", () =>
    Effect.gen(function* () {
      const provider = yield* fakeProvider
      const { cookie: byPassword } = yield* connectedTenant(provider.issuer)
      const owner = yield* enter(provider, "owner@acme.example")
      const put = (changes: object) =>
        call("PUT", "/api/single-sign-on", {
          cookie: owner,
          body: { ...settings(provider.issuer), allowsPasswords: false, ...changes }
        })
      for (const domains of [[], ["unconfirmed.example"]]) {
        const { error, status } = yield* put({ domains })
        expect([status, error.code, error.message]).toEqual([
          409,
          "CONFLICT",
          "Nobody could sign in. Without passwords, at least one confirmed domain must stay."
        ])
      }
      expect(yield* sessionUser(byPassword)).toMatchObject({ role: "owner" })
      expect((yield* put({ domains: ["acme.example", "unconfirmed.example"] })).status).toBe(200)
      expect((yield* put({ domains: [] })).status).toBe(409)
      expect(yield* sessionUser(yield* enter(provider, "owner@acme.example"))).toMatchObject({
        role: "owner"
      })
    })
  )

  it.scoped("ends sessions of passwords, and answers the right password like a wrong one", () =>
    Effect.gen(function* () {
      const { cookie, owner } = yield* withoutPasswords
      expect(yield* sessionUser(cookie)).toBe(401)
      expect(yield* sessionUser(owner)).toMatchObject({ role: "owner" })
      const right = yield* login("owner@acme.example")
      const wrong = yield* call("POST", "/api/auth/login", {
        body: { email: "owner@acme.example", password: "another password" }
      })
      expect([right.status, right.error.message]).toEqual([wrong.status, wrong.error.message])
      expect(right.status).toBe(401)
    })
  )

  it.scoped("refers invited users to the provider, and voids open invitations", () =>
    Effect.gen(function* () {
      const { invitation, owner, provider } = yield* withoutPasswords
      const chosen = yield* call("POST", "/api/auth/password", { body: { token: invitation, password } })
      expect(chosen.status).toBe(401)
      const body = { email: "cy@acme.example", role: "admin" }
      const withPassword = yield* call("POST", "/api/users", { cookie: owner, body: { ...body, password } })
      expect([withPassword.status, withPassword.error.code]).toEqual([409, "CONFLICT"])
      const added = yield* call("POST", "/api/users", { cookie: owner, body })
      expect([added.status, added.data.invitation, added.data.user.invited]).toEqual([201, null, true])
      const again = yield* call("POST", `/api/users/${added.data.user.id}/invitation`, { cookie: owner })
      expect(again.status).toBe(409)
      expect(yield* sessionUser(yield* enter(provider, "cy@acme.example"))).toEqual({
        email: "cy@acme.example",
        role: "admin"
      })
    })
  )

  it.scoped(
    "can be undone by the operator only for an owner of the tenant, who then chooses a password",
    () =>
      Effect.gen(function* () {
        const { tenantId } = yield* withoutPasswords
        const recover = (email: string) =>
          operate("POST", `/api/operator/tenants/${tenantId}/recovery`, { body: { email } })
        expect((yield* recover("bob@acme.example")).status).toBe(404)
        expect((yield* recover("nobody@acme.example")).status).toBe(404)
        const recovered = yield* recover("owner@acme.example")
        expect(recovered.status).toBe(201)
        const chosen = yield* call("POST", "/api/auth/password", {
          body: { token: recovered.data.invitation.token, password: "a password after all" }
        })
        expect(chosen.status).toBe(200)
        const secondLogin = yield* call("POST", "/api/auth/login", {
          body: { email: "owner@acme.example", password: "a password after all" }
        })
        const { data } = yield* call("GET", "/api/audit", { cookie: cookieOf(secondLogin) })
        expect(data.entries.map(({ action }: { readonly action: string }) => action)).toContain(
          "user.recover"
        )
      })
  )
})
