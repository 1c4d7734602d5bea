/** Row level security: a statement sees only the rows of its tenant, also if it names no tenant. */
import * as PgClient from "@effect/sql-pg/PgClient"
import * as SqlClient from "@effect/sql/SqlClient"
import { expect, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { randomUUID } from "node:crypto"
import * as Fs from "node:fs"
import * as Path from "node:path"
import * as Pg from "pg"
import { withOwner } from "../../src/concurrency/CurrentOwner.ts"
import { forEveryTenant, forTenants } from "../../src/concurrency/TenantSession.ts"
import {
  isolateTenants,
  layerMemory,
  layerPostgres,
  migrate,
  rowLevelSecurityState
} from "../../src/store/Database.ts"
import { ordinary } from "../servers/OrdinaryRole.ts"
import { startPgBouncer, withPgBouncer } from "../servers/PgBouncer.ts"
import { binaries } from "../servers/PostgresServer.ts"
import { migrations, thread } from "../TestDatabase.ts"
import { statements } from "./SqlSources.ts"
import { exceptions, tenantTables } from "./TenantTables.ts"

const fill = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(["ten_a", "ten_b"], (id) =>
    Effect.gen(function* () {
      yield* sql`insert into tenants (id, name) values (${id}, ${id})`
      yield* sql`insert into agents (id, tenant_id, name) values (${`agt_${id}`}, ${id}, 'A')`
    })
  )
)

const names = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.map(sql<{ readonly id: string }>`select id from agents order by id`, (rows) =>
    rows.map(({ id }) => id)
  )
)

/** Checks that hold on every engine. */
const checkIsolation = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* fill
  // Nobody has said for whom.
  expect(yield* names).toEqual([])
  expect(yield* names.pipe(withOwner("ten_a"))).toEqual(["agt_ten_a"])
  expect(yield* names.pipe(forTenants(["ten_b"]))).toEqual(["agt_ten_b"])
  expect(yield* names.pipe(forEveryTenant("operator"))).toEqual(["agt_ten_a", "agt_ten_b"])
  expect(yield* sql`/* every tenant: sweep */ select id from agents`).toHaveLength(2)
  expect(yield* sql`/* every tenant: nothing known */ select id from agents`).toEqual([])
  // It forgets the tenant of one of its tables, and names it elsewhere.
  const joined = sql`select a.id from tenants t cross join agents a where t.id = ${"ten_a"}`
  expect(yield* joined).toEqual([{ id: "agt_ten_a" }])
  // The caller's wins over what a statement says.
  expect(yield* withOwner("ten_b")(sql`select id from agents where tenant_id = ${"ten_a"}`)).toEqual([])

  const foreign = sql`insert into agents (id, tenant_id, name) values ('agt_x', ${"ten_a"}, 'X')`
  expect(yield* Effect.flip(withOwner("ten_b")(foreign))).toHaveProperty("cause.code", "42501")
  expect(yield* withOwner("ten_b")(sql`update agents set name = 'stolen' returning id`)).toEqual([
    { id: "agt_ten_b" }
  ])
  expect(yield* withOwner("ten_b")(sql`delete from agents where id = 'agt_ten_a' returning id`)).toEqual([])

  // Often enough to be kept prepared, by turns for both.
  for (let turn = 0; turn < 20; turn += 1) {
    const owner = turn % 2 === 0 ? "ten_a" : "ten_b"
    expect(yield* names.pipe(withOwner(owner))).toEqual([`agt_${owner}`])
    if (turn % 5 === 0) expect(yield* names).toEqual([])
  }
  // Within a transaction each statement has its own, also after what was undone.
  yield* sql.withTransaction(
    Effect.gen(function* () {
      expect(yield* names.pipe(withOwner("ten_a"))).toEqual(["agt_ten_a"])
      expect(yield* names).toEqual([])
      expect(yield* names.pipe(forEveryTenant("operator"))).toHaveLength(2)
      const undone = Effect.zipRight(names.pipe(withOwner("ten_b")), Effect.fail("undone"))
      yield* Effect.ignore(sql.withTransaction(undone))
      expect(yield* names.pipe(withOwner("ten_b"))).toEqual(["agt_ten_b"])
      yield* Effect.ignore(
        sql.withTransaction(Effect.zipRight(names.pipe(forEveryTenant("operator")), Effect.fail("undone")))
      )
      expect(yield* names.pipe(withOwner("ten_a"))).toEqual(["agt_ten_a"])
      expect(yield* names).toEqual([])
    })
  )
  expect(yield* names).toEqual([])
  // An error leaves nothing behind.
  yield* Effect.flip(withOwner("ten_a")(sql`select 1 / 0 from agents`))
  expect(yield* names).toEqual([])
  const both = ["ten_a", "ten_b"].map((owner) => names.pipe(withOwner(owner)))
  const many = yield* Effect.all(
    Array.from({ length: 100 }, (_, n) => both[n % 2] ?? names),
    { concurrency: 20 }
  )
  expect(many).toEqual(many.map((_, n) => [n % 2 === 0 ? "agt_ten_a" : "agt_ten_b"]))
})

