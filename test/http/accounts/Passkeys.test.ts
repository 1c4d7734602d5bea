import * as SqlClient from "@effect/sql/SqlClient"
import { expect, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { softAuthenticator } from "../../SoftAuthenticator.ts"
import { reset, TestDatabase } from "../../TestDatabase.ts"
import {
  accountsServer,
  type Answer,
  appUrl,
  call,
  cookieOf,
  operate,
  password,
  signedIn
} from "./AccountsServer.ts"
import { type Person, realProvider } from "./sso/Providers.ts"
import { auditActions, connectedTenant, redirectUri, sessionUser, signIn } from "./sso/SignOnWorld.ts"

const Server = accountsServer().pipe(Layer.provideMerge(TestDatabase))

const authenticator = softAuthenticator(appUrl)
type StoredPasskey = ReturnType<typeof authenticator.create>["passkey"]
type Wrong = NonNullable<Parameters<typeof authenticator.create>[1]>

const cookieNamed = (answer: Answer, name: string) =>
  answer.headers
    .getSetCookie()
    .map((line) => line.split(";")[0] ?? "")
    .find((pair) => pair.startsWith(`${name}=`) && pair !== `${name}=`) ?? ""

const path = "/api/auth/passkeys"

/** A challenge to add a passkey, and the cookies of the browser that has it. */
const asked = (cookie: string) =>
  Effect.map(call("POST", `${path}/challenge`, { cookie }), (answer) => ({
    answer,
    options: answer.data?.options,
    cookies: `${cookie}; ${cookieNamed(answer, "spoke_passkey")}`
  }))

const added = (cookie: string, name = "Work laptop", wrong: Wrong = {}) =>
  Effect.gen(function* () {
    const { cookies, options } = yield* asked(cookie)
    const { credential, passkey } = authenticator.create(options, wrong)
    const answer = yield* call("POST", path, { cookie: cookies, body: { name, credential } })
    return { answer, passkey, credential, cookies }
  })

const challenged = Effect.map(call("POST", "/api/auth/passkey/challenge"), (answer) => ({
  options: answer.data.options,
  flow: cookieNamed(answer, "spoke_passkey"),
  answer
}))

const answerWith = (flow: string, credential: unknown) =>
  call("POST", "/api/auth/passkey", { cookie: flow, body: { credential } })

const entered = (passkey: StoredPasskey, wrong: Wrong = {}) =>
  Effect.gen(function* () {
    const { flow, options } = yield* challenged
    return yield* answerWith(flow, authenticator.get(options, passkey, wrong))
  })

const fresh = Effect.gen(function* () {
  yield* reset
  return yield* signedIn("ada@acme.example")
})

layer(Server, { excludeTestServices: true })("Passkeys", (it) => {
  it.effect("are added with a name, listed with their last use, signed in with and removed", () =>
    Effect.gen(function* () {
      const { cookie } = yield* fresh
      const { options } = yield* asked(cookie)
      expect(options).toMatchObject({
        rp: { id: "app.example", name: "Spoke" },
        user: { name: "ada@acme.example" },
        attestation: "none",
        authenticatorSelection: { residentKey: "required", userVerification: "required" }
      })
      const { answer, passkey } = yield* added(cookie)
      expect([answer.status, answer.error]).toEqual([201, undefined])
      expect(answer.data.passkey).toMatchObject({ name: "Work laptop", usedAt: null, backedUp: false })
      const second = yield* added(cookie, "Phone")
      const listed = (yield* call("GET", path, { cookie })).data
      expect(listed.available).toBe(true)
      expect(listed.passkeys.map(({ name }: { readonly name: string }) => name)).toEqual([
        "Work laptop",
        "Phone"
      ])
      const again = yield* asked(cookie)
      expect(again.options.excludeCredentials.map(({ id }: { readonly id: string }) => id)).toEqual([
        passkey.id,
        second.passkey.id
      ])
      const login = yield* entered(passkey)
      expect([login.status, login.data?.user]).toMatchObject([
        200,
        { email: "ada@acme.example", role: "owner" }
      ])
      const session = cookieNamed(login, "spoke_session")
      expect(yield* sessionUser(session)).toMatchObject({ email: "ada@acme.example" })
      const sessions = (yield* call("GET", "/api/auth/sessions", { cookie: session })).data.sessions
      expect(sessions.map(({ method }: { readonly method: string }) => method).toSorted()).toEqual([
        "passkey",
        "password"
      ])
      const [first] = (yield* call("GET", path, { cookie })).data.passkeys
      expect(first.usedAt).not.toBe(null)
      expect((yield* call("DELETE", `${path}/${first.id}`, { cookie })).status).toBe(200)
      expect((yield* call("DELETE", `${path}/${first.id}`, { cookie })).status).toBe(404)
      expect((yield* entered(passkey)).status).toBe(401)
      expect((yield* entered(second.passkey)).status).toBe(200)
      expect(yield* auditActions(cookie)).toEqual(
        expect.arrayContaining(["passkey.create", "passkey.delete"])
      )
    })
  )

  it.effect(
    "accept each challenge once, in the browser and session that requested it, and only for its purpose",
    () =>
      Effect.gen(function* () {
        const { cookie } = yield* fresh
        const { cookies, credential, passkey } = yield* added(cookie)
        const repeated = yield* call("POST", path, { cookie: cookies, body: { name: "Again", credential } })
        expect([repeated.status, repeated.error.code]).toEqual([400, "VALIDATION_ERROR"])
        // Another session of the same person.
        const other = cookieOf(
          yield* call("POST", "/api/auth/login", { body: { email: "ada@acme.example", password } })
        )
        const begun = yield* asked(cookie)
        const made = authenticator.create(begun.options)
        const flow = begun.cookies.split("; ")[1]
        const foreign = yield* call("POST", path, {
          cookie: `${other}; ${flow}`,
          body: { name: "x", credential: made.credential }
        })
        expect(foreign.status).toBe(400)
        const without = yield* call("POST", path, {
          cookie,
          body: { name: "x", credential: made.credential }
        })
        expect(without.status).toBe(400)
        // A challenge to add is none to sign in with.
        const crossed = yield* asked(cookie)
        expect((yield* answerWith(crossed.cookies, authenticator.get(crossed.options, passkey))).status).toBe(
          401
        )
        const sign = yield* challenged
        const signed = authenticator.get(sign.options, passkey)
        expect((yield* answerWith("", signed)).status).toBe(401)
        expect((yield* answerWith((yield* challenged).flow, signed)).status).toBe(401)
        expect((yield* answerWith(sign.flow, signed)).status).toBe(200)
        expect((yield* answerWith(sign.flow, signed)).status).toBe(401)
        const late = yield* challenged
        expect(late.answer.headers.getSetCookie()[0]).toMatch(
          /^spoke_passkey=.*Max-Age=300; Path=\/api\/auth; HttpOnly; Secure; SameSite=Strict$/
        )
      })
  )

  it.effect("are refused unless the person was verified, for this address, with a count that rises", () =>
    Effect.gen(function* () {
      const { cookie } = yield* fresh
      const wrongs: ReadonlyArray<Wrong> = [
        { origin: "https://evil.example" },
        { rpId: "evil.example" },
        { unverified: true },
        { challenge: "bm90IHRoZSBvbmU" },
        { type: "webauthn.get" }
      ]
      for (const wrong of wrongs) {
        const { answer } = yield* added(cookie, "x", wrong)
        expect([wrong, answer.status, answer.error?.code]).toEqual([wrong, 400, "VALIDATION_ERROR"])
      }
      expect((yield* call("GET", path, { cookie })).data.passkeys).toEqual([])
      const { passkey } = yield* added(cookie)
      const others: ReadonlyArray<Wrong> = [
        ...wrongs.map((wrong) => ("type" in wrong ? { type: "webauthn.create" } : wrong)),
        { userHandle: "bWJyX25vYm9keQ" }
      ]
      for (const wrong of others) {
        const refused = yield* entered(passkey, wrong)
        expect([wrong, refused.status, refused.error?.message]).toEqual([
          wrong,
          401,
          "This passkey is not registered."
        ])
      }
      expect((yield* entered(passkey, { counter: 9 })).status).toBe(200)
      expect((yield* entered(passkey, { counter: 9 })).status).toBe(401)
      expect((yield* entered(passkey, { counter: 4 })).status).toBe(401)
      expect((yield* entered(passkey, { counter: 4_294_967_295 })).status).toBe(200)
    })
  )

  it.effect("without a counter can be used repeatedly", () =>
    Effect.gen(function* () {
      const { cookie } = yield* fresh
      const { passkey } = yield* added(cookie)
      for (const _ of [1, 2]) expect((yield* entered(passkey, { counter: 0 })).status).toBe(200)
    })
  )

  it.effect(
    "give the same answer for an unknown and a wrong passkey, and are refused after ten failures of a network",
    () =>
      Effect.gen(function* () {
        const { cookie } = yield* fresh
        const { passkey } = yield* added(cookie)
        const { answer } = yield* challenged
        expect(Object.keys(answer.data.options).toSorted()).toEqual([
          "challenge",
          "rpId",
          "timeout",
          "userVerification"
        ])
        const unknown = authenticator.create({
          challenge: "x",
          rp: { id: "app.example" },
          user: { id: passkey.userHandle }
        })
        const stranger = yield* entered(unknown.passkey)
        const wrong = yield* entered({ ...passkey, privateKey: unknown.passkey.privateKey })
        expect([stranger.status, stranger.error]).toEqual([wrong.status, wrong.error])
        for (const _ of Array.from({ length: 8 })) expect((yield* entered(unknown.passkey)).status).toBe(401)
        const late = yield* entered(passkey)
        expect([late.status, late.error.code, late.headers.get("retry-after") !== null]).toEqual([
          429,
          "RATE_LIMITED",
          true
        ])
        // Passwords have counts of their own.
        const login = yield* call("POST", "/api/auth/login", {
          body: { email: "ada@acme.example", password }
        })
        expect(login.status).toBe(200)
      })
  )

  it.effect(
    "are deleted with the user, with a new password, and with the end of a password that somebody else chose",
    () =>
      Effect.gen(function* () {
        const { cookie, tenantId } = yield* fresh
        const person = (email: string, role = "admin") =>
          Effect.gen(function* () {
            const made = yield* call("POST", "/api/users", { cookie, body: { email, role, password } })
            const session = cookieOf(yield* call("POST", "/api/auth/login", { body: { email, password } }))
            const { passkey } = yield* added(session)
            expect((yield* entered(passkey)).status).toBe(200)
            return { id: String(made.data.user.id), session, passkey }
          })
        const bob = yield* person("bob@acme.example")
        const cy = yield* person("cy@acme.example")
        const dee = yield* person("dee@acme.example")
        expect((yield* call("DELETE", `/api/users/${bob.id}`, { cookie })).status).toBe(200)
        expect((yield* entered(bob.passkey)).status).toBe(401)
        const invited = yield* call("POST", `/api/users/${cy.id}/invitation`, { cookie })
        expect((yield* entered(cy.passkey)).status).toBe(200)
        const chosen = yield* call("POST", "/api/auth/password", {
          body: { token: invited.data.invitation.token, password: "another battery staple" }
        })
        expect(chosen.status).toBe(200)
        expect((yield* entered(cy.passkey)).status).toBe(401)
        // Eve chose the password of fay, and is removed.
        const body = { email: "fay@acme.example", role: "agent", password }
        yield* call("POST", "/api/users", { cookie: dee.session, body })
        const fay = cookieOf(
          yield* call("POST", "/api/auth/login", { body: { email: body.email, password } })
        )
        const { passkey } = yield* added(fay)
        expect((yield* call("DELETE", `/api/users/${dee.id}`, { cookie })).status).toBe(200)
        expect((yield* entered(passkey)).status).toBe(401)
        const sql = yield* SqlClient.SqlClient
        expect(yield* sql`select id from passkeys where tenant_id = ${tenantId}`).toEqual([])
      })
  )

  it.effect("do not admit a user whom the provider has deactivated", () =>
    Effect.gen(function* () {
      const { cookie, tenantId } = yield* fresh
      const body = { email: "bob@acme.example", role: "admin", password }
      const made = yield* call("POST", "/api/users", { cookie, body })
      const session = cookieOf(
        yield* call("POST", "/api/auth/login", { body: { email: body.email, password } })
      )
      const { passkey } = yield* added(session)
      const sql = yield* SqlClient.SqlClient
      const set = (active: boolean) =>
        sql`update users set active = ${active} where tenant_id = ${tenantId} and id = ${made.data.user.id}`
      yield* set(false)
      expect((yield* entered(passkey)).status).toBe(401)
      yield* set(true)
      expect((yield* entered(passkey)).status).toBe(200)
    })
  )

  it.scoped("end when the groups of the provider no longer give a role", () =>
    Effect.gen(function* () {
      yield* reset
      const person = { email: "ada@acme.example", email_verified: true }
      const people = new Map<string, Person>([["p1", { ...person, groups: ["staff"] }]])
      yield* connectedTenant(yield* realProvider(redirectUri, people), {
        groupRoles: [{ group: "staff", role: "admin" }],
        defaultRole: null
      })
      const { session } = yield* signIn("p1")
      const { passkey } = yield* added(session ?? "")
      expect((yield* entered(passkey)).status).toBe(200)
      people.set("p1", { ...person, groups: [] })
      expect((yield* signIn("p1")).location).toBe("/app?sso=role")
      expect((yield* entered(passkey)).status).toBe(401)
    })
  )

  it.effect("work while passwords are disabled, and their sessions stay", () =>
    Effect.gen(function* () {
      const { cookie, tenantId } = yield* connectedTenant("https://accounts.example")
      const { passkey } = yield* added(cookie)
      const before = cookieNamed(yield* entered(passkey), "spoke_session")
      const sql = yield* SqlClient.SqlClient
      yield* sql`insert into user_identities (tenant_id, issuer, subject, user_id)
        select tenant_id, 'https://accounts.example', 's', id from users where tenant_id = ${tenantId}`
      const { connection } = (yield* call("GET", "/api/single-sign-on", { cookie })).data
      const { createdAt: _, domains, updatedAt: __, version: ___, ...rest } = connection
      const put = yield* call("PUT", "/api/single-sign-on", {
        cookie,
        body: {
          ...rest,
          domains: domains.map(({ domain }: { readonly domain: string }) => domain),
          allowsPasswords: false
        }
      })
      expect([put.status, put.error]).toEqual([200, undefined])
      expect(yield* sessionUser(cookie)).toBe(401)
      expect(yield* sessionUser(before)).toMatchObject({ email: "owner@acme.example" })
      expect((yield* entered(passkey)).status).toBe(200)
    })
  )

  it.effect("belong to one user: nobody adds, sees or removes another's, and twenty is the maximum", () =>
    Effect.gen(function* () {
      const { cookie } = yield* fresh
      const other = yield* signedIn("eve@other.example")
      const { answer, passkey } = yield* added(cookie)
      const { id } = answer.data.passkey
      expect((yield* call("GET", path, { cookie: other.cookie })).data.passkeys).toEqual([])
      expect((yield* call("DELETE", `${path}/${id}`, { cookie: other.cookie })).status).toBe(404)
      // The same key for somebody else.
      const begun = yield* asked(other.cookie)
      const same = authenticator.create(begun.options, { credentialId: passkey.id })
      const body = { name: "x", credential: same.credential }
      const stolen = yield* call("POST", path, { cookie: begun.cookies, body })
      expect([stolen.status, stolen.error.code]).toEqual([409, "CONFLICT"])
      expect((yield* entered(passkey)).data.user.email).toBe("ada@acme.example")
      for (const _ of Array.from({ length: 19 })) yield* added(cookie)
      const { answer: full } = yield* asked(cookie)
      expect([full.status, full.error.code]).toEqual([409, "CONFLICT"])
      for (const open of ["/api/auth/passkey", "/api/auth/passkey/challenge"]) {
        const foreign = yield* call("POST", open, { body: {}, headers: { origin: "https://evil.example" } })
        expect(foreign.status).toBe(403)
      }
      expect((yield* call("GET", path)).status).toBe(401)
    })
  )
})

layer(accountsServer({ appUrl: "http://127.0.0.1:3000" }).pipe(Layer.provideMerge(TestDatabase)), {
  excludeTestServices: true
})("Passkeys of a dashboard without a name", (it) => {
  it.effect("are reported as unavailable", () =>
    Effect.gen(function* () {
      yield* reset
      const headers = { origin: "", "x-spoke-csrf": "1" }
      yield* operate("POST", "/api/operator/tenants", {
        body: { name: "Shop", owner: { email: "ada@acme.example", password } }
      })
      const login = yield* call("POST", "/api/auth/login", {
        headers,
        body: { email: "ada@acme.example", password }
      })
      expect((yield* call("GET", path, { cookie: cookieOf(login) })).data).toEqual({
        passkeys: [],
        available: false
      })
    })
  )
})
