/** Plans of statements that were made when their tables were empty. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { analyzeNew } from "../../src/store/FirstStatistics.ts"
import { eachEngineLive } from "../TestDatabase.ts"

const known = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql<{ readonly name: string; readonly rows: number }>`
    select relname as name, reltuples::int as rows from pg_class where relname like 'first_rows_%' and relkind = 'r' order by 1`
)

eachEngineLive("Tables that get their first rows", (it) => {
  it.effect(
    "are analyzed once they have some, also when they were analyzed empty; those that have few are not",
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
        yield* analyzeNew
        expect((yield* known).map(({ rows }) => rows)).toEqual([0, -1, -1])
        for (const name of ["many", "emptied"])
          yield* sql.unsafe(
            `insert into first_rows_${name} select 'ten', n, repeat('x', 200) from generate_series(1, 2000) n`
          )
        yield* sql`insert into first_rows_few values ('ten', 1, '')`
        yield* analyzeNew
        expect(yield* known).toEqual([
          { name: "first_rows_emptied", rows: 2_000 },
          { name: "first_rows_few", rows: -1 },
          { name: "first_rows_many", rows: 2_000 }
        ])
      }).pipe(Effect.scoped)
  )
})
