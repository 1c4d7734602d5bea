import { expect, layer } from "@effect/vitest"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { reset, TestDatabase } from "../../TestDatabase.ts"
import { accountsServer, type Answer, call, cookieOf, password, signedIn } from "./AccountsServer.ts"

const Server = accountsServer().pipe(Layer.provideMerge(TestDatabase))

const outcome = ({ status, error }: Answer) => [status, error?.code]

const signIn = (email: string, secret = password) =>
  call("POST", "/api/auth/login", { body: { email, password: secret } })

/** A member with a password of their own and a session. */
const member = (by: string, email: string, role: string) =>
  Effect.gen(function* () {
    const made = yield* call("POST", "/api/users", { cookie: by, body: { email, role } })
    const { token } = made.data.invitation
    const id: string = made.data.user.id
    yield* call("POST", "/api/auth/password", { body: { token, password } })
    return { id, path: `/api/users/${id}`, cookie: cookieOf(yield* signIn(email)) }
  })

/** An invited member without a password. */
const invited = (by: string, email: string, role: string) =>
  Effect.gen(function* () {
    const { data } = yield* call("POST", "/api/users", { cookie: by, body: { email, role } })
    const token: string = data.invitation.token
    return { path: `/api/users/${data.user.id}`, token }
  })

const inviteAgain = (by: string, path: string) =>
  Effect.map(call("POST", `${path}/invitation`, { cookie: by }), ({ data }): string => data.invitation.token)

const stolen = "a password of the thief"
const redeem = (token: string) => call("POST", "/api/auth/password", { body: { token, password: stolen } })
const setRole = (by: string, path: string, role: string) =>
  call("PATCH", path, { cookie: by, body: { role } })
const isOpen = (cookie: string) =>
  Effect.map(call("GET", "/api/auth/session", { cookie }), ({ status }) => status === 200)

/** Ada owns the tenant; Al and Bo are admins of it. */
const team = Effect.gen(function* () {
  yield* reset
  const { cookie: ada } = yield* signedIn("ada@example.com")
  return {
    ada,
    al: yield* member(ada, "al@example.com", "admin"),
    bo: yield* member(ada, "bo@example.com", "admin")
  }
})

layer(Server, { excludeTestServices: true })("An invitation", (it) => {
  it.effect("is void once the invited person's role has changed, so that no admin becomes an owner", () =>
    Effect.gen(function* () {
      const { ada, al } = yield* team
      for (const [email, role] of [
        ["eve@example.com", "owner"],
        ["eva@example.com", "viewer"]
      ] as const) {
        const { path, token } = yield* invited(al.cookie, email, "agent")
        expect((yield* setRole(ada, path, role)).status).toBe(200)
        expect(outcome(yield* redeem(token))).toEqual([401, "UNAUTHORIZED"])
        expect((yield* signIn(email, stolen)).status).toBe(401)
        // Back again, it stays void.
        yield* setRole(ada, path, "agent")
        expect((yield* redeem(token)).status).toBe(401)
        expect((yield* redeem(yield* inviteAgain(ada, path))).status).toBe(200)
      }
    })
  )

  it.effect("is void for a member with a password of their own, too", () =>
    Effect.gen(function* () {
      const { ada, al } = yield* team
      const { path } = yield* member(ada, "eve@example.com", "agent")
      const token = yield* inviteAgain(al.cookie, path)
      yield* setRole(ada, path, "owner")
      expect((yield* redeem(token)).status).toBe(401)
      expect((yield* signIn("eve@example.com")).status).toBe(200)
    })
  )

  it.effect("is void once its creator is removed", () =>
    Effect.gen(function* () {
      const { ada, al } = yield* team
      const { path, token } = yield* invited(al.cookie, "eve@example.com", "agent")
      yield* call("DELETE", al.path, { cookie: ada })
      expect(outcome(yield* redeem(token))).toEqual([401, "UNAUTHORIZED"])
      const { data } = yield* call("GET", "/api/users", { cookie: ada })
      expect(data.users.find(({ email }: { email: string }) => email === "eve@example.com").invited).toBe(
        true
      )
      expect((yield* redeem(yield* inviteAgain(ada, path))).status).toBe(200)
    })
  )

  it.effect("is void once its creator may no longer create it, also when they may again later", () =>
    Effect.gen(function* () {
      const { ada, al } = yield* team
      const { path, token } = yield* invited(al.cookie, "eve@example.com", "agent")
      yield* setRole(ada, al.path, "agent")
      expect((yield* redeem(token)).status).toBe(401)
      yield* setRole(ada, al.path, "admin")
      expect((yield* redeem(token)).status).toBe(401)
      // Of two owners one becomes an admin: the invitation of a third owner is void, that of an agent is not.
      yield* setRole(ada, al.path, "owner")
      const al2 = cookieOf(yield* signIn("al@example.com"))
      const owner = yield* invited(al2, "olga@example.com", "owner")
      const agent = yield* inviteAgain(al2, path)
      yield* setRole(ada, al.path, "admin")
      expect((yield* redeem(owner.token)).status).toBe(401)
      expect((yield* redeem(agent)).status).toBe(200)
    })
  )

  it.effect("stays valid after unrelated changes of other members", () =>
    Effect.gen(function* () {
      const { ada, al, bo } = yield* team
      const { path, token } = yield* invited(al.cookie, "eve@example.com", "agent")
      yield* setRole(ada, path, "agent")
      yield* setRole(ada, bo.path, "viewer")
      yield* call("DELETE", bo.path, { cookie: ada })
      yield* setRole(ada, al.path, "owner")
      expect((yield* redeem(token)).status).toBe(200)
    })
  )
})

