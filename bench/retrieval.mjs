/**
 * How well retrieval finds what is relevant: nDCG@10 of the default recipe, of its words alone and of its vectors alone.
 * `npm run bench:retrieval` measures the collection of this folder; `npm run bench:retrieval -- NAME FOLDER` another one,
 * in BEIR's format or Cranfield's. Prints a table and keeps each collection's figures in bench/retrieval.json.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { buildAll } from "../scripts/build.mjs"
import { importProgram } from "./program.mjs"

const ownCollection = path.join(import.meta.dirname, "retrieval/questions")
const results = path.join(import.meta.dirname, "retrieval.json")

const [name = "questions", folder = ownCollection] = process.argv.slice(2)

await buildAll()
const { run } = await importProgram("retrieval/Evaluate.ts")
const result = await run(folder, name)

const before = fs.existsSync(results) ? JSON.parse(fs.readFileSync(results, "utf8")) : []
const rows = [...before.filter(({ collection }) => collection !== name), result]
fs.writeFileSync(results, `${JSON.stringify(rows, null, 2)}\n`)
console.log(
  `${name}: ${result.documents} documents in ${result.chunks} chunks, ${result.queries} queries, ${result.embedder}`
)
console.table(Object.fromEntries(["default", "bm25", "vectors"].map((recipe) => [recipe, result[recipe]])))
for (const [title, { interval95, mean }] of [
  ["BM25", result.defaultOverBm25],
  ["vectors", result.defaultOverVectors]
]) {
  console.log(`default over ${title}: ${mean} (95 % ${interval95.join(" to ")})`)
}
process.exit(0)
