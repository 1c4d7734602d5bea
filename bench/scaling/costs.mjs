/**
 * What one unit of work costs on PostgreSQL and Redis: processor time of the service and of the database for a turn, a
 * search and a document, and the bytes that a turn, a chunk and an idle connection take. docs/scaling.md calculates with
 * these figures. Linux only.
 *
 *   node bench/scaling/costs.mjs [--seconds 20] [--out bench/costs.json]
 *   node bench/scaling/costs.mjs --quick          small, short and not recorded
 */
import * as fs from "node:fs"
import * as http from "node:http"
import * as path from "node:path"
import { parseArgs } from "node:util"
import { buildAll } from "../../scripts/build.mjs"
import { documents, question } from "../corpus.mjs"
import { startPostgres, startRedis } from "../databases.mjs"
import { load } from "../load.mjs"
import { cpuOf, machine, memoryOf, rounded, root, startScript, startSpoke, until } from "../machine.mjs"
import { call, keyHeader, searchable, serverSpoke, withServer } from "../spoke.mjs"

const { values } = parseArgs({
  options: {
    seconds: { type: "string" },
    out: { type: "string", default: path.join(root, "bench/costs.json") },
    quick: { type: "boolean", default: false }
  }
})
const { quick } = values
const seconds = Number(values.seconds ?? (quick ? 1 : 20))
const passages = quick ? 100 : 1_000
const clients = quick ? 2 : 16

await buildAll()
const postgres = await startPostgres()
const redis = await startRedis()
if (postgres === undefined || redis === undefined) throw new Error("PostgreSQL and Redis are needed.")
const model = await startScript("model.mjs")
await call(`${model.url}/pace`, { method: "POST", body: { first: 0, gap: 0, tokens: 50 } })
const spoke = await serverSpoke(model, { postgres, redis }, [passages], { args: ["--role", "api"] })
await searchable(spoke, question(1, passages))
const query = (text, parameters) =>
  withServer(spoke.databaseUrl, async (run) => (await run(text, parameters)).rows)

const target = (place, body) => ({
  url: `${spoke.url}${place}`,
  pid: spoke.pid,
  headers: keyHeader(spoke),
  body: (count) => JSON.stringify(body(count))
})
const turn = target("/v1/chat", (count) => ({ message: question(count, passages) }))
const search = target("/v1/retrieve", (count) => ({ query: question(count, passages) }))

/** Bytes of all tables with their indexes, without what vacuum can use again. */
const storedBytes = async () => {
  await query("vacuum analyze")
  const rows = await query(
    "select relname as name, pg_total_relation_size(oid)::float8 as bytes from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace"
  )
  return new Map(rows.map(({ bytes, name }) => [name, bytes]))
}
const growth = (before, after, units) => {
  const parts = [...after]
    .map(([name, bytes]) => [name, Math.round((bytes - (before.get(name) ?? 0)) / units)])
    .filter(([, bytes]) => bytes >= 20)
    .toSorted(([, one], [, other]) => other - one)
  return {
    bytes: parts.reduce((sum, [, bytes]) => sum + bytes, 0),
    tables: Object.fromEntries(parts.slice(0, 6))
  }
}

const measureLoad = async (which, options = {}) => {
  const { cpuMs, databaseCpuMs, errors, p50, p99, perSecond, requests } = await load(which, {
    clients,
    seconds,
    database: postgres.pid,
    ...options
  })
  if (errors > 0) throw new Error(`${errors} of ${requests} requests failed.`)
  return {
    requests,
    perSecond: rounded(perSecond),
    serviceCpuMs: rounded(cpuMs),
    databaseCpuMs: rounded(databaseCpuMs),
    p50Ms: rounded(p50),
    p99Ms: rounded(p99)
  }
}

const measureTurns = async () => {
  await load(turn, { clients, each: quick ? 2 : 100 })
  const before = await storedBytes()
  const cost = await measureLoad(turn)
  return { ...cost, stored: growth(before, await storedBytes(), cost.requests) }
}

