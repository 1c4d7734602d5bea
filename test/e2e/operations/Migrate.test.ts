/** `spoke migrate` on an empty PostgreSQL database, and a server that starts on it. */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Pg from "pg"
import { beforeAll, describe, expect, it } from "vitest"
import { startPgBouncer, binary as pooler } from "../../servers/PgBouncer.ts"
import { binaries } from "../../servers/PostgresServer.ts"
import { serverUrl } from "../../TestDatabase.ts"
import { removeFolder, run, start, temporaryFolder, until } from "../Spoke.ts"

const skipped = binaries === undefined && process.env["CI"] !== "true"

describe.skipIf(skipped)("The command spoke migrate", () => {
  const variables = { DATABASE_URL: "", SPOKE_SECRET: "a secret of these tests, thirty-two bytes" }
  let offered = false

  const connected = async <A>(use: (client: Pg.Client) => Promise<A>): Promise<A> => {
    const client = new Pg.Client({ connectionString: variables.DATABASE_URL })
    await client.connect()
    try {
      return await use(client)
    } finally {
      await client.end()
    }
  }

  beforeAll(async () => {
    const server = new URL(Redacted.value(await Effect.runPromise(serverUrl)))
    variables.DATABASE_URL = server.href
    await connected((client) => client.query("create database migrated"))
    server.pathname = "/migrated"
    variables.DATABASE_URL = server.href
    const { rows } = await connected((client) =>
      client.query("select 1 from pg_available_extensions where name = 'vector'")
    )
    offered = rows.length > 0
  }, 60_000)

  it("lists pending migrations and their locks, and changes nothing, with --plan", async () => {
    const told = await run(["migrate", "--plan"], variables)
    expect(told.stderr).toContain("A lock is held until")
    expect(told.code).toBe(0)
    expect(told.stdout).toContain("0001_accounts.sql")
    const { stdout } = await run(["migrate", "--plan", "--json"], variables)
    expect(JSON.parse(stdout)).toMatchObject({
      files: expect.arrayContaining([
        expect.objectContaining({ file: "0001_accounts.sql", transaction: true })
      ])
    })
    const { rows } = await connected((client) =>
      client.query("select to_regclass('migrations') is null as none")
    )
    expect(rows).toEqual([{ none: true }])
  }, 60_000)

  it("applies pending migrations, those of pgvector where the server has it, and reports the search backend", async () => {
    const first = await run(["migrate"], variables)
    expect(first.stderr).toBe("")
    expect(first.code).toBe(0)
    expect(first.stdout).toContain("Applied:\n0001 ")
    expect(first.stdout).toContain(`Chunks are searched by ${offered ? "pgvector" : "in-process"}: `)
    const { rows } = await connected((client) =>
      client.query(
        `select exists (
          select from pg_attribute where attrelid = 'chunk_embeddings'::regclass and attname = 'vector'
        ) as made`
      )
    )
    expect(rows).toEqual([{ made: offered }])
    expect((await run(["migrate"], variables)).stdout).toContain("The database is up to date.")
  }, 60_000)

  it("fails with instructions when pgvector is required and missing", async () => {
    if (offered) return
    const { code, stderr, stdout } = await run(["migrate"], { ...variables, SPOKE_VECTOR: "pgvector" })
    expect(code).toBe(1)
    expect(stdout + stderr).toContain("install its package")
  }, 60_000)

  it.skipIf(pooler === undefined && process.env["CI"] !== "true")(
    "applies at SPOKE_DATABASE_DIRECT_URL what a pooler at DATABASE_URL does not allow",
    async () => {
      await connected(async (client) => {
        await client.query("set session_replication_role = replica")
        await client.query(
          `insert into documents (tenant_id, id, agent_id, source_id, generation, uri, title, content_hash)
          values ('ten_1', 'doc_1', 'agt_1', 'src_1', 1, 'https://example.com', 'Hours', '')`
        )
        await client.query("delete from migrations where name = 'index_format'")
      })
      const bouncer = await startPgBouncer(variables.DATABASE_URL)
      try {
        const pooled = { ...variables, DATABASE_URL: bouncer.url }
        const refused = await run(["migrate"], pooled)
        expect(refused.stderr).toContain("SPOKE_DATABASE_DIRECT_URL")
        expect(refused.code).toBe(1)
        const done = await run(["migrate"], { ...pooled, SPOKE_DATABASE_DIRECT_URL: variables.DATABASE_URL })
        expect(done.stderr).toBe("")
        expect(done.stdout).toContain("Applied:\n0033 index_format")
      } finally {
        await bouncer.stop()
        await connected((client) => client.query("delete from documents"))
      }
    },
    60_000
  )

  it("leaves a database whose tables a server analyzes when they get their first rows", async () => {
    const folder = temporaryFolder()
    const spoke = await start(folder, { ...variables, SPOKE_OPERATOR_TOKEN: "operator" })
    try {
      const rows = await connected(async (client) => {
        await client.query("create table first_rows (filler text) with (autovacuum_enabled = false)")
        await client.query("insert into first_rows select repeat('x', 200) from generate_series(1, 2000)")
        const estimated = () =>
          client
            .query("select reltuples::int as rows from pg_class where oid = 'first_rows'::regclass")
            .then(({ rows: [found] }) => found.rows)
        return until(estimated, (found) => found > 0)
      })
      expect(rows).toBe(2_000)
    } finally {
      await spoke.stop()
      removeFolder(folder)
    }
  }, 120_000)
})
