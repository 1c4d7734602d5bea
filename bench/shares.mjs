/**
 * What one hostile caller costs others: at each limit that callers share, one of them takes as much as it can get,
 * while others, of another tenant and from other addresses, go on with their work. On PostgreSQL and Redis, or the
 * embedded database with `--embedded`. `npm run bench:shares` writes bench/shares.json and fails where one of the
 * others was refused; `--seconds=20` for each attack, `--only=REGEXP`, `--out=FILE`. All of them share this machine,
 * the hostile caller too, so part of what the others lose is processor time that any other process would take as well.
 * To distinguish the two, each attack is made a second time, on a server of its own beside this one: `ratio` compares
 * with calm, just before and just after, `shareRatio` with that. Linux only.
 */
import * as fs from "node:fs"
import * as http from "node:http"
import * as path from "node:path"
import { parseArgs } from "node:util"
import { Worker } from "node:worker_threads"
import { startPostgres, startRedis } from "./databases.mjs"
import { machine, quantile, root, rounded, startScript, watchMemory } from "./machine.mjs"
import { attacks } from "./shares/attacks.mjs"
import { createTenant, startOthers } from "./shares/others.mjs"
import { appSecret, billingSecret, pause } from "./shares/world.mjs"
import { startGraph } from "./soak/mix.mjs"
import { call, embeddedSpoke, serverSpoke } from "./spoke.mjs"

const { values } = parseArgs({
  options: {
    embedded: { type: "boolean", default: false },
    only: { type: "string", default: "" },
    out: { type: "string" },
    seconds: { type: "string", default: "20" }
  }
})
const seconds = Number(values.seconds)
const progress = (text) => process.stderr.write(`${text}\n`)

/** Pages of a hostile tenant: `/slow/N` send very slowly, `/large/N` take long to parse. */
const startSlowSite = async () => {
  const row = "<tr><td>Order</td><td><b>of<i>the<u>account</u></i></b></td></tr>"
  const server = http.createServer((request, response) => {
    response.writeHead(200, { "content-type": "text/html; charset=utf-8" })
    if (request.url.startsWith("/large/")) {
      return response.end(`<title>${request.url}</title><main><table>${row.repeat(60_000)}</table></main>`)
    }
    if (!request.url.startsWith("/slow/")) return response.end("")
    const timer = setInterval(() => response.write("<p>Wait."), 1_000)
    response.on("close", () => clearInterval(timer))
  })
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve))
  const stop = () => {
    server.close()
    server.closeAllConnections()
  }
  return { url: `http://127.0.0.1:${server.address().port}`, stop }
}

const startAttack = async (attack, world) => {
  const worker = new Worker(new URL("shares/hostile.mjs", import.meta.url), { workerData: { attack, world } })
  const message = () =>
    new Promise((resolve, reject) => {
      worker.once("message", resolve)
      worker.once("error", reject)
    })
  await message()
  return {
    stop: () => {
      const outcome = message()
      worker.postMessage("stop")
      return outcome
    }
  }
}

const merge = (windows) => {
  const kinds = {}
  for (const window of windows)
    for (const [kind, { answered, failures }] of Object.entries(window)) {
      kinds[kind] ??= { answered: [], failures: [] }
      kinds[kind].answered.push(...answered)
      kinds[kind].failures.push(...failures)
    }
  return kinds
}

const figures = ({ answered, failures }) => ({
  answered: answered.length,
  refused: failures.length,
  p50Ms: rounded(quantile(answered, 0.5)),
  p99Ms: rounded(quantile(answered, 0.99)),
  ...(failures.length > 0 && { failures: [...new Set(failures)].slice(0, 3) })
})

/** The requests of all kinds together. */
const together = (kinds) =>
  figures({
    answered: Object.values(kinds).flatMap(({ answered }) => answered),
    failures: Object.values(kinds).flatMap(({ failures }) => failures)
  })

const variables = (graph) => ({
  CHANNEL_APP_SECRET: appSecret,
  BILLING_WEBHOOK_SECRET: billingSecret,
  GRAPH_API_URL: graph.url
})

const model = await startScript("model.mjs")
await call(`${model.url}/pace`, { method: "POST", body: { first: 20, gap: 5, tokens: 10 } }).catch(
  () => undefined
)
const site = await startScript("site.mjs")
const slowSite = await startSlowSite()
const graph = await startGraph()
const postgres = values.embedded ? undefined : await startPostgres()
const redis = []

