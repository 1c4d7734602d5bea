/**
 * What the job queue does on PostgreSQL with 1, 4 and 16 worker processes: the jobs a second that they take from a backlog,
 * how long a job waits that comes while nothing else is due (20 a second), and the CPU seconds that a thousand jobs cost the
 * database and the workers. The handler does nothing. The figures of docs/scaling.md are of this program.
 *
 *   node bench/queue.mjs [--workers 1,4,16] [--rounds 3] [--backlog 100000] [--seconds 10]
 */
import { fork } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { parseArgs } from "node:util"
import { build } from "esbuild"
import { query, startPostgres } from "./databases.mjs"
import { cpuOf, machine, median, pause, quantile, root, rounded, until } from "./machine.mjs"

const { values } = parseArgs({
  options: {
    workers: { type: "string", default: "1,4,16" },
    rounds: { type: "string", default: "3" },
    backlog: { type: "string", default: "100000" },
    seconds: { type: "string", default: "10" }
  }
})
const sizes = values.workers.split(",").map(Number)
const backlog = Number(values.backlog)
const seconds = Number(values.seconds)
/** Number of conversations of the jobs. Jobs of one conversation run one after the other. */
const keys = 5_000
/** Jobs a second while nothing else is due. */
const perSecond = 20

const program = path.join(root, `dist/bench-queue.${process.pid}.mjs`)
process.on("exit", () => fs.rmSync(program, { force: true }))
await build({
  entryPoints: [path.join(import.meta.dirname, "queue/Process.ts")],
  outfile: program,
  bundle: true,
  packages: "external",
  platform: "node",
  format: "esm",
  logLevel: "error"
})

const postgres = await startPostgres(["max_connections=300"])
if (postgres === undefined) {
  console.error("This benchmark needs PostgreSQL.")
  process.exit(1)
}

/** Runs one command after the other; ends with this process. */
const startProcess = async (url) => {
  const child = fork(program, [url, path.join(root, "migrations")], {
    stdio: ["ignore", "ignore", "inherit", "ipc"]
  })
  const answer = () =>
    new Promise((resolve, reject) => {
      const fail = () => reject(new Error("A process of the benchmark ended."))
      child.once("exit", fail)
      child.once("message", (message) => {
        child.off("exit", fail)
        resolve(message)
      })
    })
  await answer()
  return {
    pid: child.pid,
    ask: (name, count = 0) => {
      const answered = answer()
      child.send({ name, count, keys, perSecond })
      return answered
    },
    stop: () =>
      new Promise((resolve) => {
        child.once("exit", resolve)
        child.kill("SIGKILL")
      })
  }
}

/** Moves the waiting jobs to a queue without workers: the table stays large, and nothing is due. */
const setBacklogAside = async (url) => {
  await until("The end of the running jobs", 120_000, async () => {
    await query(
      url,
      `update queue_jobs set queue = 'ingestion' where id in (
        select id from queue_jobs where queue = 'channel-inbound' and state = 'waiting' for update skip locked)`
    )
    const { rows } = await query(
      url,
      `select from queue_jobs where queue = 'channel-inbound' and state in ('waiting', 'active') limit 1`
    )
    return rows.length === 0 ? true : undefined
  })
  await query(
    url,
    `insert into queue_jobs (id, queue, payload, serial_key, max_attempts)
      select gen_random_uuid(), 'ingestion', '{}', 'contact ' || n % ${keys}, 5
      from generate_series(1, ${backlog} - (select count(*) from queue_jobs where state = 'waiting')) n`,
    "vacuum analyze queue_jobs",
    "checkpoint"
  )
}

let databases = 0
const measure = async (size) => {
  const url = await postgres.database(`queue_${databases++}`)
  const producer = await startProcess(url)
  await producer.ask("migrate")
  await producer.ask("fill", backlog)
  await query(url, "vacuum analyze queue_jobs")
  const workers = await Promise.all(Array.from({ length: size }, () => startProcess(url)))
  const takeReports = async () => {
    const found = await Promise.all(workers.map(({ ask }) => ask("report")))
    return { starts: found.flatMap(({ starts }) => starts), waits: found.flatMap(({ waits }) => waits) }
  }
  const usage = async () => ({
    database: cpuOf(postgres.pid),
    workers: workers.reduce((sum, { pid }) => sum + cpuOf(pid), 0),
    transactions: Number(
      (await query(url, "select xact_commit from pg_stat_database where datname = current_database()"))
        .rows[0].xact_commit
    )
  })
  /** CPU in seconds and transactions for each thousand jobs while `use` runs. */
  const measureWhile = async (use) => {
    await takeReports()
    const before = await usage()
    const from = performance.timeOrigin + performance.now()
    await use()
    const to = performance.timeOrigin + performance.now()
    const after = await usage()
    const { starts, waits } = await takeReports()
    const jobs = starts.filter((at) => at <= to).length
    const each = (name) => ((after[name] - before[name]) * 1_000) / jobs
    return {
      perSecond: (jobs * 1_000) / (to - from),
      database: each("database"),
      workers: each("workers"),
      transactions: each("transactions"),
      waits
    }
  }

  await Promise.all(workers.map(({ ask }) => ask("work")))
  // Warm-up before the measurement.
  await pause(2_000)
  const loaded = await measureWhile(() => pause(seconds * 1_000))
  await setBacklogAside(url)
  await pause(1_000)
  const steady = await measureWhile(async () => {
    await producer.ask("rate", perSecond * seconds)
    await pause(500)
  })
  await Promise.all([producer, ...workers].map(({ stop }) => stop()))
  return { size, loaded, steady }
}

const measured = []
for (let round = 0; round < Number(values.rounds); round++) {
  for (const size of sizes) {
    const result = await measure(size)
    measured.push(result)
    console.error(
      `${size} workers: ${rounded(result.loaded.perSecond)} jobs/s, wait ${rounded(quantile(result.steady.waits, 0.5))} ms`
    )
  }
}

console.log(JSON.stringify({ ...machine(), postgres: postgres.version }))
console.table(
  sizes.map((size) => {
    const all = measured.filter((one) => one.size === size)
    const of = (read) => rounded(median(all.map(read)))
    return {
      workers: size,
      "backlog: jobs/s": of(({ loaded }) => loaded.perSecond),
      "database CPU s/1000": of(({ loaded }) => loaded.database),
      "workers CPU s/1000": of(({ loaded }) => loaded.workers),
      "20 a second: wait p50 ms": of(({ steady }) => quantile(steady.waits, 0.5)),
      "wait p99 ms": of(({ steady }) => quantile(steady.waits, 0.99)),
      "database CPU s/1000 ": of(({ steady }) => steady.database),
      "workers CPU s/1000 ": of(({ steady }) => steady.workers),
      "transactions a job": of(({ steady }) => steady.transactions / 1_000)
    }
  })
)
await postgres.stop()
process.exit(0)
