import * as PgClient from "@effect/sql-pg/PgClient"
import { expect } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { makeRows } from "../../src/capabilities/JobQueue/table/Rows.ts"
import { policies } from "../../src/capabilities/JobQueue.ts"
import { eachEngineLive, reset } from "../TestDatabase.ts"

const queue = "channel-inbound"

eachEngineLive("A backlog of jobs", (it) => {
  it.scoped("is not read to claim a job, to find when the next is due, or to prune ended ones", () =>
    Effect.gen(function* () {
      yield* reset
      const sql = yield* PgClient.PgClient
      const rows = makeRows(sql)
      const lease = Duration.seconds(20)
      const claim = (token: string) =>
        Effect.map(
          rows.claim(queue, {
            limit: 1,
            token,
            lease,
            after: "",
            perOwner: 4,
            perGroup: 4,
            running: { owners: {}, groups: {} }
          }),
          ({ jobs }) => jobs
        )
      /** Rows of the table that this transaction has read without an index: other suites share the engine. */
      const read = Effect.map(
        sql<{ rows: number }>`
          select seq_tup_read::int as rows from pg_stat_xact_user_tables where relname = 'queue_jobs'`,
        ([row]) => row?.rows
      )
      const fill = (jobs: number) => sql`
        insert into queue_jobs (id, queue, payload, owner, serial_key, max_attempts)
        select gen_random_uuid(), ${queue}, '{}', 'account ' || n % 7, 'contact ' || n % 500, 5
        from generate_series(1, ${jobs}::int) n`
      const settle = Effect.gen(function* () {
        const [job] = yield* claim("token")
        if (job === undefined) return expect.unreachable()
        yield* rows.fail({ id: job.id, token: "token" }, "No reason.")
      })
      // Suites before this one leave room in the table, of which the planner believes that it stays empty.
      yield* sql`truncate queue_jobs`
      // Statements are kept prepared from their eighth run on: here with what a look at a small table told.
      yield* fill(5)
      yield* sql`vacuum analyze queue_jobs`
      for (let times = 0; times < 20; times++) yield* claim("before")
      yield* sql.withTransaction(
        Effect.gen(function* () {
          for (const looked of [false, true]) {
            yield* fill(10_000)
            // A server does this within a minute, and the embedded database's upkeep within fifteen seconds.
            if (looked) yield* sql`analyze queue_jobs`
            const before = yield* read
            for (let times = 0; times < 12; times++) yield* settle
            expect(yield* read).toBe(before)
          }
        })
      )
      yield* sql.withTransaction(
        Effect.gen(function* () {
          const before = yield* read
          for (let times = 0; times < 12; times++) {
            yield* rows.nextDue(queue)
            expect(yield* rows.prune(queue, { ...policies[queue], keepFailed: 3 })).toBe(true)
          }
          expect(yield* read).toBe(before)
        })
      )
    })
  )
})