/** Runs statements of both tenants while others fail, are interrupted or cancelled, or lose their connections. */
const checkUnderFaults = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const slow = sql`select pg_sleep(0.2), id from agents`
  const faults = [
    sql`select 1 / 0 from agents`,
    sql`select id from no_table`,
    Effect.timeout(slow, "5 millis"),
    sql`select pg_cancel_backend(pg_backend_pid()), pg_sleep(1) from agents`,
    sql`select pg_terminate_backend(pg_backend_pid()), pg_sleep(1) from agents`,
    sql.withTransaction(Effect.zipRight(names, sql`select 1 / 0 from agents`)),
    sql.withTransaction(Effect.zipRight(names, Effect.timeout(slow, "5 millis"))),
    sql.withTransaction(
      Effect.zipRight(names, sql`select pg_terminate_backend(pg_backend_pid()) from agents`)
    )
  ]
  const seen = yield* Effect.forEach(
    Array.from({ length: 160 }, (_, place) => place),
    (place) =>
      Effect.gen(function* () {
        const owner = place % 2 === 0 ? "ten_a" : "ten_b"
        const fault = faults[Math.floor(place / 2) % faults.length]
        if (place % 4 < 2 && fault !== undefined) yield* Effect.ignore(Effect.asVoid(withOwner(owner)(fault)))
        // A connection that has ended under it is an error of its own, and no row of somebody else.
        const found = yield* Effect.either(names.pipe(withOwner(owner)))
        if (found._tag === "Left") return "failed"
        return found.right.length === 1 && found.right[0] === `agt_${owner}` ? "own" : found.right.join()
      }),
    { concurrency: 12 }
  )
  expect(seen.filter((answer) => answer !== "own" && answer !== "failed")).toEqual([])
  expect(seen.filter((answer) => answer === "own").length).toBeGreaterThan(100)
  const left = yield* Effect.all(
    Array.from(
      { length: 12 },
      () => sql`/* every tenant: sweep */ select current_setting('spoke.tenant', true) as tenant`
    ),
    { concurrency: 4 }
  )
  for (const [row] of left) expect(["", null]).toContain(row?.["tenant"])
  expect(yield* names).toEqual([])
})

/** The conditions by which the planner reads the tables of a statement. */
const conditions = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const plan = yield* sql<{ readonly "QUERY PLAN": string }>`
    explain (costs off)
      with run as (select tenant_id, conversation_id from agent_runs where tenant_id = ${"ten_a"} and id = ${"run"} for update)
      update conversations c set updated_at = now() from run
      where c.tenant_id = run.tenant_id and c.id = run.conversation_id and c.state = 'AI_ACTIVE'`
  return plan.map((line) => line["QUERY PLAN"].trim()).filter((line) => line.startsWith("Index Cond"))
})

const skipped = binaries === undefined

