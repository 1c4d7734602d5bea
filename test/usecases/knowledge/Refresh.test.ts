import { expect } from "@effect/vitest"
import * as SqlClient from "@effect/sql/SqlClient"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FiberRef from "effect/FiberRef"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { currentOwner } from "../../../src/concurrency/CurrentOwner.ts"
import { LimitExceeded } from "../../../src/domain/Errors.ts"
import { newId, type SourceId } from "../../../src/domain/Ids.ts"
import type { AgentScope } from "../../../src/domain/accounts/Access.ts"
import { CreateSource } from "../../../src/domain/knowledge/Source.ts"
import { IngestionJobStore } from "../../../src/store/knowledge/IngestionJobs.ts"
import { RefreshStore } from "../../../src/store/knowledge/Refreshes.ts"
import { Refresh } from "../../../src/usecases/knowledge/Refresh.ts"
import { Sources } from "../../../src/usecases/knowledge/Sources.ts"
import * as Fixtures from "../../Fixtures.ts"
import { eachEngine, reset } from "../../TestDatabase.ts"
import * as TestClock from "effect/TestClock"

/** For whom each sync was asked. */
let owners: Array<string> = []

/** Adds jobs as a sync does, for tenants that have one left. */
const syncing = (left: ReadonlySet<string> | "all") =>
  Layer.effect(
    Sources,
    Effect.map(
      IngestionJobStore,
      (jobs) =>
        ({
          sync: (scope: AgentScope, sourceId: SourceId) =>
            Effect.gen(function* () {
              if (left !== "all" && !left.has(scope.tenantId)) {
                return yield* new LimitExceeded({ message: "Used up." })
              }
              const id = yield* newId.ingestionJob
              yield* jobs.insert(scope, { id, sourceId, type: "INGEST" })
              owners.push(yield* FiberRef.get(currentOwner))
              return { jobId: id, status: "QUEUED" as const, sourceId }
            })
        }) as unknown as Sources
    )
  ).pipe(Layer.provide(IngestionJobStore.Default))

const started = (left: ReadonlySet<string> | "all" = "all") =>
  Layer.fresh(Refresh.Default.pipe(Layer.provideMerge(Layer.merge(RefreshStore.Default, syncing(left)))))

const sweep = Effect.flatMap(Refresh, ({ sweep }) => sweep())

/** A source that was read at the test clock's now. */
const synced = (scope: AgentScope, refresh: string, type = "URL") =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const id = yield* newId.source
    const now = DateTime.formatIso(yield* DateTime.now)
    yield* sql`
      insert into sources (id, tenant_id, agent_id, type, name, config, status, created_at, last_synced_at)
      values (${id}, ${scope.tenantId}, ${scope.agentId}, ${type}, 'Source',
        ${JSON.stringify({ url: "https://example.com/", refresh })}::jsonb, 'READY', ${now}::timestamptz, ${now}::timestamptz)`
    return id
  })

/** Jobs per source that were queued, and that now end as `status`. */
const end = (status: "SUCCEEDED" | "FAILED") =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const now = DateTime.formatIso(yield* DateTime.now)
    const ended = yield* sql<{ id: string }>`
      update ingestion_jobs set status = ${status} where status = 'QUEUED' returning source_id as id`
    if (status === "SUCCEEDED") {
      for (const { id } of ended)
        yield* sql`update sources set last_synced_at = ${now}::timestamptz where id = ${id}`
    }
    return ended.length
  })

