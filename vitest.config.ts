import { defineConfig } from "vitest/config"
import { watOfVite } from "./scripts/wat.mjs"

// Files share a worker one after another, and with it one embedded database (0.5 GB each): hence no isolation, and two
// workers at most. So a test file leaves no global state behind and never closes what test/TestDatabase.ts gave it.
export default defineConfig({
  plugins: [watOfVite],
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/globalSetup.ts"],
    setupFiles: ["test/setup.ts"],
    silent: "passed-only",
    pool: "forks",
    isolate: false,
    poolOptions: { forks: { isolate: false, minForks: 1, maxForks: 2 } },
    // Ends what hangs; a loaded machine may take its time.
    testTimeout: 60_000,
    hookTimeout: 60_000
  }
})
