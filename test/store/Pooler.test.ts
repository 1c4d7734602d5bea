/** PostgreSQL behind PgBouncer in transaction mode, where a client has no session of its own and cannot LISTEN. */
import * as PgClient from "@effect/sql-pg/PgClient"
import { expect, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import { JobQueue } from "../../src/capabilities/JobQueue.ts"
import { layerTable } from "../../src/capabilities/JobQueue/Table.ts"
import { layerPostgres, migrate } from "../../src/store/Database.ts"
import { freshDatabase } from "../e2e/Fleet.ts"
import { startPgBouncer, withPgBouncer } from "../servers/PgBouncer.ts"
import { migrations } from "../TestDatabase.ts"

const pooled = (direct: boolean) =>
  Effect.gen(function* () {
    const target = yield* Effect.promise(() => freshDatabase())
    const pooler = yield* Effect.acquireRelease(
      Effect.promise(() => startPgBouncer(target)),
      ({ stop }) => Effect.promise(stop)
    )
    const database = layerPostgres({
      url: Redacted.make(pooler.url),
      directUrl: direct ? Redacted.make(target) : null,
      maxConnections: 8
    })
    const process = Layer.build(Layer.fresh(layerTable.pipe(Layer.provideMerge(database))))
    const one = yield* process
    yield* Effect.provide(migrate(migrations), one)
    return { one, two: yield* process }
  })

withPgBouncer("PostgreSQL behind PgBouncer in transaction mode", () => {
  for (const direct of [false, true]) {
    const how = direct ? "hears of them at SPOKE_DATABASE_DIRECT_URL" : "looks for them every second"
    it.scopedLive(
      `migrates, keeps transactions whole, takes jobs of other processes, and ${how}`,
      () =>
        Effect.gen(function* () {
          const { one, two } = yield* pooled(direct)
          const sql = Context.get(one, PgClient.PgClient)
          yield* sql`insert into tenants (id, name) values ('ten_1', '0')`
          const raise = sql.withTransaction(
            Effect.gen(function* () {
              const [row] = yield* sql<{
                name: string
              }>`select name from tenants where id = 'ten_1' for update`
              yield* sql`update tenants set name = ${String(Number(row?.name) + 1)} where id = 'ten_1'`
            })
          )
          yield* Effect.all(
            Array.from({ length: 40 }, () => raise),
            { concurrency: "unbounded" }
          )
          expect(yield* sql`select name from tenants`).toEqual([{ name: "40" }])
          const streamed = yield* Stream.runCount(sql`select generate_series(1, 1000)`.stream)
          expect(streamed).toBe(1_000)

          const seen = yield* Queue.unbounded<number>()
          yield* Context.get(two, JobQueue).work("ingestion", 2, ({ payload }) =>
            Effect.asVoid(Queue.offer(seen, Number(payload["n"])))
          )
          const numbers = Array.from({ length: 20 }, (_, n) => n)
          for (const n of numbers) yield* Context.get(one, JobQueue).enqueue("ingestion", { n })
          const heard = yield* Effect.timeout(Queue.takeN(seen, numbers.length), "30 seconds")
          expect([...heard].sort((a, b) => a - b)).toEqual(numbers)

          const words = yield* Queue.unbounded<string>()
          yield* Context.get(two, PgClient.PgClient)
            .listen("spoke_test")
            .pipe(
              Stream.runForEach((word) => Queue.offer(words, word)),
              Effect.forkScoped
            )
          expect(yield* Effect.timeout(Queue.take(words), "20 seconds")).toBe("")
          yield* sql.notify("spoke_test", "word")
          expect(yield* Effect.timeout(Queue.take(words), "20 seconds")).toBe(direct ? "word" : "")
        }),
      120_000
    )
  }
})
