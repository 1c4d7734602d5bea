import * as SqlClient from "@effect/sql/SqlClient"
import { expect, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { TestDatabase } from "../../../TestDatabase.ts"
import { accountsServer, call, cookieOf, operate, password } from "../AccountsServer.ts"
import { fakeProvider } from "./Providers.ts"
import { entraUser, groupSchema, patch, provisionedTenant } from "./ScimWorld.ts"
import { returnFromProvider, beginSignOn, settings, sessionUser } from "./SignOnWorld.ts"

const Server = accountsServer().pipe(Layer.provideMerge(TestDatabase))

layer(Server, { excludeTestServices: true })("Provisioning of groups by SCIM", (it) => {
  const roles = {
    groupRoles: [
      { group: "Support", role: "agent" },
      { group: "IT", role: "admin" },
      { group: "Board", role: "owner" }
    ],
    defaultRole: "viewer"
  }

  const world = Effect.gen(function* () {
    const made = yield* provisionedTenant(roles)
    const ada = (yield* made.ask("POST", "/Users", entraUser("ada@acme.example"))).body.id as string
    const bob = (yield* made.ask("POST", "/Users", entraUser("bob@acme.example"))).body.id as string
    const roleOf = (id: string) =>
      Effect.map(made.ask("GET", `/Users/${id}`), ({ body }) => body.roles[0].value as string)
    return { ...made, ada, bob, roleOf }
  })

  it.effect("gives the highest role of the groups, as Entra ID changes them", () =>
    Effect.gen(function* () {
      const { ada, ask, bob, roleOf } = yield* world
      const made = yield* ask("POST", "/Groups", {
        schemas: [groupSchema, "http://schemas.microsoft.com/2006/11/ResourceManagement/ADSCIM/2.0/Group"],
        externalId: "8aa1a0c0-c4c3-4bc0-b4a5-2ef676900159",
        displayName: "Support",
        meta: { resourceType: "Group" }
      })
      expect([made.status, made.body.displayName, made.body.members]).toEqual([201, "Support", []])
      const path = `/Groups/${made.body.id}`
      const search = `/Groups?excludedAttributes=members&filter=${encodeURIComponent('displayName eq "support"')}`
      const [found] = (yield* ask("GET", search)).body.Resources
      expect([found.id, "members" in found]).toEqual([made.body.id, false])
      yield* ask(
        "PATCH",
        path,
        patch({
          op: "Add",
          path: "members",
          value: [
            { $ref: null, value: ada },
            { $ref: null, value: bob }
          ]
        })
      )
      expect([yield* roleOf(ada), yield* roleOf(bob)]).toEqual(["agent", "agent"])
      yield* ask("PATCH", path, patch({ op: "Remove", path: "members", value: [{ $ref: null, value: bob }] }))
      expect([yield* roleOf(ada), yield* roleOf(bob)]).toEqual(["agent", "viewer"])
      yield* ask("PATCH", path, patch({ op: "Replace", path: "displayName", value: "IT" }))
      expect(yield* roleOf(ada)).toBe("admin")
      expect((yield* ask("GET", `/Users/${ada}`)).body.groups).toEqual([
        { value: made.body.id, display: "IT" }
      ])
      expect((yield* ask("DELETE", path)).status).toBe(204)
      expect(yield* roleOf(ada)).toBe("viewer")
    })
  )

  it.effect("gives no role after its provider was replaced or removed", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { ada, ask, cookie, tenantId } = yield* world
      const groups = sql`select name from scim_groups where tenant_id = ${tenantId}`
      const add = ask("POST", "/Groups", {
        schemas: [groupSchema],
        displayName: "IT",
        members: [{ value: ada, display: "ada@acme.example" }]
      })
      yield* add
      expect(yield* groups).toHaveLength(1)
      const other = yield* fakeProvider
      const replaced = yield* call("PUT", "/api/single-sign-on", {
        cookie,
        body: { ...settings(other.issuer), ...roles }
      })
      expect(replaced.status).toBe(200)
      expect(yield* groups).toEqual([])
      yield* add
      expect(yield* groups).toHaveLength(1)
      expect((yield* call("DELETE", "/api/single-sign-on", { cookie })).status).toBe(200)
      expect(yield* groups).toEqual([])
    }).pipe(Effect.scoped)
  )

  it.effect("gives the highest role of the groups, as Okta changes them", () =>
    Effect.gen(function* () {
      const { ada, ask, bob, roleOf } = yield* world
      const made = yield* ask("POST", "/Groups", {
        schemas: [groupSchema],
        displayName: "IT",
        members: [{ value: ada, display: "ada@acme.example" }]
      })
      const path = `/Groups/${made.body.id}`
      expect(yield* roleOf(ada)).toBe("admin")
      yield* ask(
        "PATCH",
        path,
        patch(
          { op: "remove", path: `members[value eq "${ada}"]` },
          { op: "add", path: "members", value: [{ value: bob, display: "bob@acme.example" }] }
        )
      )
      expect([yield* roleOf(ada), yield* roleOf(bob)]).toEqual(["viewer", "admin"])
      yield* ask("PATCH", path, patch({ op: "replace", value: { id: made.body.id, displayName: "Support" } }))
      expect(yield* roleOf(bob)).toBe("agent")
      yield* ask(
        "PATCH",
        path,
        patch({ op: "replace", path: "members", value: [{ value: ada }, { value: "none" }] })
      )
      expect([yield* roleOf(ada), yield* roleOf(bob)]).toEqual(["agent", "viewer"])
      yield* ask("PUT", path, { schemas: [groupSchema], displayName: "Support", members: [] })
      expect(yield* roleOf(ada)).toBe("viewer")
      const again = yield* ask("POST", "/Groups", { displayName: "support" })
      expect([again.status, again.body.scimType]).toEqual([409, "uniqueness"])
    })
  )

  it.effect("finds what it has stored by the name that the provider wrote, with spaces around it", () =>
    Effect.gen(function* () {
      const { ask } = yield* world
      const { id } = (yield* ask("POST", "/Groups", { displayName: "Sales ", externalId: " 17" })).body
      for (const filter of ['displayName eq "Sales "', 'externalId eq " 17"']) {
        const found = yield* ask("GET", `/Groups?filter=${encodeURIComponent(filter)}`)
        expect(found.body.Resources).toMatchObject([{ id, displayName: "Sales" }])
      }
    })
  )

  it.effect("neither makes nor demotes owners, and signs out users who lose a role", () =>
    Effect.gen(function* () {
      const { ada, ask, cookie, roleOf } = yield* world
      const body = { email: "cy@acme.example", role: "admin", password }
      const second: string = (yield* call("POST", "/api/users", { cookie, body })).data.user.id
      const session = cookieOf(
        yield* call("POST", "/api/auth/login", { body: { email: "cy@acme.example", password } })
      )
      const all = (yield* ask("GET", "/Users")).body.Resources
      const first: string = all.find(
        ({ userName }: { readonly userName: string }) => userName === "owner@acme.example"
      ).id
      yield* ask("POST", "/Groups", { displayName: "Support", members: [{ value: second }] })
      expect([yield* roleOf(first), yield* roleOf(second)]).toEqual(["owner", "agent"])
      expect(yield* sessionUser(session)).toBe(401)
      yield* ask("POST", "/Groups", { displayName: "IT", members: [{ value: first }, { value: second }] })
      expect([yield* roleOf(first), yield* roleOf(second)]).toEqual(["owner", "admin"])
      // The tenant gives the role of owners to this group: to who brings it in a signed token, and not for a provisioning token.
      yield* ask("POST", "/Groups", { displayName: "Board", members: [{ value: ada }, { value: first }] })
      expect([yield* roleOf(ada), yield* roleOf(first)]).toEqual(["admin", "owner"])
      expect(yield* sessionUser(cookie)).toMatchObject({ role: "owner" })
    })
  )

  it.effect("applies changes of members in order, and limits the size of a page of groups", () =>
    Effect.gen(function* () {
      const { ada, ask, bob, roleOf, tenantId } = yield* world
      const made = yield* ask("POST", "/Groups", { displayName: "Support", members: [{ value: ada }] })
      const path = `/Groups/${made.body.id}`
      const changed = yield* ask(
        "PATCH",
        path,
        patch(
          { op: "Add", path: "members", value: { value: bob } },
          { op: "Remove", path: "members", value: [] },
          { op: "Remove", path: `urn:ietf:params:scim:schemas:core:2.0:Group:members[value eq "${ada}"]` }
        )
      )
      expect([changed.status, changed.body]).toEqual([204, null])
      expect((yield* ask("GET", path)).body.members).toEqual([{ value: bob, display: "bob@acme.example" }])
      expect([yield* roleOf(ada), yield* roleOf(bob)]).toEqual(["viewer", "agent"])
      const asked = (filter: string) =>
        Effect.map(
          ask("GET", `/Groups?filter=${encodeURIComponent(filter)}`),
          ({ body }) => body.totalResults
        )
      expect([
        yield* asked(`id eq "${made.body.id}" and members eq "${bob}"`),
        yield* asked(`id eq "${made.body.id}" and members eq "${ada}"`)
      ]).toEqual([1, 0])
      yield* ask("PATCH", path, patch({ op: "remove", path: "members" }))
      expect((yield* ask("GET", path)).body.members).toEqual([])
      const sql = yield* SqlClient.SqlClient
      yield* sql`insert into users (id, tenant_id, email, role)
        select 'usr_z' || n, ${tenantId}, 'z' || n || '@acme.example', 'viewer' from generate_series(1, 6000) n`
      yield* sql`insert into scim_groups (tenant_id, id, name)
        select ${tenantId}, 'grp_z' || n, 'Large ' || n from generate_series(1, 3) n`
      yield* sql`insert into scim_group_members (tenant_id, group_id, user_id)
        select g.tenant_id, g.id, u.id from scim_groups g join users u on u.tenant_id = g.tenant_id
        where g.id like 'grp_z%' and u.id like 'usr_z%'`
      const lengths = (yield* ask("GET", "/Groups")).body
      expect([lengths.totalResults, lengths.itemsPerPage]).toEqual([4, 2])
      expect((yield* ask("GET", "/Groups?excludedAttributes=members")).body.itemsPerPage).toBe(4)
      expect((yield* ask("GET", "/Groups?attributes=id,displayName")).body.itemsPerPage).toBe(4)
      const full = yield* ask(
        "PATCH",
        "/Groups/grp_z1",
        patch({
          op: "add",
          path: "members",
          value: Array.from({ length: 4_001 }, (_, n) => ({ value: `usr_y${n}` }))
        })
      )
      expect([full.status, full.body.scimType]).toEqual([400, "invalidValue"])
    })
  )

  it.scoped("gives the same roles at a sign-in, together with the groups of its token", () =>
    Effect.gen(function* () {
      const provider = yield* fakeProvider
      const { ask } = yield* provisionedTenant(roles, provider.issuer)
      const ada = (yield* ask("POST", "/Users", entraUser("ada@acme.example"))).body.id
      yield* ask("POST", "/Groups", { displayName: "IT", members: [{ value: ada }] })
      const { flow, page } = yield* beginSignOn()
      const { session } = yield* returnFromProvider(new URLSearchParams(provider.approve(page)), flow)
      expect(yield* sessionUser(session)).toMatchObject({ email: "ada@acme.example", role: "admin" })
    })
  )

  it.effect("does not change roles if the connection gives none by groups", () =>
    Effect.gen(function* () {
      const { ask, cookie, roleOf, tenantId } = yield* world
      yield* call("PUT", "/api/single-sign-on", {
        cookie,
        body: { ...settings("https://accounts.example"), groupRoles: [] }
      })
      expect((yield* operate("PUT", `/api/operator/tenants/${tenantId}/domains/acme.example`)).status).toBe(
        200
      )
      const body = { email: "cy@acme.example", role: "admin", password }
      const member: string = (yield* call("POST", "/api/users", { cookie, body })).data.user.id
      yield* ask("POST", "/Groups", { displayName: "Support", members: [{ value: member }] })
      expect(yield* roleOf(member)).toBe("admin")
    })
  )
})
