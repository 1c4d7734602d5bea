import * as SqlClient from "@effect/sql/SqlClient"
import { expect, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { RateLimiter } from "../../../../src/capabilities/RateLimiter.ts"
import { reset, TestDatabase } from "../../../TestDatabase.ts"
import { accountsServer, call, cookieOf, operate, password, signedIn } from "../AccountsServer.ts"
import { fakeProvider } from "./Providers.ts"
import {
  type Body,
  entraUser,
  errorSchema,
  groupSchema,
  oktaUser,
  patch,
  patchSchema,
  provisionedTenant,
  userSchema
} from "./ScimWorld.ts"
import { auditActions, returnFromProvider, beginSignOn, sessionUser } from "./SignOnWorld.ts"

const Server = accountsServer().pipe(Layer.provideMerge(TestDatabase))

layer(Server, { excludeTestServices: true })("Provisioning of people by SCIM", (it) => {
  it.effect("requires the tenant's token, which is shown once, replaced and revoked", () =>
    Effect.gen(function* () {
      const { ask, cookie, secret } = yield* provisionedTenant()
      expect((yield* ask("GET", "/Users")).status).toBe(200)
      for (const wrong of ["", "Bearer", `Bearer ${secret}x`, "Bearer sps_none", `Basic ${secret}`]) {
        const refused = yield* ask("GET", "/Users", undefined, wrong)
        expect([wrong, refused.status, refused.body.schemas, refused.body.status]).toEqual([
          wrong,
          401,
          [errorSchema],
          "401"
        ])
      }
      const shown = yield* call("GET", "/api/single-sign-on/scim", { cookie })
      expect(shown.text).not.toContain(secret)
      expect(shown.data).toMatchObject({
        url: "https://app.example/scim/v2",
        token: { prefix: secret.slice(0, 12), usedAt: expect.any(String) }
      })
      const next = yield* call("POST", "/api/single-sign-on/scim", { cookie })
      expect((yield* ask("GET", "/Users")).status).toBe(401)
      const now = `Bearer ${next.data.secret}`
      expect((yield* ask("GET", "/Users", undefined, now)).status).toBe(200)
      expect((yield* call("DELETE", "/api/single-sign-on/scim", { cookie })).status).toBe(200)
      expect((yield* ask("GET", "/Users", undefined, now)).status).toBe(401)
      expect(yield* auditActions(cookie)).toEqual(
        expect.arrayContaining(["scim_token.create", "scim_token.revoke"])
      )
      yield* reset
      const { cookie: bare } = yield* signedIn("bare@example.com")
      expect((yield* call("POST", "/api/single-sign-on/scim", { cookie: bare })).status).toBe(409)
    })
  )

  it.effect("describes itself", () =>
    Effect.gen(function* () {
      const { ask } = yield* provisionedTenant()
      const config = yield* ask("GET", "/ServiceProviderConfig")
      expect(config.type).toBe("application/scim+json; charset=utf-8")
      expect(config.body).toMatchObject({
        patch: { supported: true },
        bulk: { supported: false },
        filter: { supported: true }
      })
      const names = (body: { readonly Resources: ReadonlyArray<{ readonly name: string }> }) =>
        body.Resources.map(({ name }) => name)
      expect(names((yield* ask("GET", "/ResourceTypes")).body)).toEqual(["User", "Group"])
      expect(names((yield* ask("GET", "/Schemas")).body)).toEqual(["User", "Group"])
      expect((yield* ask("GET", `/Schemas/${groupSchema}`)).body).toMatchObject({
        id: groupSchema,
        name: "Group"
      })
      expect((yield* ask("GET", "/ResourceTypes/User")).body).toMatchObject({
        endpoint: "/Users",
        schema: userSchema,
        meta: { location: "https://app.example/scim/v2/ResourceTypes/User" }
      })
    })
  )

  it.effect(
    "supports Entra ID: users are searched for, created, found by name and external id, and changed",
    () =>
      Effect.gen(function* () {
        const { ask, cookie } = yield* provisionedTenant()
        const search = `/Users?filter=${encodeURIComponent('userName eq "Ada@acme.example"')}`
        expect((yield* ask("GET", search)).body).toMatchObject({ totalResults: 0, Resources: [] })
        const made = yield* ask("POST", "/Users", entraUser("Ada@acme.example"))
        expect(made.status).toBe(201)
        expect(made.body).toMatchObject({
          schemas: [userSchema],
          userName: "ada@acme.example",
          externalId: "ext-Ada@acme.example",
          active: true,
          roles: [{ value: "viewer" }],
          meta: { resourceType: "User", location: `https://app.example/scim/v2/Users/${made.body.id}` }
        })
        expect((yield* ask("GET", search)).body.Resources).toMatchObject([{ id: made.body.id }])
        const byExternal = `/Users?filter=${encodeURIComponent('externalId eq "ext-Ada@acme.example"')}`
        expect((yield* ask("GET", byExternal)).body.totalResults).toBe(1)
        const found = Effect.fn(function* (filter: string) {
          return (yield* ask("GET", `/Users?filter=${encodeURIComponent(filter)}`)).body.totalResults
        })
        expect([
          yield* found('urn:ietf:params:scim:schemas:core:2.0:User:userName Eq "ada@acme.example"'),
          yield* found('emails[type eq "work"].value eq "ada@acme.example"'),
          yield* found('userName eq "ada@acme.example" and active eq true'),
          yield* found('userName eq "ada@acme.example" and active eq false'),
          yield* found('userName eq "\\u0061da@acme.example"'),
          yield* found(`id eq "${made.body.id}' or true --"`)
        ]).toEqual([1, 1, 1, 0, 1, 0])
        const again = yield* ask("POST", "/Users", entraUser("ada@acme.example"))
        expect([again.status, again.body.scimType]).toEqual([409, "uniqueness"])
        const changed = yield* ask(
          "PATCH",
          `/Users/${made.body.id}`,
          patch(
            { op: "Replace", path: 'emails[type eq "work"].value', value: "other@acme.example" },
            { op: "Replace", path: "name.familyName", value: "M" },
            { op: "Add", path: "externalId", value: "another" }
          )
        )
        expect([changed.status, changed.body.externalId]).toEqual([200, "another"])
        expect((yield* ask("GET", `/Users/${made.body.id}`)).body).toEqual(changed.body)
        expect(yield* auditActions(cookie)).toEqual(expect.arrayContaining(["user.create", "user.update"]))
      })
  )

  it.effect("supports Okta: users are created, replaced, deactivated and activated", () =>
    Effect.gen(function* () {
      const { ask } = yield* provisionedTenant()
      const made = yield* ask("POST", "/Users", oktaUser("ada@acme.example"))
      expect(made.status).toBe(201)
      const path = `/Users/${made.body.id}`
      const replaced = yield* ask("PUT", path, { ...oktaUser("ada@acme.example"), id: made.body.id })
      expect([replaced.status, replaced.body.id]).toEqual([200, made.body.id])
      const off = yield* ask("PATCH", path, patch({ op: "replace", value: { active: false } }))
      expect([off.status, off.body.active]).toEqual([200, false])
      const on = yield* ask("PUT", path, oktaUser("ada@acme.example"))
      expect(on.body.active).toBe(true)
      expect((yield* ask("DELETE", path)).status).toBe(204)
      expect((yield* ask("GET", path)).status).toBe(404)
    })
  )

  it.effect("ends every access of a deactivated user at once, until they are activated", () =>
    Effect.gen(function* () {
      const { ask, cookie: owner } = yield* provisionedTenant()
      const email = "bob@acme.example"
      yield* call("POST", "/api/users", { cookie: owner, body: { email, role: "admin", password } })
      const login = call("POST", "/api/auth/login", { body: { email, password } })
      const session = cookieOf(yield* login)
      const token = yield* call("POST", "/api/tokens", {
        cookie: session,
        body: { name: "Deploy", scopes: ["*"] }
      })
      const agents = call("GET", "/api/manage/v1/agents", {
        headers: { authorization: `Bearer ${token.data.secret}` }
      })
      expect([
        (yield* agents).status,
        (yield* call("GET", "/api/auth/session", { cookie: session })).status
      ]).toEqual([200, 200])
      const search = yield* ask("GET", `/Users?filter=${encodeURIComponent(`userName eq "${email}"`)}`)
      const path = `/Users/${search.body.Resources[0].id}`
      // As Entra ID writes it.
      const off = yield* ask("PATCH", path, patch({ op: "Replace", path: "active", value: "False" }))
      expect(off.body.active).toBe(false)
      expect((yield* call("GET", "/api/auth/session", { cookie: session })).status).toBe(401)
      expect((yield* agents).status).toBe(401)
      expect((yield* login).status).toBe(401)
      yield* ask("PATCH", path, patch({ op: "Replace", path: "active", value: "True" }))
      expect((yield* login).status).toBe(200)
      // A token that was revoked stays so.
      expect((yield* agents).status).toBe(401)
    })
  )

  it.effect("assigns the conversations of a deactivated user to nobody, and no others", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { ask } = yield* provisionedTenant()
      const made = [
        yield* ask("POST", "/Users", entraUser("ada@acme.example")),
        yield* ask("POST", "/Users", entraUser("bob@acme.example"))
      ]
      const ids = made.map(({ body }) => String(body.id))
      yield* sql`update users set role = 'agent' where id in ${sql.in(ids)}`
      yield* sql`insert into agents (tenant_id, id, name) select tenant_id, 'agt_1', 'A' from users where id = ${ids[0] ?? ""}`
      yield* sql`insert into end_users (tenant_id, id) select tenant_id, 'usr_1' from agents where id = 'agt_1'`
      yield* sql`
        insert into conversations (id, tenant_id, agent_id, end_user_id, channel, assignee_id)
        select 'cnv_' || u.email, tenant_id, 'agt_1', 'usr_1', 'widget', u.id from users u where u.id in ${sql.in(ids)}`
      const off = yield* ask("PATCH", `/Users/${ids[0]}`, patch({ op: "replace", value: { active: false } }))
      expect([off.status, off.body.active]).toEqual([200, false])
      expect(
        yield* sql`select assignee_id as "assignee" from conversations where agent_id = 'agt_1' order by id`
      ).toEqual([{ assignee: null }, { assignee: ids[1] }])
    })
  )

  it.scoped("refuses single sign-on to a deactivated user too", () =>
    Effect.gen(function* () {
      const provider = yield* fakeProvider
      const { ask } = yield* provisionedTenant({}, provider.issuer)
      const enter = Effect.gen(function* () {
        const { flow, page } = yield* beginSignOn()
        return yield* returnFromProvider(new URLSearchParams(provider.approve(page)), flow)
      })
      const made = yield* ask("POST", "/Users", { ...entraUser("ada@acme.example"), active: false })
      expect((yield* enter).location).toBe("/app?sso=account")
      yield* ask("PATCH", `/Users/${made.body.id}`, patch({ op: "replace", path: "active", value: true }))
      const { session } = yield* enter
      expect(yield* sessionUser(session)).toMatchObject({ email: "ada@acme.example" })
      yield* ask("PATCH", `/Users/${made.body.id}`, patch({ op: "replace", path: "active", value: false }))
      expect(yield* sessionUser(session)).toBe(401)
      expect((yield* enter).location).toBe("/app?sso=account")
    })
  )

  it.effect("refuses invalid requests in SCIM's shape, and changes nothing", () =>
    Effect.gen(function* () {
      const { ask } = yield* provisionedTenant()
      const owner = (yield* ask("GET", "/Users")).body.Resources[0]
      const path = `/Users/${owner.id}`
      const refusals: ReadonlyArray<readonly [string, string, unknown, number, string | undefined]> = [
        ["POST", "/Users", entraUser("ada@elsewhere.example"), 400, "invalidValue"],
        ["POST", "/Users", entraUser("ada"), 400, "invalidValue"],
        ["POST", "/Users", {}, 400, "invalidValue"],
        ["POST", "/Users", [], 400, "invalidSyntax"],
        ["PATCH", path, patch({ op: "replace", path: "active", value: false }), 409, "mutability"],
        ["DELETE", path, undefined, 409, "mutability"],
        [
          "PATCH",
          path,
          patch({ op: "replace", path: "userName", value: "new@acme.example" }),
          400,
          "mutability"
        ],
        ["PATCH", path, patch({ op: "replace", path: "active", value: "perhaps" }), 400, "invalidValue"],
        ["PATCH", path, patch({ op: "move", path: "active", value: true }), 400, "invalidSyntax"],
        ["PATCH", path, { schemas: [patchSchema] }, 400, "invalidSyntax"],
        ["PATCH", path, patch({ op: "remove", value: { active: true } }), 400, "noTarget"],
        ["PATCH", path, patch({ op: "replace", path: 7, value: true }), 400, "invalidPath"],
        [
          "PATCH",
          "/Groups/grp_none",
          patch({ op: "remove", path: 'members[type eq "x"]' }),
          400,
          "invalidPath"
        ],
        ["GET", "/Users?filter=userName+eq+%22a%22+or+id+eq+%22b%22", undefined, 400, "invalidFilter"],
        ["GET", "/Users?filter=userName+eq+a", undefined, 400, "invalidFilter"],
        ["GET", "/Schemas/urn:none", undefined, 404, undefined],
        ["GET", "/Me", undefined, 404, undefined],
        ["POST", "/Bulk", {}, 404, undefined],
        ["DELETE", "/Users", undefined, 405, undefined],
        ["GET", "/Users?filter=userName+sw+%22a%22", undefined, 400, "invalidFilter"],
        ["GET", "/Users?filter=password+eq+%22a%22", undefined, 400, "invalidFilter"],
        ["GET", "/Users?startIndex=x", undefined, 400, "invalidValue"],
        ["GET", "/Users/mbr_nobody", undefined, 404, undefined],
        ["GET", "/Users/mbr%00nobody", undefined, 404, undefined],
        ["DELETE", "/Groups/%00", undefined, 404, undefined],
        ["PATCH", "/Groups/grp_none", patch(), 404, undefined],
        ["POST", "/Groups", { displayName: "" }, 400, "invalidValue"]
      ]
      for (const [method, at, body, status, scimType] of refusals) {
        const refused = yield* ask(method, at, body)
        expect([method, at, refused.status, refused.body.scimType]).toEqual([method, at, status, scimType])
        expect([refused.body.schemas, refused.body.status]).toEqual([[errorSchema], String(status)])
      }
      expect((yield* ask("GET", "/Users")).body.Resources).toEqual([owner])
    })
  )

  it.effect("voids the invitations that the user created, and their own", () =>
    Effect.gen(function* () {
      const { ask, cookie: owner } = yield* provisionedTenant()
      const email = "bob@acme.example"
      yield* call("POST", "/api/users", { cookie: owner, body: { email, role: "admin", password } })
      const bob = cookieOf(yield* call("POST", "/api/auth/login", { body: { email, password } }))
      const body = { email: "cy@acme.example", role: "agent" }
      const invited = yield* call("POST", "/api/users", { cookie: bob, body })
      const held = yield* call("POST", "/api/users", {
        cookie: owner,
        body: { email: "dee@acme.example", role: "agent" }
      })
      const accept = (made: typeof invited) =>
        call("POST", "/api/auth/password", {
          body: { token: made.data.invitation.token, password }
        })
      for (const name of [email, "dee@acme.example"]) {
        const [one] = (yield* ask("GET", `/Users?filter=${encodeURIComponent(`userName eq "${name}"`)}`)).body
          .Resources
        expect(
          (yield* ask("PATCH", `/Users/${one.id}`, patch({ op: "replace", value: { active: false } }))).status
        ).toBe(200)
      }
      expect([(yield* accept(invited)).status, (yield* accept(held)).status]).toEqual([401, 401])
      const again = yield* call("POST", `/api/users/${held.data.user.id}/invitation`, { cookie: owner })
      expect([again.status, again.error?.code]).toEqual([409, "CONFLICT"])
      const listed = (yield* call("GET", "/api/users", { cookie: owner })).data.users
      expect(Object.fromEntries(listed.map((one: Body) => [one["email"], one["active"]]))).toEqual({
        "owner@acme.example": true,
        [email]: false,
        "cy@acme.example": true,
        "dee@acme.example": false
      })
    })
  )

  it.effect("does not take over an account of another tenant with an address in the confirmed domain", () =>
    Effect.gen(function* () {
      const { ask } = yield* provisionedTenant()
      const other = yield* signedIn("eve@acme.example")
      const taken = yield* ask("POST", "/Users", { ...entraUser("eve@acme.example"), active: false })
      expect([taken.status, taken.body.scimType]).toEqual([409, "uniqueness"])
      const search = `/Users?filter=${encodeURIComponent('userName eq "eve@acme.example"')}`
      expect((yield* ask("GET", search)).body.totalResults).toBe(0)
      expect(yield* sessionUser(other.cookie)).toMatchObject({ email: "eve@acme.example", role: "owner" })
      const sql = yield* SqlClient.SqlClient
      const [eve] = yield* sql<{ readonly id: string }>`
        select id from users where tenant_id = ${other.tenantId}`
      const group = yield* ask("POST", "/Groups", { displayName: "All", members: [{ value: eve?.id }] })
      expect([group.status, group.body.members]).toEqual([201, []])
      for (const method of ["PUT", "PATCH"] as const) {
        const body =
          method === "PUT"
            ? entraUser("eve@acme.example")
            : patch({ op: "replace", value: { active: false } })
        expect((yield* ask(method, `/Users/${eve?.id}`, body)).status).toBe(404)
      }
    })
  )

  it.effect("lets the operator reactivate an owner whom the provider has deactivated", () =>
    Effect.gen(function* () {
      const { ask, cookie, tenantId } = yield* provisionedTenant()
      const body = { email: "cy@acme.example", role: "owner", password }
      const second: string = (yield* call("POST", "/api/users", { cookie, body })).data.user.id
      yield* ask("PATCH", `/Users/${second}`, patch({ op: "replace", value: { active: false } }))
      const recovered = yield* operate("POST", `/api/operator/tenants/${tenantId}/recovery`, {
        body: { email: "cy@acme.example" }
      })
      const token = String(recovered.data.invitation.token)
      expect((yield* call("POST", "/api/auth/password", { body: { token, password } })).status).toBe(200)
      const login = yield* call("POST", "/api/auth/login", { body: { email: "cy@acme.example", password } })
      expect(login.status).toBe(200)
    })
  )

  it.effect("limits the size and the rate of requests, in SCIM's shape", () =>
    Effect.gen(function* () {
      const { ask, tenantId } = yield* provisionedTenant()
      const large = yield* ask("POST", "/Users", {
        ...entraUser("ada@acme.example"),
        title: "x".repeat(1_100_000)
      })
      expect([large.status, large.body.schemas, large.type]).toEqual([
        413,
        [errorSchema],
        "application/scim+json; charset=utf-8"
      ])
      const many = yield* ask(
        "PATCH",
        "/Users/usr_x",
        patch(...Array.from({ length: 1_001 }, () => ({ op: "add", path: "title", value: "x" })))
      )
      expect([many.status, many.body.scimType]).toEqual([400, "invalidSyntax"])
      const limiter = yield* RateLimiter
      const takeAll = limiter.take(`scim:${tenantId}`, { requests: 3_000, window: 60 })
      yield* Effect.repeat(takeAll, { until: ({ granted }) => !granted })
      const often = yield* ask("GET", "/Users")
      expect([often.status, often.body.schemas]).toEqual([429, [errorSchema]])
      const other = yield* provisionedTenant()
      expect((yield* other.ask("GET", "/Users")).status).toBe(200)
    })
  )

  it.effect("skips any number of attributes that are not stored", () =>
    Effect.gen(function* () {
      const { ask } = yield* provisionedTenant()
      const wide = Object.fromEntries(Array.from({ length: 90_000 }, (_, index) => [index, 1]))
      expect((yield* ask("PATCH", "/Users/usr_x", patch({ op: "add", value: wide }))).status).toBe(404)
    })
  )

  it.effect("returns pages of at most a hundred, and nothing of another tenant", () =>
    Effect.gen(function* () {
      const { ask } = yield* provisionedTenant()
      const { tenantId } = yield* signedIn("stranger@other.example")
      for (const name of ["a", "b", "c"]) yield* ask("POST", "/Users", entraUser(`${name}@acme.example`))
      const page = (yield* ask("GET", "/Users?startIndex=2&count=2")).body
      expect([page.totalResults, page.startIndex, page.itemsPerPage]).toEqual([4, 2, 2])
      expect(page.Resources.map(({ userName }: { readonly userName: string }) => userName)).toEqual([
        "a@acme.example",
        "b@acme.example"
      ])
      expect((yield* ask("GET", "/Users?startIndex=0&count=0")).body).toMatchObject({
        totalResults: 4,
        startIndex: 1,
        Resources: []
      })
      expect((yield* ask("GET", "/Users?startIndex=9")).body.Resources).toEqual([])
      const own = (yield* ask("GET", "/Users?count=1")).body.Resources[0]
      const sqlClient = yield* SqlClient.SqlClient
      yield* sqlClient`
        insert into users (id, tenant_id, email, role)
        select 'usr_z' || n, tenant_id, 'z' || n || '@acme.example', 'viewer' from users, generate_series(1, 130) n
        where id = ${own.id}`
      const full = (yield* ask("GET", "/Users?count=1000")).body
      expect([full.totalResults, full.itemsPerPage, full.Resources.length]).toEqual([134, 100, 100])
      const rest = (yield* ask("GET", "/Users?startIndex=101")).body
      expect([rest.itemsPerPage, rest.Resources.length]).toEqual([34, 34])
      const sql = yield* SqlClient.SqlClient
      const [stranger] = yield* sql<{
        readonly id: string
      }>`select id from users where tenant_id = ${tenantId}`
      for (const method of ["GET", "DELETE"]) {
        expect((yield* ask(method, `/Users/${stranger?.id}`)).status).toBe(404)
      }
      const taken = yield* ask("POST", "/Users", {
        ...entraUser("x@acme.example"),
        userName: "stranger@other.example"
      })
      expect(taken.status).toBe(400)
    })
  )
})
