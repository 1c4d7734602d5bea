/**
 * The benchmark: `npm run bench`. Each figure is a ratio to a reference that is measured in the same alternating run, on
 * the embedded database and on PostgreSQL with Redis. Results go to bench/results.json and, with charts, to
 * docs/performance.md.
 *
 *   npm run bench -- --only chat,retrieve --rounds 3
 *   npm run bench -- --quick                 small, short and not recorded: whether everything runs
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { parseArgs } from "node:util"
import { buildAll } from "../scripts/build.mjs"
import { question } from "./corpus.mjs"
import { startPostgres, startRedis } from "./databases.mjs"
import { chat } from "./figures/chat.mjs"
import { machine, root, startScript } from "./machine.mjs"
import { fillTables } from "./peers/tables.mjs"
import { embeddedSpoke, searchable, serverSpoke } from "./spoke.mjs"

const figures = { chat }

const { values } = parseArgs({
  options: {
    only: { type: "string" },
    rounds: { type: "string" },
    seconds: { type: "string" },
    quick: { type: "boolean", default: false }
  }
})
const { quick } = values
const names = values.only?.split(",") ?? Object.keys(figures)
const unknown = names.filter((name) => !(name in figures))
if (unknown.length > 0) {
  console.error(`No such figure: ${unknown.join(", ")}. There are ${Object.keys(figures).join(", ")}.`)
  process.exit(2)
}

const begun = performance.now()
const progress = (text) =>
  console.error(`${String(Math.round((performance.now() - begun) / 1_000)).padStart(5)} s  ${text}`)

/** What several figures share is started when the first of them asks. */
const lazily = (make) => {
  let made
  return () => (made ??= make())
}

const databases = lazily(async () => {
  const postgres = await startPostgres()
  const redis = await startRedis()
  progress(
    postgres === undefined
      ? "no PostgreSQL was found: the embedded database alone is measured"
      : `PostgreSQL ${postgres.version} ${postgres.vector ? "with" : "without"} pgvector, ${redis === undefined ? "no " : ""}Redis`
  )
  return { postgres, redis }
})
const model = lazily(() => startScript("model.mjs"))

/** Peers and Spoke with the same knowledge, running side by side. */
const services = lazily(async () => {
  const passages = quick ? 200 : 5_000
  const { postgres, redis } = await databases()
  const stub = await model()
  let peers
  if (postgres?.vector) {
    progress(`the peers' ${passages} chunks`)
    const url = await postgres.database("peers")
    await fillTables(url, passages)
    const variables = { MODEL: stub.url, DATABASE_URL: url }
    peers = {
      bare: await startScript("peers/bare.mjs", [], variables),
      handwritten: await startScript("peers/handwritten.mjs", [], variables)
    }
  }
  progress(`Spoke's ${passages} chunks`)
  const server = postgres && (await serverSpoke(stub, { postgres, redis }, passages))
  const embedded = await embeddedSpoke(stub, passages)
  for (const spoke of [server, embedded]) if (spoke) await searchable(spoke, question(1, passages))
  return { model: stub, postgres, redis, peers, server, embedded }
})

const world = {
  quick,
  passages: quick ? 200 : 5_000,
  rounds: Number(values.rounds ?? (quick ? 1 : 3)),
  seconds: Number(values.seconds ?? (quick ? 0.5 : 3)),
  databases,
  model,
  services,
  progress
}

progress("building")
await buildAll()
const file = path.join(import.meta.dirname, "results.json")
const recorded = fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, "utf8")) : { figures: {} }
let errors = 0
for (const name of names) {
  progress(`${name} begins`)
  const result = await figures[name](world)
  errors += countErrors(result)
  const { postgres, redis } = await databases()
  recorded.figures[name] = {
    ...machine(),
    postgres: postgres && `${postgres.version}${postgres.vector ? " with pgvector" : ""}`,
    redis: redis !== undefined,
    rounds: world.rounds,
    ...result
  }
  if (quick) console.log(JSON.stringify(result))
  else fs.writeFileSync(file, `${JSON.stringify(recorded, null, 2)}\n`)
}
progress(`done${quick ? "" : `: ${path.relative(root, file)}`}`)
if (errors > 0) console.error(`${errors} requests failed.`)
process.exit(errors > 0 ? 1 : 0)

function countErrors(value) {
  if (typeof value !== "object" || value === null) return 0
  return Object.entries(value).reduce(
    (sum, [key, inner]) => sum + (key === "errors" && typeof inner === "number" ? inner : countErrors(inner)),
    0
  )
}
