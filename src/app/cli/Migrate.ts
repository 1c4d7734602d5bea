/**
 * `spoke migrate`: migrates the database to the newest version, including the pgvector schema where it is used, and
 * exits.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as fs from "node:fs"
import * as path from "node:path"
import { maxComparedVectors } from "../../domain/knowledge/StoredVector.ts"
import { VectorCopiesStore } from "../../store/knowledge/VectorCopies.ts"
import { VectorIndexStore } from "../../store/knowledge/VectorIndexes.ts"
import {
  isolateTenants,
  migrate,
  type PlannedFile,
  type PlannedLock,
  planMigrations,
  vectorVersions
} from "../../store/Database.ts"
import { fromEnvironment } from "../config/Config.ts"
import type { Settings } from "../config/Config.ts"
import { database } from "../Live.ts"
import * as Package from "../Package.ts"
import { chooseVector } from "../Vector.ts"
import * as Arguments from "./Arguments.ts"
import { commandFailed } from "./Connection.ts"
import * as Output from "./Output.ts"

interface Flags {
  readonly plan?: true | undefined
  readonly json?: true | undefined
}

/** Changes of vector tables that only the tables' owner may make. Workers make them, too, if they are the owner. */
const updateVectorTables = Effect.gen(function* () {
  yield* Effect.flatMap(VectorCopiesStore, ({ remove }) => remove)
  const { tend } = yield* VectorIndexStore
  yield* Effect.repeat(tend(maxComparedVectors), { until: (change) => change === null })
}).pipe(Effect.provide(Layer.merge(VectorCopiesStore.Default, VectorIndexStore.Default)))

/** A pooler at DATABASE_URL does not allow statements outside a transaction, so the direct address is used if it is set. */
const pastPooler = (settings: Settings): Settings => {
  const directUrl = settings.database?.directUrl ?? null
  return settings.database === null || directUrl === null
    ? settings
    : { ...settings, database: { ...settings.database, url: directUrl, directUrl: null } }
}

const apply = (settings: Settings) =>
  Effect.gen(function* () {
    const { applied, isolated, vector } = yield* Effect.all({
      applied: migrate(Package.migrations),
      isolated: settings.tenantRole === null ? Effect.succeed(null) : isolateTenants(settings.tenantRole),
      vector: Effect.tap(chooseVector(settings), ({ backend }) =>
        backend === "pgvector" ? updateVectorTables : Effect.void
      )
    }).pipe(Effect.provide(database(settings)))
    const names = applied.map(([id, name]) => `${String(id).padStart(4, "0")} ${name}`)
    return { applied: names, search: vector.backend, why: vector.why, isolated }
  })

/** Pgvector's migrations run when the extension exists or can be created. */
const vectorPlan = (settings: Settings) =>
  Effect.gen(function* () {
    if (settings.database === null || settings.vector === "in-process") return []
    const { obstacle } = yield* vectorVersions
    if (obstacle !== null) return []
    const files = yield* planMigrations(path.join(Package.migrations, "pgvector"), "migrations_pgvector")
    return files.map((each): PlannedFile => ({ ...each, file: `pgvector/${each.file}` }))
  })

/** A missing embedded database has no pending migrations: the first start creates it with the newest schema. */
const planAll = (settings: Settings) =>
  settings.database === null && !fs.existsSync(path.join(settings.dataDir, "database"))
    ? Effect.succeed<ReadonlyArray<PlannedFile>>([])
    : Effect.all([planMigrations(Package.migrations), vectorPlan(settings)]).pipe(
        Effect.map((files) => files.flat()),
        Effect.provide(database(settings))
      )

const workTexts = {
  catalogue: "no row is touched",
  scan: "reads the whole table",
  index: "builds an index of the whole table",
  rewrite: "rewrites the whole table",
  added: "adds rows",
  changed: "changes or removes rows; writers of the same rows wait",
  unknown: "unknown work"
} as const

const lockLine = ({ blocks, lock, rows, seconds, table, work }: PlannedLock) => {
  const size = rows === null ? "rows not counted yet" : `about ${Math.round(rows)} rows`
  const time = seconds === null ? "time unknown" : seconds < 1 ? "at once" : `roughly ${seconds} s`
  const lockText = lock === null ? "lock unknown" : `${lock} lock (blocks ${blocks})`
  return `    ${table ?? ""}, ${size}: ${lockText}, ${workTexts[work]}, ${time}`
}

const fileLines = ({ file, statements, transaction }: PlannedFile) =>
  [
    transaction ? file : `${file}, outside a transaction`,
    ...statements
      .filter(({ known, locks }) => !known || locks.length > 0)
      .flatMap(({ known, locks, statement }) => [
        `  ${known ? "" : "UNKNOWN: "}${statement}`,
        ...locks.map(lockLine)
      ])
  ].join("\n")

const show = (settings: Settings, json: boolean) =>
  Effect.gen(function* () {
    const files = yield* planAll(settings)
    if (json) return yield* Output.asJson({ files })
    if (files.length === 0) return yield* Output.line("The database is up to date.")
    yield* Output.line(files.map(fileLines).join("\n"))
    yield* Output.note(
      "Statements on tables that these files create are left out. A lock is held until the transaction ends. One transaction contains all files up to the next one outside a transaction or with its own."
    )
  })

const runMigrate = ({ json, plan }: Flags) =>
  Effect.gen(function* () {
    const settings = pastPooler(yield* fromEnvironment())
    if (plan === true) return yield* show(settings, json === true)
    const done = yield* apply(settings)
    if (json === true) return yield* Output.asJson(done)
    const { applied, isolated, search, why } = done
    yield* Output.line(
      applied.length === 0 ? "The database is up to date." : `Applied:\n${applied.join("\n")}`
    )
    if (isolated !== null && isolated.length > 0)
      yield* Output.line(`Row level security was turned on for ${isolated.length} tables.`)
    yield* Output.line(`Chunks are searched by ${search}: ${why}.`)
  }).pipe(Effect.mapError(commandFailed))

export const migrateCommand = (run: Arguments.Run) =>
  Arguments.command(
    "migrate",
    "Apply the migrations to the database and exit.",
    "DATABASE_URL=postgres://spoke@db/spoke spoke migrate",
    "DATABASE_URL=postgres://spoke@db/spoke spoke migrate --plan"
  )
    .option("--plan", "show the pending files and their locks, and change nothing")
    .addOption(Arguments.json)
    .action((flags) => run(runMigrate(flags)))