it.scopedLive.skipIf(skipped)(
  "An owner without special rights sets it up, and a statement without a tenant sees no rows",
  () =>
    Effect.gen(function* () {
      const { role, url } = yield* Effect.promise(ordinary)
      const database = yield* Layer.build(
        layerPostgres({ url: Redacted.make(url), maxConnections: 4, tenantRole: role })
      )
      yield* Effect.gen(function* () {
        yield* migrate(migrations)
        const before = yield* rowLevelSecurityState(role)
        expect(before).toMatchObject({ isOwner: true, unbound: false, open: tenantTables.toSorted() })
        expect((yield* isolateTenants(role)).toSorted()).toEqual(tenantTables.toSorted())
        expect(yield* isolateTenants(role)).toEqual([])
        expect(yield* rowLevelSecurityState(role)).toMatchObject({
          open: [],
          ungranted: [],
          tables: tenantTables.toSorted()
        })
        yield* checkIsolation
        yield* checkUnderFaults
        const asOwner = yield* conditions.pipe(forEveryTenant("operator"))
        expect(asOwner.length).toBeGreaterThan(0)
        expect(yield* conditions.pipe(withOwner("ten_a")), "No plan is made of a policy.").toEqual(asOwner)
      }).pipe(Effect.provide(database))
    }),
  120_000
)

it.scopedLive(
  "Row level security holds on the embedded engine",
  () =>
    Effect.gen(function* () {
      yield* migrate(migrations)
      yield* isolateTenants("spoke_tenant")
      yield* checkIsolation
    }).pipe(Effect.provide(layerMemory({ thread, tenantRole: "spoke_tenant" }))),
  120_000
)

withPgBouncer("Row level security behind PgBouncer in transaction mode", () => {
  it.scopedLive.skipIf(skipped)(
    "holds on connections that others use in between",
    () =>
      Effect.gen(function* () {
        const { admin, role, url } = yield* Effect.promise(ordinary)
        const direct = yield* Layer.build(
          layerPostgres({ url: Redacted.make(url), maxConnections: 2, tenantRole: role })
        )
        yield* Effect.zipRight(migrate(migrations), isolateTenants(role)).pipe(Effect.provide(direct))
        const pooler = yield* Effect.acquireRelease(
          Effect.promise(() => startPgBouncer(url)),
          ({ stop }) => Effect.promise(stop)
        )
        const options = { url: Redacted.make(pooler.url), maxConnections: 8 }
        const bound = yield* Layer.build(Layer.fresh(layerPostgres({ ...options, tenantRole: role })))
        const free = Context.get(yield* Layer.build(Layer.fresh(layerPostgres(options))), PgClient.PgClient)
        const others = yield* Effect.fork(
          Effect.forever(Effect.zipRight(free`select id from agents`, Effect.sleep("1 millis")))
        )
        yield* Effect.provide(checkIsolation, bound)
        // What was set is gone with its transaction, on each of the pooler's connections.
        const left = yield* Effect.all(
          Array.from(
            { length: 20 },
            () => free`select current_user::text as who, current_setting('spoke.tenant', true) as tenant`
          ),
          { concurrency: 8 }
        )
        const owner = new URL(url).username
        for (const [row] of left) expect(["", null]).toContain(row?.["tenant"])
        for (const [row] of left) expect(row).toHaveProperty("who", owner)
        expect(admin).not.toBe(url)
        yield* Fiber.interrupt(others)
      }),
    120_000
  )
})

it.scopedLive.skipIf(skipped)(
  "Setting it up waits for a long reader of a table without blocking turns",
  () =>
    Effect.gen(function* () {
      const { role, url } = yield* Effect.promise(ordinary)
      const database = yield* Layer.build(layerPostgres({ url: Redacted.make(url), maxConnections: 4 }))
      yield* Effect.provide(Effect.zipRight(migrate(migrations), fill), database)
      const reader = new Pg.Client({ connectionString: url })
      yield* Effect.promise(async () => {
        await reader.connect()
        await reader.query("begin")
        await reader.query("select count(*) from agents")
      })
      const isolating = yield* Effect.fork(Effect.provide(isolateTenants(role), database))
      const sql = Context.get(database, PgClient.PgClient)
      // It has asked for the lock and given way at least once when these are through.
      const writes = Effect.forEach(Array.from({ length: 40 }), () =>
        Effect.zipRight(sql`update agents set name = 'B'`, Effect.sleep("100 millis"))
      )
      yield* writes
      expect(yield* Fiber.poll(isolating)).toHaveProperty("_tag", "None")
      yield* Effect.promise(() => reader.query("commit").then(() => reader.end()))
      expect((yield* Fiber.join(isolating)).toSorted()).toEqual(tenantTables.toSorted())
    }),
  120_000
)