/** Ten turns in each conversation. */
const measureConversations = async () => {
  const count = quick ? 2 : 100
  const before = await storedBytes()
  const agent = new http.Agent({ keepAlive: true })
  await Promise.all(
    Array.from({ length: clients }, async (_, client) => {
      for (let place = client; place < count; place += clients) {
        let conversationId
        for (let asked = 0; asked < 10; asked++) {
          const body = {
            message: question(place * 10 + asked, passages),
            ...(conversationId && { conversationId })
          }
          const { data } = await call(turn.url, { method: "POST", headers: turn.headers, body })
          conversationId = data.conversationId
        }
      }
    })
  )
  agent.destroy()
  return growth(before, await storedBytes(), count * 10)
}

/** Connections that have asked once and rest. */
const measureConnections = async () => {
  const count = quick ? 50 : 2_000
  const before = memoryOf(spoke.pid)
  const agent = new http.Agent({ keepAlive: true, maxSockets: count, maxFreeSockets: count })
  const ask = () =>
    new Promise((resolve, reject) => {
      const request = http.get(`${spoke.url}/v1/usage`, { agent, headers: keyHeader(spoke) }, (answer) =>
        answer.resume().on("end", resolve)
      )
      request.on("error", reject)
    })
  for (let place = 0; place < count; place += 50) await Promise.all(Array.from({ length: 50 }, ask))
  await Promise.all(Array.from({ length: count }, ask))
  const after = memoryOf(spoke.pid)
  agent.destroy()
  return { connections: count, kibibytes: rounded(((after - before) * 1_024) / count) }
}

/** Documents that a worker reads, cuts, embeds and compares. */
const measureIngestion = async () => {
  const worker = await startSpoke(spoke.variables, ["--role", "worker"])
  const count = quick ? 3 : 150
  const texts = [...documents(count * 10, { first: 900_000_000 })].slice(0, count)
  const chunksOf = async () => {
    const [{ chunks, vectors }] = await query(
      "select (select count(*)::int from chunks) as chunks, (select count(*)::int from chunk_embeddings) as vectors"
    )
    return { chunks, vectors }
  }
  const cpu = () => ({ worker: cpuOf(worker.pid), service: cpuOf(spoke.pid), database: cpuOf(postgres.pid) })
  const before = { stored: await storedBytes(), cpu: cpu(), counts: await chunksOf() }
  for (const { passages: parts, title } of texts)
    await call(`${spoke.url}/v1/sources`, {
      method: "POST",
      headers: keyHeader(spoke),
      body: { type: "TEXT", name: title, config: { text: parts.join("\n\n") } }
    })
  await until("Reading the documents", 900_000, async () => {
    const [{ open }] = await query(
      `select (select count(*) from ingestion_jobs where status in ('QUEUED', 'RUNNING'))
        + (select count(*) from chunks c where version is not null and not exists
          (select from chunk_embeddings e where e.tenant_id = c.tenant_id and e.chunk_id = c.id)) as open`
    )
    return Number(open) === 0 ? true : undefined
  })
  const after = { cpu: cpu(), counts: await chunksOf() }
  const chunks = after.counts.chunks - before.counts.chunks
  const share = (name, units) => rounded(((after.cpu[name] - before.cpu[name]) * 1_000) / units)
  const found = {
    documents: count,
    chunks,
    perDocument: {
      workerCpuMs: share("worker", count),
      serviceCpuMs: share("service", count),
      databaseCpuMs: share("database", count)
    },
    perChunk: { workerCpuMs: share("worker", chunks), databaseCpuMs: share("database", chunks) },
    storedPerChunk: growth(before.stored, await storedBytes(), chunks)
  }
  await worker.stop()
  return found
}

const record = {
  measured: new Date().toISOString().slice(0, 10),
  machine: machine(),
  postgres: postgres.version,
  vector: postgres.vector,
  passages,
  clients,
  turns: await measureTurns(),
  conversationTurnStored: await measureConversations(),
  search: await measureLoad(search),
  idleProcessMiB: rounded(memoryOf(spoke.pid)),
  connections: await measureConnections(),
  ingestion: await measureIngestion()
}
console.log(JSON.stringify(record, null, 2))
if (!quick) fs.writeFileSync(values.out, `${JSON.stringify(record, null, 2)}\n`)
await spoke.stop()
for (const service of [model, redis, postgres]) await service.stop()
process.exit(0)
