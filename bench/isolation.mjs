/**
 * What row level security costs: the same turns of two services on one PostgreSQL, without it and with it, by turns in one
 * run, on agents of 1,000 chunks. CPU of the service and of the database a turn, and the median of the ratios of each round.
 * The record is bench/isolation.json.
 *
 *   npm run bench -- --only isolation
 *   node bench/isolation.mjs --rounds 10 --seconds 5
 *   node bench/isolation.mjs --quick          small, short and not recorded
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { parseArgs } from "node:util"
import { buildAll } from "../scripts/build.mjs"
import { question } from "./corpus.mjs"
import { startPostgres } from "./databases.mjs"
import { alternate, load } from "./load.mjs"
import { machine, rounded, startScript } from "./machine.mjs"
import { call, keyHeader, searchable, serverSpoke } from "./spoke.mjs"

const { values } = parseArgs({
  options: {
    rounds: { type: "string" },
    seconds: { type: "string" },
    quick: { type: "boolean", default: false }
  }
})
const { quick } = values
const rounds = Number(values.rounds ?? (quick ? 1 : 7))
const seconds = Number(values.seconds ?? (quick ? 0.5 : 4))
const passages = quick ? 100 : 1_000
const role = "spoke_tenant"

await buildAll()
const postgres = await startPostgres()
if (postgres === undefined) throw new Error("PostgreSQL is needed.")
const model = await startScript("model.mjs")
await call(`${model.url}/pace`, { method: "POST", body: { first: 0, gap: 0, tokens: 50 } })

const started = async (variables) => {
  const spoke = await serverSpoke(model, { postgres }, [passages], { variables })
  await searchable(spoke, question(1, passages))
  return spoke
}
const services = { off: await started({}), on: await started({ SPOKE_TENANT_ROLE: role }) }
const targets = Object.fromEntries(
  Object.entries(services).map(([name, spoke]) => [
    name,
    {
      url: `${spoke.url}/v1/chat`,
      pid: spoke.pid,
      headers: keyHeader(spoke),
      body: (number) => JSON.stringify({ message: question(number, passages) })
    }
  ])
)

for (const target of Object.values(targets)) await load(target, { clients: 8, each: quick ? 2 : 100 })
const record = { ...machine(), postgres: postgres.version, rounds, seconds, passages, turns: [] }
for (const clients of quick ? [4] : [1, 16]) {
  const run = await alternate(
    targets,
    rounds,
    { clients, seconds, database: postgres.pid, alone: true },
    console.error
  )
  const ratio = (of) => rounded(run.ratio("on", "off", of))
  record.turns.push({
    clients,
    ...run.results,
    ratios: {
      perSecond: ratio(({ perSecond }) => perSecond),
      cpu: ratio(({ cpuMs }) => cpuMs),
      databaseCpu: ratio(({ databaseCpuMs }) => databaseCpuMs),
      allCpu: ratio(({ cpuMs, databaseCpuMs }) => cpuMs + databaseCpuMs),
      p50: ratio(({ p50 }) => p50)
    }
  })
}
console.log(JSON.stringify(record, null, 2))
if (!quick)
  fs.writeFileSync(path.join(import.meta.dirname, "isolation.json"), `${JSON.stringify(record, null, 2)}\n`)
process.exit(0)
