/** Partitions of traces by week: where rows are stored, how partitions are added, and which are dropped. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as DateTime from "effect/DateTime"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/TestClock"
import { RunId, typeId } from "../../src/domain/Ids.ts"
import { ExpiredRows } from "../../src/store/accounts/ExpiredRows.ts"
import { RetentionStore } from "../../src/store/accounts/Retention.ts"
import { UnusedPassages } from "../../src/store/chat/UnusedPassages.ts"
import { addWeeks, dropWeeks } from "../../src/store/Partitions.ts"
import { RetentionLimits } from "../../src/usecases/accounts/Retention.ts"
import * as Fixtures from "../Fixtures.ts"
import { eachEngine, reset } from "../TestDatabase.ts"

/** A Wednesday, long after all weeks of a new database. */
const wednesday = DateTime.unsafeMake("2040-06-06T12:00:00Z")
const later = (weeks: number) => DateTime.add(wednesday, { weeks })

const tables = ["agent_run_events", "run_passages"]

/** The partitions of a table, without the two that every database has. */
const weeksOf = (table: string) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql<{ readonly name: string }>`
      select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
      where i.inhparent = ${table}::regclass and c.relname not in (${`${table}_first`}, ${`${table}_default`}) order by 1`
  ).pipe(Effect.map((rows) => rows.map(({ name }) => name)))

/** Removes the partitions of other tests. */
const removePartitions = Effect.gen(function* () {
  yield* reset
  const sql = yield* SqlClient.SqlClient
  for (const table of tables) for (const name of yield* weeksOf(table)) yield* sql`drop table ${sql(name)}`
  yield* TestClock.setTime(wednesday.epochMillis)
})

/** A run that began at `at`, with one event and one passage, whose text is `passage`. */
const run = (
  scope: { readonly tenantId: string; readonly agentId: string },
  at: DateTime.Utc,
  passage: string,
  id = typeId("run", at.epochMillis)
) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* sql`
      insert into agent_runs (id, tenant_id, agent_id, instance_id, user_message_id, user_message, period_start, status)
      values (${id}, ${scope.tenantId}, ${scope.agentId}, 'ins_1', 'msg_1', 'Hello', now(), 'complete')`
    yield* sql`
      insert into agent_run_events (tenant_id, run_id, sequence, type, status, label, at)
      values (${scope.tenantId}, ${id}, 1, 'run.started', 'running', 'Started', now())`
    yield* sql`
      insert into passages (tenant_id, hash, source_name, title, heading, url, content)
      values (${scope.tenantId}, sha256(${passage}::bytea), 'S', 'T', '', '', ${passage}) on conflict do nothing`
    yield* sql`
      insert into run_passages (tenant_id, run_id, number, hash, source_id, document_id, chunk_id, score)
      values (${scope.tenantId}, ${id}, 1, sha256(${passage}::bytea), 's', 'd', 'c', 1)`
    return RunId.make(id)
  })

const partitionOf = (table: string, id: RunId) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql<{ readonly place: string }>`
      select tableoid::regclass::text as place from ${sql(table)} where run_id = ${id}`
  ).pipe(Effect.map(([row]) => row?.place))

const passages = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql<{ readonly content: string }>`select content from passages order by content`
).pipe(Effect.map((rows) => rows.map(({ content }) => content)))

const removedPassages = Effect.gen(function* () {
  const unused = yield* UnusedPassages
  while (yield* unused.sweep) continue
  return yield* passages
}).pipe(Effect.provide(UnusedPassages.Default))