/** Spoke with databases of its own. */
const start = async () => {
  const options = { variables: variables(graph) }
  if (values.embedded) return embeddedSpoke(model, [50], options)
  const own = await startRedis()
  redis.push(own)
  return serverSpoke(model, { postgres, redis: own }, [50], options)
}
const spoke = await start()
const otherServer = await start()
/** The hostile caller's tenant at a server. */
const hostileAt = async (server) => ({
  ...(await createTenant(server, "hostile", "222", server.variables.SPOKE_OPERATOR_TOKEN)),
  slowSite: slowSite.url
})
const others = {
  ...(await createTenant(spoke, "others", "111", spoke.variables.SPOKE_OPERATOR_TOKEN)),
  site: site.url
}
const hostile = await hostileAt(spoke)
const hostileElsewhere = await hostileAt(otherServer)

/** Runs the other clients for a while. */
const window = async (length) => {
  const { stop } = startOthers(others)
  await pause(length * 1_000)
  return stop()
}

await window(Math.min(10, seconds))
const calm = []
const rows = []
for (const attack of attacks.filter((name) => new RegExp(values.only, "u").test(name))) {
  calm.push(await window(seconds / 2))
  const memory = watchMemory(spoke.pid)
  const { stop } = await startAttack(attack, hostile)
  const worked = await window(seconds)
  const { ended } = await stop()
  rows.push({ attack, worked, ended, memory: { before: memory.before, peak: memory.end() } })
  progress(`${attack}: ${JSON.stringify(ended)}`)
  for (const [kind, all] of Object.entries(worked)) progress(`  ${kind}: ${JSON.stringify(figures(all))}`)
  // Waits until its work has ended.
  await pause(5_000)
  const besideAttack = await startAttack(attack, hostileElsewhere)
  rows.at(-1).beside = await window(seconds)
  await besideAttack.stop()
  await pause(5_000)
}
calm.push(await window(seconds / 2))

/** What the others do without the attack: before and after it, because a machine is not as fast all the time. */
const calmAt = (index) => merge([calm[index], calm[index + 1]])
const report = {
  measured: new Date().toISOString().slice(0, 10),
  machine: machine(),
  database: values.embedded ? "embedded" : "PostgreSQL and Redis",
  seconds,
  attacks: rows.map(({ attack, beside, ended, memory, worked }, index) => {
    const quiet = calmAt(index)
    const kinds = Object.entries(worked).map(([kind, all]) => {
      const found = figures(all)
      const besideP99Ms = figures(beside[kind]).p99Ms
      const calmP99Ms = figures(quiet[kind]).p99Ms
      const to = (p99Ms) => (found.p99Ms === null ? null : rounded(found.p99Ms / p99Ms, 2))
      return [kind, { ...found, calmP99Ms, besideP99Ms, ratio: to(calmP99Ms), shareRatio: to(besideP99Ms) }]
    })
    const all = together(worked)
    const calmP99Ms = together(quiet).p99Ms
    const besideP99Ms = together(beside).p99Ms
    return {
      attack,
      connections: ended.opened,
      answers: ended.statuses,
      memoryMiB: { before: Math.round(memory.before), peak: Math.round(memory.peak) },
      refused: all.refused,
      all: {
        ...all,
        calmP99Ms,
        besideP99Ms,
        ratio: rounded(all.p99Ms / calmP99Ms, 2),
        shareRatio: rounded(all.p99Ms / besideP99Ms, 2)
      },
      worstRatio: Math.max(...kinds.map(([, { ratio }]) => ratio ?? Number.POSITIVE_INFINITY)),
      worstShareRatio: Math.max(...kinds.map(([, { shareRatio }]) => shareRatio ?? Number.POSITIVE_INFINITY)),
      others: Object.fromEntries(kinds)
    }
  })
}
await spoke.stop()
await otherServer.stop()
slowSite.stop()
graph.stop()
for (const service of [model, site, ...redis, postgres]) await service?.stop()
for (const {
  all,
  attack,
  memoryMiB,
  others: kinds,
  refused,
  worstRatio,
  worstShareRatio
} of report.attacks) {
  const worst = Object.entries(kinds).map(
    ([kind, { p99Ms, ratio, shareRatio }]) => `${kind} ${p99Ms} (${ratio}×, ${shareRatio}×)`
  )
  const summary = `${refused} refused, all ${all.ratio}×, ${all.shareRatio}×, worst ${worstRatio}×, ${worstShareRatio}×, ${memoryMiB.peak} MiB`
  progress(`${attack}: ${summary}; ${worst.join(", ")}`)
}
if (values.only === "" || values.out !== undefined) {
  const out = values.out ?? path.join(root, "bench/shares.json")
  fs.writeFileSync(out, `${JSON.stringify(report, null, 2)}\n`)
}
process.exit(report.attacks.some(({ refused }) => refused > 0) ? 1 : 0)
