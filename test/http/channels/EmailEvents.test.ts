import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { call, signedIn } from "../accounts/AccountsServer.ts"
import { billingServer, postEmailEvents } from "../billing/BillingServer.ts"

const served = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.zipRight(reset, effect).pipe(Effect.provide(billingServer()), Effect.scoped)

const mail = (id: string, tenantId: string | null, providerId: string | null, status = "sent") =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`
      insert into email_logs (id, tenant_id, recipient, kind, status, provider_message_id, sent_at)
      values (${id}, ${tenantId}, 'ada@example.com', 'job_failed', ${status}, ${providerId}, now())`
  )

const statuses = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) =>
    sql<{ readonly id: string; readonly status: string }>`select id, status from email_logs order by id`
).pipe(Effect.map((rows) => Object.fromEntries(rows.map(({ id, status }) => [id, status]))))

const told = (event: string, fields: Readonly<Record<string, unknown>> = {}) => ({
  email: "ada@example.com",
  timestamp: 1_900_000_000,
  event,
  sg_event_id: `sg_${event}`,
  sg_message_id: "mid-1.recvd-5f7-1.0",
  ...fields
})

eachEngineLive("POST /api/webhooks/email", (it) => {
  it.effect("updates the log of each event's mail, and accepts unknown events", () =>
    served(
      Effect.gen(function* () {
        yield* mail("a", null, "mid-1")
        yield* mail("b", null, "mid-2")
        yield* mail("c", null, "uuid@spoke.example")
        yield* mail("d", null, null, "queued")
        const answer = yield* postEmailEvents([
          told("delivered", { category: ["x", "y"], response: "250 OK" }),
          told("deferred", { sg_message_id: "mid-2.x", attempt: "3", category: "x" }),
          told("delivered", { sg_message_id: undefined, "smtp-id": "<uuid@spoke.example>" }),
          told("delivered", { sg_message_id: "mid-9.x" }),
          told("dropped", { sg_message_id: 5, sg_event_id: undefined }),
          ...["unsubscribe", "group_unsubscribe", "group_resubscribe"].map((event) =>
            told(event, { asm_group_id: 7, ip: "203.0.113.7", useragent: "x" })
          ),
          told("constructor"),
          { event: "account_status_change", type: "compliance_suspend" }
        ])
        expect([answer.status, answer.data]).toEqual([200, { received: true }])
        expect(yield* statuses).toEqual({ a: "delivered", b: "deferred", c: "delivered", d: "queued" })
        expect((yield* postEmailEvents([])).status).toBe(200)
      })
    )
  )

  it.effect(
    "answers 400 VALIDATION_ERROR unless it gets an array of objects with an event, and writes nothing",
    () =>
      served(
        Effect.gen(function* () {
          yield* mail("a", null, "mid-1")
          const good = told("delivered")
          const wrong = [
            {},
            good,
            "x",
            5,
            [good, 5],
            [good, {}],
            [good, { event: 5 }],
            [[good]],
            [good, null]
          ]
          for (const body of wrong) {
            const answer = yield* postEmailEvents(body)
            expect([body, answer.status, answer.error?.code]).toEqual([body, 400, "VALIDATION_ERROR"])
          }
          for (const raw of ["", "[", "null"]) {
            const answer = yield* call("POST", "/api/webhooks/email", { raw })
            expect([raw, answer.status, answer.error?.code]).toEqual([raw, 400, "VALIDATION_ERROR"])
          }
          expect(yield* statuses).toEqual({ a: "sent" })
        })
      )
  )

  it.effect("never moves a status backwards: order and repeats of events change nothing", () =>
    served(
      Effect.gen(function* () {
        const order = ["processed", "deferred", "delivered", "open", "click", "spamreport", "bounce"]
        const cases = FastCheck.tuple(
          FastCheck.subarray(order, { minLength: 1 }),
          FastCheck.array(FastCheck.nat(6), { minLength: 1, maxLength: 12 })
        )
        for (const [place, [kinds, again]] of FastCheck.sample(cases, { numRuns: 25, seed: 8 }).entries()) {
          yield* mail(`log_${place}`, null, `mid-${place}`)
          const events = [...again.flatMap((n) => kinds[n] ?? []), ...kinds].map((kind) =>
            told(kind, { sg_message_id: `mid-${place}.x` })
          )
          for (const event of events.toReversed()) yield* postEmailEvents([event])
          yield* postEmailEvents(events)
          expect((yield* statuses)[`log_${place}`]).toBe(kinds.at(-1))
        }
      })
    )
  )

  it.effect("applies many events at the same time without losing one", () =>
    served(
      Effect.gen(function* () {
        const places = Array.from({ length: 50 }, (_, place) => place)
        for (const place of places) yield* mail(`log_${place}`, null, `mid-${place}`)
        const batch = (kind: string, order: ReadonlyArray<number>) =>
          postEmailEvents(order.map((place) => told(kind, { sg_message_id: `mid-${place}.x` })))
        const answers = yield* Effect.all(
          ["open", "delivered", "click", "processed"].flatMap((kind) => [
            batch(kind, places),
            batch(kind, places.toReversed())
          ]),
          { concurrency: "unbounded" }
        )
        expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
        expect(new Set(Object.values(yield* statuses))).toEqual(new Set(["click"]))
      })
    )
  )
})

eachEngineLive("GET /api/email-logs", (it) => {
  it.effect("lists the tenant's mails, newest first, page by page, and nobody else's", () =>
    served(
      Effect.gen(function* () {
        const mine = yield* signedIn("ada@example.com")
        const other = yield* signedIn("bob@example.com")
        for (const id of ["eml_1", "eml_2", "eml_3"]) yield* mail(id, mine.tenantId, id)
        yield* mail("eml_4", other.tenantId, "eml_4")
        yield* mail("eml_5", null, "eml_5")
        const first = yield* call("GET", "/api/email-logs?limit=2", { cookie: mine.cookie })
        expect(first.status).toBe(200)
        expect(first.data.emailLogs[0]).toEqual({
          id: "eml_3",
          to: "ada@example.com",
          kind: "job_failed",
          status: "sent",
          sentAt: expect.stringMatching(/Z$/),
          updatedAt: expect.stringMatching(/Z$/)
        })
        const next = `/api/email-logs?limit=2&cursor=${encodeURIComponent(first.data.nextCursor)}`
        const second = yield* call("GET", next, { cookie: mine.cookie })
        const ids = [...first.data.emailLogs, ...second.data.emailLogs].map(({ id }) => id)
        expect([ids, second.data.nextCursor]).toEqual([["eml_3", "eml_2", "eml_1"], null])
        const stolen = yield* call("GET", next, { cookie: other.cookie })
        expect([stolen.status, stolen.error.code]).toEqual([400, "VALIDATION_ERROR"])
        expect((yield* call("GET", "/api/email-logs")).status).toBe(401)
        yield* Effect.flatMap(
          SqlClient.SqlClient,
          (sql) => sql`update users set role = 'agent' where tenant_id = ${mine.tenantId}`
        )
        const low = yield* call("GET", "/api/email-logs", { cookie: mine.cookie })
        expect([low.status, low.error.code]).toEqual([403, "FORBIDDEN"])
      })
    )
  )
})
