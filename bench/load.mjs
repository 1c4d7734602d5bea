/** Load on one service, and rounds that alternate between several. */
import * as http from "node:http"
import { cpuOf, median, pause, quantile, rounded } from "./machine.mjs"

/** Number of requests, used to make all questions different. */
let questionCount = 0

/** One request: milliseconds to its first token and to its end, or why it failed. */
const request = ({ body, end, first, headers, method = "POST", signed, url }, agent, timeout) =>
  new Promise((resolve) => {
    const payload = typeof body === "function" ? body(questionCount++) : body
    const start = performance.now()
    let firstAt
    let length = 0
    let carry = ""
    let failed = false
    let ended = end === undefined
    const done = (error) =>
      resolve({ error, ms: performance.now() - start, first: firstAt && firstAt - start, bytes: length })
    const sent = http.request(
      url,
      {
        method,
        agent,
        timeout,
        headers: {
          ...(payload !== undefined && {
            "content-type": "application/json",
            "content-length": Buffer.byteLength(payload)
          }),
          ...headers,
          ...signed?.(payload)
        }
      },
      (response) => {
        response.setEncoding("latin1")
        response.on("data", (chunk) => {
          length += chunk.length
          if (end === undefined) return
          // A character may be split between chunks.
          const seen = carry + chunk
          if (firstAt === undefined && seen.includes(first)) firstAt = performance.now()
          if (seen.includes(end)) ended = true
          if (seen.includes('"type":"error"')) failed = true
          carry = seen.slice(-64)
        })
        response.on("end", () => {
          if (response.statusCode !== 200) done(`status ${response.statusCode}`)
          else if (failed) done("error event")
          else if (!ended || (first !== undefined && firstAt === undefined)) done("cut off")
          else done(undefined)
        })
        response.on("error", () => done("reset"))
      }
    )
    sent.on("timeout", () => sent.destroy(new Error("timeout")))
    sent.on("error", ({ code, message }) => done(code ?? message))
    sent.end(payload)
  })

/**
 * Every client sends its next request when the last one is answered: for `seconds`, or `each` times. `database` is the
 * process whose share is measured separately. Clients start evenly within the first `spread` milliseconds: else clients
 * whose answers take equally long would send all their requests at the same moment.
 */
export const load = async (target, { clients, database, each, seconds, spread = 0, timeout = 120_000 }) => {
  const agent = new http.Agent({ keepAlive: true, maxSockets: clients })
  const before = { own: target.pid && cpuOf(target.pid), database: database && cpuOf(database) }
  const started = performance.now()
  const results = []
  await Promise.all(
    Array.from({ length: clients }, async (_, client) => {
      if (spread > 0) await pause((client * spread) / clients)
      for (
        let turn = 0;
        each === undefined ? performance.now() - started < seconds * 1_000 : turn < each;
        turn++
      ) {
        results.push(await request(target, agent, timeout))
      }
    })
  )
  const elapsed = (performance.now() - started) / 1_000
  const after = { own: target.pid && cpuOf(target.pid), database: database && cpuOf(database) }
  agent.destroy()
  const good = results.filter(({ error }) => error === undefined)
  const kinds = {}
  for (const { error } of results) if (error !== undefined) kinds[error] = (kinds[error] ?? 0) + 1
  const milliseconds = good.map(({ ms }) => ms)
  const firsts = good.flatMap(({ first }) => (first === undefined ? [] : [first]))
  const share = (name) =>
    before[name] === undefined ? null : ((after[name] - before[name]) * 1_000) / Math.max(1, results.length)
  return {
    requests: results.length,
    errors: results.length - good.length,
    kinds,
    perSecond: good.length / elapsed,
    cpuMs: share("own"),
    databaseCpuMs: share("database"),
    p50: quantile(milliseconds, 0.5),
    p99: quantile(milliseconds, 0.99),
    first: quantile(firsts, 0.5),
    first99: quantile(firsts, 0.99)
  }
}

const fields = ["perSecond", "cpuMs", "databaseCpuMs", "p50", "p99", "first", "first99"]

/** Runs `work` while the processes `pids` are stopped. */
const whileStopped = async (pids, work) => {
  for (const pid of pids) process.kill(pid, "SIGSTOP")
  try {
    return await work()
  } finally {
    for (const pid of pids) process.kill(pid, "SIGCONT")
  }
}

/**
 * Measures the targets alternately, `rounds` times. Each round begins with another target, so that no target always
 * comes after the same one. For each target: the medians, the errors of all rounds, `ratio`, the median of the ratios
 * of two targets in the same round, and `interval`, the 95 % confidence interval of their geometric mean. `alone`: the
 * processes of other targets are stopped meanwhile.
 */
export const alternate = async (targets, rounds, { alone = false, ...options }, progress) => {
  const seen = Object.fromEntries(Object.keys(targets).map((name) => [name, []]))
  for (let round = 0; round < rounds; round++) {
    const all = Object.entries(targets)
    const first = round % all.length
    for (const [name, target] of [...all.slice(first), ...all.slice(0, first)]) {
      const others = alone
        ? Object.values(targets).flatMap(({ pid }) => (pid === target.pid ? [] : [pid]))
        : []
      const result = await whileStopped(others, () => load(target, options))
      seen[name].push(result)
      progress?.(
        `${name} ${options.clients} clients: ${rounded(result.perSecond)}/s, ${rounded(result.p50 ?? 0)} ms` +
          (result.errors > 0 ? `, errors ${JSON.stringify(result.kinds)}` : "")
      )
    }
  }
  const summary = (name) => {
    const kinds = {}
    for (const round of seen[name])
      for (const [kind, count] of Object.entries(round.kinds)) kinds[kind] = (kinds[kind] ?? 0) + count
    const values = fields.flatMap((field) => {
      const all = seen[name].map((round) => round[field]).filter((value) => value !== null)
      return all.length === 0 ? [] : [[field, rounded(median(all))]]
    })
    return {
      requests: seen[name].reduce((sum, { requests }) => sum + requests, 0),
      errors: seen[name].reduce((sum, { errors }) => sum + errors, 0),
      ...(Object.keys(kinds).length > 0 && { kinds }),
      ...Object.fromEntries(values)
    }
  }
  /** Within a round, because both then had the same conditions. */
  const ratiosOf = (name, other, read, readOther) =>
    seen[name].flatMap((result, round) => {
      const [value, reference] = [read(result), readOther(seen[other][round])]
      return value === null || !(reference > 0) ? [] : [value / reference]
    })
  const ratio = (name, other, read, readOther = read) =>
    rounded(median(ratiosOf(name, other, read, readOther)))
  const interval = (name, other, read, readOther = read) => {
    const logs = ratiosOf(name, other, read, readOther).map(Math.log)
    const mean = logs.reduce((sum, value) => sum + value, 0) / logs.length
    const variance = logs.reduce((sum, value) => sum + (value - mean) ** 2, 0) / Math.max(1, logs.length - 1)
    const half = 1.96 * Math.sqrt(variance / logs.length)
    return [Math.exp(mean - half), Math.exp(mean + half)].map((value) => Number(value.toFixed(3)))
  }
  return {
    results: Object.fromEntries(Object.keys(targets).map((name) => [name, summary(name)])),
    ratio,
    interval
  }
}
