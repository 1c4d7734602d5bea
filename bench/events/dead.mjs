/**
 * Measures what events for dead receivers cost other tenants. One tenant has ten thousand events queued for a receiver
 * that never answers, then for twenty such receivers. Another tenant sends turns and gets an event for each. Windows with
 * and without dead receivers alternate on one server with PostgreSQL. `npm run bench:events` writes bench/events.json.
 * Options: `--seconds=30` for each window, `--rounds=3`, `--events=10000`, `--out=FILE`. Linux only.
 */
import * as fs from "node:fs"
import * as http from "node:http"
import * as path from "node:path"
import { parseArgs } from "node:util"
import { startPostgres } from "../databases.mjs"
import { machine, pause, quantile, root, rounded } from "../machine.mjs"
import { call, keyHeader, serverSpoke, withServer } from "../spoke.mjs"

const { values } = parseArgs({
  options: {
    events: { type: "string", default: "10000" },
    out: { type: "string" },
    rounds: { type: "string", default: "3" },
    seconds: { type: "string", default: "30" }
  }
})
const [events, rounds, seconds] = [values.events, values.rounds, values.seconds].map(Number)
const progress = (text) => process.stderr.write(`${text}\n`)
/** Milliseconds between two turns of the measured tenant. */
const paceMs = 100
/** Time-out of a call to a receiver. */
const callTimeoutMs = 10_000

/** `/dead/N` never answers. `/hook` accepts every event and records its time by run. */
const arrivals = new Map()
const deadReceivers = { calls: 0 }
const receiver = http.createServer((request, response) => {
  if (request.url.startsWith("/dead")) return deadReceivers.calls++
  let text = ""
  request.on("data", (chunk) => (text += chunk))
  request.on("end", () => {
    const { data } = JSON.parse(text)
    arrivals.set(data.runId, performance.now())
    response.writeHead(204).end()
  })
})
await new Promise((resolve) => receiver.listen(0, "127.0.0.1", resolve))
const receiverUrl = `http://127.0.0.1:${receiver.address().port}`

const postgres = await startPostgres()
const spoke = await serverSpoke(undefined, { postgres }, [0])

/** A new tenant with an agent, a key, and requests of its owner. */
const tenant = async (name) => {
  const owner = { email: `${name}@example.com`, password: "correct horse battery" }
  const post = (place, body, headers) => call(`${spoke.url}${place}`, { method: "POST", body, headers })
  const operator = { authorization: `Bearer ${spoke.variables.SPOKE_OPERATOR_TOKEN}` }
  await post("/api/operator/tenants", { name, owner }, operator)
  const { cookie } = await post("/api/auth/login", owner, { "x-spoke-csrf": "1" })
  const session = { cookie, "x-spoke-csrf": "1" }
  const { data } = await post("/api/agents", { name }, session)
  const key = await post(`/api/agents/${data.agent.id}/keys`, { name: "Bench", permissions: ["*"] }, session)
  const token = await post("/api/tokens", { name: "Bench", scopes: ["webhooks:write"] }, session)
  const bearer = { authorization: `Bearer ${token.data.secret}` }
  const webhook = (url, types) =>
    post("/api/webhook-endpoints", { url: `${receiverUrl}${url}`, events: types }, session)
  return {
    key: key.data.secret,
    webhook,
    trigger: (type) => post("/api/manage/v1/events", { type }, bearer),
    activate: (id) =>
      call(`${spoke.url}/api/webhook-endpoints/${id}`, {
        method: "PATCH",
        headers: session,
        body: { status: "active" }
      }),
    remove: (id) => call(`${spoke.url}/api/webhook-endpoints/${id}`, { method: "DELETE", headers: session })
  }
}

const quiet = await tenant("quiet")
await quiet.webhook("/hook", ["turn.settled"])

/** Runs turns in sequence. Returns the latency of each turn, and of its event after the answer. */
const window = async (length) => {
  const turns = []
  const awaited = []
  const end = performance.now() + length * 1_000
  while (performance.now() < end) {
    const begun = performance.now()
    const { data } = await call(`${spoke.url}/v1/chat`, {
      method: "POST",
      headers: keyHeader(quiet),
      body: { message: "What can you do?" }
    })
    const answered = performance.now()
    turns.push(answered - begun)
    awaited.push({ runId: data.runId, answered })
    await pause(paceMs)
  }
  const deadline = performance.now() + 30_000
  while (awaited.some(({ runId }) => !arrivals.has(runId)) && performance.now() < deadline) await pause(20)
  const missing = awaited.filter(({ runId }) => !arrivals.has(runId)).length
  if (missing > 0) throw new Error(`${missing} events did not come.`)
  return { turns, events: awaited.map(({ answered, runId }) => Math.max(0, arrivals.get(runId) - answered)) }
}

