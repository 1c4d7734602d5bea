/**
 * Before a release, after scripts/freeze.mjs: fills a database of this version over HTTP and stores a dump in
 * test/fixtures/releases/VERSION for test/e2e/upgrade. An existing dump of this version is kept.
 */
import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"

const { status } = spawnSync(
  "npx",
  ["vitest", "run", "test/e2e/upgrade/Upgrade.test.ts", "-t", "A release's fixture"],
  {
    cwd: fileURLToPath(new URL("..", import.meta.url)),
    env: { ...process.env, SPOKE_RELEASE_FIXTURE: "make" },
    stdio: "inherit"
  }
)
process.exitCode = status ?? 1
