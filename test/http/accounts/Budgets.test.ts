/** Budgets over HTTP, as the dashboard sets them. */
import { expect, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { reset, TestDatabase } from "../../TestDatabase.ts"
import { accountsServer, call, cookieOf, password, signedIn } from "./AccountsServer.ts"

const Server = accountsServer().pipe(Layer.provideMerge(TestDatabase))

const root = "/api/budgets"

layer(Server, { excludeTestServices: true })("Budgets", (it) => {
  it.effect("are set, changed and removed by admins, read by every member, and listed in the usage", () =>
    Effect.gen(function* () {
      yield* reset
      const { cookie } = yield* signedIn("ada@example.com")
      const made = yield* call("POST", "/api/users", {
        cookie,
        body: { email: "v@example.com", role: "viewer" }
      })
      const { token } = made.data.invitation
      yield* call("POST", "/api/auth/password", { body: { token, password } })
      const login = yield* call("POST", "/api/auth/login", { body: { email: "v@example.com", password } })
      const viewer = cookieOf(login)

      const body = { period: "month", limitNanoUsd: 5_000_000_000 }
      expect((yield* call("POST", root, { cookie: viewer, body })).status).toBe(403)
      const { data, status } = yield* call("POST", root, { cookie, body })
      expect(status).toBe(201)
      const { budget } = data
      const now = new Date()
      expect(budget).toMatchObject({
        ...body,
        agentId: null,
        keyId: null,
        spentNanoUsd: 0,
        reservedNanoUsd: 0,
        resetsAt: new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1)).toISOString(),
        version: 1
      })
      expect((yield* call("POST", root, { cookie, body })).error.code).toBe("CONFLICT")

      const one = `${root}/${budget.id}`
      expect((yield* call("PATCH", one, { cookie: viewer, body: { limitNanoUsd: 7 } })).status).toBe(403)
      const changed = yield* call("PATCH", one, { cookie, body: { limitNanoUsd: 7 } })
      expect(changed.data.budget).toEqual({ ...budget, limitNanoUsd: 7, version: 2 })
      expect((yield* call("GET", root, { cookie: viewer })).data).toEqual({
        budgets: [changed.data.budget],
        nextCursor: null
      })
      expect((yield* call("GET", "/api/usage", { cookie: viewer })).data.budgets).toEqual([
        changed.data.budget
      ])

      expect((yield* call("DELETE", one, { cookie: viewer })).status).toBe(403)
      expect((yield* call("DELETE", one, { cookie })).data).toEqual({ id: budget.id, deleted: true })
      expect((yield* call("DELETE", one, { cookie })).status).toBe(404)
      const { entries } = (yield* call("GET", "/api/audit", { cookie })).data
      const actions = entries.map(({ action }: { readonly action: string }) => action)
      expect(actions.filter((action: string) => action.startsWith("budget."))).toEqual([
        "budget.delete",
        "budget.update",
        "budget.create"
      ])
    })
  )

  it.effect("are refused if they are invalid, or for agents and keys of other tenants", () =>
    Effect.gen(function* () {
      yield* reset
      const { cookie } = yield* signedIn("ada@example.com")
      const { cookie: other } = yield* signedIn("bob@example.com")
      const agent = yield* call("POST", "/api/agents", { cookie: other, body: { name: "Theirs" } })
      const { agentId } = { agentId: agent.data.agent.id }
      const refused = [
        { period: "week", limitNanoUsd: 1 },
        { period: "day", limitNanoUsd: 0 },
        { period: "day", limitNanoUsd: 1.5 },
        { period: "day", limitNanoUsd: 1e300 },
        { period: "day" },
        { period: "day", limitNanoUsd: 1, agentId, keyId: "key_1" }
      ]
      for (const body of refused) {
        const { error, status } = yield* call("POST", root, { cookie, body })
        expect([body, status, error.code]).toEqual([body, 400, "VALIDATION_ERROR"])
      }
      for (const body of [
        { period: "day", limitNanoUsd: 1, agentId },
        { period: "day", limitNanoUsd: 1, keyId: "key_1" }
      ]) {
        expect((yield* call("POST", root, { cookie, body })).status).toBe(404)
      }
      const own = yield* call("POST", root, {
        cookie: other,
        body: { period: "day", limitNanoUsd: 1, agentId }
      })
      expect(own.status).toBe(201)
      const { id } = own.data.budget
      expect((yield* call("GET", `${root}/${id}`, { cookie })).status).toBe(404)
      expect((yield* call("PATCH", `${root}/${id}`, { cookie, body: { limitNanoUsd: 2 } })).status).toBe(404)
      expect((yield* call("DELETE", `${root}/${id}`, { cookie })).status).toBe(404)
      expect((yield* call("GET", root, { cookie })).data.budgets).toEqual([])
    })
  )
})
