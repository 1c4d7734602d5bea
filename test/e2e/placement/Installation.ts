/** Installations for these suites: the database of each, its rows, and the running server. */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import * as Path from "node:path"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { forEveryTenant } from "../../../src/concurrency/TenantSession.ts"
import * as RowTexts from "../../../src/store/archive/RowTexts.ts"
import * as Tables from "../../../src/store/archive/Tables.ts"
import { layerEmbedded, layerPostgres } from "../../../src/store/Database.ts"
import { freshDatabase } from "../Fleet.ts"
import { command, environment, run, type Spoke, start } from "../Spoke.ts"

export type Variables = Readonly<Record<string, string>>

const operatorToken = "operator"

/** An installation with the embedded database. */
export const embedded = (folder: string, name: string, more: Variables = {}): Variables => ({
  SPOKE_DATA_DIR: Path.join(folder, name),
  SPOKE_OPERATOR_TOKEN: operatorToken,
  ...more
})

/** An installation on the PostgreSQL server, with its own master secret. */
export const onServer = async (folder: string, name: string, more: Variables = {}): Promise<Variables> => ({
  ...embedded(folder, name),
  SPOKE_SECRET: `the master secret of ${name}, long enough`,
  DATABASE_URL: await freshDatabase(),
  ...more
})

/** Runs `work` on the database. No server may run on an embedded one. */
export const withDatabase = <A, E>(variables: Variables, work: Effect.Effect<A, E, SqlClient.SqlClient>) => {
  const url = variables["DATABASE_URL"]
  const database =
    url === undefined
      ? layerEmbedded({ dataDir: variables["SPOKE_DATA_DIR"] ?? "" })
      : layerPostgres({ url: Redacted.make(url), maxConnections: 2 })
  return Effect.runPromise(Effect.provide(forEveryTenant("archive")(work), database))
}

export const query = (variables: Variables, text: string) =>
  withDatabase(
    variables,
    Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe<Readonly<Record<string, unknown>>>(text))
  )

export type Contents = Readonly<Record<string, ReadonlyArray<string>>>

/** Every row of the tenant as text, by table. Sealed values are left out, because they differ at each installation. */
export const rowsOf = (variables: Variables, tenantId: string): Promise<Contents> =>
  withDatabase(
    variables,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const all: Record<string, ReadonlyArray<string>> = {}
      for (const table of yield* Tables.ofTenants) {
        const { owner, table: name } = table
        const rows = yield* sql.withTransaction(
          Effect.zipRight(
            sql`set local time zone 'UTC'`,
            sql<{ readonly row: string }>`
              select ${RowTexts.lineOf(sql, Tables.withoutSealed(table))} as row from ${sql(name)} t where ${sql(owner ?? "tenant_id")} = ${tenantId}`
          )
        )
        all[name] = rows
          .map(({ row }) => row)
          // Audit entries of the commands themselves.
          .filter((row) => !/"operator", "operator", "tenant\./u.test(row))
          .toSorted()
      }
      return all
    })
  )

/** Leaves out tables that a running server updates by itself: times of last use, and the amount of storage. */
export const withoutUsageRows = (contents: Contents): Contents => {
  const { api_keys: _, tenant_storage: __, user_sessions: ___, widget_sessions: ____, ...rest } = contents
  return rest
}

/** Leaves out what {@link withoutUsageRows} does, and tables of the search for contradictions, which may run meanwhile. */
export const withoutSweptRows = (contents: Contents): Contents => {
  const {
    passage_findings: _,
    passage_scans: __,
    passage_statements: ___,
    ...rest
  } = withoutUsageRows(contents)
  return rest
}

export const serve = (variables: Variables, more: Variables = {}) =>
  start(variables["SPOKE_DATA_DIR"] ?? "", { ...variables, ...more })

export const whileServing = async <A>(
  variables: Variables,
  use: (spoke: Spoke) => Promise<A>
): Promise<A> => {
  const spoke = await serve(variables)
  try {
    return await use(spoke)
  } finally {
    await spoke.stop()
  }
}

/** Runs the command to its end. Throws its output if it fails. */
export const runSuccessfully = async (args: ReadonlyArray<string>, variables: Variables) => {
  const done = await run(args, variables)
  if (done.code !== 0) throw new Error(`spoke ${args.join(" ")} ended with ${done.code}:\n${done.stderr}`)
  return done
}

/** Starts a command that the test ends. `output` is what it has printed so far. */
export const spawnCommand = (args: ReadonlyArray<string>, variables: Variables) => {
  const child: ChildProcess = spawn(process.execPath, [command, ...args], {
    env: environment(variables),
    stdio: ["ignore", "pipe", "pipe"]
  })
  let output = ""
  const ended = once(child, "close")
  const listeners = new Set<() => void>()
  const read = (chunk: Buffer) => {
    output += chunk.toString()
    for (const listener of listeners) listener()
  }
  child.stdout?.on("data", read)
  child.stderr?.on("data", read)
  return {
    child,
    output: () => output,
    ended: async () => {
      await ended
      return child.exitCode
    },
    /** Kills it (-9) once its output contains `words`. Returns the signal; null if the command ended before. */
    killAt: async (words: string) => {
      const killIfPrinted = () => {
        if (output.includes(words)) child.kill("SIGKILL")
      }
      listeners.add(killIfPrinted)
      killIfPrinted()
      await ended
      return child.signalCode
    }
  }
}