eachEngine("Scheduled reading of sources", (it) => {
  it.scoped("a daily source is read every day, a weekly one every week, and others never", () =>
    Effect.gen(function* () {
      yield* reset
      const scope = yield* Fixtures.agent()
      yield* synced(scope, "daily")
      yield* synced(scope, "weekly", "SITEMAP")
      yield* synced(scope, "off")
      yield* synced(scope, "daily", "BULK_UPLOAD")
      const counts: Array<number> = []
      for (let day = 0; day < 16; day++) {
        yield* sweep
        counts.push(yield* end("SUCCEEDED"))
        yield* TestClock.adjust(Duration.hours(26.5))
      }
      // A day is up to 26.4 hours, a week up to 184.8: seven of these days.
      expect(counts).toEqual([0, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1, 1, 1, 2, 1])
    }).pipe(Effect.provide(started()))
  )

  it.scoped("sources that are due together do not all start at once", () =>
    Effect.gen(function* () {
      yield* reset
      const scope = yield* Fixtures.agent()
      yield* Effect.replicateEffect(synced(scope, "daily"), 60)
      yield* TestClock.adjust(Duration.hours(24))
      const counts: Array<number> = []
      for (let part = 0; part < 4; part++) {
        yield* sweep
        counts.push(yield* end("SUCCEEDED"))
        yield* TestClock.adjust(Duration.minutes(48))
      }
      yield* sweep
      expect(counts.reduce((sum, count) => sum + count, 0) + (yield* end("SUCCEEDED"))).toBe(60)
      expect(Math.max(...counts)).toBeLessThan(45)
    }).pipe(Effect.provide(started()))
  )

  it.scoped("several processes queue one job for a source, and none while it has one", () =>
    Effect.gen(function* () {
      yield* reset
      const scope = yield* Fixtures.agent()
      yield* Effect.replicateEffect(synced(scope, "daily"), 20)
      yield* TestClock.adjust(Duration.hours(30))
      yield* Effect.all([sweep, sweep, sweep, sweep], { concurrency: "unbounded" })
      const sql = yield* SqlClient.SqlClient
      const jobs = yield* sql<{ count: number }>`
        select count(*)::int as count from ingestion_jobs group by source_id`
      expect(jobs.map(({ count }) => count)).toEqual(Array.from({ length: 20 }, () => 1))
      yield* TestClock.adjust(Duration.hours(30))
      expect(yield* sweep).toBe(0)
    }).pipe(Effect.provide(started()))
  )

  it.scoped("a failed source is tried again after the same time", () =>
    Effect.gen(function* () {
      yield* reset
      const scope = yield* Fixtures.agent()
      yield* synced(scope, "daily")
      yield* TestClock.adjust(Duration.hours(27))
      expect(yield* sweep).toBe(1)
      yield* end("FAILED")
      yield* TestClock.adjust(Duration.hours(20))
      expect(yield* sweep).toBe(0)
      yield* TestClock.adjust(Duration.hours(7))
      expect(yield* sweep).toBe(1)
    }).pipe(Effect.provide(started()))
  )

  it.scoped(
    "a source is read on time after the clock was ahead and was set back, and one that waits, too",
    () =>
      Effect.gen(function* () {
        yield* reset
        const scope = yield* Fixtures.agent()
        const sql = yield* SqlClient.SqlClient
        const read = yield* synced(scope, "daily")
        const waiting = yield* synced(scope, "daily")
        yield* TestClock.adjust("300 days")
        expect(yield* sweep).toBe(2)
        yield* end("SUCCEEDED")
        yield* sql`
        update sources set last_synced_at = to_timestamp(0), refreshed_at = to_timestamp(0),
          refresh_held_until = to_timestamp(0) + interval '300 days' where id = ${waiting}`
        yield* TestClock.setTime(Duration.toMillis("2 days"))
        expect(yield* sweep).toBe(2)
        yield* end("SUCCEEDED")
        yield* TestClock.adjust(Duration.hours(23))
        expect(yield* sweep).toBe(0)
        yield* TestClock.adjust(Duration.hours(4))
        expect(yield* sweep).toBe(2)
        expect(
          yield* sql`select from sources where id = ${read} and refreshed_at < to_timestamp(0) + interval '4 days'`
        ).toHaveLength(1)
      }).pipe(Effect.provide(started()))
  )

  it.scoped("a sync is queued for its tenant, so that tenants share the workers", () =>
    Effect.gen(function* () {
      yield* reset
      owners = []
      const scopes = [yield* Fixtures.agent(), yield* Fixtures.agent()]
      for (const scope of scopes) yield* synced(scope, "daily")
      yield* TestClock.adjust(Duration.hours(27))
      yield* sweep
      expect(owners.toSorted()).toEqual(scopes.map(({ tenantId }) => tenantId).toSorted())
    }).pipe(Effect.provide(started()))
  )

  it.scoped("a tenant whose ingestion jobs are used up is informed, and does not block others", () =>
    Effect.gen(function* () {
      yield* reset
      const sql = yield* SqlClient.SqlClient
      const poor = yield* Fixtures.agent()
      const rich = yield* Fixtures.agent()
      const waiting = yield* synced(poor, "daily")
      yield* synced(rich, "daily")
      yield* TestClock.adjust(Duration.hours(27))
      yield* sweep.pipe(Effect.provide(started(new Set([rich.tenantId]))))
      expect(yield* end("SUCCEEDED")).toBe(1)
      const [source] = yield* sql<{ status: string; reason: string }>`
        select status, last_error as reason from sources where id = ${waiting}`
      expect(source).toEqual({
        status: "READY",
        reason: "The scheduled reading waits: the ingestion jobs of this period are used up."
      })
      yield* TestClock.adjust(Duration.minutes(61))
      yield* sweep.pipe(Effect.provide(started()))
      expect(yield* end("SUCCEEDED")).toBe(1)
    })
  )

  it.effect("`refresh` is off, daily or weekly, for what is read from an address", () =>
    Effect.gen(function* () {
      const decode = Schema.decodeUnknown(CreateSource)
      const url = (refresh: string) => ({
        type: "URL",
        name: "Site",
        config: { url: "https://example.com/", refresh }
      })
      expect((yield* decode(url("weekly"))).config).toMatchObject({ refresh: "weekly" })
      expect((yield* Effect.either(decode(url("hourly"))))._tag).toBe("Left")
    })
  )
})
