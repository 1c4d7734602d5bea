/**
 * Measures what features cost a turn: row level security, one webhook that gets an event of every turn, and both. Four
 * services on one PostgreSQL answer the same questions alternately in one run, on agents of 1,000 chunks. Versions,
 * kept evidence and grounding are part of every turn. The services have the role `api`, so the delivery of events,
 * which is the work of workers, is measured separately: one worker sends what the turns left. The record is
 * bench/features.json: CPU of the service and of the database for each turn, the median of the ratios of each round,
 * and the 95 % confidence interval of the ratio of all CPU. `--other` measures the build of another checkout beside
 * them, with the same schema.
 *
 *   npm run bench -- --only features
 *   node bench/features.mjs --rounds 40 --seconds 2
 *   node bench/features.mjs --other ../spoke-before
 *   node bench/features.mjs --quick          small, short and not recorded
 */
import * as fs from "node:fs"
import * as http from "node:http"
import * as path from "node:path"
import { parseArgs } from "node:util"
import { buildAll } from "../scripts/build.mjs"
import { question } from "./corpus.mjs"
import { startPostgres } from "./databases.mjs"
import { alternate, load } from "./load.mjs"
import { cpuOf, machine, rounded, startScript, startSpoke, until } from "./machine.mjs"
import { call, keyHeader, owner, searchable, serverSpoke, withServer } from "./spoke.mjs"

const { values } = parseArgs({
  options: {
    rounds: { type: "string" },
    seconds: { type: "string" },
    other: { type: "string" },
    quick: { type: "boolean", default: false }
  }
})
const { quick } = values
const rounds = Number(values.rounds ?? (quick ? 1 : 25))
const seconds = Number(values.seconds ?? (quick ? 0.5 : 2))
const passages = quick ? 100 : 1_000
const role = "spoke_tenant"

await buildAll()
const postgres = await startPostgres()
if (postgres === undefined) throw new Error("PostgreSQL is needed.")
const model = await startScript("model.mjs")
await call(`${model.url}/pace`, { method: "POST", body: { first: 0, gap: 0, tokens: 50 } })

const receiver = http.createServer((request, response) => {
  request.resume()
  request.on("end", () => response.writeHead(204).end())
})
await new Promise((resolve) => receiver.listen(0, "127.0.0.1", resolve))

/** A service that answers. With `webhook`, its tenant gets an event of each turn. */
const startAnswering = async ({ folder, variables = {}, webhook = false }) => {
  const options = { args: ["--role", "api"], folder, variables }
  const spoke = await serverSpoke(model, { postgres }, [passages], options)
  if (webhook) {
    const post = (place, body, headers) => call(`${spoke.url}${place}`, { method: "POST", body, headers })
    const { cookie } = await post("/api/auth/login", owner, { "x-spoke-csrf": "1" })
    const body = { url: `http://127.0.0.1:${receiver.address().port}/`, events: ["turn.settled"] }
    await post("/api/webhook-endpoints", body, { cookie, "x-spoke-csrf": "1" })
  }
  await searchable(spoke, question(1, passages))
  return spoke
}
const isolated = { SPOKE_TENANT_ROLE: role }
const services = {
  plain: await startAnswering({}),
  isolation: await startAnswering({ variables: isolated }),
  webhook: await startAnswering({ webhook: true }),
  both: await startAnswering({ variables: isolated, webhook: true }),
  ...(values.other !== undefined && { other: await startAnswering({ folder: path.resolve(values.other) }) })
}
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

for (const target of Object.values(targets)) await load(target, { clients: 8, each: quick ? 2 : 250 })
// So that the database plans for tables with rows, as it does some minutes after a first start.
for (const { databaseUrl } of Object.values(services))
  await withServer(databaseUrl, (run) => run("vacuum analyze"))
const record = { ...machine(), postgres: postgres.version, rounds, seconds, passages, turns: [] }
for (const clients of quick ? [4] : [1, 16]) {
  const run = await alternate(
    targets,
    rounds,
    { clients, seconds, database: postgres.pid, alone: true },
    console.error
  )
  const ratios = (name) => {
    const ratio = (of) => rounded(run.ratio(name, "plain", of))
    return {
      perSecond: ratio(({ perSecond }) => perSecond),
      cpu: ratio(({ cpuMs }) => cpuMs),
      databaseCpu: ratio(({ databaseCpuMs }) => databaseCpuMs),
      allCpu: ratio(({ cpuMs, databaseCpuMs }) => cpuMs + databaseCpuMs),
      allCpuInterval: run.interval(name, "plain", ({ cpuMs, databaseCpuMs }) => cpuMs + databaseCpuMs),
      p50: ratio(({ p50 }) => p50)
    }
  }
  const features = Object.keys(targets).filter((name) => name !== "plain")
  record.turns.push({
    clients,
    ...run.results,
    ratios: Object.fromEntries(features.map((name) => [name, ratios(name)]))
  })
}

/** CPU of a worker, and of the database meanwhile, for each event that it sends. */
const delivery = await withServer(services.webhook.databaseUrl, async (run) => {
  const countPending = async () =>
    Number(
      (await run("select count(*) as found from webhook_deliveries where status = 'pending'")).rows[0].found
    )
  const events = await countPending()
  const worker = await startSpoke(services.webhook.variables, ["--role", "worker"])
  const before = { own: cpuOf(worker.pid), database: cpuOf(postgres.pid) }
  await until("The events of the turns", 600_000, async () =>
    (await countPending()) === 0 ? true : undefined
  )
  const share = (now, then) => rounded(((now - then) * 1_000) / events)
  const found = {
    events,
    cpuMs: share(cpuOf(worker.pid), before.own),
    databaseCpuMs: share(cpuOf(postgres.pid), before.database)
  }
  await worker.stop()
  return found
})
record.delivery = delivery
console.log(JSON.stringify(record, null, 2))
if (!quick)
  fs.writeFileSync(path.join(import.meta.dirname, "features.json"), `${JSON.stringify(record, null, 2)}\n`)
process.exit(0)
