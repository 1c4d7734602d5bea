/** A private PostgreSQL server for tests: loopback, free port, no socket file, trusted, unsafe and fast. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import * as Pg from "pg"
import { freePort } from "./FreePort.ts"

const folders = () => {
  const debian = "/usr/lib/postgresql"
  const versions = Fs.existsSync(debian) ? Fs.readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : []
  return [
    ...versions.map((version) => Path.join(debian, version, "bin")),
    ...(process.env["PATH"] ?? "").split(Path.delimiter)
  ]
}

/** The folders that have `initdb` and `postgres`, of the newest version first. */
export const installations: ReadonlyArray<string> = folders().filter((folder) =>
  ["initdb", "postgres"].every((name) => Fs.existsSync(Path.join(folder, name)))
)

/** Where `initdb` and `postgres` are, or undefined. */
export const binaries = installations[0]

/** PostgreSQL refuses to run as root: another user runs it then. */
const account = () => {
  if (process.getuid?.() !== 0) return {}
  const lines = Fs.readFileSync("/etc/passwd", "utf8").split("\n")
  const line = ["postgres", "nobody"].flatMap((name) =>
    lines.filter((line) => line.startsWith(`${name}:`))
  )[0]
  const [, , uid, gid] = (line ?? "::65534:65534").split(":")
  return { uid: Number(uid), gid: Number(gid) }
}

const answers = async (url: string, server: ChildProcess, attempts = 150): Promise<void> => {
  if (server.exitCode !== null || attempts === 0) throw new Error("The PostgreSQL server did not start.")
  const client = new Pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 })
  client.on("error", () => {})
  try {
    await client.connect()
    await client.end()
  } catch {
    await delay(100)
    await answers(url, server, attempts - 1)
  }
}

/** Of a server: the folder of its programs, and a word that tells its own folder from those of this process's others. */
export interface ServerKind {
  readonly programs?: string | undefined
  readonly kind?: string
}

/**
 * Starts a server that lives as long as this process and answers its address, `…/postgres`. Its files are in a folder of
 * `parent`, which that user has to reach: `parent` is open to all where tests run as root.
 */
export const startServer = async (
  parent: string,
  { kind = "server", programs = binaries }: ServerKind = {}
): Promise<string> => {
  if (programs === undefined) throw new Error("No PostgreSQL binaries were found.")
  const folder = Path.join(parent, `${kind}-${process.pid}`)
  const data = Path.join(folder, "data")
  const owner = account()
  Fs.mkdirSync(folder)
  if (owner.uid !== undefined && owner.gid !== undefined) Fs.chownSync(folder, owner.uid, owner.gid)
  const options = { ...owner, cwd: folder, env: { LC_ALL: "C", TZ: "UTC" } }
  execFileSync(
    Path.join(programs, "initdb"),
    ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"],
    { ...options, stdio: "ignore" }
  )
  const port = await freePort()
  const settings = [
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    `port=${port}`,
    "fsync=off",
    "max_connections=200"
  ]
  const server = spawn(
    Path.join(programs, "postgres"),
    ["-D", data, ...settings.flatMap((setting) => ["-c", setting])],
    { ...options, stdio: "ignore" }
  )
  server.unref()
  process.once("exit", () => server.kill("SIGQUIT"))
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`
  await answers(url, server)
  return url
}
