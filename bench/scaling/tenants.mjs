/**
 * What tenants cost that do nothing: their rows, and what the periodic work of a process, its start and its look-ups take
 * with 100 and with 10,000 of them. Each tenant is a copy of one that was used once: an owner, an agent, a key, a source that
 * was read, a conversation. PostgreSQL with pg_stat_statements and one process for everything. Linux only.
 *
 *   node bench/scaling/tenants.mjs [--sizes 100,10000] [--seconds 200] [--out bench/tenants.json]
 *   node bench/scaling/tenants.mjs --quick          few and short, not recorded
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { parseArgs } from "node:util"
import { buildAll } from "../../scripts/build.mjs"
import { startPostgres } from "../databases.mjs"
import { load } from "../load.mjs"
import {
  cpuOf,
  machine,
  memoryOf,
  pause,
  root,
  rounded,
  startScript,
  startSpoke,
  temporaryFolder,
  until
} from "../machine.mjs"
import { call, keyHeader, owner, provider, tenantOf, withServer } from "../spoke.mjs"

const { values } = parseArgs({
  options: {
    sizes: { type: "string" },
    seconds: { type: "string" },
    out: { type: "string", default: path.join(root, "bench/tenants.json") },
    quick: { type: "boolean", default: false }
  }
})
const { quick } = values
const sizes = (values.sizes ?? (quick ? "20,200" : "100,10000")).split(",").map(Number)
/** Longer than the pause of the rarest sweep that matters: three minutes. */
const seconds = Number(values.seconds ?? (quick ? 5 : 200))
const progress = (text) => process.stderr.write(`${text}\n`)

await buildAll()
const postgres = await startPostgres([
  "shared_preload_libraries=pg_stat_statements",
  "pg_stat_statements.max=10000"
])
if (postgres === undefined) throw new Error("PostgreSQL is needed.")
const model = await startScript("model.mjs")
const databaseUrl = await postgres.database("spoke_tenants")
const variables = {
  ...provider(model),
  DATABASE_URL: databaseUrl,
  SPOKE_DATA_DIR: temporaryFolder(),
  SPOKE_OPERATOR_TOKEN: "operator-of-the-benchmark",
  SPOKE_SECRET: "a secret of the benchmark, thirty-two bytes"
}
const query = (text, parameters) => withServer(databaseUrl, async (run) => (await run(text, parameters)).rows)

/** The first tenant, whose owner has used everything once. */
const createFirstTenant = async () => {
  const spoke = await startSpoke(variables)
  const [agent] = await tenantOf(spoke.url)
  const post = (place, body) =>
    call(`${spoke.url}${place}`, { method: "POST", headers: keyHeader(agent), body })
  const text = "The museum opens at ten. Its garden is open all day. Dogs stay outside."
  await post("/v1/sources", { type: "TEXT", name: "Hours", config: { text } })
  await post("/v1/chat", { message: "When does the museum open?" })
  // Until nothing is left to do for it: read, embedded, compared.
  await until("The first tenant's work", 180_000, async () => {
    const [{ done }] = await query(
      `select exists (select from passage_scans p join agent_stats s using (tenant_id, agent_id)
        where p.version >= s.version and p.stale_at is not null) and exists (select from chunk_embeddings) as done`
    )
    return done ? true : undefined
  })
  await spoke.stop()
  return agent
}

/** Copies the rows of `tenantId` until there are `size` tenants; ids, hashes and addresses differ. */
const copyTenant = (tenantId, from, size) =>
  withServer(databaseUrl, async (run) => {
    await run("set session_replication_role = replica")
    const { rows: columns } = await run(
      `select table_name as name, string_agg(quote_ident(column_name), ', ' order by ordinal_position) as columns,
        bool_or(column_name = 'tenant_id') as owned
      from information_schema.columns join information_schema.tables using (table_schema, table_name)
      where table_schema = 'public' and table_type = 'BASE TABLE' and is_identity = 'NO' and is_generated = 'NEVER'
        -- Rows of partitions are copied through their parents.
        and not (select relispartition from pg_class where oid = format('%I.%I', table_schema, table_name)::regclass)
      group by table_name`
    )
    for (const { columns: names, name, owned } of columns) {
      if (!owned && name !== "tenants") continue
      // Rows whose key is shared by all tenants are none of theirs.
      await run(
        `insert into ${name} (${names}) select ${names.replaceAll(/(^|, )/g, "$1r.")}
        from ${name} t cross join generate_series($2::int, $3::int) k cross join lateral jsonb_populate_record(null::${name},
          regexp_replace(regexp_replace(replace(to_jsonb(t)::text, $4, 'owner' || k || '@example.com'),
            '(?<=")([a-z]{3}_[0-9a-z]{20})[0-9a-z]{6}(?=")', '\\1' || lpad(k::text, 6, '0'), 'g'),
            '(\\\\\\\\x[0-9a-f]{58})[0-9a-f]{6}', '\\1' || lpad(to_hex(k), 6, '0'), 'g')::jsonb) r
        where t.${owned ? "tenant_id" : "id"} = $1`,
        [tenantId, from, size - 1, owner.email]
      )
    }
    await run("set session_replication_role = default")
    await run("vacuum analyze")
  })

