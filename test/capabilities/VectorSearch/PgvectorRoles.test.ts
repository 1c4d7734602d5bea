/**
 * The extension as it is really set up: by a superuser, for a role that may do no more than it has to. Every session is a
 * new one, in which the extension has not been loaded yet.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { randomUUID } from "node:crypto"
import * as Pg from "pg"
import { Embedder } from "../../../src/capabilities/Embedder.ts"
import { VectorSearch } from "../../../src/capabilities/VectorSearch.ts"
import { layerPgvector } from "../../../src/capabilities/VectorSearch/Pgvector.ts"
import { layerPostgres, migrate, prepareVector } from "../../../src/store/Database.ts"
import * as Fixtures from "../../Fixtures.ts"
import { makeHashing } from "../../HashingEmbedder.ts"
import { onPgvectorServer, pgvectorUrl } from "../../servers/PgvectorServer.ts"
import { migrations } from "../../TestDatabase.ts"
import { corpus, known, stores } from "./Knowledge.ts"

const addressOf = (server: string, user: string, database: string) => {
  const url = new URL(server)
  url.username = user
  url.password = user
  url.pathname = `/${database}`
  return url.href
}

/** Runs `statements` one after the other as a superuser. */
const asSuperuser = (url: string, statements: ReadonlyArray<string>) =>
  Effect.promise(async () => {
    const client = new Pg.Client({ connectionString: url })
    await client.connect()
    try {
      for (const statement of statements) await client.query(statement)
    } finally {
      await client.end()
    }
  })

/** A database and a role of its own, named alike; `ownedBy` the role or the superuser. Gone with the scope. */
const setUp = (options: {
  readonly owned: boolean
  readonly inside: (role: string) => ReadonlyArray<string>
}) =>
  Effect.gen(function* () {
    const server = Redacted.value(yield* pgvectorUrl)
    const role = `spoke_role_${randomUUID().replaceAll("-", "").slice(0, 16)}`
    yield* Effect.acquireRelease(
      asSuperuser(server, [
        `create role ${role} login password '${role}'`,
        `create database ${role} ${options.owned ? `owner ${role}` : ""}`
      ]),
      () =>
        asSuperuser(server, [
          `drop database ${role} with (force)`,
          `drop owned by ${role}`,
          `drop role ${role}`
        ])
    )
    const inside = addressOf(server, new URL(server).username, role)
    yield* asSuperuser(inside, options.inside(role))
    return { inside, role, url: addressOf(server, role, role) }
  })

const databaseOf = (url: string) => layerPostgres({ url: Redacted.make(url), maxConnections: 3 })

const prepared = Effect.zipRight(migrate(migrations), prepareVector(migrations))

/** Searches by the index, as in a large agent. */
const searching = Layer.provideMerge(
  Layer.merge(layerPgvector({ maxBytes: 1e8, exactUpTo: 100, heldUpTo: 0, sampleRate: 0 }), stores),
  Layer.succeed(Embedder, makeHashing({ lexicalWeight: 0.3 }))
)

const written = Effect.gen(function* () {
  const scope = yield* Fixtures.agent()
  yield* known(scope, corpus(20, 20))
  return scope
})

const found = (scope: Effect.Effect.Success<typeof written>) =>
  Effect.flatMap(VectorSearch, ({ search }) =>
    search(scope, { text: "restore the database from a backup", topK: 5, minScore: 0 })
  ).pipe(Effect.map(({ chunks }) => chunks.length))

/** Prepares, writes and searches, each on connections of its own. */
const works = (url: string) =>
  Effect.gen(function* () {
    yield* Effect.provide(prepared, databaseOf(url))
    const scope = yield* Effect.provide(written, Layer.provideMerge(searching, databaseOf(url)))
    const chunks = yield* Effect.provide(found(scope), Layer.provideMerge(searching, databaseOf(url)))
    expect(chunks).toBe(5)
    // And again where all is there.
    yield* Effect.provide(prepared, databaseOf(url))
    return scope
  })

const extension = "create extension vector"

onPgvectorServer("pgvector for ordinary roles", (it) => {
  it.scoped("The owner of the database is told what a superuser has to do, and goes on once it is done", () =>
    Effect.gen(function* () {
      const { inside, url } = yield* setUp({ owned: true, inside: () => [] })
      const { _tag, message } = yield* Effect.flip(Effect.provide(prepared, databaseOf(url)))
      expect(_tag).toBe("VectorUnavailable")
      expect(message).toContain("let a superuser run CREATE EXTENSION vector")
      yield* asSuperuser(inside, [extension])
      yield* works(url)
    })
  )

  it.scoped("The owner of the database, the extension made by a superuser", () =>
    Effect.flatMap(setUp({ owned: true, inside: () => [extension] }), ({ url }) => works(url))
  )

  it.scoped("A role that owns neither database nor schema, and may create in the schema", () =>
    Effect.flatMap(
      setUp({
        owned: false,
        inside: (role) => [extension, `grant usage, create on schema public to ${role}`]
      }),
      ({ url }) => works(url)
    )
  )

  it.scoped("A role with a schema of its own, and nothing in public", () =>
    Effect.gen(function* () {
      const { inside, url } = yield* setUp({
        owned: false,
        inside: (role) => [extension, `create schema authorization ${role}`]
      })
      yield* works(url)
      yield* Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        expect(yield* sql`select 1 from pg_tables where schemaname = 'public'`).toEqual([])
      }).pipe(Effect.provide(databaseOf(inside)))
    })
  )

  it.scoped("The extension in a schema of its own, where the role looks for it", () =>
    Effect.flatMap(
      setUp({
        owned: true,
        inside: (role) => [
          "create schema extensions",
          `${extension} schema extensions`,
          `grant usage on schema extensions to ${role}`,
          `alter role ${role} set search_path = "$user", public, extensions`
        ]
      }),
      ({ url }) => works(url)
    )
  )

  it.scoped("The extension in a schema where the role does not look for it: it is told how", () =>
    Effect.gen(function* () {
      const { role, url } = yield* setUp({
        owned: true,
        inside: () => ["create schema extensions", `${extension} schema extensions`]
      })
      const { _tag, message } = yield* Effect.flip(Effect.provide(prepared, databaseOf(url)))
      expect(_tag).toBe("VectorUnavailable")
      expect(message).toContain("GRANT USAGE ON SCHEMA extensions")
      expect(message).toContain(`ALTER ROLE ${role}`)
    })
  )

  it.scoped("A role that may read and write rows alone, after its owner has migrated", () =>
    Effect.gen(function* () {
      const { inside, role, url } = yield* setUp({ owned: true, inside: () => [extension] })
      yield* works(url)
      const reader = `${role}_rows`
      yield* Effect.acquireRelease(
        asSuperuser(inside, [
          `create role ${reader} login password '${reader}'`,
          `grant usage on schema public to ${reader}`,
          `grant select, insert, update, delete on all tables in schema public to ${reader}`,
          `grant usage on all sequences in schema public to ${reader}`
        ]),
        () => asSuperuser(inside, [`drop owned by ${reader}`, `drop role ${reader}`])
      )
      yield* works(addressOf(url, reader, role))
    })
  )
})
