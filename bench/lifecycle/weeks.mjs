/**
 * What partitions by weeks cost a turn, and what they save when data is deleted. The record is bench/lifecycle.json.
 *
 * Turns: several databases on one PostgreSQL are measured alternately, with the statements of the service that begin and
 * settle turns: plain tables (twice, to see the noise), traces by 1, 12, 36 and 150 weeks as the service has them, and what was
 * rejected: runs and messages by weeks. `--before` names a checkout of an earlier version, measured beside them.
 *
 * Deletion: half of 500,000 runs of a year, with 2,000,000 events and 3,000,000 passages, are removed by the code of the
 * service, row by row and by weeks, while turns run.
 *
 *   node bench/lifecycle/weeks.mjs
 *   node bench/lifecycle/weeks.mjs --before ../spoke-before
 *   node bench/lifecycle/weeks.mjs --quick       small, short and not recorded
 */
import { fork } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { parseArgs } from "node:util"
import { build } from "esbuild"
import pg from "pg"
import { query, startPostgres } from "../databases.mjs"
import { cpuOf, machine, median, pause, quantile, root, rounded } from "../machine.mjs"
import { fillTurns } from "./fill.mjs"
import { rebuild } from "./tables.mjs"

const { values } = parseArgs({
  options: {
    before: { type: "string" },
    rounds: { type: "string" },
    only: { type: "string" },
    runs: { type: "string" },
    quick: { type: "boolean", default: false }
  }
})
const { quick } = values
const rounds = Number(values.rounds ?? (quick ? 1 : 16))
const runs = Number(values.runs ?? (quick ? 5_000 : 500_000))
const turnsPerRound = quick ? 40 : 600
const clients = 4
const perSecond = 20

const bundle = async (entry, folder = root) => {
  const outfile = path.join(
    root,
    `dist/bench-lifecycle-${path.basename(entry)}.${process.pid}.${path.basename(folder)}.mjs`
  )
  process.on("exit", () => fs.rmSync(outfile, { force: true }))
  await build({
    // An earlier version has no such file.
    stdin: {
      contents: fs.readFileSync(path.join(root, "bench/lifecycle", entry), "utf8"),
      resolveDir: path.join(folder, "bench"),
      loader: "ts"
    },
    plugins: [
      {
        name: "folder",
        setup: ({ onResolve }) =>
          onResolve({ filter: /^\.\.\/\.\.\/(?:src|test)\// }, ({ importer, path: imported }) =>
            importer === "<stdin>" ? { path: path.join(folder, "bench/lifecycle", imported) } : undefined
          )
      }
    ],
    outfile,
    bundle: true,
    packages: "external",
    platform: "node",
    format: "esm",
    logLevel: "error"
  })
  return outfile
}

const postgres = await startPostgres()
if (postgres === undefined) throw new Error("PostgreSQL is needed.")

/** A process that begins and settles turns. */
const startTurns = async (program, url, folder) => {
  const child = fork(program, [url, path.join(folder, "migrations")], {
    stdio: ["ignore", "inherit", "inherit", "ipc"]
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
    ask: (name, count = 0, clients = 1) => {
      const answered = answer()
      child.send({ name, count, clients })
      return answered
    },
    stop: () =>
      new Promise((resolve) => {
        child.once("exit", resolve)
        child.kill("SIGKILL")
      })
  }
}

const withClient = async (url, use) => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return await use((text, parameters) => client.query(text, parameters))
  } finally {
    await client.end()
  }
}

const traces = (weeks) => [
  { table: "agent_run_events", column: "run_id", prefix: "run", weeks },
  { table: "run_passages", column: "run_id", prefix: "run", weeks }
]

const variants = {
  plain: traces(null),
  again: traces(null),
  weeks1: traces(1),
  weeks12: traces(12),
  weeks36: traces(36),
  weeks150: traces(150),
  runs12: [...traces(12), { table: "agent_runs", column: "id", prefix: "run", weeks: 12 }],
  runs36: [...traces(36), { table: "agent_runs", column: "id", prefix: "run", weeks: 36 }],
  messages12: [...traces(null), { table: "messages", column: "id", prefix: "msg", weeks: 12 }],
  messages36: [...traces(null), { table: "messages", column: "id", prefix: "msg", weeks: 36 }]
}

