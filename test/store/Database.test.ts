import * as PgClient from "@effect/sql-pg/PgClient"
import { expect, it as test } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Chunk from "effect/Chunk"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import { describe } from "vitest"
import { layerPostgres } from "../../src/store/Database.ts"
import { eachEngineLive, reset } from "../TestDatabase.ts"

/** Collects `count` notifications of a channel, starting when LISTEN is in effect. */
const listening = (channel: string, count: number) =>
  Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    const ready = yield* Deferred.make<void>()
    const fiber = yield* sql.listen(channel).pipe(
      Stream.tap((payload) => (payload === "" ? Deferred.succeed(ready, undefined) : Effect.void)),
      Stream.filter((payload) => payload !== ""),
      Stream.take(count),
      Stream.runCollect,
      Effect.map(Chunk.toReadonlyArray),
      Effect.timeout("10 seconds"),
      Effect.fork
    )
    yield* Deferred.await(ready)
    return fiber
  })

eachEngineLive("The database", (it, engine) => {
  it.scoped("returns the same types of values", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const payload = { text: "ü", list: [1, null, { deep: true }] }
      const rows = yield* sql`
        select 1::int8 as big, count(*)::int as small, ${JSON.stringify(payload)}::jsonb as json,
          ${Buffer.from([0, 255])}::bytea as bytes, timestamptz '2026-01-02T03:04:05Z' as at, ${["a", "b"]}::text[] as list`
      expect(rows).toEqual([
        {
          big: "1",
          small: 1,
          json: payload,
          bytes: Buffer.from([0, 255]),
          at: new Date("2026-01-02T03:04:05Z"),
          list: ["a", "b"]
        }
      ])
    })
  )

  it.scoped("loses no update of twenty concurrent transactions", () =>
    Effect.gen(function* () {
      yield* reset
      const sql = yield* PgClient.PgClient
      yield* sql`insert into tenants (id, name) values ('ten_1', '0')`
      const raise = Effect.gen(function* () {
        const [row] = yield* sql<{ name: string }>`select name from tenants where id = 'ten_1' for update`
        yield* sql`update tenants set name = ${String(Number(row?.name) + 1)} where id = 'ten_1'`
      }).pipe(sql.withTransaction)
      yield* Effect.all(
        Array.from({ length: 20 }, () => raise),
        { concurrency: "unbounded" }
      )
      expect(yield* sql`select name from tenants`).toEqual([{ name: "20" }])
    })
  )

  it.scoped("reports the SQLSTATE of a failed statement, and continues", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const error = yield* Effect.flip(sql`select * from no_such_table`)
      expect(error.cause).toMatchObject({ code: "42P01" })
      expect(Cause.pretty(Cause.fail(error), { renderErrorCause: true }).length).toBeLessThan(4_000)
      expect(yield* sql`select 1 as one`).toEqual([{ one: 1 }])
    })
  )

  it.scoped("works after fifty interrupted statements and transactions", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      for (let round = 0; round < 50; round++) {
        const query = sql`select pg_sleep(0.002)`
        const fiber = yield* Effect.fork(round % 2 === 0 ? query : sql.withTransaction(query))
        yield* Effect.yieldNow()
        yield* Fiber.interrupt(fiber)
      }
      expect(yield* sql`select 1 as one`).toEqual([{ one: 1 }])
    })
  )

  it.scoped("delivers a notification on commit, and none after a rollback", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const fiber = yield* listening("spoke_test", 3)
      yield* sql.notify("spoke_test", "plain")
      yield* sql
        .withTransaction(sql.notify("spoke_test", "rolled back").pipe(Effect.zipRight(Effect.fail("no"))))
        .pipe(Effect.ignore)
      yield* sql.withTransaction(sql.notify("spoke_test", "it's committed"))
      yield* sql.notify("spoke_other", "elsewhere")
      yield* sql.notify("spoke_test", "last")
      expect(yield* Fiber.join(fiber)).toEqual(["plain", "it's committed", "last"])
    })
  )

  it.scoped("delivers to every listener of a channel, also after another has left", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const leaving = yield* listening("spoke_test", 1)
      const staying = yield* listening("spoke_test", 2)
      yield* sql.notify("spoke_test", "one")
      expect(yield* Fiber.join(leaving)).toEqual(["one"])
      yield* sql.notify("spoke_test", "two")
      expect(yield* Fiber.join(staying)).toEqual(["one", "two"])
    })
  )

  if (engine === "server") {
    it.scoped(
      "ends a stream of notifications with an error when the connection is lost, and a new one works",
      () =>
        Effect.gen(function* () {
          const sql = yield* PgClient.PgClient
          const fiber = yield* listening("spoke_test", 1)
          yield* sql`select pg_terminate_backend(pid) from pg_stat_activity
          where application_name = 'spoke' and query like 'listen%' and pid <> pg_backend_pid()`
          expect((yield* Effect.flip(Fiber.join(fiber)))._tag).toBe("SqlError")
          const again = yield* Effect.retry(listening("spoke_test", 1), { times: 3 })
          yield* sql.notify("spoke_test", "back")
          expect(yield* Fiber.join(again)).toEqual(["back"])
        })
    )
  }
})

describe("A PostgreSQL server that cannot be used", () => {
  const failure = (url: string) =>
    Effect.flip(Effect.provide(Effect.void, layerPostgres({ url: Redacted.make(url), maxConnections: 2 })))

  test.live("fails with DatabaseUnavailable without the password when nothing listens at the address", () =>
    Effect.gen(function* () {
      const error = yield* failure("postgres://somebody:hunter2@127.0.0.1:1/spoke")
      expect(error._tag).toBe("DatabaseUnavailable")
      expect(error.message).toContain("ECONNREFUSED")
      expect(JSON.stringify(error)).not.toContain("hunter2")
    })
  )

  test.live("fails with DatabaseUnavailable without the address when the address is invalid", () =>
    Effect.gen(function* () {
      const error = yield* failure("postgres://somebody:hunter2@[nowhere:x/")
      expect(error._tag).toBe("DatabaseUnavailable")
      expect(JSON.stringify(error)).not.toContain("hunter2")
    })
  )
})