/** Milliseconds of each statement over all tenants, by its text, since the last reset. */
const statements = async () => {
  const rows = await query(
    `select s.query, s.calls::int, s.total_exec_time as total, s.max_exec_time as max, s.shared_blks_hit::float8 as blocks
    from pg_stat_statements s join pg_database d on d.oid = s.dbid where d.datname = current_database()`
  )
  return rows.map(({ query: text, ...rest }) => ({ text: text.replaceAll(/\s+/g, " ").trim(), ...rest }))
}

const measure = async (agent, size) => {
  await query("create extension if not exists pg_stat_statements")
  // Each sweep has a round at the start.
  await query("select pg_stat_statements_reset()")
  const [{ bytes }] = await query("select pg_database_size(current_database())::float8 as bytes")
  const started = performance.now()
  const spoke = await startSpoke(variables)
  await until(
    "Readiness",
    120_000,
    async () => ((await fetch(`${spoke.url}/readyz`)).ok ? true : undefined),
    20
  )
  const startMs = rounded(performance.now() - started)
  const target = {
    url: `${spoke.url}/v1/chat`,
    headers: keyHeader(agent),
    body: (count) => JSON.stringify({ message: `Question ${count}?`, persist: false })
  }
  await load(target, { clients: 1, each: quick ? 3 : 100 })
  const turns = await load(target, { clients: 1, each: quick ? 3 : 200 })
  const from = performance.now()
  const metrics = await (await fetch(`${spoke.url}/metrics`)).text()
  const metricsMs = rounded(performance.now() - from)
  const before = { service: cpuOf(spoke.pid), database: cpuOf(postgres.pid) }
  await pause(seconds * 1_000)
  const idle = (name, pid) => rounded(((cpuOf(pid) - before[name]) * 60) / seconds)
  const found = {
    tenants: size,
    databaseMiB: rounded(bytes / 2 ** 20),
    startMs,
    processMiB: rounded(memoryOf(spoke.pid)),
    metricsKiB: rounded(metrics.length / 1_024),
    metricsMs,
    turnP50Ms: rounded(turns.p50),
    idleCpuSecondsPerMinute: {
      service: idle("service", spoke.pid),
      database: idle("database", postgres.pid)
    },
    statements: await statements()
  }
  await spoke.stop()
  return found
}

const agent = await createFirstTenant()
const results = []
let tenantCount = 1
for (const size of sizes) {
  await copyTenant(agent.tenantId, tenantCount, size)
  tenantCount = size
  progress(`${size} tenants are there`)
  results.push(await measure(agent, size))
  const { statements: _, ...figures } = results.at(-1)
  progress(JSON.stringify(figures))
}

/** Statements that read more with more tenants: milliseconds and blocks of a call at the smallest and the largest number. */
const [few, many] = [results[0], results.at(-1)]
const growing = many.statements
  .flatMap((now) => {
    const then = few.statements.find(({ text }) => text === now.text)
    if (then === undefined) return []
    const [msBefore, msNow] = [then.total / then.calls, now.total / now.calls]
    const [blocks, blocksNow] = [then.blocks / then.calls, now.blocks / now.calls]
    return blocksNow > 2 * blocks + 10
      ? [
          {
            statement: now.text.slice(0, 600),
            calls: now.calls,
            ms: [rounded(msBefore), rounded(msNow)],
            blocks: [Math.round(blocks), Math.round(blocksNow)]
          }
        ]
      : []
  })
  .toSorted((one, other) => other.ms[1] * other.calls - one.ms[1] * one.calls)
const record = {
  measured: new Date().toISOString().slice(0, 10),
  machine: machine(),
  postgres: postgres.version,
  seconds,
  tenants: results.map(({ statements: _, ...rest }) => rest),
  kibibytesPerTenant: rounded(((many.databaseMiB - few.databaseMiB) * 1_024) / (many.tenants - few.tenants)),
  growing
}
console.log(JSON.stringify(record, null, 2))
if (!quick) fs.writeFileSync(values.out, `${JSON.stringify(record, null, 2)}\n`)
await model.stop()
await postgres.stop()
process.exit(0)
