/**
 * Searches right after the start of a server, when no agent's chunks are in memory: many agents at a steady rate, the
 * response times, and the time until `/readyz` is 200. Then the same again with a warm cache. `node bench/cold.mjs`
 * prints both and their ratio. `--agents=24`, `--chunks=2000`, `--rate=10`, `--seconds=30`, `--server` (PostgreSQL,
 * searched in-process). Linux only.
 */
import { parseArgs } from "node:util"
import { startPostgres } from "./databases.mjs"
import { pause, quantile, rounded, startScript, startSpoke } from "./machine.mjs"
import { embeddedSpoke, keyHeader, serverSpoke } from "./spoke.mjs"

const { values } = parseArgs({
  options: {
    agents: { type: "string", default: "24" },
    chunks: { type: "string", default: "2000" },
    rate: { type: "string", default: "10" },
    seconds: { type: "string", default: "30" },
    server: { type: "boolean", default: false }
  }
})
const { agents, chunks, rate, seconds } = Object.fromEntries(
  Object.entries(values).map(([name, value]) => [name, Number(value)])
)

const ask = async (url, agent, place) => {
  const started = performance.now()
  const answer = await fetch(`${url}/v1/retrieve`, {
    method: "POST",
    headers: { ...keyHeader(agent), "content-type": "application/json" },
    body: JSON.stringify({ query: `change the order of customer ${place} before the delivery`, topK: 5 })
  })
  const { data } = await answer.json()
  if (data?.chunks.length !== 5) throw new Error(`A search was answered ${answer.status}.`)
  return performance.now() - started
}

/** Round-robin over the agents. */
const searches = async (url, searchedAgents) => {
  const pending = []
  for (let place = 0; place < rate * seconds; place++) {
    pending.push(ask(url, searchedAgents[place % searchedAgents.length], place))
    await pause(1_000 / rate)
  }
  return await Promise.all(pending)
}

const timeToReady = async (url) => {
  const started = performance.now()
  for (;;) {
    if ((await fetch(`${url}/readyz`)).status === 200) return performance.now() - started
    await pause(50)
  }
}

const printTimes = (name, times) => {
  const at = (share) => rounded(quantile(times, share))
  process.stdout.write(`${name}: p50 ${at(0.5)} ms, p95 ${at(0.95)} ms, longest ${at(1)} ms\n`)
  return quantile(times, 0.5)
}

const model = await startScript("model.mjs")
const options = { variables: { SPOKE_VECTOR: values.server ? "in-process" : undefined } }
const passages = Array.from({ length: agents }, () => chunks)
const postgres = values.server ? await startPostgres() : undefined
const first = values.server
  ? await serverSpoke(model, { postgres: { ...postgres, vector: false } }, passages, options)
  : await embeddedSpoke(model, passages, { variables: {} })
await first.stop()

const spoke = await startSpoke(first.variables)
const [times, ready] = await Promise.all([searches(spoke.url, first.agents), timeToReady(spoke.url)])
const cold = printTimes("Cold", times)
process.stdout.write(`/readyz is 200 after ${rounded(ready)} ms\n`)
const warm = printTimes("Warm", await searches(spoke.url, first.agents))
process.stdout.write(`Cold is ${rounded(cold / warm)} times warm\n`)
await spoke.stop()
await model.stop()
await postgres?.stop()
process.exit(0)
