import { describe, expect, it, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "@effect/sql/SqlClient"
import { JobQueue } from "../../../src/capabilities/JobQueue.ts"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { reset, TestDatabase } from "../../TestDatabase.ts"
import { accountsServer, type Answer, call, operate, password } from "./AccountsServer.ts"

const Server = (options?: Parameters<typeof accountsServer>[0]) =>
  accountsServer(options).pipe(Layer.provideMerge(TestDatabase))

const shop = { name: "Shop", owner: { email: " Ada@Example.COM ", password } }
const entitlements = { publicApi: true, turns: 10, ingestionJobs: 5, sources: 2, overageEnabled: false }
const pathsOf = (answer: Answer): ReadonlyArray<string> =>
  answer.error.details.issues.map(({ path }: { readonly path: ReadonlyArray<string> }) => path.join("."))

layer(Server(), { excludeTestServices: true })("Operator routes", (it) => {
  it.effect("create a tenant with its owner: 201, ids, the e-mail address trimmed and in lower case", () =>
    Effect.gen(function* () {
      yield* reset
      const made = yield* operate("POST", "/api/operator/tenants", { body: shop })
      expect(made.status).toBe(201)
      expect(made.data).toEqual({
        tenant: {
          id: expect.stringMatching(/^ten_/),
          name: "Shop",
          createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
        },
        owner: { id: expect.stringMatching(/^mbr_/), email: "ada@example.com", role: "owner" }
      })
      expect(made.text).not.toContain(password)
      const again = yield* operate("POST", "/api/operator/tenants", { body: shop })
      expect([again.status, again.error.code]).toEqual([409, "CONFLICT"])
    })
  )

  it.effect("list tenants page by page, and accept only their own cursors", () =>
    Effect.gen(function* () {
      yield* reset
      for (const name of ["a", "b", "c"]) {
        yield* operate("POST", "/api/operator/tenants", {
          body: { name, owner: { email: `${name}@example.com`, password } }
        })
      }
      const first = yield* operate("GET", "/api/operator/tenants?limit=2")
      expect(first.data.tenants).toHaveLength(2)
      const second = yield* operate(
        "GET",
        `/api/operator/tenants?limit=2&cursor=${encodeURIComponent(first.data.nextCursor)}`
      )
      expect(second.data.nextCursor).toBe(null)
      const names = [...first.data.tenants, ...second.data.tenants].map(({ name }) => name)
      expect(names.toSorted()).toEqual(["a", "b", "c"])
      for (const query of ["cursor=x", "limit=0", "limit=101", "limit=many"]) {
        const refused = yield* operate("GET", `/api/operator/tenants?${query}`)
        expect([query, refused.status, refused.error?.code]).toEqual([query, 400, "VALIDATION_ERROR"])
      }
    })
  )

  it.effect("show the queues and their jobs without payloads, and rerun failed jobs", () =>
    Effect.gen(function* () {
      yield* reset
      const queue = yield* JobQueue
      const sql = yield* SqlClient.SqlClient
      const ids = yield* queue.enqueueAll(
        "channel-inbound",
        Array.from({ length: 3 }, () => ({ payload: { inboxId: "hunter2" } }))
      )
      yield* sql`update queue_jobs set state = 'failed', attempts = 5, last_error = 'No route.', finished_at = now() where id = ${ids[0] ?? ""}`
      const all = yield* operate("GET", "/api/operator/queues")
      expect(all.data.queues).toContainEqual({
        name: "channel-inbound",
        waiting: 2,
        active: 0,
        delayed: 0,
        completed: 0,
        failed: 1
      })
      const path = "/api/operator/queues/channel-inbound/jobs"
      const first = yield* operate("GET", `${path}?limit=2`)
      expect(first.data.jobs.map(({ id }: { readonly id: string }) => id)).toEqual([ids[2], ids[1]])
      const second = yield* operate(
        "GET",
        `${path}?limit=2&cursor=${encodeURIComponent(first.data.nextCursor)}`
      )
      const job = {
        id: ids[0],
        state: "failed",
        attempts: 5,
        lastError: "No route.",
        createdAt: expect.stringMatching(/Z$/)
      }
      expect(second.data).toEqual({ jobs: [job], nextCursor: null })
      expect((yield* operate("GET", `${path}?state=failed`)).data).toEqual({ jobs: [job], nextCursor: null })
      expect(first.text + second.text).not.toContain("hunter2")
      const again = yield* operate("POST", `${path}/${ids[0]}/retry`)
      expect([again.status, again.data.job]).toEqual([200, { ...job, state: "waiting", attempts: 0 }])
      const twice = yield* operate("POST", `${path}/${ids[0]}/retry`)
      expect([twice.status, twice.error.code]).toEqual([409, "CONFLICT"])
      for (const unknown of [
        yield* operate("POST", `${path}/qjb_none/retry`),
        yield* operate("POST", `/api/operator/queues/ingestion/jobs/${ids[0]}/retry`),
        yield* operate("GET", "/api/operator/queues/nothing/jobs")
      ]) {
        expect([unknown.status, unknown.error.code]).toEqual([404, "NOT_FOUND"])
      }
      for (const query of ["state=lost", "cursor=x", `limit=0`]) {
        const refused = yield* operate("GET", `${path}?${query}`)
        expect([query, refused.status, refused.error?.code]).toEqual([query, 400, "VALIDATION_ERROR"])
      }
      const elsewhere = `${path}?state=failed&cursor=${encodeURIComponent(first.data.nextCursor)}`
      expect((yield* operate("GET", elsewhere)).status).toBe(400)
      expect((yield* call("GET", "/api/operator/queues")).status).toBe(401)
    })
  )

  it.effect("set a tenant's subscription, with and without a period", () =>
    Effect.gen(function* () {
      yield* reset
      const made = yield* operate("POST", "/api/operator/tenants", { body: shop })
      const path = `/api/operator/tenants/${made.data.tenant.id}/subscription`
      const period = { start: "2030-01-01T00:00:00.000Z", end: "2030-02-01T00:00:00.000Z" }
      const set = yield* operate("PUT", path, { body: { plan: "pro", period, entitlements } })
      expect([set.status, set.data]).toEqual([
        200,
        { subscription: { plan: "pro", status: "active", period, entitlements } }
      ])
      const monthly = yield* operate("PUT", path, { body: { plan: "pro", entitlements } })
      expect(monthly.data.subscription.period).toBe(null)
      const nobody = yield* operate("PUT", "/api/operator/tenants/ten_nobody/subscription", {
        body: { plan: "pro", entitlements }
      })
      expect([nobody.status, nobody.error.code]).toEqual([404, "NOT_FOUND"])
    })
  )

  it.effect("answer 401 to a missing or wrong token, before they read the body", () =>
    Effect.gen(function* () {
      for (const authorization of [
        "",
        "Bearer wrong",
        "Bearer",
        "Basic b3BlcmF0b3I6",
        "operator-token-of-the-tests"
      ]) {
        const answer = yield* call("POST", "/api/operator/tenants", { raw: "{", headers: { authorization } })
        expect([authorization, answer.status, answer.error.code]).toEqual([
          authorization,
          401,
          "UNAUTHORIZED"
        ])
      }
    })
  )

  it.effect("answer 400 to an invalid body, with the field and without its content", () =>
    Effect.gen(function* () {
      yield* reset
      const bad: ReadonlyArray<readonly [body: unknown, path: string]> = [
        [{ ...shop, name: " " }, "name"],
        [{ ...shop, name: "x".repeat(201) }, "name"],
        [{ ...shop, owner: { ...shop.owner, email: "SECRET-not-an-address" } }, "owner.email"],
        [{ ...shop, owner: { ...shop.owner, password: "SECRET1" } }, "owner.password"],
        [{ ...shop, owner: { ...shop.owner, password: "SECRET".repeat(34) } }, "owner.password"],
        [{ name: "Shop" }, "owner"]
      ]
      for (const [body, path] of bad) {
        const answer = yield* operate("POST", "/api/operator/tenants", { body })
        expect([path, answer.status, answer.error.code]).toEqual([path, 400, "VALIDATION_ERROR"])
        expect(pathsOf(answer)).toContain(path)
        expect(answer.text).not.toContain("SECRET")
      }
      const plan = { plan: "pro", entitlements }
      const badPlans: ReadonlyArray<readonly [body: unknown, path: string]> = [
        [{ ...plan, entitlements: { ...entitlements, turns: -1 } }, "entitlements.turns"],
        [{ ...plan, entitlements: { ...entitlements, sources: 1.5 } }, "entitlements.sources"],
        [{ ...plan, entitlements: { ...entitlements, publicApi: "yes" } }, "entitlements.publicApi"],
        [{ ...plan, period: null }, "period"],
        [{ ...plan, period: { start: "2030-02-01T00:00:00Z", end: "2030-02-01T00:00:00Z" } }, "period"],
        [
          { ...plan, period: { start: "-000001-01-01T00:00:00Z", end: "2030-02-01T00:00:00Z" } },
          "period.start"
        ],
        [{ ...plan, period: { start: "2030-01-01T00:00:00Z", end: "+275760-09-13T00:00:00Z" } }, "period.end"]
      ]
      for (const [body, path] of badPlans) {
        const answer = yield* operate("PUT", "/api/operator/tenants/ten_x/subscription", { body })
        expect([path, answer.status]).toEqual([path, 400])
        expect(pathsOf(answer)).toContain(path)
      }
    })
  )
})

for (const [what, token] of [
  ["unset", Option.none()],
  ["empty", Option.some(Redacted.make(""))]
] as const) {
  describe(`Operator routes whose token is ${what}`, () => {
    it.scopedLive("answer 503 NOT_CONFIGURED to everybody", () =>
      Effect.gen(function* () {
        for (const authorization of ["", "Bearer ", "Bearer x"]) {
          const answer = yield* call("GET", "/api/operator/tenants", { headers: { authorization } })
          expect([answer.status, answer.error.code]).toEqual([503, "NOT_CONFIGURED"])
        }
      }).pipe(Effect.provide(Server({ token })))
    )
  })
}
