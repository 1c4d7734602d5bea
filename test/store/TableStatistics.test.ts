/** Plans of statements that were prepared when their tables were empty. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { analyzeGrown } from "../../src/store/TableStatistics.ts"
import { eachEngineLive } from "../TestDatabase.ts"

const known = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql<{ readonly name: string; readonly rows: number }>`
    select relname as name, reltuples::int as rows from pg_class where relname like 'first_rows_%' and relkind = 'r' order by 1`
)

/** Adds rows. The session reports the number of changed rows when it has been idle for a second, or on request. */
const grow = (name: string, rows: number) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* sql.unsafe(
      `insert into first_rows_${name} select 'ten', n, repeat('x', 200) from generate_series(1, ${rows}) n`
    )
    const changed = sql<{ readonly isCounted: boolean }>`
      select n_mod_since_analyze >= ${rows}::int as "isCounted" from pg_stat_user_tables
      where relname = ${`first_rows_${name}`}`
    yield* sql`select pg_stat_force_next_flush()`.pipe(
      Effect.zipRight(changed),
      Effect.repeat({
        until: ([row]) => row?.isCounted === true,
        schedule: Schedule.spaced("100 millis"),
        times: 100
      })
    )
  })

eachEngineLive("Tables that grow", (it) => {
  it.effect(
    "are analyzed when they were empty at the last analysis, or have grown by half, unless they are small",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* Effect.acquireRelease(
          sql.unsafe(`
            create table first_rows_many (tenant text, id int, filler text);
            create table first_rows_emptied (tenant text, id int, filler text);
            create table first_rows_few (tenant text, id int, filler text);`),
          () => Effect.orDie(sql.unsafe("drop table first_rows_many, first_rows_emptied, first_rows_few"))
        )
        yield* sql`analyze first_rows_emptied`
        yield* analyzeGrown
        expect((yield* known).map(({ rows }) => rows)).toEqual([0, -1, -1])
        for (const name of ["many", "emptied"]) yield* grow(name, 2_000)
        yield* sql`insert into first_rows_few values ('ten', 1, '')`
        yield* analyzeGrown
        expect(yield* known).toEqual([
          { name: "first_rows_emptied", rows: 2_000 },
          { name: "first_rows_few", rows: -1 },
          { name: "first_rows_many", rows: 2_000 }
        ])
        yield* grow("many", 900)
        yield* grow("emptied", 1_100)
        yield* analyzeGrown
        expect((yield* known).map(({ rows }) => rows)).toEqual([3_100, -1, 2_000])
      }).pipe(Effect.scoped)
  )
})
