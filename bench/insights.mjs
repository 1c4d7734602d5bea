/**
 * How well questions are grouped by meaning: `npm run bench:insights`. Prints precision and recall of the pairs that stand
 * together, and keeps the figures in bench/insights.json.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { pathToFileURL } from "node:url"
import { build } from "esbuild"
import { buildAll } from "../scripts/build.mjs"

const root = path.resolve(import.meta.dirname, "..")
await buildAll()
const program = path.join(root, "dist/bench-insights.mjs")
await build({
  entryPoints: [path.join(import.meta.dirname, "insights/Evaluate.ts")],
  outfile: program,
  bundle: true,
  packages: "external",
  platform: "node",
  target: "node20",
  format: "esm",
  logLevel: "error"
})
const { run } = await import(pathToFileURL(program).href)
const { vectors: _, ...result } = await run(
  path.join(import.meta.dirname, "insights/questions.jsonl"),
  pathToFileURL(path.join(root, "dist/workers/embed.js"))
)
fs.writeFileSync(path.join(import.meta.dirname, "insights.json"), `${JSON.stringify(result, null, 2)}\n`)
console.log(`${result.questions} questions, ${result.embedder}`)
console.table({ "meaning and words": result.meaning, "words alone": result.words })
process.exit(0)
