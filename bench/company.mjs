/**
 * Measures the finders on a generated company: `npm run bench:company`. Prints precision and recall of each, and
 * stores the figures in bench/company.json.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { buildAll } from "../scripts/build.mjs"
import { embedWorker, importProgram } from "./program.mjs"

await buildAll()
const { measure } = await importProgram("company/Measure.ts")
const figures = await measure(embedWorker, (line) => console.log(line))
fs.writeFileSync(path.join(import.meta.dirname, "company.json"), `${JSON.stringify(figures, null, 2)}\n`)
const { broken, held, known, pages, conversations, ...finders } = figures
console.log(`${pages} pages, ${conversations} conversations`)
console.table(finders)
console.table({ held, known })
console.log(`${broken} broken`)
process.exit(0)
