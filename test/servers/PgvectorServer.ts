/**
 * Databases with pgvector for tests: an embedded one of its own, and a real server where there is one. That is the one at
 * `SPOKE_TEST_PGVECTOR_URL` (a superuser's; a database of its own is made there), or an installed PostgreSQL that has the
 * extension.
 */
import type { Vitest } from "@effect/vitest"
import { layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import * as Path from "node:path"
import * as Pg from "pg"
import { inject, it } from "vitest"
import {
  type Database,
  layerMemory,
  layerPostgres,
  migrate,
  prepareVector
} from "../../src/store/Database.ts"
import { installations, startServer } from "./PostgresServer.ts"
import { restoreIt } from "../setup.ts"
import { sharedLayer, migrations, oncePerWorker } from "../TestDatabase.ts"

const given = process.env["SPOKE_TEST_PGVECTOR_URL"]

const shared = (folder: string): ReadonlyArray<string> => {
  const version = /postgresql\/(\d+)\/bin$/u.exec(folder)?.[1]
  if (version !== undefined) return [`/usr/share/postgresql/${version}`]
  try {
    return [execFileSync(Path.join(folder, "pg_config"), ["--sharedir"], { encoding: "utf8" }).trim()]
  } catch {
    return []
  }
}

/** Programs of a PostgreSQL that has the extension. */
const installed = installations.find((programs) =>
  shared(programs).some((folder) => Fs.existsSync(Path.join(folder, "extension/vector.control")))
)

/** Whether there is a server that has pgvector. */
export const hasPgvector = given !== undefined || installed !== undefined

/** An empty database of the given server. */
const ownDatabase = async (url: string): Promise<string> => {
  const name = `spoke_test_${process.pid}`
  const client = new Pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(`drop database if exists ${name}`)
    await client.query(`create database ${name}`)
  } finally {
    await client.end()
  }
  const address = new URL(url)
  address.pathname = `/${name}`
  return address.href
}

const prepared = <E>(database: Layer.Layer<Database, E>) =>
  Layer.effectDiscard(Effect.zipRight(migrate(migrations), prepareVector(migrations))).pipe(
    Layer.provideMerge(database)
  )

/** An embedded database, pgvector's migration applied. */
export const EmbeddedPgvector: Layer.Layer<Database> = sharedLayer(
  "embedded pgvector",
  Layer.suspend(() => prepared(layerMemory({ seed: inject("seed"), vector: true })))
)

/** The address of a server that has pgvector. */
export const pgvectorUrl = Effect.promise(() =>
  oncePerWorker("pgvector server", () =>
    given === undefined
      ? startServer(inject("servers"), { kind: "pgvector", programs: installed })
      : ownDatabase(given)
  )
).pipe(Effect.map(Redacted.make))

const ServerPgvector: Layer.Layer<Database> = sharedLayer(
  "native pgvector",
  Layer.unwrapEffect(Effect.map(pgvectorUrl, (url) => prepared(layerPostgres({ url, maxConnections: 10 }))))
)

type Suite = (it: Vitest.MethodsNonLive<Database, true>, engine: "embedded" | "server") => void

const run = (database: Layer.Layer<Database>, title: string, engine: "embedded" | "server", suite: Suite) =>
  layer(database, { timeout: "60 seconds", excludeTestServices: true })(title, (it) => {
    suite(it, engine)
    restoreIt()
  })

/** A suite on the embedded database with pgvector. */
export const onEmbeddedPgvector = (name: string, suite: Suite): void =>
  run(EmbeddedPgvector, `${name} (embedded PostgreSQL with pgvector)`, "embedded", suite)

/** A suite on a PostgreSQL server with pgvector; a visible skip where there is none. */
export const onPgvectorServer = (name: string, suite: Suite): void => {
  const title = `${name} (PostgreSQL server with pgvector)`
  if (hasPgvector) run(ServerPgvector, title, "server", suite)
  else it.skipIf(true)(`${title}: no such server was found; .ci/pgvector makes one`, () => {})
}
