/**
 * Runs once before all tests: builds the programs, the seed archive of the embedded database, and the data directory of a
 * first start. Creates the folder for PostgreSQL servers that suites start.
 */
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import type { TestProject } from "vitest/node"
import { type FirstStart, make } from "./e2e/FirstStart.ts"

declare module "vitest" {
  interface ProvidedContext {
    readonly seed: string
    /** Null where no suite starts a server. */
    readonly firstStart: FirstStart | null
    readonly servers: string
  }
}

/** JavaScript without type declarations, therefore not imported statically. */
const scripts = {
  build: new URL("../scripts/build.mjs", import.meta.url).href,
  seed: new URL("../scripts/seed.mjs", import.meta.url).href
}

/** Suites that start the built server. */
const withServers = /\/test\/(?:adding|browser|e2e|faults)\//u

/** Ends servers that a killed worker left running. Their files contain the process ids. */
const stopServers = (folder: string) => {
  for (const name of Fs.readdirSync(folder)) {
    try {
      const redis = name.endsWith(".redis.pid")
      const file = redis ? name : Path.join(name, "data", "postmaster.pid")
      const [pid] = Fs.readFileSync(Path.join(folder, file), "utf8").split("\n")
      process.kill(Number(pid), redis ? "SIGKILL" : "SIGQUIT")
    } catch {
      // It has already ended.
    }
  }
}

export default async (project: TestProject) => {
  const { buildAll } = await import(scripts.build)
  const { currentSeed } = await import(scripts.seed)
  await buildAll()
  const servers = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-test-"))
  Fs.chmodSync(servers, 0o755)
  project.provide("seed", currentSeed())
  project.provide("servers", servers)
  const suites = project.vitest.state.getPaths().filter((path) => withServers.test(path)).length
  project.provide("firstStart", suites === 0 ? null : await make(Path.join(servers, "first-start"), suites))
  return () => {
    stopServers(servers)
    Fs.rmSync(servers, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 })
  }
}
