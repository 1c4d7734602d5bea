import * as Os from "node:os"
import { defineConfig } from "vitest/config"
import { watOfVite } from "./scripts/wat.mjs"
import { useMemory } from "./test/TemporaryFolder.ts"

useMemory()

// Most files wait more than they compute, for servers, leases and pauses: two workers for each core. In CI one, because
// there all files run, also those that fail when a machine has no time for them. Each worker takes up to 1.5 GB.
const perCore = process.env["CI"] === "true" ? 1 : 2
const workers = Math.max(
  2,
  Math.min(8, perCore * Os.availableParallelism(), Math.floor(Os.totalmem() / (2 * 1_024 ** 3)))
)

// Files share a worker one after another, and with it one embedded database (0.5 GB each): hence no isolation. So a test
// file leaves no global state behind and never closes what test/TestDatabase.ts gave it.
export default defineConfig({
  plugins: [watOfVite],
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/globalSetup.ts"],
    setupFiles: ["test/setup.ts"],
    silent: "passed-only",
    pool: "forks",
    isolate: false,
    // As many at least as at most: tinypool ends a worker that is idle, and with it, by mistake, what another still runs.
    poolOptions: { forks: { isolate: false, minForks: workers, maxForks: workers } },
    // Ends what hangs; a loaded machine may take its time.
    testTimeout: 120_000,
    hookTimeout: 180_000
  }
})
