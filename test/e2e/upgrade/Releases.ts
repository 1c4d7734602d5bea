/**
 * The databases of released versions: `test/fixtures/releases/VERSION` holds a dump of one that was filled by that version
 * (`database.sql.gz`), and the answers that its clients got (`world.json`). scripts/release-fixture.mjs makes them. They are
 * never changed afterwards.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { gunzipSync } from "node:zlib"
import * as Pg from "pg"
import { layerEmbedded, layerPostgres } from "../../../src/store/Database.ts"
import { freshDatabase } from "../Fleet.ts"
import { ask } from "../routes/RouteWorld.ts"
import { root, type Spoke } from "../Spoke.ts"

export const releases = Path.join(root, "test/fixtures/releases")

export const versions: ReadonlyArray<string> = Fs.readdirSync(releases)

/** The answers that a client gets: the `data` of the body, by path. */
export type Seen = Readonly<Record<string, unknown>>

export interface Client {
  readonly key: string
  readonly conversationId: string
  /** A question that its sources answer, and the text of the passage that is found first. */
  readonly question: string
  readonly found: string
  readonly seen: Seen
}

export interface Release {
  readonly secret: string
  readonly operatorToken: string
  readonly clients: ReadonlyArray<Client>
  /** The originals, base64 by their path in the folder `artifacts`. */
  readonly originals: Readonly<Record<string, string>>
}

/** The variables with which a server uses a store. */
export type StoreLocation = Readonly<
  Record<"SPOKE_DATA_DIR" | "SPOKE_SECRET" | "SPOKE_OPERATOR_TOKEN", string>
> & {
  readonly DATABASE_URL?: string
}

/** The dump, without commands of psql. */
const statements = (version: string): string =>
  gunzipSync(Fs.readFileSync(Path.join(releases, version, "database.sql.gz")))
    .toString("utf8")
    .replaceAll(/^\\(?:un)?restrict .*$/gmu, "")

/** The migrations that the version had applied, each with its checksum. */
export const migrationsOf = (version: string): ReadonlyArray<readonly [file: string, checksum: string]> => {
  const rows = statements(version).matchAll(/^\t\((\d+), '[^']+', '(\w+)', '([0-9a-f]{64})'\)/gmu)
  return [...rows].map(([, id = "", name = "", checksum = ""]) => [
    `${id.padStart(4, "0")}_${name}.sql`,
    checksum
  ])
}

export const releaseOf = (version: string): Release =>
  JSON.parse(Fs.readFileSync(Path.join(releases, version, "world.json"), "utf8"))

/** Runs `work` on the database of a store that no server has open. */
export const withDatabase = <A, E>(
  { DATABASE_URL: url, SPOKE_DATA_DIR: dataDir }: StoreLocation,
  work: Effect.Effect<A, E, SqlClient.SqlClient>
) =>
  Effect.runPromise(
    Effect.provide(
      work,
      url === undefined
        ? layerEmbedded({ dataDir })
        : layerPostgres({ url: Redacted.make(url), maxConnections: 2 })
    )
  )

/** A new store with the data of the version. On a server it uses the empty database at `address`, or a new one. */
export const restore = async (
  version: string,
  engine: "embedded" | "server",
  dataDir: string,
  address?: string
): Promise<StoreLocation> => {
  const { operatorToken, originals, secret } = releaseOf(version)
  for (const [name, bytes] of Object.entries(originals)) {
    const file = Path.join(dataDir, "artifacts", name)
    Fs.mkdirSync(Path.dirname(file), { recursive: true, mode: 0o700 })
    Fs.writeFileSync(file, Buffer.from(bytes, "base64"), { mode: 0o600 })
  }
  const place = { SPOKE_DATA_DIR: dataDir, SPOKE_SECRET: secret, SPOKE_OPERATOR_TOKEN: operatorToken }
  const text = statements(version)
  if (engine === "embedded") {
    await withDatabase(
      place,
      Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe(text))
    )
    return place
  }
  const url = address ?? (await freshDatabase())
  const client = new Pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(text)
  } finally {
    await client.end()
  }
  return { ...place, DATABASE_URL: url }
}

export interface Contents {
  readonly columns: Readonly<Record<string, ReadonlyArray<string>>>
  readonly rows: Readonly<Record<string, ReadonlyArray<string>>>
}

/** Members that later migrations add to JSON documents, by table and column. They are not compared. */
const addedMembers: Readonly<Record<string, Readonly<Record<string, ReadonlyArray<string>>>>> = {
  agent_versions: { settings: ["streamReasoning", "length", "tone"] }
}

/** Every row of every table, as text. With `before`, only its tables and columns. */
export const contents = (before?: Contents) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const found = yield* sql<{ readonly table: string; readonly columns: ReadonlyArray<string> }>`
      select c.relname as table, array_agg(a.attname::text order by a.attname) as columns
      from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition and c.relname not like 'migrations%'
      group by c.oid, c.relname order by c.relname`
    const columns = before?.columns ?? Object.fromEntries(found.map(({ columns, table }) => [table, columns]))
    const rows: Record<string, ReadonlyArray<string>> = {}
    for (const [table, names] of Object.entries(columns)) {
      const values = sql.csv(
        names.map((name) => {
          const members = addedMembers[table]?.[name]
          return members === undefined
            ? sql`${sql(name)}::text`
            : sql`(${sql(name)} - ${[...members]}::text[])::text`
        })
      )
      const read = yield* sql<{
        readonly line: string
      }>`select json_build_array(${values})::text as line from ${sql(table)}`
      rows[table] = read.map(({ line }) => line).toSorted()
    }
    const all: Contents = { columns, rows }
    return all
  })

const paths = (conversationId: string, runId: string, sourceId: string) => [
  `/v1/conversations/${conversationId}`,
  `/v1/conversations/${conversationId}/messages`,
  `/v1/agent-runs/${runId}`,
  `/v1/sources/${sourceId}`
]

const answered = async (spoke: Spoke, key: string, path: string): Promise<unknown> => {
  const { status, text } = await ask(spoke, "GET", path, { key })
  if (status !== 200) throw new Error(`${path}: ${status} ${text}`)
  return JSON.parse(text).data
}

/** What a client reads: a conversation, the trace of a turn and a source. */
export const readAsClient = async (
  spoke: Spoke,
  key: string,
  ids: Readonly<Record<"ConversationId" | "RunId" | "SourceId", string>>
): Promise<Seen> => {
  const seen: Record<string, unknown> = {}
  for (const path of paths(ids.ConversationId, ids.RunId, ids.SourceId))
    seen[path] = await answered(spoke, key, path)
  return seen
}

/** Reads the same paths again as {@link readAsClient}. */
export const readAgain = async (spoke: Spoke, { key, seen }: Client): Promise<Seen> => {
  const again: Record<string, unknown> = {}
  for (const path of Object.keys(seen)) again[path] = await answered(spoke, key, path)
  return again
}

/** The text of the first passage that is found; empty if none is. */
export const retrieve = async (spoke: Spoke, key: string, question: string): Promise<string> => {
  const { status, text } = await ask(spoke, "POST", "/v1/retrieve", { key, body: { query: question } })
  if (status !== 200) throw new Error(`${status} ${text}`)
  return JSON.parse(text).data.chunks[0]?.text ?? ""
}
