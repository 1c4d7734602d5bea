/** The seed archive: a migrated, empty database as a gzipped tar. The build creates it, the first start unpacks it. */
import * as Reactivity from "@effect/experimental/Reactivity"
import type { PGlite } from "@electric-sql/pglite"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import { embeddedClient } from "./Clients.ts"
import { openEmptyPGlite } from "./Embedded.ts"
import { migrate } from "./Migrations.ts"

/**
 * Removes the databases from which a server makes others. The engine never does, and they are two fifths of the files:
 * their creation takes most of the time of a first start where a disk is slow.
 */
const dropTemplates = async (db: PGlite) => {
  await db.query("update pg_database set datistemplate = false")
  await db.query("drop database template0")
  await db.query("drop database template1")
}

/** An archive of a database with all of `migrations` applied. */
const makeSeed = (migrations: string) =>
  Effect.gen(function* () {
    const { db, engine } = yield* openEmptyPGlite
    const client = yield* embeddedClient(engine)
    yield* Effect.provideService(migrate(migrations), SqlClient.SqlClient, client)
    yield* Effect.promise(() => dropTemplates(db))
    const archive = yield* Effect.promise(() => db.dumpDataDir("gzip"))
    return new Uint8Array(yield* Effect.promise(() => archive.arrayBuffer()))
  }).pipe(Effect.scoped, Effect.provide(Reactivity.layer))

/** {@link makeSeed} as a promise, for the build. */
export const seed = (migrations: string): Promise<Uint8Array> => Effect.runPromise(makeSeed(migrations))
