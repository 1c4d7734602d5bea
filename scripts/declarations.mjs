/** Writes the declarations of the public entries into dist/types: a package needs them, a start does not. */
import { spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { dist, root } from "./seed.mjs"

const target = Path.join(dist, "types")
Fs.rmSync(target, { recursive: true, force: true })
const compiler = Path.join(root, "node_modules/typescript/bin/tsc")
const { status } = spawnSync(process.execPath, [compiler, "-p", Path.join(root, "tsconfig.build.json")], {
  stdio: "inherit"
})
if (status !== 0) process.exit(status ?? 1)

// The compiler leaves the endings of the sources in declarations.
const files = Fs.readdirSync(target, { recursive: true, encoding: "utf8" }).filter((name) =>
  name.endsWith(".d.ts")
)
for (const name of files) {
  const file = Path.join(target, name)
  const text = Fs.readFileSync(file, "utf8")
  const rewritten = text.replace(/((?:from|import\()\s*["']\.{1,2}\/[^"']+)\.ts(["'])/gu, "$1.js$2")
  if (rewritten !== text) Fs.writeFileSync(file, rewritten)
}
