/** One suite on every backend: what is recorded is there, in order, for its tenant alone. */
import { expect, type Vitest } from "@effect/vitest"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { AuditLog } from "../../src/capabilities/AuditLog.ts"
import { layerSql } from "../../src/capabilities/AuditLog/Sql.ts"
import type { TenantId } from "../../src/domain/Ids.ts"
import type { Database } from "../../src/store/Database.ts"
import * as Fixtures from "../Fixtures.ts"
import { eachEngineLive, reset } from "../TestDatabase.ts"

const entry = (tenantId: TenantId, target: string) => ({
  tenantId,
  actor: { type: "user" as const, id: "usr_é漢😀" },
  action: "agent_run.read",
  target,
  requestId: `req_${target}`
})

/** `broken` makes the log unavailable while what it is given runs. */
const suite = (
  it: Vitest.MethodsNonLive<Database, true>,
  backend: Layer.Layer<AuditLog, never, Database>,
  broken: <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E, Database>
) => {
  const log = Effect.map(Layer.build(Layer.fresh(backend)), Context.get(AuditLog))

  it.scoped(
    "lists what was recorded, newest first and whole, page by page, with an id and a time of its own",
    () =>
      Effect.gen(function* () {
        yield* reset
        const { list, record } = yield* log
        const { tenantId } = yield* Fixtures.agent()
        const before = yield* DateTime.now
        const targets = Array.from({ length: 7 }, (_, n) => `run_${n}`)
        for (const target of targets) yield* record(entry(tenantId, target))
        const found = new Array<string>()
        let after: string | undefined
        for (const size of [3, 3, 1]) {
          const page = yield* list(tenantId, { limit: 3, after })
          expect(page.rows.length).toBe(size)
          found.push(...page.rows.map(({ target }) => target))
          for (const { actor, action, at, requestId, target } of page.rows) {
            const { tenantId: _, ...told } = entry(tenantId, target)
            expect({ actor, action, requestId, target }).toEqual(told)
            // Whichever clock it is by.
            expect(Math.abs(DateTime.distance(before, at))).toBeLessThan(60_000)
          }
          after = page.next ?? undefined
        }
        expect(after).toBeUndefined()
        expect(found).toEqual(targets.toReversed())
        const { rows } = yield* list(tenantId, { limit: 100 })
        expect(new Set(rows.map(({ id }) => id)).size).toBe(7)
      })
  )

  it.scoped("names who did it and on what as they are called today, and nothing of another tenant", () =>
    Effect.gen(function* () {
      yield* reset
      const { list, record } = yield* log
      const sql = yield* SqlClient.SqlClient
      const one = yield* Fixtures.agent()
      const other = yield* Fixtures.agent()
      yield* sql`
        insert into users (id, tenant_id, email, role)
        values ('mbr_1', ${one.tenantId}, 'ada@example.com', 'owner')`
      const about = (target: string) => ({
        ...entry(one.tenantId, target),
        actor: { type: "user" as const, id: "mbr_1" }
      })
      yield* record(about(one.agentId))
      yield* record(about(other.agentId))
      yield* sql`
        update agents set name = 'Renamed' where tenant_id = ${one.tenantId} and id = ${one.agentId}`
      const names = Effect.map(list(one.tenantId, { limit: 10 }), ({ rows }) =>
        rows.map(({ actorName, targetName }) => [actorName, targetName])
      )
      expect(yield* names).toEqual([
        ["ada@example.com", null],
        ["ada@example.com", "Renamed"]
      ])
      yield* sql`delete from users where tenant_id = ${one.tenantId} and id = 'mbr_1'`
      expect((yield* names).map(([actorName]) => actorName)).toEqual([null, null])
    })
  )

  it.scoped("tells a tenant nothing of another, and nothing where nothing was done", () =>
    Effect.gen(function* () {
      yield* reset
      const { list, record } = yield* log
      const one = yield* Fixtures.agent()
      const other = yield* Fixtures.agent()
      yield* record(entry(one.tenantId, "run_1"))
      expect(yield* list(other.tenantId, { limit: 10 })).toEqual({ rows: [], next: null })
      const [mine] = (yield* list(one.tenantId, { limit: 10 })).rows
      expect((yield* list(other.tenantId, { limit: 10, after: `${mine?.id}~` })).rows).toEqual([])
    })
  )

  it.scoped("loses none of many that are recorded at once", () =>
    Effect.gen(function* () {
      yield* reset
      const { list, record } = yield* log
      const { tenantId } = yield* Fixtures.agent()
      const targets = Array.from({ length: 50 }, (_, n) => `run_${n}`)
      yield* Effect.forEach(targets, (target) => record(entry(tenantId, target)), {
        concurrency: "unbounded",
        discard: true
      })
      const { rows } = yield* list(tenantId, { limit: 100 })
      expect(rows.map(({ target }) => target).toSorted()).toEqual(targets.toSorted())
    })
  )

  it.scoped("fails where it cannot write, so that the deed can be left undone", () =>
    Effect.gen(function* () {
      yield* reset
      const { list, record } = yield* log
      const { tenantId } = yield* Fixtures.agent()
      const failure = yield* broken(Effect.flip(record(entry(tenantId, "run_1"))))
      expect(failure._tag).toBe("AuditUnavailable")
      expect((yield* list(tenantId, { limit: 10 })).rows).toEqual([])
    })
  )
}

eachEngineLive("The audit trail in the database", (it) =>
  suite(it, layerSql, (effect) =>
    Effect.flatMap(SqlClient.SqlClient, (sql) =>
      Effect.acquireUseRelease(
        Effect.orDie(sql`alter table audit_entries rename to hidden`),
        () => effect,
        () => Effect.orDie(sql`alter table hidden rename to audit_entries`)
      )
    )
  )
)
