/** PostgreSQL that may be stopped and started again, on the same port and data. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import * as Pg from "pg"
import { binaries } from "../servers/PostgresServer.ts"
import { freePort } from "../servers/FreePort.ts"

const account = () => {
  if (process.getuid?.() !== 0) return {}
  const line = Fs.readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .find((one) => /^(postgres|nobody):/.test(one))
  const [, , uid, gid] = (line ?? "::65534:65534").split(":")
  return { uid: Number(uid), gid: Number(gid) }
}

export interface Postgres {
  readonly url: string
  readonly run: <Row extends Pg.QueryResultRow>(sql: string) => Promise<ReadonlyArray<Row>>
  /** SIGINT ends every session and leaves in order; SIGQUIT leaves at once, and recovers when it starts. */
  readonly stop: (how: "SIGINT" | "SIGQUIT") => Promise<void>
  readonly start: () => Promise<void>
  /** False when it has ended, by itself or not. */
  readonly runs: () => boolean
}

/** `settings` as `name=value`. */
export const startPostgres = async (parent: string, given: ReadonlyArray<string> = []): Promise<Postgres> => {
  if (binaries === undefined) throw new Error("No PostgreSQL binaries were found.")
  const programs = binaries
  const folder = Path.join(parent, "postgres")
  const data = Path.join(folder, "data")
  const owner = account()
  Fs.chmodSync(parent, 0o755)
  Fs.mkdirSync(folder, { recursive: true })
  if (owner.uid !== undefined && owner.gid !== undefined) Fs.chownSync(folder, owner.uid, owner.gid)
  const options = { ...owner, cwd: folder, env: { LC_ALL: "C", TZ: "UTC" } }
  execFileSync(
    Path.join(programs, "initdb"),
    ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"],
    { ...options, stdio: "ignore" }
  )
  const port = await freePort()
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`
  const settings = [
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    `port=${port}`,
    "fsync=off",
    "max_connections=80",
    ...given
  ]
  let server: ChildProcess | undefined
  process.once("exit", () => server?.kill("SIGQUIT"))
  const run = async <Row extends Pg.QueryResultRow>(sql: string) => {
    const client = new Pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 })
    client.on("error", () => undefined)
    await client.connect()
    try {
      return (await client.query<Row>(sql)).rows
    } finally {
      await client.end().catch(() => undefined)
    }
  }
  const start = async () => {
    server = spawn(
      Path.join(programs, "postgres"),
      ["-D", data, ...settings.flatMap((setting) => ["-c", setting])],
      { ...options, stdio: "ignore" }
    )
    for (let attempts = 200; attempts > 0; attempts--) {
      try {
        await run("select 1")
        return
      } catch {
        await delay(100)
      }
    }
    throw new Error("The PostgreSQL server did not start.")
  }
  const runs = () => server !== undefined && server.exitCode === null && server.signalCode === null
  const stop = async (how: "SIGINT" | "SIGQUIT") => {
    if (server === undefined || !runs()) return
    const ended = once(server, "exit")
    server.kill(how)
    await ended
  }
  await start()
  return { url, run, stop, start, runs }
}
