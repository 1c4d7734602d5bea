/** Databases of every released version under today's: what they hold is there, and turns go on while they are migrated. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import * as Fs from "node:fs"
import * as Path from "node:path"
import * as Pg from "pg"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { layerPostgres, migrate } from "../../../src/store/Database.ts"
import * as ModelStub from "../../servers/ModelStub.ts"
import { binaries } from "../../servers/PostgresServer.ts"
import { migrations } from "../../TestDatabase.ts"
import { processTables } from "../AwkwardRows.ts"
import { ask } from "../routes/RouteWorld.ts"
import { removeFolder, run, type Spoke, start, temporaryFolder, until } from "../Spoke.ts"
import { makeRelease } from "./MakeRelease.ts"
import {
  contents,
  withDatabase,
  readAgain,
  migrationsOf,
  type StoreLocation,
  type Release,
  releaseOf,
  releases,
  restore,
  retrieve,
  versions
} from "./Releases.ts"

const skipped = binaries === undefined && process.env["CI"] !== "true"
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

const served = async <A>(place: StoreLocation, use: (spoke: Spoke) => Promise<A>): Promise<A> => {
  const spoke = await start(place.SPOKE_DATA_DIR, {
    ...place,
    OPENAI_BASE_URL: stub.url,
    OPENAI_API_KEY: "sk-stub",
    SPOKE_CHAT_MODEL: "gpt-4.1-mini",
    SPOKE_EMBEDDING_MODEL: "offline"
  })
  try {
    return await use(spoke)
  } finally {
    await spoke.stop()
  }
}

const turn = (spoke: Spoke, key: string, body: object) => ask(spoke, "POST", "/v1/chat", { key, body })

/** Clients of before see what they saw, find what they found, and go on with their conversations. */
const serves = async (spoke: Spoke, { clients }: Release) => {
  for (const client of clients) {
    expect(await readAgain(spoke, client)).toMatchObject(client.seen)
    // Until vectors are loaded, a search answers by words alone.
    await until(
      () => retrieve(spoke, client.key, client.question),
      (text) => text === client.found
    )
    const { status, text } = await turn(spoke, client.key, {
      message: client.question,
      conversationId: client.conversationId
    })
    expect([status, status === 200 ? "" : text]).toEqual([200, ""])
    expect(JSON.parse(text).data.conversationId).toBe(client.conversationId)
  }
}

/** Today's migrations, and what later ones may be: a column, an index beside writers, a checked constraint, a backfill. */
const later = (): string => {
  const all = Path.join(folder, "later")
  Fs.cpSync(migrations, all, { recursive: true })
  const count = Fs.readdirSync(all).filter((name) => name.endsWith(".sql")).length
  const add = (offset: number, name: string, text: string) =>
    Fs.writeFileSync(Path.join(all, `${String(count + offset).padStart(4, "0")}_${name}.sql`), text)
  add(
    1,
    "trial_column",
    `alter table conversations add column trial text;
    alter table agents add column trial int not null default 0;
    alter table messages add constraint messages_trial check (length(content) >= 0) not valid;`
  )
  add(
    2,
    "trial_index",
    `-- spoke: no transaction
create index concurrently messages_trial on messages (tenant_id, created_at);
alter table messages validate constraint messages_trial;`
  )
  add(3, "trial_backfill", "update conversations set trial = channel; update agents set trial = version;")
  return all
}

/** The trial is applied whole. */
const applied = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  return yield* sql`
    select (select indisvalid from pg_index where indexrelid = to_regclass('messages_trial')) as index,
      (select convalidated from pg_constraint where conname = 'messages_trial') as constrained,
      not exists (select from agents where trial <> version) as filled`
})

