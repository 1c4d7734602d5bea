/**
 * Mixed load with the features of a tenant for a long time, and leaks: heap after garbage collection, descriptors, handles,
 * timers and database connections of the server, on its embedded database and on PostgreSQL and Redis, both at the same
 * time. `npm run bench:soak` takes 30 minutes, writes bench/soak.json and fails if something grows; `--minutes=N`,
 * `--out=FILE`, `--only=embedded|server`. `SOAK_MINUTES` also sets the duration. Linux only.
 */
import { randomUUID } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"
import { pathToFileURL } from "node:url"
import { parseArgs } from "node:util"
import { query, startPostgres, startRedis } from "./databases.mjs"
import { machine, pause, root, startScript, temporaryFolder, until } from "./machine.mjs"
import { bounds, violationsOf, thinOut, trends } from "./soak/fit.mjs"
import { switchOn } from "./soak/features.mjs"
import { appSecret, startGraph, startMix } from "./soak/mix.mjs"
import { call, embeddedSpoke, owner, serverSpoke } from "./spoke.mjs"

const { values } = parseArgs({
  options: { minutes: { type: "string" }, only: { type: "string" }, out: { type: "string" } }
})
const minutes = Number(values.minutes ?? process.env["SOAK_MINUTES"] ?? 30)
const out = values.out ?? path.join(root, "bench/soak.json")
const progress = (text) => process.stderr.write(`${text}\n`)

const mebibytes = (bytes) => Math.round((bytes / 2 ** 20) * 100) / 100

/** The pool's connections open one by one as they are needed, up to a limit: they are counted separately. */
const connectionsOf = async (databaseUrl) => {
  const { rows } = await query(
    databaseUrl,
    `select count(*)::int as n from pg_stat_activity
    where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()`
  )
  return rows[0].n
}

/** Without the files of the embedded database, which keeps as many open as PostgreSQL does: up to a limit of its own. */
const descriptorsOf = (pid) =>
  fs.readdirSync(`/proc/${pid}/fd`).filter((name) => {
    try {
      return !fs.readlinkSync(`/proc/${pid}/fd/${name}`).includes("/database/")
    } catch {
      // It has been closed.
      return false
    }
  }).length

/** Runs the server's garbage collector and takes a sample. */
const sampleOf = async ({ databaseUrl, pid, probe }, begun) => {
  fs.rmSync(probe, { force: true })
  process.kill(pid, "SIGUSR2")
  const found = await until("The probe", 30_000, async () =>
    fs.existsSync(probe) ? JSON.parse(fs.readFileSync(probe, "utf8")) : undefined
  )
  const resources = Object.values(found.resources).reduce((sum, count) => sum + count, 0)
  const timers = found.resources["Timeout"] ?? 0
  const connections = databaseUrl === undefined ? 0 : await connectionsOf(databaseUrl)
  return {
    seconds: Math.round((performance.now() - begun) / 1_000),
    heapMiB: mebibytes(found.heapUsed),
    externalMiB: mebibytes(found.external),
    rssMiB: mebibytes(found.rss),
    fds: descriptorsOf(pid) - connections,
    resources: resources - timers - connections,
    // Each connection has one, which limits its idle time.
    timers: timers - connections,
    ...(databaseUrl !== undefined && { connections })
  }
}

/** With nothing under way: connections at rest are closed on both sides, and turns of clients that left are over. */
const sampleAtRest = async (spoke, begun) => {
  await pause(9_000)
  return sampleOf(spoke, begun)
}

