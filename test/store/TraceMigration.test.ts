/** The tables of traces are partitioned while they are in use: no row is lost, and no turn fails. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect, it } from "@effect/vitest"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import * as Pg from "pg"
import { describe } from "vitest"
import type { ReadScope } from "../../src/domain/accounts/Access.ts"
import { newId } from "../../src/domain/Ids.ts"
import { Turns } from "../../src/store/chat/Turns.ts"
import { layerMemory, layerPostgres, migrate } from "../../src/store/Database.ts"
import { freshDatabase } from "../e2e/Fleet.ts"
import * as Fixtures from "../Fixtures.ts"
import { binaries } from "../servers/PostgresServer.ts"
import { migrations, thread } from "../TestDatabase.ts"

/** The migrations before the tables of traces are changed. */
const before = Effect.acquireRelease(
  Effect.sync(() => {
    const folder = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-traces-"))
    for (const name of Fs.readdirSync(migrations).filter((name) => name.endsWith(".sql") && name < "0019"))
      Fs.copyFileSync(Path.join(migrations, name), Path.join(folder, name))
    return folder
  }),
  (folder) => Effect.sync(() => Fs.rmSync(folder, { recursive: true, force: true }))
)

const turn = (scope: ReadScope) =>
  Effect.gen(function* () {
    const turns = yield* Turns
    const runId = yield* newId.run
    yield* turns.begin(scope, {
      target: { _tag: "Anonymous" },
      persist: true,
      channel: "api",
      instanceId: "test",
      runId,
      endUserId: yield* newId.endUser,
      conversationId: yield* newId.conversation,
      userMessageId: yield* newId.message,
      message: "Hello?",
      startedAt: yield* DateTime.now,
      startedLabel: "Started",
      timeout: "1 minute"
    })
    const reply = { id: yield* newId.message, content: "Hello.", citations: [] }
    yield* turns.settle(scope, { runId, counted: true, inputTokens: 1, outputTokens: 1, reply, events: [] })
  })

/** Inserts past runs, each with four events and two passages, and one whose id has no time. */
const filled = ({ agentId, tenantId }: ReadScope, runs: number) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* sql`
      insert into passages (tenant_id, hash, source_name, title, heading, url, content)
      select ${tenantId}, sha256(n::text::bytea), 'S', 'T', '', '', n::text from generate_series(1, 2) n`
    yield* sql`
      with run as (
        insert into agent_runs (id, tenant_id, agent_id, instance_id, user_message_id, user_message, period_start, status)
        select case n when 1 then 'run_zzz' else 'run_01k' || lpad(n::text, 23, '0') end, ${tenantId}, ${agentId}, 'i', 'm', 'Hello',
          now(), 'complete'
        from generate_series(1, ${runs}::int) n returning id
      ),
      event as (
        insert into agent_run_events (tenant_id, run_id, sequence, type, status, label, at)
        select ${tenantId}, id, sequence, 'run.started', 'running', 'Started', now() from run, generate_series(1, 4) sequence
      )
      insert into run_passages (tenant_id, run_id, number, hash, source_id, document_id, chunk_id, score)
      select ${tenantId}, id, n, sha256(n::text::bytea), 's', 'd', 'c', 1 from run, generate_series(1, 2) n`
  })

const counted = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql<{ readonly events: number; readonly passages: number; readonly orphans: number }>`
    select (select count(*)::int from agent_run_events) as events, (select count(*)::int from run_passages) as passages,
      (select count(*)::int from agent_run_events e where not exists (
        select from agent_runs r where r.tenant_id = e.tenant_id and r.id = e.run_id)) as orphans`
)

describe("The tables of traces", () => {
  it.scopedLive("keep every row, also of a run whose id has no time, and take further rows", () =>
    Effect.gen(function* () {
      const folder = yield* before
      yield* Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* migrate(folder)
        const scope = yield* Fixtures.agent({ turns: 10 })
        yield* filled(scope, 300)
        yield* migrate(migrations)
        expect(yield* counted).toEqual([{ events: 1_200, passages: 600, orphans: 0 }])
        yield* turn(scope)
        yield* sql`delete from agent_runs where id = 'run_zzz'`
        expect(yield* counted).toEqual([{ events: 1_197, passages: 598, orphans: 0 }])
        yield* sql`delete from tenants`
        expect(yield* counted).toEqual([{ events: 0, passages: 0, orphans: 0 }])
        expect(yield* sql`select hash from passages`).toEqual([])
      }).pipe(Effect.provide(Turns.Default.pipe(Layer.provideMerge(layerMemory({ thread })))))
    })
  )

  it.scopedLive.skipIf(binaries === undefined && process.env["CI"] !== "true")(
    "become partitioned while turns run and a report reads them, and no turn fails",
    () =>
      Effect.gen(function* () {
        const folder = yield* before
        const url = yield* Effect.promise(() => freshDatabase())
        const report = yield* Effect.acquireRelease(
          Effect.promise(async () => {
            const client = new Pg.Client({ connectionString: url })
            await client.connect()
            return client
          }),
          (client) => Effect.promise(() => client.end())
        )
        const database = layerPostgres({ url: Redacted.make(url), maxConnections: 8 })
        yield* Effect.gen(function* () {
          yield* migrate(folder)
          const scope = yield* Fixtures.agent()
          yield* filled(scope, 5_000)
          let settled = 0
          const talk = turn(scope).pipe(
            Effect.tap(() => Effect.sync(() => (settled += 1))),
            Effect.forever,
            Effect.fork
          )
          const talks = yield* Effect.all([talk, talk, talk])
          /** When so many more have settled. */
          const more = (count: number) =>
            Effect.suspend(() => {
              const wanted = settled + count
              return Effect.repeat(Effect.sleep("10 millis"), { until: () => settled >= wanted })
            })
          yield* more(5)
          yield* Effect.promise(() => report.query("begin; select run_id from agent_run_events limit 1"))
          const upgrade = yield* Effect.fork(migrate(migrations).pipe(Effect.provide(database)))
          // It gives way to those behind it.
          yield* more(20)
          yield* Effect.promise(() => report.query("rollback"))
          yield* Fiber.join(upgrade)
          yield* more(20)
          for (const fiber of talks) expect(yield* Fiber.poll(fiber)).toMatchObject({ _tag: "None" })
          yield* Fiber.interruptAll(talks)
          const [found] = yield* counted
          expect(found?.orphans).toBe(0)
          expect(found?.passages).toBe(10_000)
          expect(found?.events).toBeGreaterThanOrEqual(20_000 + settled)
        }).pipe(Effect.provide(Turns.Default.pipe(Layer.provideMerge(database))))
      }),
    120_000
  )
})
