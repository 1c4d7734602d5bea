/** The choice of the search backend: SPOKE_VECTOR. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { fromRecord } from "../../src/app/config/Config.ts"
import { chooseVector } from "../../src/app/Vector.ts"
import { layerPostgres } from "../../src/store/Database.ts"
import { onPgvectorServer, pgvectorUrl } from "../servers/PgvectorServer.ts"
import { eachEngineLive } from "../TestDatabase.ts"

const settings = (vector?: string) =>
  fromRecord(
    { DATABASE_URL: "postgres://localhost/spoke", SPOKE_SECRET: "s".repeat(40), SPOKE_VECTOR: vector },
    false
  )

const choice = (vector?: string) => Effect.flatMap(settings(vector), chooseVector)

eachEngineLive("Where chunks are searched", (it, engine) => {
  it.effect("The embedded database is searched in process, and never asked for an extension", () =>
    Effect.gen(function* () {
      const embedded = yield* fromRecord({}, false)
      expect(yield* chooseVector(embedded)).toMatchObject({ backend: "in-process", missing: false })
      const { problems } = yield* Effect.flip(fromRecord({ SPOKE_VECTOR: "pgvector" }, false))
      expect(problems).toEqual([{ variable: "DATABASE_URL", message: "Required with SPOKE_VECTOR=pgvector" }])
    })
  )

  it.effect("SPOKE_VECTOR=in-process is taken at its word", () =>
    Effect.map(choice("in-process"), (found) =>
      expect(found).toMatchObject({ backend: "in-process", missing: false })
    )
  )

  it.effect("A server without pgvector is searched in process, unless pgvector was asked for by name", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const offered = yield* sql`select 1 from pg_available_extensions where name = 'vector'`
      // An embedded one stands for a server that has it.
      if (engine === "embedded" || offered.length > 0) return
      expect(yield* choice()).toMatchObject({ backend: "in-process", missing: true })
      const { _tag, message } = yield* Effect.flip(choice("pgvector"))
      expect(_tag).toBe("VectorUnavailable")
      expect(message).toContain("install its package")
    })
  )
})

onPgvectorServer("Where chunks are searched", (it) => {
  it.effect("A server that has pgvector is searched by it", () =>
    Effect.gen(function* () {
      expect(yield* choice()).toMatchObject({ backend: "pgvector", missing: false })
      expect(yield* choice("pgvector")).toMatchObject({ backend: "pgvector" })
    })
  )

  it.effect("A user who may not make the extension is told what a superuser has to do", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const name = `spoke_limited_${process.pid}`
      yield* Effect.acquireRelease(
        sql.unsafe(`create role ${name} login`).pipe(Effect.zipRight(sql.unsafe(`create database ${name}`))),
        () =>
          Effect.ignore(
            sql
              .unsafe(`drop database ${name} with (force)`)
              .pipe(Effect.zipRight(sql.unsafe(`drop role ${name}`)))
          )
      )
      const address = new URL(Redacted.value(yield* pgvectorUrl))
      address.pathname = `/${name}`
      address.username = name
      const limited = layerPostgres({ url: Redacted.make(address.href), maxConnections: 2 })
      const { message } = yield* Effect.flip(Effect.provide(choice("pgvector"), limited))
      expect(message).toContain("CREATE EXTENSION vector")
      const [found] = yield* Effect.provide(Effect.all([choice()]), limited)
      expect(found).toMatchObject({ backend: "in-process", missing: true })
      expect(found.why, "Commands print it within a sentence.").not.toMatch(/\.$/u)
    }).pipe(Effect.scoped)
  )
})
