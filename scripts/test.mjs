/** `npm test`: builds what the tests run beside themselves, then hands its arguments to vitest. */
import { spawn } from "node:child_process"
import * as Path from "node:path"
import { buildAll } from "./build.mjs"
import { root } from "./seed.mjs"

await buildAll()
const vitest = spawn(
  process.execPath,
  [Path.join(root, "node_modules/vitest/vitest.mjs"), "run", ...process.argv.slice(2)],
  { cwd: root, stdio: "inherit" }
)
// The terminal's own interrupt reaches the child by itself.
process.on("SIGINT", () => {})
process.on("SIGTERM", () => vitest.kill("SIGTERM"))
vitest.on("exit", (code) => {
  process.exitCode = code ?? 1
})
