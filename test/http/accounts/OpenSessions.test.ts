import * as SqlClient from "@effect/sql/SqlClient"
import { expect, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { reset, TestDatabase } from "../../TestDatabase.ts"
import { accountsServer, call, cookieOf, password, signedIn } from "./AccountsServer.ts"

const Server = accountsServer().pipe(Layer.provideMerge(TestDatabase))

interface Listed {
  readonly id: string
  readonly current: boolean
  readonly device: string | null
}

const login = (email: string, device = "Browser/1") =>
  Effect.map(
    call("POST", "/api/auth/login", { body: { email, password }, headers: { "user-agent": device } }),
    cookieOf
  )
const own = (cookie: string) =>
  Effect.map(
    call("GET", "/api/auth/sessions", { cookie }),
    ({ data }): ReadonlyArray<Listed> => data.sessions
  )
const isOpen = (cookie: string) =>
  Effect.map(call("GET", "/api/auth/session", { cookie }), ({ status }) => status === 200)

/** An owner, and a member who is signed in twice. */
const team = Effect.gen(function* () {
  yield* reset
  const { cookie: owner } = yield* signedIn("owner@example.com")
  const { data } = yield* call("POST", "/api/users", {
    cookie: owner,
    body: { email: "bob@example.com", role: "admin", password }
  })
  const memberId: string = data.user.id
  return {
    owner,
    memberId,
    first: yield* login("bob@example.com", "Phone/1"),
    second: yield* login("bob@example.com", "Laptop/1")
  }
})

layer(Server, { excludeTestServices: true })("Open sessions", (it) => {
  it.effect(
    "are listed with device, address, method and last use, the last used first, and never with their token",
    () =>
      Effect.gen(function* () {
        const { first } = yield* team
        const sql = yield* SqlClient.SqlClient
        yield* sql`update user_sessions set used_at = now() - interval '1 hour'`
        yield* isOpen(first)
        const answer = yield* call("GET", "/api/auth/sessions", { cookie: first })
        expect(answer.data.sessions).toMatchObject([
          { current: true, device: "Phone/1", address: "127.0.0.1", method: "password" },
          { current: false, device: "Laptop/1", address: "127.0.0.1", method: "password" }
        ])
        const [phone, laptop] = answer.data.sessions
        expect(Date.parse(phone.usedAt) - Date.parse(laptop.usedAt)).toBeGreaterThan(3_000_000)
        expect(answer.text).not.toContain(first.slice("spoke_session=".length))
      })
  )

  it.effect("can be ended one by one, or all but the current one at once", () =>
    Effect.gen(function* () {
      const { first, second } = yield* team
      const third = yield* login("bob@example.com")
      const [other] = (yield* own(first)).filter(({ device }) => device === "Laptop/1")
      const ended = yield* call("DELETE", `/api/auth/sessions/${other?.id}`, { cookie: first })
      expect([ended.status, yield* isOpen(second), yield* isOpen(third)]).toEqual([200, false, true])
      expect((yield* call("DELETE", `/api/auth/sessions/${other?.id}`, { cookie: first })).status).toBe(404)
      const rest = yield* call("DELETE", "/api/auth/sessions", { cookie: first })
      expect([rest.data, yield* isOpen(third), yield* isOpen(first)]).toEqual([{ ended: 1 }, false, true])
    })
  )

  it.effect("of members can be listed and ended only by owners", () =>
    Effect.gen(function* () {
      const { first, memberId, owner, second } = yield* team
      const { cookie: stranger } = yield* signedIn("stranger@example.com")
      const path = `/api/users/${memberId}/sessions`
      const [session] = yield* own(second)
      expect((yield* call("GET", path, { cookie: first })).status).toBe(403)
      for (const [method, at] of [
        ["GET", path],
        ["DELETE", path],
        ["DELETE", `${path}/${session?.id}`]
      ] as const) {
        expect((yield* call(method, at, { cookie: stranger })).status).toBe(404)
      }
      // Another's session is none of one's own.
      expect((yield* call("DELETE", `/api/auth/sessions/${session?.id}`, { cookie: owner })).status).toBe(404)
      expect((yield* call("GET", path, { cookie: owner })).data.sessions).toHaveLength(2)
      expect([yield* isOpen(first), yield* isOpen(second)]).toEqual([true, true])
      yield* call("DELETE", `${path}/${session?.id}`, { cookie: owner })
      expect((yield* call("GET", path, { cookie: owner })).data.sessions).toHaveLength(1)
      expect((yield* call("DELETE", path, { cookie: owner })).data).toEqual({ ended: 1 })
      expect([yield* isOpen(first), yield* isOpen(second), yield* isOpen(owner)]).toEqual([
        false,
        false,
        true
      ])
    })
  )
})
