/** Changes of the team that come while a request is under way: another connection holds them back until it waits. */
import { describe, expect, layer } from "@effect/vitest"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Pg from "pg"
import { binaries } from "../../servers/PostgresServer.ts"
import { reset, serverUrl, TestServer } from "../../TestDatabase.ts"
import { accountsServer, call, cookieOf, password, signedIn } from "./AccountsServer.ts"

const skipped = binaries === undefined && process.env["CI"] !== "true"

const Server = accountsServer().pipe(Layer.provideMerge(TestServer))

const signIn = (email: string) => call("POST", "/api/auth/login", { body: { email, password } })

const given = (by: string, email: string, role: string) =>
  Effect.gen(function* () {
    const { data } = yield* call("POST", "/api/users", { cookie: by, body: { email, role, password } })
    const id: string = data.user.id
    return { id, path: `/api/users/${id}`, cookie: cookieOf(yield* signIn(email)) }
  })

/** `request`, which begins while `statements` are done and not committed, and ends after their commit. */
const during = <A, E, R>(statements: ReadonlyArray<string>, request: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const url = yield* serverUrl
    const other = yield* Effect.acquireRelease(
      Effect.promise(async () => {
        const client = new Pg.Client({ connectionString: Redacted.value(url) })
        await client.connect()
        return client
      }),
      (client) => Effect.promise(() => client.end())
    )
    yield* Effect.promise(() => other.query("begin"))
    for (const statement of statements) yield* Effect.promise(() => other.query(statement))
    const fiber = yield* Effect.fork(request)
    const sql = yield* SqlClient.SqlClient
    yield* sql<{ readonly waiting: number }>`
      select count(*)::int as waiting from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`.pipe(
      Effect.map(([row]) => row?.waiting ?? 0),
      Effect.delay("20 millis"),
      Effect.repeat({ until: (waiting) => waiting > 0 }),
      Effect.timeout("10 seconds")
    )
    yield* Effect.promise(() => other.query("commit"))
    return yield* Fiber.join(fiber)
  }).pipe(Effect.scoped)

const lockTeam = "select 1 from tenants for no key update"

describe.skipIf(skipped)("On a PostgreSQL server", () => {
  layer(Server, { excludeTestServices: true })("A change of the team", (it) => {
    it.effect("is refused if the caller lost the role for it while the request waited", () =>
      Effect.gen(function* () {
        yield* reset
        const { cookie: ada } = yield* signedIn("ada@example.com")
        const ben = yield* given(ada, "ben@example.com", "owner")
        const eve = yield* given(ada, "eve@example.com", "viewer")
        const mine = (yield* call("GET", "/api/auth/session", { cookie: ada })).data.user.id
        const demote = (role: string) => [
          lockTeam,
          `update users set role = '${role}' where id = '${ben.id}'`
        ]
        const as = { cookie: ben.cookie }
        const tries = [
          call("PATCH", `/api/users/${mine}`, { ...as, body: { role: "viewer" } }),
          call("DELETE", `/api/users/${mine}`, as),
          call("POST", `/api/users/${mine}/invitation`, as),
          call("POST", "/api/users", { ...as, body: { email: "new@example.com", role: "owner" } })
        ]
        for (const attempt of tries) {
          const { error, status } = yield* during(demote("admin"), attempt)
          expect([status, error?.code]).toEqual([403, "FORBIDDEN"])
          const sql = yield* SqlClient.SqlClient
          yield* sql`update users set role = 'owner' where id = ${ben.id}`
        }
        const late = call("PATCH", eve.path, { ...as, body: { role: "admin" } })
        const gone = [lockTeam, `delete from users where id = '${ben.id}'`]
        expect((yield* during(gone, late)).status).toBe(403)
        const { data } = yield* call("GET", "/api/users", { cookie: ada })
        expect(data.users.map(({ email, role }: Record<string, string>) => `${email} ${role}`)).toEqual([
          "ada@example.com owner",
          "eve@example.com viewer"
        ])
      })
    )
  })

  layer(Server, { excludeTestServices: true })("An invitation", (it) => {
    it.effect("is void if a change of the people came first while it was being accepted", () =>
      Effect.gen(function* () {
        yield* reset
        const { cookie: ada } = yield* signedIn("ada@example.com")
        const al = yield* given(ada, "al@example.com", "admin")
        for (const change of [
          `update users set role = 'owner' where email = 'eve0@example.com'`,
          `update users set role = 'agent' where id = '${al.id}'`,
          `delete from users where id = '${al.id}'`
        ]) {
          const email = change.includes("eve0") ? "eve0@example.com" : `e${change.length}@example.com`
          const made = yield* call("POST", "/api/users", {
            cookie: al.cookie,
            body: { email, role: "agent" }
          })
          const { token } = made.data.invitation
          const accept = call("POST", "/api/auth/password", { body: { token, password } })
          expect((yield* during([lockTeam, change], accept)).status).toBe(401)
          expect((yield* signIn(email)).status).toBe(401)
          const sql = yield* SqlClient.SqlClient
          yield* sql`update users set role = 'admin' where id = ${al.id}`
        }
      })
    )
  })

  layer(Server, { excludeTestServices: true })("A session", (it) => {
    it.effect("of the old password cannot be opened while a new one is chosen", () =>
      Effect.gen(function* () {
        yield* reset
        yield* signedIn("ada@example.com")
        const change = [
          "update users set password_hash = 'another' where email = 'ada@example.com'",
          "delete from user_sessions"
        ]
        expect((yield* during(change, signIn("ada@example.com"))).status).toBe(401)
        const sql = yield* SqlClient.SqlClient
        expect(yield* sql`select 1 from user_sessions`).toEqual([])
      })
    )
  })
})
