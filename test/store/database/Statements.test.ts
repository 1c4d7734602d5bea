import * as PgClient from "@effect/sql-pg/PgClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { eachEngineLive } from "../../TestDatabase.ts"

/** Often enough that a statement is kept prepared. */
const manyRuns = Array.from({ length: 20 }, (_, place) => place)

eachEngineLive("Statements", (it, engine) => {
  it.scoped("are not ended by the interruption of others", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      // As many as have to share the connections; each is interrupted at another moment.
      const left = (place: number) =>
        Effect.gen(function* () {
          const work = yield* Effect.fork(
            sql`select sum(n) from generate_series(1, ${place * 20_000}::int) n`
          )
          yield* Effect.sleep(`${place % 4} millis`)
          yield* Fiber.interrupt(work)
        })
      const asked = (place: number) => Effect.map(sql`select ${place}::int as n`, ([row]) => row)
      const [, answers] = yield* Effect.all(
        [
          Effect.forEach(manyRuns, left, { concurrency: "unbounded", discard: true }),
          Effect.forEach([...manyRuns, ...manyRuns, ...manyRuns], asked, { concurrency: "unbounded" })
        ],
        { concurrency: 2 }
      )
      expect(answers).toEqual([...manyRuns, ...manyRuns, ...manyRuns].map((n) => ({ n })))
    })
  )

  it.scoped("of an interrupted transaction write nothing, and its connection is released", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      yield* sql`create table interrupted (n bigint)`
      yield* Effect.addFinalizer(() => Effect.orDie(sql`drop table interrupted`))
      yield* Effect.forEach(manyRuns, () =>
        Effect.gen(function* () {
          const insert = sql`insert into interrupted select sum(n) from generate_series(1, 200000) n`
          const work = yield* Effect.fork(sql.withTransaction(Effect.zipRight(insert, Effect.never)))
          yield* Effect.sleep("3 millis")
          expect(yield* Fiber.interrupt(work)).toSatisfy(Exit.isInterrupted)
        })
      )
      expect(yield* sql`select count(*)::int as n from interrupted`).toEqual([{ n: 0 }])
    })
  )

  it.scoped("that are prepared still work when their table changes or their plan is lost", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      yield* sql`create table changing (n int)`
      yield* Effect.addFinalizer(() => Effect.orDie(sql`drop table changing`))
      yield* sql`insert into changing values (1)`
      const read = Effect.map(sql`select * from changing where n > ${0}`, ([row]) => row)
      // Suites before this one share the connection, and may have taken every place there is.
      const [taken] = yield* sql<{
        readonly n: number
      }>`select count(*)::int as n from pg_prepared_statements`
      yield* Effect.forEach(manyRuns, () => read)
      const kept =
        yield* sql`select count(*)::int as n from pg_prepared_statements where statement like '%changing where%'`
      // On a server another connection may have answered.
      if (engine === "embedded" && (taken?.n ?? 0) < 256) expect(kept).toEqual([{ n: 1 }])
      yield* sql`alter table changing add column text text default 'more'`
      expect(yield* Effect.forEach(manyRuns, () => read)).toEqual(
        manyRuns.map(() => ({ n: 1, text: "more" }))
      )
      yield* Effect.forEach(manyRuns, () => sql`deallocate all`, { concurrency: "unbounded" })
      expect(yield* Effect.forEach(manyRuns, () => read)).toEqual(
        manyRuns.map(() => ({ n: 1, text: "more" }))
      )
    })
  )

  it.scoped("do not affect the answer of the next one when they fail at parse, bind or execution", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const failing = [
        sql`selec ${0}`,
        sql`select ${"{"}::jsonb as n`,
        sql`select 1 / n from generate_series(${0}::int, 1) n`
      ]
      for (const place of manyRuns) {
        for (const statement of failing) yield* Effect.flip(statement)
        expect(yield* sql`select ${place}::int as n`).toEqual([{ n: place }])
        expect(yield* sql`select 'x' as other`).toEqual([{ other: "x" }])
      }
    })
  )

  it.scoped("do not block the event loop, however many follow each other", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      let turns = 0
      const count = (): NodeJS.Immediate => {
        turns += 1
        next = setImmediate(count)
        return next
      }
      let next = setImmediate(count)
      yield* Effect.addFinalizer(() => Effect.sync(() => clearImmediate(next)))
      yield* Effect.forEach(manyRuns, () => sql`select 1`)
      // The last answer may be read before the turn that follows it is counted.
      expect(turns).toBeGreaterThanOrEqual(manyRuns.length - 1)
    })
  )

  it.scoped("report a failure once, with its SQLSTATE, and the connection can still be used", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const divide = (by: number) => Effect.flip(sql`select 1 / ${by}::int as n`)
      for (const _ of manyRuns) {
        const { cause } = yield* divide(0)
        expect(cause).toMatchObject({ code: "22012" })
      }
      expect(yield* sql`select 1 as n`).toEqual([{ n: 1 }])
    })
  )
})