/** Warms up, rests, soaks, rests again. */
const soak = async (engine, spoke, world) => {
  const { cookie } = await call(`${spoke.url}/api/auth/login`, {
    method: "POST",
    headers: { "x-spoke-csrf": "1" },
    body: owner
  })
  await switchOn({ ...world, cookie, spoke })
  const mix = () => startMix({ ...world, cookie, run: randomUUID(), spoke })
  const seconds = minutes * 60
  const warming = mix()
  await pause(Math.min(120, seconds / 4) * 1_000)
  await warming.stop()
  const begun = performance.now()
  const before = await sampleAtRest(spoke, begun)
  const { seen, stop } = mix()
  const samples = []
  const every = Math.max(2, Math.min(15, seconds / 20)) * 1_000
  while (performance.now() - begun < seconds * 1_000) {
    await pause(every)
    samples.push(await sampleOf(spoke, begun))
    const { fds, heapMiB, rssMiB, seconds: at } = samples.at(-1)
    if (samples.length % 20 === 0)
      progress(`${engine} ${at} s: heap ${heapMiB}, resident ${rssMiB}, ${fds} descriptors`)
  }
  await stop()
  const after = await sampleAtRest(spoke, begun)
  if (seen.errors > 0) progress(spoke.output())
  for (const [what, count] of Object.entries(warming.seen.kinds))
    progress(`${engine} warming: ${count} × ${what}`)
  return { ...seen, rest: { before, after }, samples }
}

const variables = (graph) => {
  const probe = path.join(temporaryFolder(), "probe.json")
  return {
    probe,
    variables: {
      CHANNEL_APP_SECRET: appSecret,
      GRAPH_API_URL: graph.url,
      SOAK_PROBE: probe,
      NODE_OPTIONS: `--import=${pathToFileURL(path.join(import.meta.dirname, "soak/probe.mjs"))}`
    }
  }
}

const model = await startScript("model.mjs", [], { MODEL_KEEP_ALIVE: "5000" })
// Slow tokens, because waiting requests are the ones that leak.
await call(`${model.url}/pace`, { method: "POST", body: { first: 20, gap: 10, tokens: 30 } }).catch(
  () => undefined
)
const site = await startScript("site.mjs")
const graphs = { embedded: await startGraph(), server: await startGraph() }
const wanted = (engine) => values.only === undefined || values.only === engine
const starts = {}
if (wanted("embedded")) {
  const { probe, variables: own } = variables(graphs.embedded)
  starts.embedded = { probe, ...(await embeddedSpoke(model, [200], { variables: own })) }
}
const postgres = wanted("server") ? await startPostgres() : undefined
const redis = postgres && (await startRedis())
if (postgres !== undefined) {
  const { probe, variables: own } = variables(graphs.server)
  const withTenantRole = { ...own, SPOKE_TENANT_ROLE: "spoke_tenant" }
  starts.server = {
    probe,
    ...(await serverSpoke(model, { postgres, redis }, [200], { variables: withTenantRole }))
  }
} else if (wanted("server")) progress("server: skipped, no PostgreSQL was found")

const results = Object.fromEntries(
  await Promise.all(
    Object.entries(starts).map(async ([engine, spoke]) => [
      engine,
      await soak(engine, spoke, { graph: graphs[engine].url, site: site.url })
    ])
  )
)
await Promise.all(Object.values(starts).map((spoke) => spoke.stop()))
for (const graph of Object.values(graphs)) graph.stop()
for (const service of [model, site, redis, postgres]) await service?.stop()

const violations = Object.entries(results).flatMap(([engine, result]) => violationsOf(engine, result))
for (const engine of Object.keys(results)) {
  for (const [kind, count] of Object.entries(graphs[engine].received)) {
    if (count === 0) violations.push(`${engine}: no ${kind} were received`)
  }
}
const record = {
  measured: new Date().toISOString().slice(0, 10),
  machine: machine(),
  minutes,
  bounds,
  complaints: violations,
  engines: Object.fromEntries(
    Object.entries(results).map(([engine, { errors, kinds, requests, rest, samples }]) => [
      engine,
      {
        requests,
        errors,
        kinds,
        received: graphs[engine].received,
        rest,
        trends: trends(samples),
        samples: thinOut(samples)
      }
    ])
  )
}
fs.writeFileSync(out, `${JSON.stringify(record, null, 2)}\n`)
for (const [engine, { requests, errors, kinds, rest, trends: lines }] of Object.entries(record.engines))
  progress(JSON.stringify({ engine, requests, errors, kinds, rest, lines }))
for (const sentence of violations) progress(sentence)
process.exitCode = violations.length === 0 ? 0 : 1
