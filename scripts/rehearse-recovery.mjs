/**
 * Rehearses the recovery of docs/backup.md with its own PostgreSQL server, on the loopback address and in a folder that
 * is removed at the end: recovery to a point in time from a base backup and archived log, and failover to a standby. It
 * ends with 1 where a row is missing or one too many is there.
 *
 *   node scripts/rehearse-recovery.mjs [folder of initdb and postgres]
 */
import { execFile, execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import * as fs from "node:fs"
import { createServer } from "node:net"
import * as os from "node:os"
import * as path from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { promisify } from "node:util"
import pg from "pg"

const root = path.join(import.meta.dirname, "..")
const debian = "/usr/lib/postgresql"
const versions = fs.existsSync(debian) ? fs.readdirSync(debian).toSorted((a, b) => Number(b) - Number(a)) : []
const programs = [
  ...process.argv.slice(2),
  ...versions.map((version) => path.join(debian, version, "bin")),
  ...(process.env.PATH ?? "").split(path.delimiter)
].find((folder) =>
  ["initdb", "postgres", "pg_basebackup"].every((name) => fs.existsSync(path.join(folder, name)))
)
if (programs === undefined)
  throw new Error("No PostgreSQL was found: name the folder of initdb and postgres.")

/** PostgreSQL refuses to run as root: another user runs it then. */
const postgresUser = () => {
  if (process.getuid?.() !== 0) return {}
  const [, , uid, gid] = (
    fs
      .readFileSync("/etc/passwd", "utf8")
      .split("\n")
      .find((line) => line.startsWith("postgres:")) ?? "::65534:65534"
  ).split(":")
  return { uid: Number(uid), gid: Number(gid) }
}

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "spoke-recovery-"))
const archive = path.join(folder, "archive")
fs.mkdirSync(archive)
const account = postgresUser()
if (account.uid !== undefined)
  for (const place of [folder, archive]) fs.chownSync(place, account.uid, account.gid)
const options = { ...account, cwd: folder, env: { LC_ALL: "C", TZ: "UTC" } }
const tool = (name, args) =>
  promisify(execFile)(path.join(programs, name), args, { ...options, maxBuffer: 16_777_216 })

const began = Date.now()
const log = (text) => console.log(`${((Date.now() - began) / 1_000).toFixed(1).padStart(6)} s  ${text}`)

const freePort = async () => {
  const probe = createServer().listen(0, "127.0.0.1")
  await once(probe, "listening")
  const { port } = probe.address()
  probe.close()
  return port
}

const query = async (url, text, values) => {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 })
  client.on("error", () => {})
  await client.connect()
  try {
    return (await client.query(text, values)).rows
  } finally {
    await client.end().catch(() => {})
  }
}

/** Polls until `ask` returns true, for at most a minute. */
const waitUntil = async (what, ask) => {
  for (let tries = 0; tries < 600; tries++) {
    if (await ask().catch(() => false)) return
    await delay(100)
  }
  throw new Error(`Waited a minute, but not yet: ${what}.`)
}

const running = new Set()

/** Starts a server on `data` and waits until it answers. */
const start = async (data, settings = {}) => {
  const port = await freePort()
  const all = { port, listen_addresses: "127.0.0.1", unix_socket_directories: "", ...settings }
  const args = Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`])
  const logFile = fs.openSync(path.join(folder, `${path.basename(data)}.log`), "a")
  const child = spawn(path.join(programs, "postgres"), ["-D", data, ...args], {
    ...options,
    stdio: ["ignore", logFile, logFile]
  })
  running.add(child)
  const ended = once(child, "exit").then(() => running.delete(child))
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`
  await waitUntil(`${path.basename(data)} answers`, () => {
    if (child.exitCode !== null)
      throw new Error(fs.readFileSync(path.join(folder, `${path.basename(data)}.log`), "utf8"))
    return query(url, "select 1").then(() => true)
  })
  return {
    url,
    port,
    /** Simulates a power failure: no process writes any more. */
    kill: async () => {
      child.kill("SIGKILL")
      await ended
      // Its child processes end once they notice. Before that a new server would refuse to start.
      await waitUntil("its processes have ended", async () => !fs.existsSync(`/proc/${child.pid}`))
      await delay(1_000)
    },
    stop: async () => {
      child.kill("SIGINT")
      await ended
    }
  }
}

const addRows = async (url, word, count) => {
  for (let place = 1; place <= count; place++)
    await query(url, "insert into tenants (id, name) values ($1, $2)", [`ten_${word}_${place}`, word])
}

const rowsOf = async (url) =>
  Object.fromEntries(
    (
      await query(
        url,
        "select name, count(*)::int as count from tenants where id like 'ten\\_%\\_%' group by name order by name"
      )
    ).map(({ count, name }) => [name, count])
  )

const expectRows = (found, wanted) => {
  const [is, should] = [found, wanted].map((rows) => JSON.stringify(Object.entries(rows).toSorted()))
  if (is !== should) throw new Error(`Rows are ${is}, not ${should}.`)
  log(`rows are ${JSON.stringify(found)}, as they should be`)
}

