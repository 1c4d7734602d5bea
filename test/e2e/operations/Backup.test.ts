/** `spoke export` and `spoke import`: a populated store from engine to engine, compared row by row. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { isDeepStrictEqual } from "node:util"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import * as Pg from "pg"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { layerEmbedded, layerPostgres } from "../../../src/store/Database.ts"
import * as ModelStub from "../../servers/ModelStub.ts"
import { hasPgvector, pgvectorUrl } from "../../servers/PgvectorServer.ts"
import { binaries } from "../../servers/PostgresServer.ts"
import { serverUrl } from "../../TestDatabase.ts"
import { filesBelow } from "../../Archives.ts"
import { awkwardRows, processTables } from "../AwkwardRows.ts"
import { ask, makeTenant, makeWorld, type World } from "../routes/RouteWorld.ts"
import { command, removeFolder, run, type Spoke, start, temporaryFolder, until } from "../Spoke.ts"

const skipped = binaries === undefined && process.env["CI"] !== "true"
const operatorToken = "operator"

describe.skipIf(skipped)("A store goes from engine to engine", () => {
  const folder = temporaryFolder()
  const dataDir = (name: string) => Path.join(folder, name)
  const archiveAt = (name: string) => Path.join(folder, `${name}.archive`)
  const address = new URL("postgres://127.0.0.1")
  let world: World
  let secret = ""
  const scope = Effect.runSync(Scope.make())

  const onServer = async (name: string) => {
    const admin = new Pg.Client({ connectionString: address.href })
    await admin.connect()
    await admin.query(`create database ${name}`)
    await admin.end()
    const url = new URL(address)
    url.pathname = `/${name}`
    return {
      DATABASE_URL: url.href,
      SPOKE_DATA_DIR: dataDir(name),
      SPOKE_SECRET: secret,
      SPOKE_OPERATOR_TOKEN: operatorToken
    }
  }
  const embedded = (name: string) => ({
    SPOKE_DATA_DIR: dataDir(name),
    SPOKE_OPERATOR_TOKEN: operatorToken
  })

  const inside = <A, E>(
    variables: Readonly<Record<string, string>>,
    work: Effect.Effect<A, E, SqlClient.SqlClient>
  ) => {
    const url = variables["DATABASE_URL"]
    const database =
      url === undefined
        ? layerEmbedded({ dataDir: variables["SPOKE_DATA_DIR"] ?? "" })
        : layerPostgres({ url: Redacted.make(url), maxConnections: 1 })
    return Effect.runPromise(Effect.provide(work, database))
  }

  /** Every row of every table, as text. */
  const contents = (variables: Readonly<Record<string, string>>) =>
    inside(
      variables,
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql`set time zone 'UTC'`
        const tables = yield* sql<{ name: string }>`
          select relname as name from pg_class
          where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition
            and relname not like '%migrations%' and relname not like '%vector%'
            and relname not in ('retrieval_recall', 'master_keys') order by 1`
        const all: Record<string, ReadonlyArray<string>> = {}
        for (const { name } of tables) {
          // Where the server has pgvector, it stores vectors in a column of its own.
          const row =
            name === "chunk_embeddings"
              ? sql`row(tenant_id, chunk_id, profile, agent_id, version, stored_vector(t))`
              : sql`t`
          const rows = yield* sql<{ row: string }>`select ${row}::text as row from ${sql(name)} t`
          all[name] = rows.map(({ row }) => row).toSorted()
        }
        return all
      })
    )

  const good = async (args: ReadonlyArray<string>, variables: Readonly<Record<string, string>>) => {
    const done = await run(args, variables)
    expect([done.code, done.code === 0 ? "" : done.stderr]).toEqual([0, ""])
    return done
  }

  const served = async <A>(
    variables: Readonly<Record<string, string>>,
    use: (spoke: Spoke) => Promise<A>
  ) => {
    const spoke = await start(variables["SPOKE_DATA_DIR"] ?? "", variables)
    try {
      return await use(spoke)
    } finally {
      await spoke.stop()
    }
  }

  const retrieve = (spoke: Spoke) =>
    ask(spoke, "POST", "/v1/retrieve", { key: world.key, body: { query: `secret of ${world.mark}` } })

  /** What a client sees: the old key works, searches find the same, files open. */
  const answers = async (spoke: Spoke) => {
    // The engines of search add up cosines in different orders.
    const found = JSON.parse((await retrieve(spoke)).text, (key, value) =>
      key === "score" ? Number(value.toFixed(6)) : value
    ).data
    const conversation = await ask(spoke, "GET", `/v1/conversations/${world.ids.ConversationId}`, {
      key: world.key
    })
    const original = await ask(spoke, "GET", `/v1/sources/${world.ids.SourceId}`, { key: world.key })
    const attached = await ask(
      spoke,
      "GET",
      `/api/sdk/attachments/${world.ids.attachment}?sessionId=${world.ids.SessionId}`,
      { key: world.key }
    )
    expect([conversation.status, original.status, attached.status]).toEqual([200, 200, 200])
    expect(attached.text).toContain(world.mark)
    return {
      attached: attached.text,
      found,
      conversation: JSON.parse(conversation.text).data,
      original: JSON.parse(original.text).data
    }
  }

  /** Its original is read anew, and found. */
  const synced = async (spoke: Spoke) => {
    const path = `/v1/sources/${world.ids.SourceId}`
    const queued = await ask(spoke, "POST", `${path}/sync`, { key: world.key })
    const { jobId } = JSON.parse(queued.text).data
    const job = await until(
      async () =>
        JSON.parse((await ask(spoke, "GET", `/v1/ingestion-jobs/${jobId}`, { key: world.key })).text),
      ({ data }) => !["QUEUED", "RUNNING"].includes(data.status)
    )
    expect(job.data).toMatchObject({ status: "SUCCEEDED", error: null })
    expect(JSON.parse((await retrieve(spoke)).text).data.chunks[0].text).toContain(world.mark)
  }

  const secretOf = (name: string): string =>
    JSON.parse(Fs.readFileSync(Path.join(dataDir(name), "secrets.json"), "utf8")).secret

  const originals = (name: string) =>
    Fs.readdirSync(Path.join(dataDir(name), "artifacts"), { recursive: true, encoding: "utf8" })
      .filter((entry) => /[0-9a-f]{64}$/u.test(entry))
      .toSorted()
      .map((entry) => [entry, Fs.readFileSync(Path.join(dataDir(name), "artifacts", entry), "base64")])

  const first = embedded("first")
  let before: Awaited<ReturnType<typeof contents>>
  let seen: Awaited<ReturnType<typeof answers>>

  beforeAll(async () => {
    // Where there is pgvector, imported vectors are moved to its column, and searches go there.
    address.href = Redacted.value(await Effect.runPromise(hasPgvector ? pgvectorUrl : serverUrl))
    const stub = await Effect.runPromise(Scope.extend(ModelStub.make, scope))
    const model = {
      OPENAI_BASE_URL: stub.url,
      OPENAI_API_KEY: "sk-stub",
      SPOKE_CHAT_MODEL: "gpt-4.1-mini",
      SPOKE_EMBEDDING_MODEL: "offline"
    }
    await served({ ...first, ...model }, async (spoke) => {
      world = await makeWorld(spoke, await makeTenant(spoke, "moved"), "walnut")
      await until(
        () => retrieve(spoke),
        ({ text }) => JSON.parse(text).data.chunks?.length > 0
      )
      // With all vectors: a search is scored differently while some are missing.
      const embedding = `/v1/sources/${world.ids.SourceId}/embedding`
      await until(
        async () => JSON.parse((await ask(spoke, "GET", embedding, { key: world.key })).text),
        ({ data }) => data.chunks > 0 && data.embedded === data.chunks,
        120_000
      )
      seen = await answers(spoke)
    })
    secret = secretOf("first")
    await inside(
      first,
      Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe(awkwardRows))
    )
    before = await contents(first)
  }, 240_000)

  afterAll(async () => {
    await Effect.runPromise(Scope.close(scope, Exit.void))
    removeFolder(folder)
  })

  it("from the embedded database to PostgreSQL, there again, and back, with every row and every original", async () => {
    const empty = Object.entries(before).filter(([, rows]) => rows.length === 0)
    expect(empty.map(([name]) => name).filter((name) => !processTables.includes(name))).toEqual([])
    expect(Object.keys(before).length).toBeGreaterThan(35)
    const [second, third] = [await onServer("second"), await onServer("third")]
    const fourth = { ...embedded("fourth"), SPOKE_SECRET: secret }
    const way = [first, second, third, fourth] as const
    for (const [index, from] of way.slice(0, -1).entries()) {
      const to = way[index + 1] ?? from
      const archive = archiveAt(`way-${index}`)
      const { stdout } = await good(["export", archive], from)
      expect(stdout).toMatch(/^\d+ rows and \d+ originals exported/u)
      const files = filesBelow(archive).map(({ name }) => name)
      expect(files).not.toContain("unfinished.jsonl")
      for (const name of files) expect(Fs.statSync(Path.join(archive, name)).mode & 0o777).toBe(0o600)
      expect(Fs.statSync(archive).mode & 0o777).toBe(0o700)
      await good(["import", archive], to)
      expect(await contents(to)).toEqual(before)
      expect(originals(Path.basename(to.SPOKE_DATA_DIR))).toEqual(originals("first"))
    }
    for (const to of [second, fourth]) {
      // Until its vectors are loaded, a search answers by words alone.
      const same = async (spoke: Spoke) =>
        until(
          () => answers(spoke),
          (found) => isDeepStrictEqual(found, seen)
        )
      expect(await served(to, same)).toEqual(seen)
      await served(to, synced)
    }
    if (hasPgvector) {
      const indexed = Effect.flatMap(
        SqlClient.SqlClient,
        (sql) => sql`select distinct encoding::int as encoding from chunk_embeddings`
      )
      expect(await inside(second, indexed)).toEqual([{ encoding: 2 }])
    }
    const counted = Effect.flatMap(
      SqlClient.SqlClient,
      (sql) => sql<{ on: boolean }>`
        select nextval(pg_get_serial_sequence('queue_jobs', 'seq')) > max(seq) as on from queue_jobs`
    )
    expect(await inside(third, counted)).toEqual([{ on: true }])
  }, 170_000)

  /** Imports, and ends the command (-9) as soon as `told` is in what it prints: in the middle of the rows. */
  const importKilled = async (archive: string, variables: Readonly<Record<string, string>>, told: string) => {
    const child = spawn(process.execPath, [command, "import", archive], {
      env: { ...process.env, ...variables },
      stdio: ["ignore", "ignore", "pipe"]
    })
    let output = ""
    child.stderr.on("data", (chunk: Buffer) => {
      output += chunk.toString()
      if (output.includes(told)) child.kill("SIGKILL")
    })
    await once(child, "close")
    return child.signalCode
  }

  it("again after a command that was killed (-9) on its way: it has left nothing, and nothing is doubled", async () => {
    const archive = archiveAt("killed")
    await good(["export", archive], first)
    const server = await onServer("killed")
    await good(["migrate"], server)
    // Keeps the import from going past the table.
    const admin = new Pg.Client({ connectionString: server.DATABASE_URL })
    await admin.connect()
    await admin.query("begin; lock table users in share mode")
    expect(await importKilled(archive, server, "tenant_usage")).toBe("SIGKILL")
    await admin.query("rollback")
    await admin.end()
    const embeddedStore = { ...embedded("killed-embedded"), SPOKE_SECRET: secret }
    expect(await importKilled(archive, embeddedStore, "agents")).toBe("SIGKILL")
    for (const to of [server, embeddedStore]) {
      await good(["import", archive], to)
      expect(await contents(to)).toEqual(before)
      expect(originals(Path.basename(to.SPOKE_DATA_DIR))).toEqual(originals("first"))
    }
  }, 120_000)

  it("with its generated secret only where that was asked for", async () => {
    const to = embedded("given")
    await good(["export", archiveAt("without")], first)
    const refused = await run(["import", archiveAt("without")], to)
    expect(refused.code).toBe(1)
    expect(refused.stderr).toContain("another master secret")
    await good(["export", "--with-secret", archiveAt("with")], first)
    await good(["import", archiveAt("with")], to)
    expect(secretOf("given")).toBe(secret)
    expect(Fs.statSync(Path.join(dataDir("given"), "secrets.json")).mode & 0o777).toBe(0o600)
    expect(await contents(to)).toEqual(before)
  }, 120_000)

  it("not where there is something already, under another secret, or from a file that is not whole: nothing is changed", async () => {
    const archive = archiveAt("refusals")
    await good(["export", archive], first)
    const again = await run(["export", archive], first)
    expect(again.stderr).toContain("already exists")
    const full = await run(["import", archive], first)
    expect(full.code).toBe(1)
    expect(full.stderr).toContain("The database is not empty")
    expect(await contents(first)).toEqual(before)
    const empty = await onServer("refusals")
    const other = await run(["import", archive], {
      ...empty,
      SPOKE_SECRET: "thirty-two bytes that nobody has used"
    })
    expect(other.code).toBe(1)
    expect(other.stderr).toContain("another master secret")
    for (const name of ["manifest.json", "originals.txt.gz", "rows/messages-000001.jsonl.gz"]) {
      const place = Path.join(archive, name)
      const bytes = Fs.readFileSync(place)
      for (const part of [
        bytes.subarray(0, bytes.length * 0.7),
        bytes.subarray(0, bytes.length - 9),
        Buffer.from(bytes.map((byte, index) => (index === bytes.length >> 1 ? byte ^ 1 : byte)))
      ]) {
        Fs.writeFileSync(place, part)
        const { code, stderr } = await run(["import", archive], empty)
        expect([name, code]).toEqual([name, 1])
        expect(stderr).toContain("not a whole archive")
      }
      Fs.writeFileSync(place, bytes)
    }
    await good(["import", archive], empty)
    expect(await contents(empty)).toEqual(before)
    // As if an older version served it: its tables are not migrated by mistake.
    const newest = Effect.flatMap(
      SqlClient.SqlClient,
      (sql) => sql`select max(migration_id)::int as newest from migrations`
    )
    await inside(
      empty,
      Effect.flatMap(
        SqlClient.SqlClient,
        (sql) => sql`delete from migrations where migration_id = (select max(migration_id) from migrations)`
      )
    )
    const older = await inside(empty, newest)
    const upgraded = await run(["import", archive], empty)
    expect([upgraded.code, upgraded.stderr]).toEqual([
      1,
      "The database is not empty (tenants): import into a new one. Nothing was changed.\n"
    ])
    expect(await inside(empty, newest)).toEqual(older)
  }, 120_000)
})
