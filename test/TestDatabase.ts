/**
 * Migrated databases for tests. `TestDatabase` is one embedded database per worker, shared by all its files. Tests that
 * need empty tables call `reset`. `eachEngine` runs a suite on it and on a real PostgreSQL server.
 */
import type { Vitest } from "@effect/vitest"
import { layer } from "@effect/vitest"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import * as Path from "node:path"
import { inject, it } from "vitest"
import { isolateTenants, type Database, layerMemory, layerPostgres, migrate } from "../src/store/Database.ts"
import { binaries, startServer } from "./servers/PostgresServer.ts"
import { restoreIt } from "./setup.ts"
import { withTestStatements } from "./TestStatements.ts"

/** The folder of the migrations. */
export const migrations = Path.join(import.meta.dirname, "../migrations")

/**
 * The database role of tenants' statements. With `SPOKE_TEST_TENANT_ROLE` the suites run under row level security, and
 * statements of the tests themselves see every tenant (TestStatements.ts).
 */
const tenantRole = process.env["SPOKE_TEST_TENANT_ROLE"] ?? null

const withMigrations = <E>(database: Layer.Layer<Database, E>) =>
  Layer.effectDiscard(
    Effect.zipRight(migrate(migrations), tenantRole === null ? Effect.void : isolateTenants(tenantRole))
  ).pipe(Layer.provideMerge(tenantRole === null ? database : withTestStatements(database)))

// Stored globally, because each test file of a worker loads the modules again.
declare global {
  var spokeTest: Record<string, Promise<unknown>> | undefined
}

/** Created once per worker. */
export const oncePerWorker = <A>(name: string, make: () => Promise<A>): Promise<A> => {
  const all = (globalThis.spokeTest ??= {})
  return (all[name] ??= make()) as Promise<A>
}

/** A layer that is built once per worker, in a scope that stays open as long as the worker. */
export const sharedLayer = <E>(name: string, database: Layer.Layer<Database, E>) =>
  Layer.effectContext(
    Effect.promise(() =>
      oncePerWorker(name, () =>
        Effect.runPromise(Effect.flatMap(Scope.make(), (scope) => Layer.buildWithScope(database, scope)))
      )
    )
  )

/** The built entry file of the embedded engine's thread. */
export const thread = new URL("../dist/workers/database.js", import.meta.url)

/** The worker's embedded database, pgvector available: `SqlClient` and `PgClient`. */
export const TestDatabase: Layer.Layer<Database> = sharedLayer(
  "embedded",
  Layer.suspend(() => withMigrations(layerMemory({ seed: inject("seed"), vector: true, thread, tenantRole })))
)

/** The address of the worker's PostgreSQL server, which is started on first use. */
export const serverUrl = Effect.promise(() =>
  oncePerWorker("server", () => startServer(inject("servers")))
).pipe(Effect.map(Redacted.make))

/** The worker's PostgreSQL server. */
export const TestServer: Layer.Layer<Database> = sharedLayer(
  "native",
  Layer.unwrapEffect(
    Effect.map(serverUrl, (url) => withMigrations(layerPostgres({ url, maxConnections: 10, tenantRole })))
  )
)

/** Empties every table. */
export const reset = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  sql.unsafe(`do $$
    declare name text; filled boolean;
    begin
      -- Without triggers the order of deletion does not matter.
      perform set_config('session_replication_role', 'replica', true);
      for name in select tablename from pg_tables where schemaname = 'public' and tablename not like 'migrations%'
          and tablename <> 'vector_profiles' loop
        execute format('select exists (select from %I)', name) into filled;
        if filled then execute format('delete from %I', name); end if;
      end loop;
    end $$`)
).pipe(Effect.asVoid, Effect.orDie)

export type Engine = "embedded" | "server"

const onServerEngine = (name: string, run: (engine: Engine, layerName: string) => void): void => {
  const onServer = `${name} (PostgreSQL server)`
  if (binaries !== undefined) run("server", onServer)
  else if (process.env["CI"] === "true") {
    it(onServer, () => {
      throw new Error("CI must run this suite on a real server, but no PostgreSQL binaries were found.")
    })
  } else it.skipIf(true)(`${onServer}: no PostgreSQL binaries were found`, () => {})
}

const onEachEngine = (name: string, run: (engine: Engine, layerName: string) => void): void => {
  run("embedded", `${name} (embedded PostgreSQL)`)
  onServerEngine(name, run)
}

const databaseOf = (engine: Engine) => (engine === "embedded" ? TestDatabase : TestServer)

/**
 * Runs a suite on both engines, under the test clock. Without PostgreSQL the server's part is skipped visibly; in CI it
 * fails.
 */
export const eachEngine = (
  name: string,
  suite: (it: Vitest.MethodsNonLive<Database>, engine: Engine) => void
): void =>
  onEachEngine(name, (engine, title) =>
    layer(databaseOf(engine), { timeout: "60 seconds" })(title, (it) => {
      suite(it, engine)
      restoreIt()
    })
  )

type LiveSuite = (it: Vitest.MethodsNonLive<Database, true>, engine: Engine) => void

const runLive = (suite: LiveSuite) => (engine: Engine, title: string) =>
  layer(databaseOf(engine), { timeout: "60 seconds", excludeTestServices: true })(title, (it) => {
    suite(it, engine)
    restoreIt()
  })

/** {@link eachEngine} under the real clock, for tests that wait for the database. */
export const eachEngineLive = (name: string, suite: LiveSuite): void => onEachEngine(name, runLive(suite))

/** {@link eachEngineLive} on the embedded engine alone, for suites that do not depend on the engine. */
export const embeddedLive = (name: string, suite: LiveSuite): void =>
  runLive(suite)("embedded", `${name} (embedded PostgreSQL)`)

/** {@link eachEngineLive} on the server alone, for what only a server can do. */
export const serverLive = (name: string, suite: LiveSuite): void => onServerEngine(name, runLive(suite))
