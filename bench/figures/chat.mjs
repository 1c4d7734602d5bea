/**
 * Chat turns with retrieval and storage over 5,000 chunks, and their streams: Spoke on both databases beside the
 * hand-written peer and the bare one, in one alternating run. First with a model that answers at once, for what a turn
 * costs; then with one that takes 200 ms to its first token and 20 ms for each further one, for what a client waits.
 */
import { question } from "../corpus.mjs"
import { alternate, load } from "../load.mjs"
import { rounded, watchMemory } from "../machine.mjs"
import { call, keyHeader } from "../spoke.mjs"

const paced = { first: 200, gap: 20, tokens: 50 }
const atOnce = { first: 0, gap: 0, tokens: 50 }

const peerMarks = { first: '"text-delta"', end: "[DONE]" }

/** Spoke's streams of turns that are not stored also end with [DONE]. */
const spokeMarks = { first: '"text-delta"', end: '"data-done"' }

/** The targets that ask Spoke and the services of `peers`, by name, for turns or streams. */
export const turnTargets = ({ embedded, peers, server }, passages, stream) => {
  const body = (number) => JSON.stringify({ message: question(number, passages) })
  const route = stream ? "/chat/stream" : "/chat"
  const peer = ({ pid, url }) => ({ url: `${url}${route}`, pid, body, ...(stream && peerMarks) })
  const spoke = (service) => ({
    url: `${service.url}/v1${route}`,
    pid: service.pid,
    headers: keyHeader(service),
    body,
    ...(stream && spokeMarks)
  })
  return {
    ...Object.fromEntries(Object.entries(peers).map(([name, service]) => [name, peer(service)])),
    ...(server && { server: spoke(server) }),
    embedded: spoke(embedded)
  }
}

const perSecond = (result) => result.perSecond
const first = (result) => result.first
const ownCpu = ({ cpuMs }) => cpuMs
/** With the embedded database in Spoke's process, the peers' database is included as well. */
const withDatabase = ({ cpuMs, databaseCpuMs }) => cpuMs + databaseCpuMs

const ratiosOf = ({ ratio, results }) => {
  const ratiosToPeer = (engine, peer) => ({
    perSecond: ratio(engine, peer, perSecond),
    cpu: ratio(engine, peer, ownCpu, engine === "server" ? ownCpu : withDatabase),
    ...(results[engine].first !== undefined && { first: ratio(engine, peer, first) })
  })
  const present = (names) => names.filter((name) => name in results)
  return Object.fromEntries(
    present(["server", "embedded"]).map((engine) => [
      engine,
      Object.fromEntries(present(["handwritten", "bare"]).map((peer) => [peer, ratiosToPeer(engine, peer)]))
    ])
  )
}

export const chat = async (world) => {
  const { passages, progress, quick, rounds, seconds } = world
  const { embedded, model, peers: found, postgres, server } = await world.services(passages)
  const peers = found === undefined ? {} : { bare: found.bare, handwritten: found.handwritten }
  const pace = (value) => call(`${model.url}/pace`, { method: "POST", body: value })
  const database = postgres?.pid
  const out = { passages, tokens: paced.tokens, turns: [], streams: [], paced: [], atOnce: [] }

  await pace(atOnce)
  for (const stream of [false, true]) {
    const targets = turnTargets({ embedded, peers, server }, passages, stream)
    progress(`${stream ? "streams" : "turns"}: warming up`)
    for (const target of Object.values(targets)) await load(target, { clients: 8, each: quick ? 2 : 400 })
    for (const clients of quick ? [16] : [1, 16, 64, 256]) {
      const run = await alternate(targets, rounds, { clients, seconds, database }, progress)
      out[stream ? "streams" : "turns"].push({ clients, ...run.results, ratios: ratiosOf(run) })
    }
  }

  await pace(paced)
  const targets = turnTargets({ embedded, peers, server }, passages, true)
  for (const clients of quick ? [1] : [1, 64]) {
    progress(`streams at 20 ms a token, ${clients} clients`)
    const spread = paced.first + paced.gap * paced.tokens
    const options = {
      clients,
      database,
      // The same number of requests for each client, however long they take. The first and the last ones have less
      // concurrency.
      each: quick ? 1 : clients === 1 ? 5 : Math.max(5, Math.ceil((seconds * 1_000) / spread)),
      ...(clients > 1 && { spread })
    }
    const run = await alternate(targets, rounds, options, progress)
    const added = Object.fromEntries(
      Object.entries(run.results).map(([name, result]) => [name, rounded(result.first - paced.first)])
    )
    out.paced.push({ clients, ...run.results, addedToFirstTokenMs: added, ratios: ratiosOf(run) })
  }
  for (const clients of quick ? [20] : [500, 1_000]) {
    for (const [name, target] of Object.entries(targets)) {
      const memory = watchMemory(target.pid)
      const result = await load(target, { clients, each: 1, database })
      const grown = memory.end() - memory.before
      progress(
        `${name}, ${clients} streams at once: ${result.errors} errors, first token ${rounded(result.first)} ms`
      )
      out.atOnce.push({
        clients,
        target: name,
        errors: result.errors,
        ...(result.errors > 0 && { kinds: result.kinds }),
        first: rounded(result.first),
        p99: rounded(result.p99),
        cpuMicrosecondsPerDelta: rounded((result.cpuMs * 1_000) / paced.tokens),
        memoryKiBPerStream: rounded((grown * 1_024) / clients)
      })
    }
  }
  await pace(atOnce)
  return out
}
