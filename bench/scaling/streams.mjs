/**
 * Streams that are open at once, over several processes on one PostgreSQL and one Redis: 10,000 by default. A paced
 * model keeps each open until all of them are, then all end. It measures the memory and the CPU of a stream and the
 * time to its first token, and fails if one of them failed or its turn was not stored. `tokens` is measured separately,
 * with fewer streams of two lengths: the CPU of one more token. All of it shares this machine, model and clients too.
 * Linux only.
 *
 *   node bench/scaling/streams.mjs [--processes 5] [--streams 10000] [--out bench/streams.json]
 *   node bench/scaling/streams.mjs --quick          two processes, 100 streams, not recorded
 */
import * as fs from "node:fs"
import * as http from "node:http"
import * as path from "node:path"
import { parseArgs } from "node:util"
import { buildAll } from "../../scripts/build.mjs"
import { startPostgres, startRedis } from "../databases.mjs"
import { load } from "../load.mjs"
import {
  cpuOf,
  machine,
  memoryOf,
  pause,
  quantile,
  rounded,
  root,
  startScript,
  startSpoke,
  until
} from "../machine.mjs"
import { call, keyHeader, writeChunks, searchable, serverSpoke, tenantOf, withServer } from "../spoke.mjs"

const { values } = parseArgs({
  options: {
    processes: { type: "string" },
    streams: { type: "string" },
    seconds: { type: "string" },
    out: { type: "string", default: path.join(root, "bench/streams.json") },
    quick: { type: "boolean", default: false }
  }
})
const { quick } = values
const processes = Number(values.processes ?? (quick ? 2 : 5))
const streams = Number(values.streams ?? (quick ? 100 : 10_000))
/** Time within which all streams begin. */
const rampSeconds = quick ? 2 : Math.ceil(streams / 80)
/** Time for which all of them are open. */
const heldSeconds = Number(values.seconds ?? (quick ? 2 : 30))
const progress = (text) => process.stderr.write(`${text}\n`)

await buildAll()
const postgres = await startPostgres()
const redis = await startRedis()
if (postgres === undefined || redis === undefined) throw new Error("PostgreSQL and Redis are needed.")
const model = await startScript("model.mjs")
const pace = (body) => call(`${model.url}/pace`, { method: "POST", body })

const first = await serverSpoke(model, { postgres, redis }, [50], {
  args: ["--role", "api"],
  variables: { SPOKE_TURN_TIMEOUT: "30 minutes" }
})
/** One tenant has at most half of the requests to providers that a process makes at a time. */
const keys = [first.key]
for (let place = 1; place < 4; place++) {
  const tenantOwner = { email: `bench${place}@example.com`, password: "correct horse battery" }
  const [agent] = await tenantOf(first.url, 1, tenantOwner)
  await withServer(first.databaseUrl, (run) => writeChunks(run, agent, 50, { first: place * 100_000_000 }))
  keys.push(agent.key)
}
const services = [first]
for (let place = 1; place < processes; place++)
  services.push(await startSpoke(first.variables, ["--role", "api"]))
await pace({ first: 0, gap: 0, tokens: 5 })
await searchable(first, "account settings")
for (const { url } of services) {
  const target = {
    url: `${url}/v1/chat`,
    headers: keyHeader(first),
    body: (count) => JSON.stringify({ message: `Warm ${count}?` })
  }
  await load(target, { clients: 4, each: quick ? 2 : 100 })
}
const cpus = () => ({
  service: services.reduce((sum, { pid }) => sum + cpuOf(pid), 0),
  database: cpuOf(postgres.pid),
  redis: cpuOf(redis.pid)
})
const memory = () => services.reduce((sum, { pid }) => sum + memoryOf(pid), 0)
const cpuSince = (from, count) => {
  const now = cpus()
  return Object.fromEntries(
    Object.entries(now).map(([name, value]) => [
      `${name}CpuMs`,
      rounded(((value - from[name]) * 1_000) / count)
    ])
  )
}

/** One stream: milliseconds to its first token, and how it ended. `opened` is called at its first token. */
const stream = ({ key, url }, place, agent, opened) =>
  new Promise((resolve) => {
    const payload = JSON.stringify({ message: `How do I change order ${place}?` })
    const from = performance.now()
    let firstMs
    let tail = ""
    const request = http.request(
      `${url}/v1/chat/stream`,
      {
        method: "POST",
        agent,
        headers: {
          "x-api-key": key,
          "content-type": "application/json",
          "content-length": Buffer.byteLength(payload)
        }
      },
      (response) => {
        response.setEncoding("latin1").on("data", (chunk) => {
          if (firstMs === undefined && chunk.includes("text-delta")) {
            firstMs = performance.now() - from
            opened()
          }
          tail = (tail + chunk).slice(-400)
        })
        response.on("error", ({ code }) => resolve({ firstMs, end: code ?? "error" }))
        response.on("end", () => {
          const whole = tail.trimEnd().endsWith("data: [DONE]") && !tail.includes('"type":"error"')
          resolve({ firstMs, end: whole ? "whole" : `${response.statusCode} ${tail.slice(-200)}` })
        })
      }
    )
    request.on("error", ({ code, message }) => resolve({ firstMs, end: code ?? message }))
    request.end(payload)
  })

const delays = async () => {
  const texts = await Promise.all(services.map(async ({ url }) => (await fetch(`${url}/metrics`)).text()))
  return Math.max(
    ...texts.map((text) =>
      Number(/^spoke_event_loop_delay_seconds\{percentile="99"\} (\S+)$/m.exec(text)?.[1] ?? 0)
    )
  )
}