const walOf = async (url) =>
  Number(
    (await query(url, "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') as bytes")).rows[0].bytes
  )

const measureTurns = async () => {
  const program = await bundle("Turns.ts")
  const databases = {}
  const prepare = async (name, changes, source = program, folder = root) => {
    const url = await postgres.database(name.toLowerCase())
    const first = await startTurns(source, url, folder)
    await first.ask("migrate")
    await first.ask("world", 20)
    await first.ask("turns", quick ? 100 : 3_000, clients)
    await first.stop()
    await withClient(url, async (run) => {
      for (const change of changes) await rebuild(run, change)
      await run("vacuum analyze")
    })
    const turns = await startTurns(source, url, folder)
    await turns.ask("world", 20)
    await turns.ask("turns", turnsPerRound, clients)
    databases[name] = { url, turns, begin: [], settle: [], read: [], cpu: [], wal: [] }
    console.error(`prepared ${name}`)
  }
  for (const [name, changes] of Object.entries(variants)) await prepare(name, changes)
  if (values.before !== undefined) {
    const folder = path.resolve(values.before)
    await prepare("before", [], await bundle("Turns.ts", folder), folder)
    await prepare("now", [])
  }
  const names = Object.keys(databases)
  for (let round = 0; round < rounds; round++) {
    for (const place of names.keys()) {
      const each = databases[names[(place + round) % names.length]]
      const before = { cpu: cpuOf(postgres.pid), wal: await walOf(each.url) }
      const { begins, settles } = await each.turns.ask("turns", turnsPerRound, clients)
      each.begin.push(median(begins))
      each.settle.push(median(settles))
      each.cpu.push(((cpuOf(postgres.pid) - before.cpu) * 1_000) / settles.length)
      each.wal.push(((await walOf(each.url)) - before.wal) / settles.length)
      each.read.push(median((await each.turns.ask("reads", quick ? 10 : 100)).reads))
    }
    console.error(`round ${round + 1} of ${rounds}`)
  }
  const summary = (name, to) => {
    const { begin, cpu, read, settle, wal } = databases[name]
    const ratio = (of) =>
      rounded(median(databases[name][of].map((value, round) => value / databases[to][of][round])))
    return {
      beginMs: rounded(median(begin)),
      settleMs: rounded(median(settle)),
      traceMs: rounded(median(read)),
      databaseCpuMs: rounded(median(cpu)),
      walBytes: Math.round(median(wal)),
      ratios: {
        to,
        begin: ratio("begin"),
        settle: ratio("settle"),
        trace: ratio("read"),
        cpu: ratio("cpu"),
        wal: ratio("wal")
      }
    }
  }
  const record = Object.fromEntries(
    names.map((name) => [name, summary(name, name === "now" ? "before" : "plain")])
  )
  // How the rows of a turn were updated.
  await pause(1_500)
  const url = databases["now"]?.url ?? databases["weeks12"].url
  const { rows } = await query(
    url,
    "select relname as name, n_tup_upd::int as updates, round(n_tup_hot_upd::numeric / n_tup_upd, 3)::float8 as hot from pg_stat_user_tables where n_tup_upd > 100 order by 1"
  )
  for (const { turns } of Object.values(databases)) await turns.stop()
  return { ...record, updates: rows }
}

const sizes = `
  select sum(pg_table_size(c.oid))::float8 as "tableBytes", sum(pg_indexes_size(c.oid))::float8 as "indexBytes"
  from pg_class c where c.relkind = 'r' and c.relname ~ '^(agent_run_events|run_passages|agent_runs)'`

const timesOf = ({ begins, settles }) => ({
  turns: begins.length,
  begin: { p50: rounded(median(begins)), p99: rounded(quantile(begins, 0.99)) },
  settle: { p50: rounded(median(settles)), p99: rounded(quantile(settles, 0.99)) }
})

