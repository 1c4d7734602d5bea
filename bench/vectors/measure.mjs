/**
 * Measures how vectors are stored and found with pgvector; the record is bench/vectors.json.
 *
 *   node bench/vectors/measure.mjs storage           bytes for each chunk and the rate of conversion, against release 0.1.0
 *   node bench/vectors/measure.mjs recall            what the index of an agent of 1,000,000 chunks finds, and how fast
 *   node bench/vectors/measure.mjs recall --kind documentation --chunks 200000
 *   node bench/vectors/measure.mjs storage --dimensions 1536 --chunks 20000
 *   node bench/vectors/measure.mjs storage --quick   small and not recorded
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { parseArgs } from "node:util"
import { buildAll } from "../../scripts/build.mjs"
import { startPostgres } from "../databases.mjs"
import { machine, startScript } from "../machine.mjs"
import { recall } from "./recall.mjs"
import { storage } from "./storage.mjs"

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    chunks: { type: "string" },
    dimensions: { type: "string", default: "512" },
    kind: { type: "string", default: "even" },
    quick: { type: "boolean", default: false }
  }
})
const { kind, quick } = values
const parts = { recall, storage }
const [part = "storage"] = positionals
if (!Object.hasOwn(parts, part))
  throw new Error(`No such part: ${part}. There are ${Object.keys(parts).join(", ")}.`)

await buildAll()
const postgres = await startPostgres(["shared_buffers=2GB"])
if (postgres?.vector !== true) throw new Error("PostgreSQL with pgvector is needed.")
const model = await startScript("model.mjs")
const full = part === "recall" ? 1_000_000 : 100_000
const result = await parts[part]({
  chunks: Number(values.chunks ?? (quick ? 25_000 : full)),
  kind,
  model,
  postgres,
  progress: (text) => console.log(text),
  seconds: quick ? 2 : 10,
  size: Number(values.dimensions)
})
await model.stop()
await postgres.stop()

const record = { ...machine(), postgres: postgres.version, ...result }
console.log(JSON.stringify(record, null, 2))
if (!quick) {
  const file = path.join(import.meta.dirname, "../vectors.json")
  const recorded = fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, "utf8")) : {}
  const sameAs = (other) =>
    other.kind === record.kind && other.dimensions === record.dimensions && other.chunks === record.chunks
  recorded[part] = [...(recorded[part] ?? []).filter((other) => !sameAs(other)), record]
  fs.writeFileSync(file, `${JSON.stringify(recorded, null, 2)}\n`)
}
process.exit(0)