const measureHeld = async () => {
  // Few tokens, far apart: the streams are open, and the model and the clients leave the processors to the service.
  const gap = 5_000
  await pace({ first: 100, gap, tokens: 2, held: true })
  const before = { cpu: cpus(), memory: memory() }
  const agent = new http.Agent({ keepAlive: false, maxSockets: Infinity })
  let open = 0
  let peak = 0
  let peakMemory = 0
  const started = performance.now()
  const progressTimer = setInterval(() => {
    peakMemory = Math.max(peakMemory, memory())
    progress(
      `${((performance.now() - started) / 1_000).toFixed(0)} s: ${open} open, ${Math.round(memory())} MiB`
    )
  }, 5_000)
  const results = []
  const running = []
  for (let place = 0; place < streams; place++) {
    const due = (place * rampSeconds * 1_000) / streams
    const wait = due - (performance.now() - started)
    if (wait > 1) await pause(wait)
    const at = services[place % processes]
    // Each tenant at each process.
    const key = keys[Math.floor(place / processes) % keys.length]
    running.push(
      stream({ key, url: at.url }, place, agent, () => {
        open += 1
        peak = Math.max(peak, open)
      }).then((result) => {
        if (result.firstMs !== undefined) open -= 1
        results.push(result)
      })
    )
  }
  const atFull = await until("All streams at once", 300_000, async () =>
    open === streams ? true : undefined
  ).then(
    async () => ({ ...cpuSince(before.cpu, streams), memory: memory(), delay: await delays() }),
    () => undefined
  )
  const idle = cpus()
  const idleFrom = performance.now()
  await pause(heldSeconds * 1_000)
  const idleSeconds = (performance.now() - idleFrom) / 1_000
  const idleCpu = (cpus().service - idle.service) / idleSeconds
  const released = performance.now()
  await call(`${model.url}/release`, { method: "POST", body: { over: rampSeconds * 1_000 } })
  await Promise.all(running)
  const endSeconds = rounded((performance.now() - released) / 1_000)
  clearInterval(progressTimer)
  const ends = {}
  for (const { end } of results) {
    const kind = /"errorText":"(\w+)"/.exec(end)?.[1] ?? end
    ends[kind] = (ends[kind] ?? 0) + 1
  }
  const { rows } = await withServer(first.databaseUrl, (run) =>
    run("select status, count(*)::int as count from agent_runs group by status")
  )
  const firsts = results.flatMap(({ firstMs }) => (firstMs === undefined ? [] : [firstMs]))
  return {
    processes,
    streams,
    rampSeconds,
    endSeconds,
    openAtOnce: peak,
    ends,
    runs: Object.fromEntries(rows.map(({ count, status }) => [status, count])),
    firstTokenMs: { p50: rounded(quantile(firsts, 0.5)), p99: rounded(quantile(firsts, 0.99)) },
    ...(atFull !== undefined && {
      memoryKiBPerStream: rounded(((atFull.memory - before.memory) * 1_024) / streams),
      processMiB: rounded(atFull.memory / processes),
      idleProcessMiB: rounded(before.memory / processes),
      eventLoopDelayP99Seconds: rounded(atFull.delay)
    }),
    tokensPerSecondHeld: rounded(streams / (gap / 1_000)),
    cpuSecondsPerSecondHeld: rounded(idleCpu),
    ...cpuSince(before.cpu, streams)
  }
}

/** CPU of a stream and of each token more, at the pace of a fast model. */
const measureTokens = async () => {
  const gap = 20
  const clients = quick ? 5 : 40
  const each = quick ? 1 : 5
  const measure = async (tokens) => {
    await pace({ first: 100, gap, tokens })
    const before = cpus()
    const target = {
      url: `${first.url}/v1/chat/stream`,
      headers: keyHeader(first),
      body: (count) => JSON.stringify({ message: `How do I change order ${count}?` }),
      first: "text-delta",
      end: "data: [DONE]"
    }
    const { errors, requests } = await load(target, { clients, each, spread: gap * tokens })
    if (errors > 0) throw new Error(`${errors} of ${requests} streams failed.`)
    return { tokens, requests, ...cpuSince(before, requests) }
  }
  const short = await measure(50)
  const long = await measure(quick ? 100 : 450)
  const perToken = (name) => rounded((long[name] - short[name]) / (long.tokens - short.tokens))
  return {
    short,
    long,
    serviceCpuMsPerToken: perToken("serviceCpuMs"),
    databaseCpuMsPerToken: perToken("databaseCpuMs")
  }
}

const record = {
  measured: new Date().toISOString().slice(0, 10),
  machine: machine(),
  postgres: postgres.version
}
record.tokens = await measureTokens()
progress(JSON.stringify(record.tokens))
record.held = await measureHeld()
console.log(JSON.stringify(record, null, 2))
const failedEnds = Object.entries(record.held.ends).filter(([end]) => end !== "whole")
const unsettled = Object.keys(record.held.runs).filter((status) => status !== "complete")
if (failedEnds.length > 0) progress(services.map(({ output }) => output().slice(-4_000)).join("\n"))
if (!quick) fs.writeFileSync(values.out, `${JSON.stringify(record, null, 2)}\n`)
for (const { stop } of services) await stop()
for (const service of [model, redis, postgres]) await service.stop()
process.exit(failedEnds.length === 0 && unsettled.length === 0 && record.held.openAtOnce === streams ? 0 : 1)
