/**
 * Servers of a benchmark, each private and on a free port: PostgreSQL, with pgvector if it is installed, and Redis. The
 * extension comes with the system's PostgreSQL, or from the Debian that `.ci/pgvector` has unpacked (root only).
 */
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import pg from "pg"
import { freePort, start, temporaryFolder } from "./machine.mjs"

const folders = () => {
  const debian = "/usr/lib/postgresql"
  const versions = fs.existsSync(debian)
    ? fs.readdirSync(debian).toSorted((a, b) => Number(b) - Number(a))
    : []
  return [
    ...versions.map((version) => path.join(debian, version, "bin")),
    ...(process.env["PATH"] ?? "").split(path.delimiter)
  ]
}

const hasVector = (binaries) => {
  const version = /postgresql\/(\d+)\/bin$/.exec(binaries)?.[1]
  return version !== undefined && fs.existsSync(`/usr/share/postgresql/${version}/extension/vector.control`)
}

/** A PostgreSQL with the extension, else any. */
const findPostgres = () => {
  const found = folders().filter((folder) =>
    ["initdb", "postgres"].every((name) => fs.existsSync(path.join(folder, name)))
  )
  return found.find(hasVector) ?? found[0]
}

/** PostgreSQL refuses to run as root. */
const postgresUser = () => {
  if (process.getuid() !== 0) return {}
  const [, , uid, gid] = fs
    .readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .find((line) => /^(postgres|nobody):/.test(line))
    .split(":")
  return { uid: Number(uid), gid: Number(gid) }
}

const settings = (port, extra) =>
  [
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    `port=${port}`,
    "max_connections=100",
    "shared_buffers=512MB",
    "maintenance_work_mem=1GB",
    "max_wal_size=8GB",
    "log_min_messages=panic",
    ...extra
  ].flatMap((setting) => ["-c", setting])

/** A shell command that prints `listening` once `command` succeeds: the server itself does not say when it listens. */
const announceWhen = (command) => `( until ${command}; do sleep 0.1; done; echo listening on postgres ) & `

const unpacked = path.join(
  process.env["SPOKE_CI_CACHE"] ??
    process.env["XDG_CACHE_HOME"] ??
    path.join(process.env["HOME"] ?? "/root", ".cache"),
  "spoke-ci/trixie-pgvector"
)

const startUnpacked = async (port, extra) => {
  // It has its own mount and process namespaces, which end with it.
  const data = `/srv/bench-${process.pid}`
  const script = `
    mount --make-rprivate / && mount --bind /dev "$root/dev" && mount --bind /proc "$root/proc"
    inside() { chroot "$root" /usr/bin/env -i LC_ALL=C PATH=/usr/lib/postgresql/17/bin:/usr/bin:/bin setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }
    mkdir -p "$root${data}" && chroot "$root" chown postgres:postgres ${data}
    inside initdb -D ${data} -U postgres -A trust -E UTF8 --no-sync >/dev/null
    ${announceWhen(`inside pg_isready -q -h 127.0.0.1 -p ${port}`)}
    inside postgres -D ${data} ${settings(port, extra).join(" ")}`
  process.on("exit", () => fs.rmSync(path.join(unpacked, data), { recursive: true, force: true }))
  return start(
    "unshare",
    ["--mount", "--pid", "--fork", "--kill-child", "bash", "-euo", "pipefail", "-c", script],
    { root: unpacked }
  )
}

const startSystem = async (binaries, port, extra) => {
  const folder = temporaryFolder()
  const data = path.join(folder, "data")
  const owner = postgresUser()
  if (owner.uid !== undefined) fs.chownSync(folder, owner.uid, owner.gid)
  const options = { ...owner, cwd: folder, env: { LC_ALL: "C", TZ: "UTC" } }
  execFileSync(
    path.join(binaries, "initdb"),
    ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"],
    {
      ...options,
      stdio: "ignore"
    }
  )
  const ready = announceWhen(`"$0/pg_isready" -q -h 127.0.0.1 -p ${port}`)
  const run =
    owner.uid === undefined ? "" : `setpriv --reuid=${owner.uid} --regid=${owner.gid} --clear-groups `
  return start(
    "bash",
    ["-c", `${ready} exec ${run}"$0/postgres" -D "$1" "\${@:2}"`, binaries, data, ...settings(port, extra)],
    {
      LC_ALL: "C",
      TZ: "UTC"
    }
  )
}

/**
 * `{url, pid, version, vector, database, stop}`, or undefined if no PostgreSQL is installed. `vector`: it has the
 * extension. `extra` settings, as `name=value`, are added to those of all benchmarks.
 */
export const startPostgres = async (extra = []) => {
  const binaries = findPostgres()
  const system = binaries !== undefined && hasVector(binaries)
  const port = await freePort()
  const useUnpacked = !system && process.getuid() === 0 && fs.existsSync(path.join(unpacked, "unpacked"))
  if (!useUnpacked && binaries === undefined) return undefined
  const server = useUnpacked ? await startUnpacked(port, extra) : await startSystem(binaries, port, extra)
  const address = (name) => `postgres://postgres@127.0.0.1:${port}/${name}`
  const { rows } = await query(
    address("postgres"),
    "select current_setting('server_version') as version, exists (select from pg_available_extensions where name = 'vector') as vector"
  )
  return {
    ...server,
    stop: () => server.stop(useUnpacked ? "SIGKILL" : "SIGINT"),
    version: rows[0].version.split(" ")[0],
    vector: rows[0].vector,
    /** The address of an empty database of this name. */
    database: async (name) => {
      await query(address("postgres"), `create database ${name}`)
      return address(name)
    }
  }
}

/** Runs statements on a separate connection; returns the last result. */
export const query = async (url, ...statements) => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    let result
    for (const statement of statements) {
      result = await (typeof statement === "string"
        ? client.query(statement)
        : client.query(statement.text, statement.values))
    }
    return result
  } finally {
    await client.end()
  }
}

/** The address of a Redis, or undefined where none is installed. */
export const startRedis = async () => {
  const binary = ["/usr/bin", "/usr/local/bin"]
    .map((folder) => path.join(folder, "redis-server"))
    .find((file) => fs.existsSync(file))
  if (binary === undefined) return undefined
  const port = await freePort()
  const ready = `( until "$0" --version >/dev/null && (exec 3<>/dev/tcp/127.0.0.1/${port}) 2>/dev/null; do sleep 0.05; done; echo listening on redis ) & `
  const server = await start("bash", [
    "-c",
    `${ready} exec "$0" --port ${port} --bind 127.0.0.1 --save "" --appendonly no --dir /tmp`,
    binary
  ])
  return { ...server, url: `redis://127.0.0.1:${port}` }
}