layer(Server, { excludeTestServices: true })("A password that somebody else chose", (it) => {
  const given = (by: string, email: string, role: string) =>
    Effect.gen(function* () {
      const { data } = yield* call("POST", "/api/users", { cookie: by, body: { email, role, password } })
      return { path: `/api/users/${data.user.id}`, cookie: cookieOf(yield* signIn(email)) }
    })

  it.effect("is void with its sessions once its user's role is above that of its chooser", () =>
    Effect.gen(function* () {
      const { ada, al } = yield* team
      const eve = yield* given(al.cookie, "eve@example.com", "agent")
      const risen = yield* setRole(ada, eve.path, "owner")
      expect([risen.status, risen.data.user.role, risen.data.user.invited]).toEqual([200, "owner", true])
      expect((yield* signIn("eve@example.com")).status).toBe(401)
      expect(yield* isOpen(eve.cookie)).toBe(false)
      expect((yield* redeem(yield* inviteAgain(ada, eve.path))).status).toBe(200)
    })
  )

  it.effect("is void once its chooser is removed or demoted", () =>
    Effect.gen(function* () {
      const { ada, al, bo } = yield* team
      const eve = yield* given(al.cookie, "eve@example.com", "viewer")
      const eva = yield* given(bo.cookie, "eva@example.com", "viewer")
      yield* call("DELETE", al.path, { cookie: ada })
      yield* setRole(ada, bo.path, "agent")
      expect([yield* isOpen(eve.cookie), yield* isOpen(eva.cookie)]).toEqual([false, false])
      expect((yield* signIn("eve@example.com")).status).toBe(401)
      expect((yield* signIn("eva@example.com")).status).toBe(401)
    })
  )

  it.effect(
    "stays valid as long as its chooser could give the role, and one's own password always does",
    () =>
      Effect.gen(function* () {
        const { ada, al } = yield* team
        const eve = yield* given(al.cookie, "eve@example.com", "viewer")
        expect((yield* setRole(ada, eve.path, "admin")).data.user.invited).toBe(false)
        const olga = yield* given(ada, "olga@example.com", "agent")
        yield* setRole(ada, olga.path, "owner")
        yield* redeem(yield* inviteAgain(ada, eve.path))
        yield* call("DELETE", al.path, { cookie: ada })
        expect((yield* signIn("eve@example.com", stolen)).status).toBe(200)
        expect((yield* signIn("olga@example.com")).status).toBe(200)
      })
  )
})

