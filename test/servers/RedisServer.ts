/** A private Redis server for tests: loopback, free port, nothing on disk. */
import { it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { Redis } from "ioredis"
import { type ChildProcess, spawn } from "node:child_process"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { inject } from "vitest"
import { oncePerWorker } from "../TestDatabase.ts"
import { freePort } from "./FreePort.ts"

const folders = ["/usr/bin", ...(process.env["PATH"] ?? "").split(Path.delimiter)]

/** `redis-server`, or undefined. */
export const binary = folders
  .map((folder) => Path.join(folder, "redis-server"))
  .find((path) => Fs.existsSync(path))

const answers = async (port: number, server: ChildProcess, attempts = 100): Promise<void> => {
  if (server.exitCode !== null || attempts === 0) throw new Error("The Redis server did not start.")
  const client = new Redis({ port, host: "127.0.0.1", lazyConnect: true, retryStrategy: () => null })
  client.on("error", () => {})
  try {
    await client.connect()
    await client.ping()
  } catch {
    await delay(50)
    await answers(port, server, attempts - 1)
  } finally {
    client.disconnect()
  }
}

/** Starts a server on `port`, a free one by default, that ends with this process at the latest. */
export const startRedis = async (port?: number) => {
  if (binary === undefined) throw new Error("No redis-server was found.")
  const own = port ?? (await freePort())
  const server = spawn(
    binary,
    ["--port", String(own), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", "/tmp"],
    { stdio: "ignore" }
  )
  // The end of the run finds it by this, should this process be killed.
  const file = Path.join(inject("servers"), `${server.pid}.redis.pid`)
  Fs.writeFileSync(file, String(server.pid))
  server.unref()
  const end = () => server.kill("SIGKILL")
  process.once("exit", end)
  await answers(own, server)
  return {
    port: own,
    url: `redis://127.0.0.1:${own}`,
    /** The hard way, and waited for. */
    stop: async () => {
      process.off("exit", end)
      if (server.exitCode !== null || server.signalCode !== null) return
      Fs.rmSync(file, { force: true })
      const ended = new Promise((resolve) => server.once("exit", resolve))
      end()
      await ended
    }
  }
}

/** The address of the worker's server, started when first asked for. */
export const redisUrl = Effect.promise(() => oncePerWorker("redis", () => startRedis())).pipe(
  Effect.map(({ url }) => Redacted.make(url))
)

/** Runs the suite where Redis is; a visible skip elsewhere, and a failure in CI. */
export const withRedis = (name: string, suite: () => void): void => {
  if (binary !== undefined) suite()
  else if (process.env["CI"] === "true") {
    it(name, () => {
      throw new Error("CI must run this suite on a real Redis, but no redis-server was found.")
    })
  } else it.skipIf(true)(`${name}: no redis-server was found`, () => {})
}
