/**
 * Vectors of release 0.1.0 under today's version: each is converted once, whatever is killed meanwhile, and clients find
 * what they found.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import { randomUUID } from "node:crypto"
import * as Fs from "node:fs"
import * as Path from "node:path"
import * as Pg from "pg"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { decodeVector, roundVector } from "../../../src/domain/knowledge/StoredVector.ts"
import { layerPostgres, migrate } from "../../../src/store/Database.ts"
import * as ModelStub from "../../servers/ModelStub.ts"
import { hasPgvector, pgvectorUrl } from "../../servers/PgvectorServer.ts"
import { binaries } from "../../servers/PostgresServer.ts"
import { migrations } from "../../TestDatabase.ts"
import { removeFolder, type Spoke, start, temporaryFolder, until } from "../Spoke.ts"
import { withDatabase, type StoreLocation, releaseOf, restore, retrieve } from "./Releases.ts"

const version = "0.1.0"
/** Chunks of one document that are added to those of the release. */
const added = 4_000
const kills = 3

const folder = temporaryFolder()
const scope = Effect.runSync(Scope.make())
let stub: ModelStub.ModelStub

beforeAll(async () => {
  stub = await Effect.runPromise(Scope.extend(ModelStub.make, scope))
})
afterAll(async () => {
  await Effect.runPromise(Scope.close(scope, Exit.void))
  removeFolder(folder)
})

const serve = (place: StoreLocation): Promise<Spoke> =>
  start(place.SPOKE_DATA_DIR, {
    ...place,
    OPENAI_BASE_URL: stub.url,
    OPENAI_API_KEY: "sk-stub",
    SPOKE_CHAT_MODEL: "gpt-4.1-mini",
    SPOKE_EMBEDDING_MODEL: "offline"
  })

