/** Requests of programs that come again: the header `Idempotency-Key` of the management interface. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { reset, TestDatabase } from "../../TestDatabase.ts"
import { RepeatedRequests } from "../../../src/usecases/accounts/RepeatedRequests.ts"
import { accountsServer, type Answer, call, signedIn } from "../accounts/AccountsServer.ts"

const Server = accountsServer().pipe(Layer.provideMerge(TestDatabase))

const outcome = ({ status, error }: Answer) => [status, error?.code]

const program = (email: string) =>
  Effect.gen(function* () {
    const { cookie } = yield* signedIn(email)
    const body = { name: "Deploy", scopes: ["agents:write"] }
    const made = yield* call("POST", "/api/tokens", { cookie, body })
    const send = (method: string, path: string, key: string | null, sent?: unknown) =>
      call(method, `/api/manage/v1${path}`, {
        headers: {
          authorization: `Bearer ${made.data.secret}`,
          origin: "",
          ...(key === null ? {} : { "idempotency-key": key })
        },
        ...(sent === undefined ? {} : { body: sent })
      })
    const names = Effect.map(send("GET", "/agents?limit=100", null), ({ data }) =>
      data.agents.map(({ name }: { readonly name: string }) => name)
    )
    return { send, names }
  })

layer(Server, { excludeTestServices: true })("A POST with an Idempotency-Key", (it) => {
  it.effect("is executed once: the second request gets the answer of the first, marked as a repeat", () =>
    Effect.gen(function* () {
      yield* reset
      const { names, send } = yield* program("ada@example.com")
      const first = yield* send("POST", "/agents", "deploy-1", { name: "Helper" })
      const second = yield* send("POST", "/agents", "deploy-1", { name: "Helper" })
      expect([first.status, second.status]).toEqual([201, 201])
      expect(second.data).toEqual(first.data)
      expect([first.headers.get("idempotent-replayed"), second.headers.get("idempotent-replayed")]).toEqual([
        null,
        "true"
      ])
      expect(second.headers.get("x-request-id")).toMatch(/./u)
      for (const header of ["content-security-policy", "content-type", "x-content-type-options"]) {
        expect(second.headers.get(header)).toBe(first.headers.get(header))
      }
      expect(second.headers.get("content-length")).toBe(first.headers.get("content-length"))
      expect(yield* names).toEqual(["Helper"])
      expect((yield* send("POST", "/agents", "deploy-2", { name: "Other" })).status).toBe(201)
      expect((yield* names).toSorted()).toEqual(["Helper", "Other"])
    })
  )

  it.effect(
    "is executed once for concurrent requests; the others are refused until the result is known",
    () =>
      Effect.gen(function* () {
        yield* reset
        const { names, send } = yield* program("ada@example.com")
        const answers = yield* Effect.forEach(
          Array.from({ length: 8 }),
          () => send("POST", "/agents", "race", { name: "Helper" }),
          { concurrency: 8 }
        )
        expect(answers.filter(({ status }) => status !== 201 && status !== 409)).toEqual([])
        expect(answers.some(({ status }) => status === 201)).toBe(true)
        expect(yield* names).toEqual(["Helper"])
      })
  )

  it.effect("is refused with another body, and can be reused after a refusal that changed nothing", () =>
    Effect.gen(function* () {
      yield* reset
      const { names, send } = yield* program("ada@example.com")
      expect(outcome(yield* send("POST", "/agents", "key", { name: "" }))).toEqual([400, "VALIDATION_ERROR"])
      expect((yield* send("POST", "/agents", "key", { name: "Helper" })).status).toBe(201)
      expect(outcome(yield* send("POST", "/agents", "key", { name: "Another" }))).toEqual([409, "CONFLICT"])
      expect(outcome(yield* send("POST", "/agents", "a key", { name: "Helper" }))).toEqual([
        400,
        "VALIDATION_ERROR"
      ])
      const large = yield* send("POST", "/agents", "large", { name: "x".repeat(2_000_000) })
      expect(outcome(large)).toEqual([413, "PAYLOAD_TOO_LARGE"])
      expect(yield* names).toEqual(["Helper"])
    })
  )

  it.effect("is executed to its end without its client, whose repeat gets the answer", () =>
    Effect.gen(function* () {
      yield* reset
      const sql = yield* SqlClient.SqlClient
      const { names, send } = yield* program("ada@example.com")
      yield* sql`create function slow() returns trigger language plpgsql as 'begin perform pg_sleep(0.5); return new; end'`
      // The entry is written once the agent is there.
      yield* sql`create trigger slow before insert on audit_entries for each row execute function slow()`
      const begun = yield* Effect.fork(send("POST", "/agents", "cut", { name: "Helper" }))
      const found = { until: (rows: ReadonlyArray<unknown>) => rows.length === 1 }
      yield* Effect.repeat(sql`select 1 from manage_answers`, found)
      yield* Fiber.interrupt(begun)
      yield* sql`drop function slow cascade`
      yield* Effect.repeat(sql`select 1 from manage_answers where answer is not null`, found).pipe(
        Effect.timeout("5 seconds"),
        Effect.ignore
      )
      const repeat = yield* send("POST", "/agents", "cut", { name: "Helper" })
      expect([repeat.status, repeat.headers.get("idempotent-replayed")]).toEqual([201, "true"])
      expect(yield* names).toEqual(["Helper"])
    })
  )

  it.effect("belongs to its token, is stored sealed, and is deleted after a day", () =>
    Effect.gen(function* () {
      yield* reset
      const sql = yield* SqlClient.SqlClient
      const { send } = yield* program("ada@example.com")
      const other = yield* program("grace@example.com")
      yield* send("POST", "/agents", "same", { name: "Lovelace" })
      yield* other.send("POST", "/agents", "same", { name: "Hopper" })
      expect(yield* other.names).toEqual(["Hopper"])
      const [{ rows } = { rows: "" }] = yield* sql<{ readonly rows: string }>`
        select string_agg(a::text, ' ') as rows from manage_answers a`
      expect(rows).not.toMatch(/Lovelace|Hopper/u)
      // One whose request ended without an answer is not done again.
      yield* sql`update manage_answers set answer = null`
      expect(outcome(yield* send("POST", "/agents", "same", { name: "Lovelace" }))).toEqual([409, "CONFLICT"])
      yield* sql`update manage_answers set created_at = now() - interval '25 hours'`
      yield* (yield* RepeatedRequests).sweep
      expect((yield* send("POST", "/agents", "same", { name: "Lovelace" })).status).toBe(201)
    })
  )
})