layer(Server, { excludeTestServices: true })("A change of the team", (it) => {
  it.effect("never removes the last owner, also for concurrent removals", () =>
    Effect.gen(function* () {
      const { ada } = yield* team
      const me = (yield* call("GET", "/api/auth/session", { cookie: ada })).data.user.id
      const ben = yield* member(ada, "ben@example.com", "owner")
      yield* Effect.all(
        [
          setRole(ada, `/api/users/${me}`, "viewer"),
          call("DELETE", ben.path, { cookie: ben.cookie }),
          call("DELETE", ben.path, { cookie: ada }),
          setRole(ben.cookie, `/api/users/${me}`, "admin")
        ],
        { concurrency: "unbounded" }
      )
      const sql = yield* SqlClient.SqlClient
      expect(yield* sql`select 1 from users where role = 'owner'`).toHaveLength(1)
    })
  )

  it.effect("removes no owner if no other owner could sign in", () =>
    Effect.gen(function* () {
      const { ada } = yield* team
      const me = `/api/users/${(yield* call("GET", "/api/auth/session", { cookie: ada })).data.user.id}`
      const leave = Effect.zipWith(
        setRole(ada, me, "viewer"),
        call("DELETE", me, { cookie: ada }),
        (...answers) => answers.map(outcome)
      )
      const refused = [409, "CONFLICT"]
      // The invitation would end with Ada's role.
      const { path, token } = yield* invited(ada, "eve@example.com", "owner")
      expect(yield* leave).toEqual([refused, refused])
      expect((yield* redeem(token)).status).toBe(200)
      const eve = cookieOf(yield* signIn("eve@example.com", stolen))
      expect((yield* setRole(ada, me, "viewer")).status).toBe(200)
      expect((yield* call("DELETE", path, { cookie: eve })).status).toBe(409)
    })
  )

  it.effect(
    "keeps the password that an owner chose for another one if nobody else could sign in as owner",
    () =>
      Effect.gen(function* () {
        const { ada } = yield* team
        const me = `/api/users/${(yield* call("GET", "/api/auth/session", { cookie: ada })).data.user.id}`
        for (const [email, role] of [
          ["olga@example.com", "owner"],
          ["vera@example.com", "viewer"]
        ])
          yield* call("POST", "/api/users", { cookie: ada, body: { email, role, password } })
        expect((yield* call("DELETE", me, { cookie: ada })).status).toBe(200)
        expect((yield* signIn("olga@example.com", password)).status).toBe(200)
        expect((yield* signIn("vera@example.com", password)).status).toBe(401)
      })
  )
})

layer(Server, { excludeTestServices: true })("A session", (it) => {
  it.effect("is new at each sign-in: a session id set by others never becomes valid", () =>
    Effect.gen(function* () {
      yield* team
      const planted = "spoke_session=planted-by-somebody-else"
      const answer = yield* call("POST", "/api/auth/login", {
        cookie: planted,
        body: { email: "al@example.com", password }
      })
      expect(answer.status).toBe(200)
      expect(cookieOf(answer)).not.toBe(planted)
      expect(yield* isOpen(planted)).toBe(false)
    })
  )
})

layer(Server, { excludeTestServices: true })("A conversation", (it) => {
  it.effect("is no longer assigned to a member who may not answer any more", () =>
    Effect.gen(function* () {
      const { ada, al, bo } = yield* team
      const sql = yield* SqlClient.SqlClient
      yield* sql`insert into agents (id, tenant_id, name) select 'agt_1', id, 'Helper' from tenants`
      yield* sql`insert into end_users (id, tenant_id) select 'usr_1', id from tenants`
      const assignee = sql<{ readonly email: string | null }>`
        select (select email from users where id = assignee_id) as email from conversations`
      yield* sql`
        insert into conversations (id, tenant_id, agent_id, end_user_id, channel, state, assignee_id)
        select 'cnv_1', tenant_id, 'agt_1', 'usr_1', 'widget', 'HUMAN_ACTIVE', id from users where email = 'al@example.com'`
      yield* setRole(ada, bo.path, "viewer")
      yield* setRole(ada, al.path, "agent")
      expect(yield* assignee).toEqual([{ email: "al@example.com" }])
      yield* setRole(ada, al.path, "viewer")
      expect(yield* assignee).toEqual([{ email: null }])
    })
  )
})
