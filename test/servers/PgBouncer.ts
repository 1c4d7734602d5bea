/** A private PgBouncer in transaction mode before a PostgreSQL server: loopback, free port. */
import { type ChildProcess, spawn } from "node:child_process"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { it } from "@effect/vitest"
import * as Pg from "pg"
import { freePort } from "./FreePort.ts"

const folders = ["/usr/sbin", ...(process.env["PATH"] ?? "").split(Path.delimiter)]

/** `pgbouncer`, or undefined. */
export const binary = folders
  .map((folder) => Path.join(folder, "pgbouncer"))
  .find((path) => Fs.existsSync(path))

const answers = async (url: string, pooler: ChildProcess, attempts = 100): Promise<void> => {
  if (pooler.exitCode !== null || attempts === 0) throw new Error("PgBouncer did not start.")
  const client = new Pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 })
  client.on("error", () => {})
  try {
    await client.connect()
    await client.end()
  } catch {
    await delay(50)
    await answers(url, pooler, attempts - 1)
  }
}

/** Starts a pooler before the server of `target` that ends with this process at the latest; `url` is its address. */
export const startPgBouncer = async (target: string) => {
  if (binary === undefined) throw new Error("No pgbouncer was found.")
  const server = new URL(target)
  const folder = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-bouncer-"))
  Fs.chmodSync(folder, 0o755)
  const port = await freePort()
  const file = Path.join(folder, "pgbouncer.ini")
  const settings = [
    "[databases]",
    `* = host=${server.hostname} port=${server.port} user=${server.username}`,
    "[pgbouncer]",
    "listen_addr = 127.0.0.1",
    `listen_port = ${port}`,
    "unix_socket_dir =",
    "auth_type = any",
    "pool_mode = transaction",
    // Few, so that a client seldom gets the connection that it had before.
    "default_pool_size = 4",
    "max_client_conn = 200"
  ]
  Fs.writeFileSync(file, settings.join("\n"))
  // It refuses to run as root, too.
  const pooler = spawn(binary, [...(process.getuid?.() === 0 ? ["-u", "postgres"] : []), "-q", file], {
    stdio: "ignore"
  })
  pooler.unref()
  const end = () => {
    pooler.kill("SIGKILL")
    Fs.rmSync(folder, { recursive: true, force: true })
  }
  process.once("exit", end)
  const url = new URL(server)
  url.port = String(port)
  await answers(url.href, pooler)
  return {
    url: url.href,
    stop: async () => {
      process.off("exit", end)
      const ended = new Promise((resolve) => pooler.once("exit", resolve))
      end()
      await ended
    }
  }
}

/** Runs the suite where PgBouncer is; a visible skip elsewhere, and a failure in CI. */
export const withPgBouncer = (name: string, suite: () => void): void => {
  if (binary !== undefined) suite()
  else if (process.env["CI"] === "true") {
    it(name, () => {
      throw new Error("CI must run this suite on a real PgBouncer, but none was found.")
    })
  } else it.skipIf(true)(`${name}: no pgbouncer was found`, () => {})
}