it.scopedLive.skipIf(skipped)(
  "Several processes set it up at the same time, each table once",
  () =>
    Effect.gen(function* () {
      const { admin: address, owner, role, url } = yield* Effect.promise(ordinary)
      const admin = new Pg.Client({ connectionString: address })
      // They make the role, too.
      yield* Effect.promise(async () => {
        await admin.connect()
        await admin.query(`drop role ${role}`)
        await admin.query(`alter role ${owner} createrole`)
        await admin.end()
      })
      const databases = yield* Effect.all(
        Array.from({ length: 4 }, () =>
          Layer.build(Layer.fresh(layerPostgres({ url: Redacted.make(url), maxConnections: 2 })))
        )
      )
      const [first] = databases
      if (first === undefined) return expect.unreachable()
      yield* Effect.provide(migrate(migrations), first)
      const changed = yield* Effect.all(
        databases.map((database) => Effect.provide(isolateTenants(role), database)),
        { concurrency: "unbounded" }
      )
      expect(changed.flat().toSorted()).toEqual(tenantTables.toSorted())
      expect(yield* Effect.provide(rowLevelSecurityState(role), first)).toMatchObject({
        open: [],
        ungranted: []
      })
    }),
  120_000
)

it.scopedLive.skipIf(skipped)(
  "Replaces the policies of 0.1.0, also while processes of 0.1.0 create them again",
  () =>
    Effect.gen(function* () {
      const { role, url } = yield* Effect.promise(ordinary)
      const database = yield* Layer.build(layerPostgres({ url: Redacted.make(url), maxConnections: 2 }))
      yield* Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* Effect.zipRight(migrate(migrations), isolateTenants(role))
        for (const table of ["agents", "agent_runs"])
          yield* sql`create policy tenant_rows on ${sql(table)} using (tenant_id = current_setting('spoke.tenant', true))`
        yield* sql`drop policy own_rows on agents`
        expect((yield* rowLevelSecurityState(role)).open).toEqual(["agent_runs", "agents"])
        expect(yield* isolateTenants(role)).toEqual(["agent_runs", "agents"])
        expect(yield* sql`select distinct policyname::text as name from pg_policies`).toEqual([
          { name: "own_rows" }
        ])
        expect((yield* rowLevelSecurityState(role)).open).toEqual([])
      }).pipe(Effect.provide(database))
    })
)

it.scopedLive(
  "Lets the user become a role that it has created, which PostgreSQL 16 does not do by itself",
  () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* migrate(migrations)
      yield* sql`create role maker createrole`
      yield* sql`grant select on all tables in schema public to maker`
      yield* sql`set session authorization maker`
      yield* sql`create role created nologin`
      expect((yield* rowLevelSecurityState("created")).isMember).toBe(false)
      yield* Effect.ignore(isolateTenants("created"))
      expect((yield* rowLevelSecurityState("created")).isMember).toBe(true)
      yield* sql`set role created`
    }).pipe(forEveryTenant("migration"), Effect.provide(layerMemory({ thread }))),
  120_000
)

it.scopedLive.skipIf(skipped)("Says what an administrator has to do if the role may not be created", () =>
  Effect.gen(function* () {
    const { owner, url } = yield* Effect.promise(ordinary)
    const role = `missing_${randomUUID().replaceAll("-", "")}`
    const database = yield* Layer.build(layerPostgres({ url: Redacted.make(url), maxConnections: 2 }))
    yield* Effect.provide(migrate(migrations), database)
    const refused = yield* Effect.flip(Effect.provide(isolateTenants(role), database))
    expect(refused.message).toContain(`CREATE ROLE ${role} NOLOGIN; GRANT ${role} TO ${owner}`)
    const bypassing = yield* Effect.flip(Effect.provide(isolateTenants("postgres"), database))
    expect(bypassing.message).toContain("bound by no policy")
  })
)

/** The names of the list. */
const everyTenantWork = Array.from(
  Fs.readFileSync(Path.join(import.meta.dirname, "../../src/concurrency/TenantSession.ts"), "utf8").matchAll(
    /^ {2}(\w+): "/gmu
  ),
  ([, name = ""]) => name
)

