/**
 * How well questions are grouped by meaning: `npm run bench:insights`. Prints precision and recall of the pairs that stand
 * together, and keeps the figures in bench/insights.json.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { buildAll } from "../scripts/build.mjs"
import { embedWorker, importProgram } from "./program.mjs"

await buildAll()
const { run } = await importProgram("insights/Evaluate.ts")
const { vectors: _, ...result } = await run(
  path.join(import.meta.dirname, "insights/questions.jsonl"),
  embedWorker
)
fs.writeFileSync(path.join(import.meta.dirname, "insights.json"), `${JSON.stringify(result, null, 2)}\n`)
console.log(`${result.questions} questions, ${result.embedder}`)
console.table({ "meaning and words": result.meaning, "words alone": result.words })
process.exit(0)
