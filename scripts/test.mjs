/**
 * `npm test` and `npm run test:all`: builds what the tests need, then passes the arguments to vitest. Without `--all`
 * and without file names, the long suites are skipped.
 */
import { spawn } from "node:child_process"
import * as Path from "node:path"
import { buildAll } from "./build.mjs"
import { root } from "./seed.mjs"
import { longFiles } from "./suites.mjs"

const vitestArguments = process.argv.slice(2).filter((argument) => argument !== "--all")
const hasFiles = vitestArguments.some((argument) => !argument.startsWith("-"))
const isShort = !hasFiles && !process.argv.includes("--all")
const excluded = isShort ? longFiles().map((file) => `--exclude=${file}`) : []

await buildAll()
const vitest = spawn(
  process.execPath,
  [Path.join(root, "node_modules/vitest/vitest.mjs"), "run", ...excluded, ...vitestArguments],
  { cwd: root, stdio: "inherit" }
)
// The terminal's own interrupt reaches the child by itself.
process.on("SIGINT", () => {})
process.on("SIGTERM", () => vitest.kill("SIGTERM"))
vitest.on("exit", (code) => {
  process.exitCode = code ?? 1
})