const runExpire = (program, url, by) =>
  new Promise((resolve, reject) => {
    const child = fork(program, [url, "182", by], { stdio: ["ignore", "inherit", "inherit", "ipc"] })
    let result
    child.once("message", (message) => (result = message))
    child.once("exit", (code) =>
      code === 0 && result ? resolve(result) : reject(new Error("The deletion failed."))
    )
  })

/** Half a year's runs are deleted while turns run, twenty a second. */
const measureDeletion = async (turnsProgram, expireProgram, url, by) => {
  const process = await startTurns(turnsProgram, url, root)
  await process.ask("world", 20)
  await process.ask("turns", 200, clients)
  const quiet = await process.ask("rate", quick ? 20 : 400, perSecond)
  return withClient(url, async (run) => {
    const before = (await run(sizes)).rows[0]
    const start = { cpu: cpuOf(postgres.pid), wal: await walOf(url) }
    let isOver = false
    const meanwhile = { begins: [], settles: [] }
    const load = (async () => {
      while (!isOver) {
        const { begins, settles } = await process.ask("rate", perSecond, perSecond)
        meanwhile.begins.push(...begins)
        meanwhile.settles.push(...settles)
      }
    })()
    const durations = await runExpire(expireProgram, url, by)
    isOver = true
    await load
    const ended = { cpu: cpuOf(postgres.pid), wal: await walOf(url) }
    const after = (await run(sizes)).rows[0]
    const vacuum = { begun: performance.now(), cpu: cpuOf(postgres.pid), wal: await walOf(url) }
    await run("vacuum agent_runs, agent_run_events, run_passages, passages")
    const { rows } = await run(
      "select count(*)::int as runs, (select count(*)::int from agent_run_events) as events from agent_runs"
    )
    await process.stop()
    return {
      dropMs: Math.round(durations.dropMs),
      deleteMs: Math.round(durations.deleteMs),
      // Of the turns, too.
      databaseCpuSeconds: rounded(ended.cpu - start.cpu),
      walMegabytes: Math.round((ended.wal - start.wal) / 1e6),
      quiet: timesOf(quiet),
      meanwhile: timesOf(meanwhile),
      before,
      after,
      vacuum: {
        ms: Math.round(performance.now() - vacuum.begun),
        cpuSeconds: rounded(cpuOf(postgres.pid) - vacuum.cpu),
        walMegabytes: Math.round(((await walOf(url)) - vacuum.wal) / 1e6)
      },
      left: rows[0]
    }
  })
}

const measureDeletions = async () => {
  const turnsProgram = await bundle("Turns.ts")
  const expireProgram = await bundle("Expire.ts")
  const url = await postgres.database("rows")
  const process = await startTurns(turnsProgram, url, root)
  await process.ask("migrate")
  await process.ask("world", 20)
  await process.stop()
  await withClient(url, async (run) => {
    const { rows } = await run(`select tenant_id as "tenantId", id as "agentId" from agents order by 1`)
    await fillTurns(run, rows, { conversations: runs / 5, days: 364, searchable: false, turns: 5 })
    for (const change of traces(null)) await rebuild(run, change)
    await run("vacuum analyze")
  })
  console.error("filled")
  await query(url.replace(/rows$/u, "postgres"), "create database weeks template rows")
  const weeks = url.replace(/rows$/u, "weeks")
  await withClient(weeks, async (run) => {
    for (const change of traces(60)) await rebuild(run, change)
    await run("vacuum analyze")
  })
  console.error("by weeks")
  const record = { runs, rows: await measureDeletion(turnsProgram, expireProgram, url, "rows") }
  console.error(JSON.stringify(record))
  return { ...record, weeks: await measureDeletion(turnsProgram, expireProgram, weeks, "weeks") }
}

const parts = { turns: measureTurns, deletion: measureDeletions }
const record = { ...machine(), postgres: postgres.version, rounds }
for (const [name, part] of Object.entries(parts))
  if (values.only === undefined || values.only === name) record[name] = await part()
console.log(JSON.stringify(record, null, 2))
if (!quick && values.only === undefined)
  fs.writeFileSync(path.join(root, "bench/lifecycle.json"), `${JSON.stringify(record, null, 2)}\n`)
process.exit(0)