describe("The database of a released version", () => {
  let trial = ""
  beforeAll(() => {
    trial = later()
  })

  it("is kept for every migration that is frozen, and was made by it as it is", () => {
    const frozen: Readonly<Record<string, string>> = JSON.parse(
      Fs.readFileSync(Path.join(migrations, "frozen.json"), "utf8")
    )
    const ours = Object.entries(frozen).filter(([file]) => !file.includes("/"))
    const made = Object.fromEntries(versions.flatMap(migrationsOf))
    expect(made).toEqual(Object.fromEntries(ours))
    expect(ours.length).toBeGreaterThan(0)
  })

  for (const version of versions) {
    for (const engine of ["embedded", "server"] as const) {
      const title = `${version} (${engine === "embedded" ? "embedded PostgreSQL" : "PostgreSQL server"})`

      it.skipIf(engine === "server" && skipped)(
        `${title} is taken over with every row, and serves its clients`,
        async () => {
          const place = await restore(version, engine, Path.join(folder, `${version}-${engine}`))
          const before = await withDatabase(place, contents())
          const empty = Object.entries(before.rows).filter(([, rows]) => rows.length === 0)
          expect(empty.map(([name]) => name).filter((name) => !processTables.includes(name))).toEqual([])
          await withDatabase(place, migrate(migrations))
          expect((await withDatabase(place, contents(before))).rows).toEqual(before.rows)
          await served(place, (spoke) => serves(spoke, releaseOf(version)))
        },
        120_000
      )

      it.skipIf(engine === "server" && skipped)(
        `${title} keeps every row under later migrations`,
        async () => {
          const place = await restore(version, engine, Path.join(folder, `later-${version}-${engine}`))
          const before = await withDatabase(place, contents())
          await withDatabase(place, migrate(trial))
          expect((await withDatabase(place, contents(before))).rows).toEqual(before.rows)
          expect(await withDatabase(place, applied)).toEqual([
            { index: true, constrained: true, filled: true }
          ])
        },
        120_000
      )
    }

    it.skipIf(skipped)(
      `${version} is migrated while a report reads and turns run: none of them is refused`,
      async () => {
        const release = releaseOf(version)
        const place = await restore(version, "server", Path.join(folder, `live-${version}`))
        const url = place.DATABASE_URL ?? ""
        const report = new Pg.Client({ connectionString: url })
        await report.connect()
        await served(place, async (spoke) => {
          const refused: Array<string> = []
          let settled = 0
          let over = false
          const talk = async (index: number) => {
            const client = release.clients[index % release.clients.length]
            while (!over && client !== undefined) {
              const { status, text } = await turn(spoke, client.key, {
                message: client.question,
                externalEndUserId: `live-${index}`
              })
              if (status === 200) settled += 1
              else refused.push(`${status} ${text}`)
            }
          }
          const talks = [0, 1, 2].map(talk)
          /** Resolves when this many turns more have ended, refused ones too. */
          const more = async (count: number) => {
            const wanted = settled + refused.length + count
            await until(
              () => Promise.resolve(settled + refused.length),
              (ended) => ended >= wanted
            )
          }
          await more(3)
          await report.query("begin; select id from conversations limit 1; select id from messages limit 1")
          let migrated = false
          const upgrade = Effect.runPromise(
            Effect.provide(migrate(trial), layerPostgres({ url: Redacted.make(url), maxConnections: 2 }))
          ).then(() => {
            migrated = true
          })
          const attempt = () =>
            until(
              () =>
                report.query<{ readonly waits: boolean }>(`
                  select exists (select from pg_locks where not granted and mode = 'AccessExclusiveLock') as waits`),
              ({ rows }) => rows[0]?.waits === true
            )
          // It gives way to the turns that have come behind it, and tries again.
          await attempt()
          await more(3)
          await attempt()
          await more(3)
          expect(migrated).toBe(false)
          await report.query("rollback")
          await upgrade
          await more(3)
          over = true
          await Promise.all(talks)
          expect(refused).toEqual([])
          await serves(spoke, release)
        }).finally(() => report.end())
        expect(await withDatabase(place, applied)).toEqual([
          expect.objectContaining({ index: true, constrained: true })
        ])
      },
      180_000
    )
  }
})

describe.skipIf(skipped)("A release's fixture", () => {
  it("is made from a filled database, and once", async () => {
    const { stdout } = await run(["--version"], {})
    const version = /\d+\.\d+\.\d+\S*/u.exec(stdout)?.[0] ?? ""
    const released = process.env["SPOKE_RELEASE_FIXTURE"] === "make"
    const into = released ? Path.join(releases, version) : Path.join(folder, "made")
    if (released) expect(Fs.existsSync(into)).toBe(false)
    await makeRelease(stub, Path.join(folder, "making"), into)
    expect(Fs.readdirSync(into).toSorted()).toEqual(["database.sql.gz", "world.json"])
    expect(Fs.statSync(Path.join(into, "database.sql.gz")).size).toBeLessThan(1_048_576)
  }, 480_000)
})