/** A document of many chunks beside those of the release, with their vectors. */
const enlarge = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    insert into documents (tenant_id, id, agent_id, source_id, generation, uri, title, content_hash)
    select tenant_id, 'doc_added', agent_id, source_id, generation, 'https://example.com/added', 'Added', ''
    from documents order by id limit 1`
  yield* sql`
    insert into chunks (tenant_id, id, agent_id, source_id, generation, document_id, ordinal, content, content_hash, tsv, length, version)
    select tenant_id, 'chk_added' || n, agent_id, source_id, generation, id, n, 'added ' || n, '', ('''added' || n || '''')::tsvector, 1, 1
    from documents, generate_series(1, ${added}::int) n where id = 'doc_added'`
  // Of real vectors, each with bits of its own.
  yield* sql`
    insert into chunk_embeddings (tenant_id, chunk_id, profile, agent_id, version, embedding)
    select c.tenant_id, c.id, e.profile, c.agent_id, 1, set_byte(e.embedding, 4 * (c.ordinal % 500), c.ordinal % 256)
    from chunks c cross join lateral (
      select profile, embedding from chunk_embeddings order by chunk_id offset c.ordinal % 20 limit 1
    ) e where c.document_id = 'doc_added'`
})

/** The tables of pgvector as 0.1.0 made and filled them. */
const fillCopies = (place: StoreLocation) =>
  Effect.gen(function* () {
    const released = Path.join(folder, "released")
    Fs.mkdirSync(released, { recursive: true })
    Fs.copyFileSync(
      Path.join(migrations, "pgvector/0001_vectors.sql"),
      Path.join(released, "0001_vectors.sql")
    )
    const sql = yield* SqlClient.SqlClient
    yield* sql`create extension vector`
    yield* migrate(released, { table: "migrations_pgvector" })
    const [found] = yield* sql<{ readonly profile: string }>`select distinct profile from chunk_embeddings`
    yield* sql`select spoke_vector_table(${found?.profile ?? ""}, 512)`
    yield* sql`select spoke_fill_vectors(${found?.profile ?? ""}, 200)`
  }).pipe(
    Effect.provide(layerPostgres({ url: Redacted.make(place.DATABASE_URL ?? ""), maxConnections: 2 })),
    Effect.runPromise
  )

type Rows = ReadonlyMap<string, Uint8Array>

/** The bytes of each vector by its tenant, chunk and profile. */
const vectors = (column: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const rows = yield* sql<{ readonly key: string; readonly bytes: Uint8Array }>`
      select concat_ws(' ', tenant_id, chunk_id, profile) as key, ${sql.literal(column)} as bytes from chunk_embeddings`
    const found: Rows = new Map(rows.map(({ bytes, key }) => [key, bytes]))
    expect(found.size).toBe(rows.length)
    return found
  })

const encodings = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql<{ readonly encoding: number; readonly count: number }>`
    select encoding::int as encoding, count(*)::int as count from chunk_embeddings group by 1 order by 1`
)

/** The former vectors, rounded. */
const isConverted = (after: Rows, before: Rows) => {
  expect([...after.keys()].toSorted()).toEqual([...before.keys()].toSorted())
  for (const [key, bytes] of before) {
    expect(decodeVector(after.get(key) ?? new Uint8Array())).toEqual(roundVector(decodeVector(bytes)))
  }
}

const finds = async (spoke: Spoke) => {
  for (const { found, key, question } of releaseOf(version).clients) {
    await until(
      () => retrieve(spoke, key, question),
      (text) => text === found
    )
  }
}

/** A new database on the server that has pgvector. */
const ownDatabase = async (): Promise<string> => {
  const server = new URL(Redacted.value(await Effect.runPromise(pgvectorUrl)))
  const name = `vectors_${randomUUID().replaceAll("-", "")}`
  const admin = new Pg.Client({ connectionString: server.href })
  await admin.connect()
  await admin.query(`create database ${name}`)
  await admin.end()
  server.pathname = `/${name}`
  return server.href
}

/** Starts and kills servers, then lets one work until all vectors are of one encoding. Clients are served all the time. */
const underKills = async (place: StoreLocation, encoding: number) => {
  const state = () => withDatabase(place, encodings)
  const { clients } = releaseOf(version)
  for (let killed = 0; killed < kills; killed++) {
    const spoke = await serve(place)
    await Promise.all(clients.map(({ key, question }) => retrieve(spoke, key, question)))
    await spoke.kill()
  }
  // Nobody else may look into an embedded database that is open, so it is asked between two servers.
  const isDone = (found: Effect.Effect.Success<typeof encodings>) =>
    found.length === 1 && found[0]?.encoding === encoding
  await until(
    async () => {
      const spoke = await serve(place)
      await finds(spoke)
      if (place.DATABASE_URL !== undefined) await until(state, isDone)
      await spoke.stop()
      return state()
    },
    isDone,
    120_000
  )
}

describe("The vectors of release 0.1.0", () => {
  for (const engine of ["embedded", "server"] as const) {
    it.skipIf(engine === "server" && binaries === undefined && process.env["CI"] !== "true")(
      `are float16 on ${engine === "embedded" ? "the embedded database" : "a PostgreSQL server"}, each once, after processes were killed`,
      async () => {
        const place = await restore(version, engine, Path.join(folder, engine))
        await withDatabase(place, enlarge)
        const before = await withDatabase(place, vectors("embedding"))
        expect(before.size).toBeGreaterThan(added)
        const chosen = { ...place, ...(engine === "server" && { SPOKE_VECTOR: "in-process" }) }
        await underKills(chosen, 1)
        isConverted(await withDatabase(place, vectors("embedding")), before)
      },
      180_000
    )
  }

  it.skipIf(!hasPgvector)(
    "are in pgvector's column, each once, after processes were killed, and their copies are gone when 0.1.0 is",
    async () => {
      const place = await restore(version, "server", Path.join(folder, "pgvector"), await ownDatabase())
      await withDatabase(place, enlarge)
      await fillCopies(place)
      const before = await withDatabase(place, vectors("embedding"))
      const copies = () =>
        withDatabase(
          place,
          Effect.flatMap(
            SqlClient.SqlClient,
            (sql) => sql`select to_regclass('chunk_vectors_1') is not null as copies,
              to_regclass('vector_profiles') is not null as profiles, to_regclass('chunks_agent_id') is not null as index,
              exists (select from pg_proc where proname like 'spoke%') as functions,
              exists (select from pg_trigger where tgrelid = 'chunk_embeddings'::regclass and not tgisinternal) as triggers`
          )
        )
      // One of 0.1.0 is still running, and reads what is there.
      await withDatabase(
        place,
        Effect.flatMap(
          SqlClient.SqlClient,
          (sql) => sql`insert into instances (id, lease_until) values ('ins_old', now() + interval '1 hour')`
        )
      )
      const beside = await serve(place)
      await finds(beside)
      await beside.stop()
      expect(await withDatabase(place, vectors("embedding"))).toEqual(before)
      const there = { copies: true, profiles: true, index: true, functions: true, triggers: true }
      expect(await copies()).toEqual([there])
      await withDatabase(
        place,
        Effect.flatMap(SqlClient.SqlClient, (sql) => sql`delete from instances where id = 'ins_old'`)
      )
      await underKills(place, 2)
      isConverted(await withDatabase(place, vectors("stored_vector(chunk_embeddings)")), before)
      const spoke = await serve(place)
      const gone = { copies: false, profiles: false, index: false, functions: false, triggers: false }
      await until(copies, ([found]) => JSON.stringify(found) === JSON.stringify(gone))
      await finds(spoke)
      await spoke.stop()
    },
    240_000
  )
})
