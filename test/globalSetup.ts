/** Once a run: the programs, the embedded database's seed archive, and a folder for the PostgreSQL servers that suites start. */
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import type { TestProject } from "vitest/node"

declare module "vitest" {
  interface ProvidedContext {
    readonly seed: string
    readonly servers: string
  }
}

/** Plain JavaScript without declarations, hence not a static import. */
const scripts = {
  build: new URL("../scripts/build.mjs", import.meta.url).href,
  seed: new URL("../scripts/seed.mjs", import.meta.url).href
}

/** Ends what a killed worker left running: a server's own file names its process. */
const stopServers = (folder: string) => {
  for (const name of Fs.readdirSync(folder)) {
    try {
      const redis = name.endsWith(".redis.pid")
      const file = redis ? name : Path.join(name, "data", "postmaster.pid")
      const [pid] = Fs.readFileSync(Path.join(folder, file), "utf8").split("\n")
      process.kill(Number(pid), redis ? "SIGKILL" : "SIGQUIT")
    } catch {
      // It has ended by itself, as it should.
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
  return () => {
    stopServers(servers)
    Fs.rmSync(servers, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 })
  }
}
