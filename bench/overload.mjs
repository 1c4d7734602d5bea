/**
 * More clients than a server can answer, on PostgreSQL and Redis with the settings as they are: who is answered, what
 * the others get and how soon, and how health checks are answered meanwhile. `node bench/overload.mjs` prints a line
 * for each load and fails when a request got no answer or an unexpected one, or when a health check took a second.
 * `--seconds=60`, `--clients=1000,2000`, `--only=REGEXP`, `--embedded`; `--hammer`: clients that come back after 50 ms,
 * whatever they are told. On a machine that others use too, new connections wait to be accepted, and figures are the
 * machine's. Linux only.
 */
import * as http from "node:http"
import { parseArgs } from "node:util"
import { Worker } from "node:worker_threads"
import { startPostgres, startRedis } from "./databases.mjs"
import { cpuOf, memoryOf, pause, quantile, rounded, startScript } from "./machine.mjs"
import { call, embeddedSpoke, searchable, serverSpoke } from "./spoke.mjs"

const { values } = parseArgs({
  options: {
    clients: { type: "string", default: "1000,2000" },
    embedded: { type: "boolean", default: false },
    hammer: { type: "boolean", default: false },
    only: { type: "string", default: "" },
    seconds: { type: "string", default: "60" }
  }
})
const seconds = Number(values.seconds)

/** Longer than the maximum waiting and processing time of a request. */
const answerTimeoutMs = 120_000
const good = new Set([200, 201])
const refusals = new Set([429, 503])

/** One request: `{kind, ms, retryAfter}`; `kind` is a status, or what went wrong. */
const ask = ({ agent, key, path, url }, count) =>
  new Promise((resolve) => {
    const payload = JSON.stringify({
      message: `How do I change order ${count}?`,
      externalEndUserId: `p${count % 5_000}`
    })
    const from = performance.now()
    const done = (kind, more = {}) => resolve({ kind, ms: performance.now() - from, ...more })
    const request = http.request(
      `${url}${path}`,
      {
        method: "POST",
        agent,
        timeout: answerTimeoutMs,
        headers: {
          "x-api-key": key,
          "content-type": "application/json",
          "content-length": Buffer.byteLength(payload)
        }
      },
      (response) => {
        let text = ""
        response.setEncoding("utf8").on("data", (chunk) => (text += chunk))
        response.on("error", () => done("broken off"))
        response.on("end", () => {
          const { statusCode: status } = response
          const retryAfter = Number(response.headers["retry-after"])
          if (refusals.has(status)) {
            const { code } = JSON.parse(text).error ?? {}
            return done(retryAfter > 0 && code !== undefined ? status : `${status} without retry-after`, {
              retryAfter
            })
          }
          if (!good.has(status)) return done(`${status}`)
          const whole = path.endsWith("/stream")
            ? text.trimEnd().endsWith("data: [DONE]")
            : text.endsWith("}")
          if (text.includes('"type":"error"')) return done(`error event ${/"code":"(\w+)"/.exec(text)?.[1]}`)
          return done(whole ? status : "cut off")
        })
      }
    )
    request.on("timeout", () => request.destroy(new Error("no answer")))
    request.on("error", ({ code, message }) => done(code ?? message))
    request.end(payload)
  })

/** Asks `/healthz` and `/readyz` in a thread of its own, on a new connection each time; milliseconds of each answer. */
const askHealth = (url) => {
  const worker = new Worker(
    `const { parentPort, workerData } = require("node:worker_threads")
    const http = require("node:http")
    const took = { "/healthz": [], "/readyz": [], wrong: [] }
    let asking = true
    parentPort.once("message", () => (asking = false))
    const one = (path) => new Promise((resolve) => {
      const from = performance.now()
      const done = (ms, why) => { took[path].push(ms); if (why) took.wrong.push(path + " " + why + " after " + Math.round(performance.now() - from)); resolve() }
      http.get(workerData + path, { agent: false, timeout: 30000 }, (answer) => {
        answer.resume()
        answer.on("end", () => done(answer.statusCode === 200 ? performance.now() - from : Infinity, answer.statusCode === 200 ? "" : answer.statusCode))
      }).on("timeout", function () { this.destroy(new Error("no answer")) }).on("error", (error) => done(Infinity, error.code ?? error.message))
    })
    const ask = async (path) => {
      while (asking) {
        await one(path)
        await new Promise((resolve) => setTimeout(resolve, 100))
      }
    }
    Promise.all([ask("/healthz"), ask("/readyz")]).then(() => parentPort.postMessage(took))`,
    { eval: true, workerData: url }
  )
  return () =>
    new Promise((resolve) => {
      worker.once("message", resolve)
      worker.postMessage("stop")
    })
}

