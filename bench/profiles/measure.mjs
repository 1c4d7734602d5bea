/**
 * What the CPU time of the main thread is spent on: `npm run bench:profile`. For a turn, a stream, a search, an ingested
 * document and an accepted webhook, on PostgreSQL and on the embedded database, whose engine has a thread of its own and
 * is not in the figures. The result is written into bench/profile.json and docs/performance.md. `--quick` records nothing.
 */
import { spawnSync } from "node:child_process"
import { createHmac } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"
import { parseArgs } from "node:util"
import { question } from "../corpus.mjs"
import { startPostgres, startRedis } from "../databases.mjs"
import { turnTargets } from "../figures/chat.mjs"
import { delivery } from "../figures/webhooks.mjs"
import { load } from "../load.mjs"
import { machine, root, rounded, startScript, temporaryFolder, until } from "../machine.mjs"
import { timesOf } from "./shares.mjs"
import { report } from "../report.mjs"
import { call, embeddedSpoke, keyHeader, searchable, serverSpoke } from "../spoke.mjs"

const { quick } = parseArgs({ options: { quick: { type: "boolean", default: false } } }).values
const passages = quick ? 100 : 5_000
const clients = 16
const seconds = quick ? 1 : 10
const documents = quick ? 10 : 200

const build = (...args) =>
  spawnSync(process.execPath, [path.join(root, "scripts/build.mjs"), ...args], { stdio: "inherit" })

const secret = "the app secret of the benchmark"
const file = path.join(temporaryFolder(), "profile.json")
const variables = {
  NODE_OPTIONS: `--import ${path.join(import.meta.dirname, "profiler.mjs")}`,
  PROFILE: file,
  CHANNEL_APP_SECRET: secret
}

/** The shares of CPU time by part while `work` runs. `work` returns how many requests it made. */
const profileWhile = async ({ pid }, work) => {
  process.kill(pid, "SIGUSR2")
  const { errors = 0, requests } = await work()
  if (errors > 0) throw new Error(`${errors} requests failed`)
  process.kill(pid, "SIGUSR2")
  await until("The profile", 60_000, async () => (fs.existsSync(file) ? true : undefined))
  const times = timesOf(JSON.parse(fs.readFileSync(file, "utf8")))
  fs.rmSync(file)
  const whole = Object.values(times).reduce((sum, time) => sum + time, 0)
  return {
    requests,
    cpuMs: rounded(whole / requests),
    shares: Object.fromEntries(
      Object.entries(times)
        .toSorted(([, one], [, other]) => other - one)
        .map(([part, time]) => [part, rounded(time / whole, 2)])
    )
  }
}

const ingest = async (spoke, site, first) => {
  const ask = (method, route, body) =>
    call(`${spoke.url}${route}`, { method, headers: keyHeader(spoke), body }).then(({ data }) => data)
  const { source } = await ask("POST", "/v1/sources", {
    type: "SITEMAP",
    name: `Pages ${first}`,
    config: { sitemapUrl: `${site.url}/sitemap-${first}-${documents}.xml` }
  })
  await until("Reading and embedding", 300_000, async () => {
    const state = await ask("GET", `/v1/sources/${source.id}/embedding`)
    return state.chunks > 0 && state.chunks === state.embedded ? true : undefined
  })
  return { requests: documents }
}

const measure = async (spoke, site) => {
  const target = (stream) => turnTargets({ embedded: spoke, peers: {} }, passages, stream).embedded
  const search = {
    ...target(false),
    url: `${spoke.url}/v1/retrieve`,
    body: (number) => JSON.stringify({ query: question(number, passages), topK: 5 })
  }
  const webhook = {
    url: `${spoke.url}/api/webhooks/whatsapp`,
    body: delivery,
    signed: (payload) => ({
      "x-hub-signature-256": `sha256=${createHmac("sha256", secret).update(payload).digest("hex")}`
    })
  }
  const out = {}
  for (const [name, operation] of Object.entries({
    turn: target(false),
    stream: target(true),
    search,
    webhook
  })) {
    await load(operation, { clients, each: quick ? 2 : 100 })
    out[name] = await profileWhile(spoke, () => load(operation, { clients, seconds }))
    console.error(name, JSON.stringify(out[name]))
  }
  await ingest(spoke, site, 1)
  out.document = await profileWhile(spoke, () => ingest(spoke, site, 1 + documents))
  console.error("document", JSON.stringify(out.document))
  return out
}

build("--maps")
try {
  const postgres = await startPostgres()
  const redis = await startRedis()
  const model = await startScript("model.mjs")
  const site = await startScript("site.mjs")
  const figures = {}
  const measureEngine = async (engine, begin) => {
    const spoke = await begin()
    await searchable(spoke, question(1, passages))
    await call(`${model.url}/pace`, { method: "POST", body: { first: 0, gap: 0, tokens: 50, alike: false } })
    figures[engine] = await measure(spoke, site)
    await spoke.stop("SIGKILL")
  }
  if (postgres)
    await measureEngine("server", () => serverSpoke(model, { postgres, redis }, [passages], { variables }))
  await measureEngine("embedded", () => embeddedSpoke(model, [passages], { variables }))
  if (quick) console.log(JSON.stringify(figures))
  else {
    const record = { ...machine(), clients, ...figures }
    fs.writeFileSync(path.join(root, "bench/profile.json"), `${JSON.stringify(record, null, 2)}\n`)
    report(JSON.parse(fs.readFileSync(path.join(root, "bench/results.json"), "utf8")))
  }
} finally {
  build()
}
process.exit(0)
