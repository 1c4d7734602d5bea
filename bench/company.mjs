/**
 * How well the finders do on a made-up company: `npm run bench:company`. Prints precision and recall of each, and keeps the
 * figures in bench/company.json.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { pathToFileURL } from "node:url"
import { build } from "esbuild"
import { buildAll } from "../scripts/build.mjs"

const root = path.resolve(import.meta.dirname, "..")
await buildAll()
const program = path.join(root, "dist/bench-company.mjs")
await build({
  entryPoints: [path.join(import.meta.dirname, "company/Measure.ts")],
  outfile: program,
  bundle: true,
  packages: "external",
  platform: "node",
  target: "node20",
  format: "esm",
  logLevel: "error"
})
const { measure } = await import(pathToFileURL(program).href)
const figures = await measure(pathToFileURL(path.join(root, "dist/workers/embed.js")), (line) =>
  console.log(line)
)
fs.writeFileSync(path.join(import.meta.dirname, "company.json"), `${JSON.stringify(figures, null, 2)}\n`)
const { broken, held, known, pages, conversations, ...finders } = figures
console.log(`${pages} pages, ${conversations} conversations`)
console.table(finders)
console.table({ held, known })
console.log(`${broken} broken`)
process.exit(0)