const recovery = async () => {
  const data = path.join(folder, "primary")
  await tool("initdb", ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8"])
  const primary = await start(data, {
    archive_mode: "on",
    // The maximum loss if the whole machine crashes: the log since then.
    archive_timeout: 60,
    archive_command: `test ! -f ${archive}/%f && cp %p ${archive}/%f`
  })
  const { server_version: version } = (await query(primary.url, "show server_version"))[0]
  log(`PostgreSQL ${version} archives its log`)
  execFileSync(process.execPath, [path.join(root, "bin/spoke.mjs"), "migrate"], {
    env: {
      PATH: process.env.PATH,
      DATABASE_URL: primary.url,
      SPOKE_SECRET: "a master secret for the rehearsal alone"
    },
    stdio: ["ignore", "ignore", "inherit"]
  })
  log("spoke migrate made the tables")
  await addRows(primary.url, "before", 10)
  const base = path.join(folder, "base")
  await tool("pg_basebackup", [
    "-D",
    base,
    "-h",
    "127.0.0.1",
    "-p",
    String(primary.port),
    "-U",
    "postgres",
    "-c",
    "fast"
  ])
  log("base backup taken, with 10 rows in it")
  await addRows(primary.url, "after", 10)
  await delay(1_100)
  const [{ moment }] = await query(primary.url, "select clock_timestamp()::text as moment")
  await delay(1_100)
  log(`10 rows more; the moment to go back to is ${moment}`)
  await addRows(primary.url, "mistake", 10)
  const [{ file }] = await query(primary.url, "select pg_walfile_name(pg_switch_wal()) as file")
  await waitUntil("the log is archived", async () => fs.existsSync(path.join(archive, file)))
  log(`10 rows that are the mistake; ${fs.readdirSync(archive).length} files of log are archived`)
  await primary.kill()
  log("the server was killed with SIGKILL, and its data is given up")
  fs.rmSync(data, { recursive: true, force: true })
  const recoveryStarted = Date.now()
  const restored = path.join(folder, "restored")
  execFileSync("cp", ["-a", base, restored])
  fs.writeFileSync(path.join(restored, "recovery.signal"), "", { mode: 0o600 })
  if (account.uid !== undefined)
    fs.chownSync(path.join(restored, "recovery.signal"), account.uid, account.gid)
  const recovered = await start(restored, {
    restore_command: `cp ${archive}/%f %p`,
    recovery_target_time: moment,
    recovery_target_action: "promote"
  })
  await waitUntil("it takes writes", async () => {
    const [{ recovering }] = await query(recovered.url, "select pg_is_in_recovery() as recovering")
    return !recovering
  })
  log(
    `restored to that moment in ${((Date.now() - recoveryStarted) / 1_000).toFixed(1)} s, and it takes writes`
  )
  expectRows(await rowsOf(recovered.url), { before: 10, after: 10 })
  await addRows(recovered.url, "later", 1)
  return recovered
}

/** Kills `primary` during writes and checks that the standby has all acknowledged rows. */
const failover = async (primary) => {
  const data = path.join(folder, "standby")
  await tool("pg_basebackup", [
    "-D",
    data,
    "-h",
    "127.0.0.1",
    "-p",
    String(primary.port),
    "-U",
    "postgres",
    "-c",
    "fast",
    "-R"
  ])
  const standby = await start(data, { cluster_name: "standby" })
  await query(primary.url, "alter system set synchronous_standby_names = 'standby'")
  await query(primary.url, "select pg_reload_conf()")
  await waitUntil("the standby is synchronous", async () => {
    const [row] = await query(primary.url, "select sync_state from pg_stat_replication")
    return row?.sync_state === "sync"
  })
  log("a standby follows, and commits wait for it")
  let acknowledged = 0
  let isOver = false
  const writes = (async () => {
    while (!isOver) {
      await query(primary.url, "insert into tenants (id, name) values ($1, 'drill')", [
        `ten_drill_${acknowledged + 1}`
      ])
      acknowledged++
    }
  })().catch(() => {})
  await waitUntil("rows are written", async () => acknowledged >= 50)
  await primary.kill()
  isOver = true
  await writes
  const failoverStarted = Date.now()
  log(`the primary was killed with SIGKILL while it took writes, of which ${acknowledged} were acknowledged`)
  await query(standby.url, "select pg_promote(true, 60)")
  log(`the standby takes writes ${((Date.now() - failoverStarted) / 1_000).toFixed(1)} s later`)
  const { drill = 0, ...others } = await rowsOf(standby.url)
  // One more row may have been written without an acknowledgement.
  if (drill < acknowledged || drill > acknowledged + 1)
    throw new Error(`${drill} rows are there, of ${acknowledged} that were acknowledged.`)
  log(`all ${acknowledged} rows that were acknowledged are there`)
  expectRows(others, { before: 10, after: 10, later: 1 })
  await query(standby.url, "alter system reset synchronous_standby_names")
  await standby.stop()
}

try {
  await failover(await recovery())
  log("done")
} finally {
  for (const child of running) child.kill("SIGKILL")
  await delay(500)
  fs.rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 })
}
