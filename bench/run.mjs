/**
 * The benchmark: `npm run bench`. Each figure is a ratio to a reference that is measured in the same alternating run, on
 * the embedded database and on PostgreSQL with Redis. Results go to bench/results.json and, with charts, to
 * docs/performance.md.
 *
 *   npm run bench -- --only chat,retrieve --rounds 3
 *   npm run bench -- --largest 100000        how far the collection of chunks grows; 1,000,000 by default
 *   npm run bench -- --growth-seconds 1800   how long one size may take to be written; 240 by default, else it is smaller
 *   npm run bench -- --quick                 small, short and not recorded: to see whether everything runs
 *   npm run bench -- --only hostile          what hostile files cost (bench/hostile.mjs)
 *   npm run bench -- --only retrieval        how well retrieval finds (bench/retrieval.mjs)
 *   npm run bench -- --only features         what row level security and a webhook cost a turn (bench/features.mjs)
 *   npm run bench -- --peers FOLDER          also services with LangChain.js and Mastra (bench/figures/frameworks.mjs)
 */
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { parseArgs } from "node:util"
import { buildAll } from "../scripts/build.mjs"
import { question } from "./corpus.mjs"
import { startPostgres, startRedis } from "./databases.mjs"
import { chat } from "./figures/chat.mjs"
import { frameworks } from "./figures/frameworks.mjs"
import { ingestion } from "./figures/ingestion.mjs"
import { pages } from "./figures/pages.mjs"
import { retrieve } from "./figures/retrieve.mjs"
import { start } from "./figures/start.mjs"
import { webhooks } from "./figures/webhooks.mjs"
import { machine, root, startScript, temporaryFolder } from "./machine.mjs"
import { fillTables } from "./peers/tables.mjs"
import { report } from "./report.mjs"
import { embeddedSpoke, searchable, serverSpoke } from "./spoke.mjs"

/** In this order: the last one stops the services that the others share. */
const figures = { chat, frameworks, retrieve, ingestion, webhooks, pages, start }
/** Separate programs with their own records. They run only if they are named. */
const separatePrograms = ["hostile", "retrieval", "features"]

const { values } = parseArgs({
  options: {
    only: { type: "string" },
    peers: { type: "string" },
    rounds: { type: "string" },
    seconds: { type: "string" },
    largest: { type: "string", default: "1000000" },
    "growth-seconds": { type: "string", default: "240" },
    quick: { type: "boolean", default: false }
  }
})
const { quick } = values
const requested = values.only?.split(",") ?? Object.keys(figures)
const unknown = requested.filter((name) => !(name in figures) && !separatePrograms.includes(name))
if (unknown.length > 0) {
  console.error(
    `No such figure: ${unknown.join(", ")}. There are ${[...Object.keys(figures), ...separatePrograms].join(", ")}.`
  )
  process.exit(2)
}

const names = Object.keys(figures)
  .filter((name) => requested.includes(name))
  .filter((name) => name !== "frameworks" || values.peers !== undefined)

const begun = performance.now()
const progress = (text) =>
  console.error(`${String(Math.round((performance.now() - begun) / 1_000)).padStart(5)} s  ${text}`)

/** Shared services are started when the first figure needs them. */
const once = (make) => {
  let value
  return () => (value ??= make())
}

const databases = once(async () => {
  const postgres = await startPostgres()
  const redis = await startRedis()
  progress(
    postgres === undefined
      ? "no PostgreSQL was found: the embedded database alone is measured"
      : `PostgreSQL ${postgres.version} ${postgres.vector ? "with" : "without"} pgvector, ${redis === undefined ? "no " : ""}Redis`
  )
  return { postgres, redis }
})
const model = once(() => startScript("model.mjs"))

/** The peers put five passages into the prompt, which are 900 tokens. The default of an agent is 6,000 tokens. */
const agent = { grounding: { contextTokens: 1_000 } }

/** Peers and Spoke with the same knowledge, running side by side. */
const services = once(async () => {
  const { passages } = world
  const { postgres, redis } = await databases()
  const stub = await model()
  let peers
  if (postgres?.vector) {
    progress(`the peers' ${passages} chunks`)
    const url = await postgres.database("peers")
    await fillTables(url, passages)
    const variables = { MODEL: stub.url, DATABASE_URL: url }
    peers = {
      databaseUrl: url,
      bare: await startScript("peers/bare.mjs", [], variables),
      handwritten: await startScript("peers/handwritten.mjs", [], variables)
    }
  }
  progress(`Spoke's ${passages} chunks`)
  const server = postgres && (await serverSpoke(stub, { postgres, redis }, [passages], { agent }))
  const embedded = await embeddedSpoke(stub, [passages], { agent })
  for (const spoke of [server, embedded]) if (spoke) await searchable(spoke, question(1, passages))
  return { model: stub, postgres, redis, peers, server, embedded }
})

const world = {
  quick,
  passages: quick ? 100 : 5_000,
  rounds: Number(values.rounds ?? (quick ? 1 : 3)),
  seconds: Number(values.seconds ?? (quick ? 0.5 : 3)),
  largest: Number(values.largest),
  maxGrowthSeconds: Number(values["growth-seconds"]),
  peerFolder: values.peers,
  databases,
  model,
  services,
  progress
}

for (const name of separatePrograms.filter((name) => requested.includes(name))) {
  progress(`${name} begins`)
  const { status } = spawnSync(process.execPath, [path.join(import.meta.dirname, `${name}.mjs`)], {
    stdio: "inherit"
  })
  if (status !== 0) process.exit(1)
}
if (names.length === 0) process.exit(0)

const peers = ["bare", "handwritten", "langchain", "mastra"]

/** Requests to Spoke that failed, anywhere in a result. */
const countErrors = (value) => {
  if (typeof value !== "object" || value === null || peers.includes(value.target)) return 0
  return Object.entries(value).reduce((sum, [key, inner]) => {
    if (peers.includes(key)) return sum
    return sum + (key === "errors" && typeof inner === "number" ? inner : countErrors(inner))
  }, 0)
}

progress("building")
await buildAll()
const file = path.join(import.meta.dirname, "results.json")
const recorded = fs.existsSync(file) && !quick ? JSON.parse(fs.readFileSync(file, "utf8")) : { figures: {} }
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
    seconds: world.seconds,
    ...result
  }
  if (quick) console.log(JSON.stringify(result))
  else fs.writeFileSync(file, `${JSON.stringify(recorded, null, 2)}\n`)
}
if (quick) report(recorded, temporaryFolder())
else report(recorded)
progress(`done${quick ? "" : `: ${path.relative(root, file)}`}`)
if (errors > 0) console.error(`${errors} requests failed.`)
process.exit(errors > 0 ? 1 : 0)
