import { expect, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { reset, TestDatabase } from "../../TestDatabase.ts"
import { accountsServer, call, cookieOf, password, signedIn } from "./AccountsServer.ts"

const Server = accountsServer().pipe(Layer.provideMerge(TestDatabase))

import { keepsAll as none } from "../../../src/domain/accounts/Retention.ts"

const answer = { retention: none, installation: none }

layer(Server, { excludeTestServices: true })("The retention limits of a tenant", (it) => {
  it.effect("keep data for ever by default, can be changed one by one, and are audited", () =>
    Effect.gen(function* () {
      yield* reset
      const { cookie } = yield* signedIn("ada@example.com")
      expect((yield* call("GET", "/api/retention", { cookie })).data).toEqual(answer)
      yield* call("PATCH", "/api/retention", { cookie, body: { conversations: 90 } })
      const { data } = yield* call("PATCH", "/api/retention", { cookie, body: { runs: 30 } })
      expect(data).toEqual({ ...answer, retention: { ...none, conversations: 90, runs: 30 } })
      yield* call("PATCH", "/api/retention", { cookie, body: { conversations: null } })
      expect((yield* call("GET", "/api/retention", { cookie })).data.retention).toEqual({ ...none, runs: 30 })
      const { entries } = (yield* call("GET", "/api/audit", { cookie })).data
      const actions = entries.map(({ action }: { readonly action: string }) => action)
      expect(actions.filter((action: string) => action === "retention.update")).toHaveLength(3)
    })
  )

  it.effect("are refused and unchanged if a number of days is invalid", () =>
    Effect.gen(function* () {
      yield* reset
      const { cookie } = yield* signedIn("ada@example.com")
      for (const days of [0, -1, 1.5, 3_651, "30", 1e300]) {
        const { error, status } = yield* call("PATCH", "/api/retention", {
          cookie,
          body: { runs: 30, conversations: days }
        })
        expect([days, status, error.code]).toEqual([days, 400, "VALIDATION_ERROR"])
      }
      expect((yield* call("GET", "/api/retention", { cookie })).data).toEqual(answer)
    })
  )

  it.effect("can be changed by owners, read by admins, and not accessed by other tenants", () =>
    Effect.gen(function* () {
      yield* reset
      const { cookie } = yield* signedIn("ada@example.com")
      const { cookie: other } = yield* signedIn("bob@example.com")
      const member = (email: string, role: string) =>
        Effect.gen(function* () {
          const made = yield* call("POST", "/api/users", { cookie, body: { email, role } })
          const { token } = made.data.invitation
          yield* call("POST", "/api/auth/password", { body: { token, password } })
          return cookieOf(yield* call("POST", "/api/auth/login", { body: { email, password } }))
        })
      const admin = yield* member("al@example.com", "admin")
      const agent = yield* member("eve@example.com", "agent")
      yield* call("PATCH", "/api/retention", { cookie, body: { runs: 7 } })
      expect((yield* call("GET", "/api/retention", { cookie: admin })).data.retention.runs).toBe(7)
      expect((yield* call("PATCH", "/api/retention", { cookie: admin, body: { runs: 1 } })).status).toBe(403)
      expect((yield* call("GET", "/api/retention", { cookie: agent })).status).toBe(403)
      expect((yield* call("GET", "/api/retention", { cookie: other })).data).toEqual(answer)
    })
  )
})