/** Copies the deliveries and the jobs of each webhook `copies` times. */
const multiply = (ids, copies) =>
  withServer(spoke.databaseUrl, async (run) => {
    await run(
      `insert into webhook_deliveries (tenant_id, event_id, endpoint_id, type, ids)
      select tenant_id, event_id || '-' || n, endpoint_id, type, ids
      from webhook_deliveries, generate_series(1, $2::int) n where endpoint_id = any($1::text[])`,
      [ids, copies]
    )
    await run(
      `insert into queue_jobs (id, queue, payload, owner, serial_key, max_attempts, run_at)
      select id || '-' || n, queue, payload || jsonb_build_object('eventId', payload ->> 'eventId' || '-' || n), owner,
        serial_key || '-' || n, max_attempts, clock_timestamp()
      from queue_jobs, generate_series(1, $2::int) n where owner = any($1::text[])`,
      [ids, copies]
    )
  })

/**
 * Dead receivers of one tenant. `renewed`: the owner activates them again every second, so that waiting events are
 * tried.
 */
const cases = [
  { name: "1 dead receiver", receivers: 1, renewed: false },
  { name: "20 dead receivers", receivers: 20, renewed: false },
  { name: "20 dead receivers, made active each second", receivers: 20, renewed: true }
]

let tenants = 0
const measureBesideDead = async ({ receivers, renewed }) => {
  const hostile = await tenant(`dead-${tenants++}`)
  const ids = []
  for (let place = 0; place < receivers; place++) {
    const { data } = await hostile.webhook(`/dead/${place}`, ["gap.found"])
    ids.push(data.webhook.id)
  }
  await hostile.trigger("gap.found")
  deadReceivers.calls = 0
  await multiply(ids, events / receivers - 1)
  let isOver = false
  const renew = async () => {
    for (; !isOver; await pause(1_000)) for (const id of ids) await hostile.activate(id)
  }
  const renewals = renewed ? renew() : undefined
  const found = await window(seconds)
  isOver = true
  await renewals
  const { calls } = deadReceivers
  for (const id of ids) await hostile.remove(id)
  return { ...found, calls }
}

const undisturbed = { turns: [], events: [] }
const loaded = new Map(cases.map(({ name }) => [name, { turns: [], events: [], calls: 0 }]))
const add = (to, found) => {
  to.turns.push(...found.turns)
  to.events.push(...found.events)
}
const printTimes = (name, { events: times, turns }) =>
  progress(
    `${name}: turn ${rounded(quantile(turns, 0.5))}, event ${rounded(quantile(times, 0.5))} ms; ` +
      `99 %: turn ${rounded(quantile(turns, 0.99))}, event ${rounded(quantile(times, 0.99))} ms`
  )
await window(5)
for (let round = 0; round < rounds; round++) {
  for (const deadCase of cases) {
    const before = await window(seconds)
    printTimes("calm", before)
    add(undisturbed, before)
    const found = await measureBesideDead(deadCase)
    printTimes(deadCase.name, found)
    add(loaded.get(deadCase.name), found)
    loaded.get(deadCase.name).calls += found.calls
    // Calls under way have ended by then.
    await pause(callTimeoutMs)
  }
}

const figures = (times) => ({
  count: times.length,
  p50Ms: rounded(quantile(times, 0.5)),
  p99Ms: rounded(quantile(times, 0.99)),
  maxMs: rounded(Math.max(...times))
})
const compareWith = (before, times) => {
  const [now, then] = [figures(times), figures(before)]
  return {
    ...now,
    p50Ratio: rounded(now.p50Ms / then.p50Ms, 2),
    p99Ratio: rounded(now.p99Ms / then.p99Ms, 2)
  }
}
const report = {
  measured: new Date().toISOString().slice(0, 10),
  machine: machine(),
  queued: events,
  seconds,
  rounds,
  calm: { turn: figures(undisturbed.turns), event: figures(undisturbed.events) },
  dead: cases.map(({ name }) => {
    const found = loaded.get(name)
    return {
      case: name,
      calls: found.calls,
      turn: compareWith(undisturbed.turns, found.turns),
      event: compareWith(undisturbed.events, found.events)
    }
  })
}
progress(JSON.stringify(report, null, 2))
fs.writeFileSync(values.out ?? path.join(root, "bench/events.json"), `${JSON.stringify(report, null, 2)}\n`)
await spoke.stop()
await postgres.stop()
receiver.closeAllConnections()
receiver.close()