eachEngine("Traces by weeks", (it, engine) => {
  it.effect("have partitions of this week and the next four, which are created once", () =>
    Effect.gen(function* () {
      yield* removePartitions
      yield* addWeeks
      for (const table of tables)
        expect(yield* weeksOf(table)).toEqual(
          ["20400604", "20400611", "20400618", "20400625", "20400702"].map((day) => `${table}_${day}`)
        )
      yield* addWeeks
      yield* TestClock.setTime(later(1).epochMillis)
      yield* Effect.all([addWeeks, addWeeks], { concurrency: 2 })
      for (const table of tables) expect((yield* weeksOf(table)).at(-1)).toBe(`${table}_20400709`)
      for (const table of tables) expect(yield* weeksOf(table)).toHaveLength(6)
    })
  )

  it.effect("are in the partition of the week in which their run began, and found by its id", () =>
    Effect.gen(function* () {
      yield* removePartitions
      yield* addWeeks
      const sql = yield* SqlClient.SqlClient
      const scope = yield* Fixtures.agent()
      const days = [
        ["2040-06-04T00:00:00.000Z", "20400604"],
        ["2040-06-10T23:59:59.999Z", "20400604"],
        ["2040-06-11T00:00:00.000Z", "20400611"]
      ] as const
      for (const [at, week] of days) {
        const id = yield* run(scope, DateTime.unsafeMake(at), at)
        for (const table of tables) expect(yield* partitionOf(table, id)).toBe(`${table}_${week}`)
        expect(
          yield* sql`select sequence from agent_run_events where tenant_id = ${scope.tenantId} and run_id = ${id}`
        ).toHaveLength(1)
      }
    })
  )

  it.effect("are in the default partition if the week has none, and are deleted with their run", () =>
    Effect.gen(function* () {
      yield* removePartitions
      const sql = yield* SqlClient.SqlClient
      const scope = yield* Fixtures.agent()
      const id = yield* run(scope, wednesday, "early")
      yield* addWeeks
      const place = yield* partitionOf("agent_run_events", id)
      expect(place).toBe("agent_run_events_default")
      // Its week would have to take the row over.
      expect(yield* weeksOf("agent_run_events")).toHaveLength(4)
      const next = yield* run(scope, later(1), "late")
      expect(yield* partitionOf("agent_run_events", next)).toBe("agent_run_events_20400611")
      yield* sql`delete from agent_runs where tenant_id = ${scope.tenantId} and id = ${id}`
      expect(yield* partitionOf("agent_run_events", id)).toBe(undefined)
      expect(yield* passages).toEqual(["late"])
    })
  )

  it.effect(
    "are dropped by whole weeks that no tenant keeps, with passages that no other run refers to",
    () =>
      Effect.gen(function* () {
        yield* removePartitions
        yield* addWeeks
        const scope = yield* Fixtures.agent()
        const old = yield* run(scope, wednesday, "old")
        yield* run(scope, wednesday, "shared")
        const young = yield* run(scope, later(1), "shared")
        const emptyBefore = later(3)
        // A moment of the second week: the first one ends before it.
        yield* dropWeeks({ expiredBefore: DateTime.unsafeMake("2040-06-13T00:00:00Z"), emptyBefore })
        for (const table of tables) {
          expect(yield* partitionOf(table, old)).toBe(undefined)
          expect(yield* partitionOf(table, young)).toBe(`${table}_20400611`)
          // The third week is over and empty; this one and the next are not over.
          expect(yield* weeksOf(table)).toEqual(
            ["20400611", "20400625", "20400702"].map((day) => `${table}_${day}`)
          )
        }
        expect(yield* passages).toEqual(["old", "shared"])
        expect(yield* removedPassages).toEqual(["shared"])
        yield* dropWeeks({ expiredBefore: null, emptyBefore })
        expect(yield* partitionOf("run_passages", young)).toBe("run_passages_20400611")
        yield* dropWeeks({ expiredBefore: later(3), emptyBefore })
        expect(yield* removedPassages).toEqual([])
      })
  )

  it.effect("are not dropped while a tenant is being moved, because the move would not notice it", () =>
    Effect.gen(function* () {
      yield* removePartitions
      yield* addWeeks
      const scope = yield* Fixtures.agent()
      const old = yield* run(scope, wednesday, "old")
      const sql = yield* SqlClient.SqlClient
      yield* sql`
        insert into tenant_moves (tenant, move, role, state, driver) values ('ten_moves', 'move', 'origin', 'serving', 'driver')`
      const drop = dropWeeks({ expiredBefore: later(3), emptyBefore: later(3) })
      yield* drop
      for (const table of tables) expect(yield* partitionOf(table, old)).not.toBe(undefined)
      yield* sql`delete from tenant_moves`
      yield* drop
      for (const table of tables) expect(yield* partitionOf(table, old)).toBe(undefined)
    })
  )

  it.effect("are dropped by a tenant's limit if no other tenant keeps runs for longer", () =>
    Effect.gen(function* () {
      yield* removePartitions
      yield* addWeeks
      const one = yield* Fixtures.agent()
      const other = yield* Fixtures.agent()
      const id = yield* run(one, wednesday, "text")
      const limits = yield* RetentionLimits
      const kept = Effect.gen(function* () {
        yield* limits.sweepTracesAt(later(10))
        return (yield* partitionOf("agent_run_events", id)) !== undefined
      })
      yield* TestClock.setTime(later(10).epochMillis)
      yield* limits.patch(one, { runs: 30 })
      expect(yield* kept, "The other tenant keeps its runs for ever.").toBe(true)
      yield* limits.patch(other, { runs: 100 })
      expect(yield* kept, "It still keeps them.").toBe(true)
      yield* limits.patch(other, { runs: 60 })
      yield* limits.sweepTraces
      expect(yield* partitionOf("agent_run_events", id), "Only the clock of the process is ahead.").toBe(
        "agent_run_events_20400604"
      )
      expect(yield* kept).toBe(false)
      expect(yield* limits.sweepPassages).toBe(false)
      expect(yield* passages).toEqual([])
      expect((yield* weeksOf("run_passages")).at(-1)).toBe("run_passages_20400910")
    }).pipe(
      Effect.provide(
        RetentionLimits.Default.pipe(
          Layer.provide([ExpiredRows.Default, RetentionStore.Default, UnusedPassages.Default])
        )
      )
    )
  )

  it.effect("free any number of passages, in batches", () =>
    Effect.gen(function* () {
      yield* removePartitions
      const sql = yield* SqlClient.SqlClient
      const scope = yield* Fixtures.agent()
      yield* run(scope, wednesday, "kept")
      yield* sql`
        insert into passages (tenant_id, hash, source_name, title, heading, url, content)
        select ${scope.tenantId}, sha256(n::text::bytea), 'S', 'T', '', '', 'unused' from generate_series(1, 1200) n`
      yield* sql`insert into passage_sweep (one) values (true)`
      expect(yield* removedPassages).toEqual(["kept"])
      expect(yield* sql`select one from passage_sweep`).toEqual([])
    })
  )

  it.effect("are read only through their parents", () =>
    Effect.gen(function* () {
      yield* removePartitions
      yield* addWeeks
      const sql = yield* SqlClient.SqlClient
      const open = yield* sql`
        select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent = any(${tables}::regclass[]) and not c.relrowsecurity`
      expect(open).toEqual([])
    })
  )

  it.effect("are neither created nor dropped by a role that may only read and write rows", () =>
    Effect.gen(function* () {
      yield* removePartitions
      yield* addWeeks
      const sql = yield* SqlClient.SqlClient
      const before = yield* Effect.forEach(tables, weeksOf)
      yield* TestClock.setTime(later(9).epochMillis)
      yield* sql.withTransaction(
        Effect.gen(function* () {
          const [here] = yield* sql<{ readonly schema: string }>`select current_schema()::text as schema`
          const schema = sql(here?.schema ?? "public")
          yield* sql`create role spoke_rows nologin`
          yield* sql`grant usage on schema ${schema} to spoke_rows`
          yield* sql`grant select, insert, update, delete on all tables in schema ${schema} to spoke_rows`
          yield* sql`set local role spoke_rows`
          yield* addWeeks
          yield* dropWeeks({ expiredBefore: later(7), emptyBefore: later(8) })
          yield* sql`reset role`
          yield* sql`drop owned by spoke_rows`
          yield* sql`drop role spoke_rows`
        })
      )
      expect(yield* Effect.forEach(tables, weeksOf)).toEqual(before)
    })
  )

  // The embedded database has one connection.
  it.effect.skipIf(engine === "embedded")(
    "are not dropped while a transaction reads them, and others do not wait",
    () =>
      Effect.gen(function* () {
        yield* removePartitions
        yield* addWeeks
        const sql = yield* SqlClient.SqlClient
        const scope = yield* Fixtures.agent()
        const id = yield* run(scope, wednesday, "read")
        const begun = yield* Deferred.make<void>()
        const over = yield* Deferred.make<void>()
        const read = sql`select run_id from agent_run_events where run_id = ${id}`
        const reader = yield* Effect.gen(function* () {
          yield* read
          yield* Deferred.succeed(begun, undefined)
          yield* Deferred.await(over)
          return yield* read
        }).pipe(sql.withTransaction, Effect.fork)
        yield* Deferred.await(begun)
        yield* dropWeeks({ expiredBefore: later(2), emptyBefore: later(3) })
        yield* Deferred.succeed(over, undefined)
        expect(yield* Fiber.join(reader)).toHaveLength(1)
        yield* dropWeeks({ expiredBefore: later(2), emptyBefore: later(3) })
        expect(yield* partitionOf("agent_run_events", id)).toBe(undefined)
      })
  )
})
