/**
 * How well the default grounding checker tells supported statements from others: `npm run bench:grounding`. Prints a table
 * and keeps the figures in bench/grounding.json. `-- --missed` prints the pairs that it gets wrong.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { importProgram } from "./program.mjs"

const { cpuOf, read, run } = await importProgram("grounding/Evaluate.ts")

const checkers = ["words", "overlap60", "overlap80", "wordsInLong", "overlap80InLong"]
const printFigures = (title, { missed, ...result }) => {
  console.log(`${title}: ${result.pairs} pairs; the share of each kind that is taken for unsupported`)
  console.table(
    Object.fromEntries(
      checkers.map((judge) => {
        const { byKind, ...figures } = result[judge]
        return [judge, { ...figures, ...byKind }]
      })
    )
  )
  if (process.argv.includes("--missed"))
    for (const { claim, kind, passage } of missed) console.log(`${kind}: ${claim}\n    ${passage}`)
  return result
}

const developmentPairs = path.join(import.meta.dirname, "grounding/pairs.jsonl")
const heldOut = path.join(import.meta.dirname, "grounding/heldout.jsonl")
const result = {
  ...printFigures("The rules were made by", run(developmentPairs)),
  heldOut: printFigures("Held out", run(heldOut)),
  cpuMsPerStatement: cpuOf([...read(developmentPairs), ...read(heldOut)], 20)
}
fs.writeFileSync(path.join(import.meta.dirname, "grounding.json"), `${JSON.stringify(result, null, 2)}\n`)
console.log(`${result.cpuMsPerStatement} ms of CPU a statement`)
