/**
 * Whether the search of an agent of 1,000 chunks stays as fast while the other chunks of its database grow from 5,000 to
 * 3,000,000. The same search in bare SQL over a table that does not grow runs alternately, as the measure of the machine.
 * Nobody searches the other chunks, so their vectors get no index. PostgreSQL with pgvector.
 *
 *   node bench/scaling/chunks.mjs [--sizes 5000,3000000] [--rounds 5] [--seconds 3] [--out bench/chunks.json]
 *   node bench/scaling/chunks.mjs --quick          few chunks, not recorded
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { parseArgs } from "node:util"
import { buildAll } from "../../scripts/build.mjs"
import { line, lineQuestion, question } from "../corpus.mjs"
import { startPostgres } from "../databases.mjs"
import { writeUnsearched } from "../growth.mjs"
import { alternate, load } from "../load.mjs"
import { machine, root, rounded, startScript } from "../machine.mjs"
import { fillTables } from "../peers/tables.mjs"
import { keyHeader, searchable, serverSpoke, withServer } from "../spoke.mjs"

const { values } = parseArgs({
  options: {
    sizes: { type: "string" },
    rounds: { type: "string" },
    seconds: { type: "string" },
    out: { type: "string", default: path.join(root, "bench/chunks.json") },
    quick: { type: "boolean", default: false }
  }
})
const { quick } = values
const sizes = (values.sizes ?? (quick ? "1000,5000" : "5000,3000000")).split(",").map(Number)
const rounds = Number(values.rounds ?? (quick ? 1 : 5))
const seconds = Number(values.seconds ?? (quick ? 0.5 : 3))
/** Vectors are short, so that the rows fit on small disks. */
const dimensions = 64
const searched = 1_000
const passages = quick ? 100 : 5_000
const begun = performance.now()
const progress = (text) =>
  process.stderr.write(`${String(Math.round((performance.now() - begun) / 1_000)).padStart(5)} s  ${text}\n`)

await buildAll()
const postgres = await startPostgres()
if (postgres?.vector !== true) throw new Error("PostgreSQL with pgvector is needed.")
const model = await startScript("model.mjs")
const peerUrl = await postgres.database("peers")
await fillTables(peerUrl, passages)
const bare = await startScript("peers/bare.mjs", [], { MODEL: model.url, DATABASE_URL: peerUrl })
const spoke = await serverSpoke(model, { postgres }, [searched, 0], {
  size: dimensions,
  text: line,
  variables: { SPOKE_EMBEDDING_DIMENSIONS: String(dimensions) }
})
const [few, others] = spoke.agents
await searchable({ ...spoke, key: few.key }, lineQuestion(0, searched))

const targets = {
  search: {
    url: `${spoke.url}/v1/retrieve`,
    pid: spoke.pid,
    headers: keyHeader(few),
    body: (number) => JSON.stringify({ query: lineQuestion(number, searched), topK: 5 })
  },
  bare: {
    url: `${bare.url}/retrieve`,
    pid: bare.pid,
    body: (number) => JSON.stringify({ query: question(number, passages), topK: 5 })
  }
}

const measured = []
let written = 0
for (const chunks of sizes) {
  await withServer(spoke.databaseUrl, (run) =>
    writeUnsearched(run, others, chunks - written, {
      first: 100_000_000 + written,
      profile: `bench/${dimensions}`,
      size: dimensions
    })
  )
  written = chunks
  progress(`${chunks} chunks written`)
  for (const target of Object.values(targets)) await load(target, { clients: 1, each: quick ? 5 : 50 })
  const { ratio, results } = await alternate(targets, rounds, { clients: 1, seconds }, progress)
  measured.push({
    chunks,
    searchMs: results.search.p50,
    searchMs99: results.search.p99,
    overBare: ratio("search", "bare", ({ p50 }) => p50),
    errors: results.search.errors
  })
  progress(JSON.stringify(measured.at(-1)))
}
await spoke.stop()
await bare.stop()

const [first] = measured
const rows = measured.map((row) => ({ ...row, againstFirst: rounded(row.overBare / first.overBare) }))
console.table(rows)
if (!quick) {
  const record = { ...machine(), postgres: postgres.version, searched, dimensions, rows }
  fs.writeFileSync(values.out, `${JSON.stringify(record, null, 2)}\n`)
}
process.exit(rows.some(({ errors }) => errors > 0) ? 1 : 0)