const applyLoad = async (spoke, { clients, keys, path }) => {
  const stopHealth = askHealth(spoke.url)
  const agent = new http.Agent({ keepAlive: true, maxSockets: clients })
  const before = cpuOf(spoke.pid)
  const started = performance.now()
  const isOver = () => performance.now() - started > seconds * 1_000
  const answers = []
  let count = 0
  let peakMiB = 0
  const memoryTimer = setInterval(() => (peakMiB = Math.max(peakMiB, memoryOf(spoke.pid))), 500)
  const client = async (place) => {
    // They start within a second.
    await pause((place / clients) * 1_000)
    while (!isOver()) {
      const answer = await ask({ agent, key: keys[place % keys.length], path, url: spoke.url }, count++)
      answers.push(answer)
      if (answer.retryAfter === undefined) continue
      // After `retry-after`, with jitter.
      const waitMs = values.hammer ? 50 : answer.retryAfter * 1_000 * (1 + Math.random())
      await pause(Math.min(waitMs, Math.max(0, seconds * 1_000 - (performance.now() - started))))
    }
  }
  await Promise.all(Array.from({ length: clients }, (_, place) => client(place)))
  const elapsed = (performance.now() - started) / 1_000
  clearInterval(memoryTimer)
  agent.destroy()
  const health = await stopHealth()
  const kinds = {}
  for (const { kind } of answers) kinds[kind] = (kinds[kind] ?? 0) + 1
  const of = (which) => answers.filter(({ kind }) => which.has(kind)).map(({ ms }) => ms)
  const [answered, refused] = [of(good), of(refusals)]
  const figures = (list) =>
    list.length === 0 ? null : [0.5, 0.99, 1].map((part) => Math.round(quantile(list, part)))
  const wrong = answers.filter(({ kind }) => !good.has(kind) && !refusals.has(kind)).length
  return {
    path,
    clients,
    agents: keys.length,
    kinds,
    wrong,
    perSecond: rounded(answered.length / elapsed),
    answeredMs: figures(answered),
    refusedMs: figures(refused),
    again: [...new Set(answers.flatMap(({ retryAfter }) => retryAfter ?? []))]
      .toSorted((a, b) => a - b)
      .join(),
    health: figures(health["/healthz"]),
    ready: figures(health["/readyz"]),
    healthAsked: health["/healthz"].length,
    unhealthy: health.wrong.slice(0, 10),
    cpu: rounded((cpuOf(spoke.pid) - before) / elapsed),
    mebibytes: Math.round(peakMiB)
  }
}

const model = await startScript("model.mjs")
await call(`${model.url}/pace`, { method: "POST", body: { first: 200, gap: 20, tokens: 30 } }).catch(
  () => undefined
)
const agentCount = 50
const passages = Array.from({ length: agentCount }, () => 50)
const postgres = values.embedded ? undefined : await startPostgres()
const redis = values.embedded ? undefined : await startRedis()
const spoke = values.embedded
  ? await embeddedSpoke(model, passages)
  : await serverSpoke(model, { postgres, redis }, passages)
await searchable(spoke, "account settings")
const all = spoke.agents.map(({ key }) => key)
const loads = ["/v1/chat", "/v1/chat/stream"].flatMap((path) =>
  values.clients
    .split(",")
    .map(Number)
    .flatMap((clients) => [
      { path, clients, keys: all.slice(0, 1), name: `${path} ${clients} one` },
      { path, clients, keys: all, name: `${path} ${clients} many` }
    ])
)
let failed = false
for (const one of loads.filter(({ name }) => new RegExp(values.only, "u").test(name))) {
  const result = await applyLoad(spoke, one)
  process.stdout.write(`${JSON.stringify(result)}\n`)
  failed ||= result.wrong > 0 || !(Math.max(result.health[2], result.ready[2]) < 1_000)
  await pause(2_000)
}
process.stderr.write(spoke.output().slice(-3_000))
await spoke.stop()
for (const service of [model, redis, postgres]) await service?.stop()
process.exit(failed ? 1 : 0)