it("Statements over all tenants name their purpose, and are the exceptions of the list", () => {
  const used = new Set<string>()
  const places = new Set<string>()
  for (const { place, everyTenant } of statements) {
    if (everyTenant === null) continue
    used.add(everyTenant)
    places.add(place)
  }
  expect([...used].filter((name) => !everyTenantWork.includes(name))).toEqual([])
  // Fragments, whose statements say so.
  const fragments = [
    "store/channels/EventOwners.ts isOwnEvent",
    "store/conversations/EndUsers.ts isOfPerson",
    "store/knowledge/VectorIndexes.ts largestAgents",
    "store/moves/HeldJobs.ts hadOther",
    "store/moves/HeldJobs.ts isMoved"
  ]
  const unmarked = Object.keys(exceptions).filter((place) => !places.has(place) && !fragments.includes(place))
  expect(unmarked, "Say /* every tenant: … */ first in these statements.").toEqual([])
  const more = [...places].filter((place) => exceptions[place] === undefined)
  expect(more.toSorted(), "These name their tenants: why do they see those of others?").toEqual(
    [
      // Whose tenant is not known yet, unless the host names it.
      "app/library/Owner.ts owners",
      // Whether there is a tenant at all.
      "app/backup/TenantImport.ts refusePendingMigrations",
      // Several tenants in one statement.
      "capabilities/KeyStore/Sql.ts write",
      // By an index of words, which a policy would keep from use.
      "capabilities/VectorSearch/Pgvector.ts readAgent",
      "capabilities/VectorSearch/PgvectorQuery.ts hybrid",
      "capabilities/VectorSearch/PgvectorWeights.ts count",
      // Rows of several tenants that a sweep has found.
      "store/chat/ProcessLeases.ts end",
      "store/chat/UnusedPassages.ts removeUnused",
      "store/chat/UnusedPassages.ts sweep",
      "store/conversations/AnonymousPeople.ts removeUnreachable",
      // A row for each tenant, and the longest limit of all.
      "store/accounts/Retention.ts include",
      "store/accounts/Retention.ts longestRuns",
      "store/billing/Storage.ts include",
      "store/knowledge/VectorEncoding.ts next",
      "store/knowledge/VectorEncoding.ts store"
    ]
      .filter((place) => exceptions[place] === undefined)
      .toSorted()
  )
})

it("Effects that run for all tenants are those of this list", () => {
  const root = Path.join(import.meta.dirname, "../../src")
  const files = Fs.readdirSync(root, { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".ts")
  )
  const found = files.flatMap((name) =>
    Array.from(
      Fs.readFileSync(Path.join(root, name), "utf8").matchAll(/(?<!const )\bforEveryTenant\("(\w+)"\)/gu),
      ([, work = ""]) => `${name.split(Path.sep).join("/")} ${work}`
    )
  )
  expect([...new Set(found)].toSorted()).toEqual([
    "app/backup/Export.ts archive",
    "app/backup/Import.ts archive",
    "app/backup/Snapshots.ts archive",
    "app/backup/TenantImport.ts archive",
    "app/cli/doctor/Database.ts operator",
    "concurrency/TenantSession.ts batch",
    "store/Partitions.ts migration",
    "store/RowLevelSecurity.ts migration",
    "store/TableStatistics.ts migration",
    "store/conversations/InboxList.ts words",
    "store/database/Clients.ts migration",
    "store/database/EmbeddedMaintenance.ts migration",
    "store/database/MigrationPlan.ts migration",
    "store/database/Migrations.ts migration",
    "store/database/PgvectorExtension.ts migration",
    "store/knowledge/VectorCopies.ts vectors",
    "store/knowledge/VectorIndexes.ts vectors",
    "usecases/operations/moves/TenantGate.ts operator",
    "usecases/operations/moves/TenantMoves.ts archive"
  ])
  const used = new Set([
    ...found.map((line) => line.split(" ")[1]),
    ...statements.map(({ everyTenant }) => everyTenant)
  ])
  expect(everyTenantWork.filter((name) => !used.has(name))).toEqual([])
})
