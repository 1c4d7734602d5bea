/**
 * Measures exports of one tenant from PostgreSQL: rows a second by streams, memory, and how long an interrupted export takes
 * to resume. The streams take turns. `npm run bench:placement` writes bench/placement/export.json.
 * Options: `--chunks=300000`, `--streams=1,2,4`, `--rounds=3`, `--out=FILE`. Linux only.
 */
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { parseArgs } from "node:util"
import pg from "pg"
import { startPostgres } from "../databases.mjs"
import { cpuOf, machine, median, root, rounded, temporaryFolder, watchMemory } from "../machine.mjs"

const { values } = parseArgs({
  options: {
    chunks: { type: "string", default: "300000" },
    streams: { type: "string", default: "1,2,4" },
    rounds: { type: "string", default: "3" },
    out: { type: "string" }
  }
})
const [chunks, rounds] = [values.chunks, values.rounds].map(Number)
const streams = values.streams.split(",").map(Number)
const progress = (text) => process.stderr.write(`${text}\n`)
const folder = temporaryFolder()
const tenant = "ten_bench"

const postgres = await startPostgres(["synchronous_commit=off"])
const url = await postgres.database("placement")
const variables = {
  ...process.env,
  DATABASE_URL: url,
  SPOKE_DATA_DIR: path.join(folder, "data"),
  SPOKE_SECRET: "a secret of the benchmark, thirty-two bytes",
  SPOKE_VECTOR: "in-process"
}

/** Runs a command and returns its seconds, CPU and peak of memory. It is killed once `killWhen` returns true. */
const runSpoke = async (args, killWhen = () => false) => {
  const started = performance.now()
  const child = spawn(process.execPath, [path.join(root, "dist/main.js"), ...args], {
    env: variables,
    stdio: ["ignore", "ignore", "pipe"]
  })
  let stderr = ""
  child.stderr.on("data", (chunk) => (stderr += chunk))
  const memory = watchMemory(child.pid)
  let cpu = 0
  const timer = setInterval(() => {
    try {
      cpu = cpuOf(child.pid)
    } catch {
      // It has ended.
    }
    if (killWhen()) child.kill("SIGKILL")
  }, 50)
  const code = await new Promise((resolve) =>
    child.once("exit", (status, signal) => resolve(signal ?? status))
  )
  clearInterval(timer)
  const seconds = (performance.now() - started) / 1_000
  if (code !== 0 && code !== "SIGKILL") throw new Error(stderr)
  return { seconds, cpu, peakMiB: memory.end() }
}

await runSpoke(["migrate"])
const client = new pg.Client(url)
await client.connect()
progress(`filling ${chunks} chunks`)
await client.query(`
  insert into tenants (id, name) values ('${tenant}', 'Bench'), ('ten_other', 'Other');
  insert into agents (id, tenant_id, name) values ('agt_1', '${tenant}', 'A');
  insert into sources (tenant_id, id, agent_id, type, name, config) values ('${tenant}', 'src_1', 'agt_1', 'URL', 'S', '{}');
  insert into documents (tenant_id, id, agent_id, source_id, generation, uri, title, content_hash)
    select '${tenant}', 'doc_' || lpad(n::text, 10, '0'), 'agt_1', 'src_1', 1, 'https://example.com/' || n, 'Page ' || n, '\\x00'
    from generate_series(0, ${chunks} / 10) n;`)
// Chunks of usual length: 700 characters, 100 words, a vector of 512 dimensions.
await client.query(`
  insert into chunks (tenant_id, id, agent_id, source_id, generation, document_id, ordinal, content, content_hash, tsv, length, version)
    select '${tenant}', 'chk_' || lpad(n::text, 12, '0'), 'agt_1', 'src_1', 1, 'doc_' || lpad((n / 10)::text, 10, '0'), n % 10, text,
      sha256(text::bytea), to_tsvector('simple', text), 100, 1
    from generate_series(0, ${chunks} - 1) n, lateral (
      select string_agg(substr(md5(n::text || w::text), 1, 6), ' ') as text from generate_series(1, 100) w) words`)
await client.query(`
  insert into chunk_embeddings (tenant_id, chunk_id, profile, agent_id, version, embedding)
    select tenant_id, id, 'bench/512', agent_id, 1, decode(repeat(md5(id), 128), 'hex') from chunks`)
await client.query("vacuum analyze")
const { rows: sizes } = await client.query(
  "select sum(pg_total_relation_size(c.oid))::float8 as bytes from pg_class c where relname in ('chunks', 'chunk_embeddings', 'documents')"
)
const { rows: rowCounts } = await client.query(
  `select (select count(*) from chunks) + (select count(*) from chunk_embeddings) + (select count(*) from documents) as rows`
)
const total = Number(rowCounts[0].rows)

const bytesOf = (place) =>
  fs
    .readdirSync(place, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + fs.statSync(path.join(entry.parentPath ?? entry.path, entry.name)).size, 0)

const runs = []
for (let round = 0; round < rounds; round++) {
  for (const count of streams) {
    const place = path.join(folder, `archive-${round}-${count}`)
    const result = await runSpoke(["tenant", "export", tenant, place, "--streams", String(count)])
    const run = {
      streams: count,
      round,
      ...result,
      rowsPerSecond: total / result.seconds,
      archiveBytes: bytesOf(place)
    }
    progress(`${count} streams: ${Math.round(run.rowsPerSecond)} rows/s, ${Math.round(run.peakMiB)} MiB`)
    runs.push(run)
    fs.rmSync(place, { recursive: true })
  }
}

// Killed when half of the parts are written, then run again.
const maxStreams = Math.max(...streams)
const place = path.join(folder, "interrupted")
const parts = Math.ceil(total / 20_000)
const isHalfWritten = () =>
  fs.existsSync(path.join(place, "rows")) &&
  fs.readdirSync(path.join(place, "rows")).filter((name) => name.endsWith(".gz")).length >= parts / 2
await runSpoke(["tenant", "export", tenant, place, "--streams", String(maxStreams)], isHalfWritten)
const resumed = await runSpoke(["tenant", "export", tenant, place, "--streams", String(maxStreams)])
progress(`resumed after half of the parts: ${rounded(resumed.seconds)} s`)

const out = values.out ?? path.join(root, "bench/placement/export.json")
fs.writeFileSync(
  out,
  `${JSON.stringify(
    {
      machine: machine(),
      postgres: postgres.version,
      chunks,
      rows: total,
      tableBytes: Number(sizes[0].bytes),
      byStreams: streams.map((count) => {
        const runsOfCount = runs.filter((run) => run.streams === count)
        return {
          streams: count,
          rowsPerSecond: Math.round(median(runsOfCount.map((run) => run.rowsPerSecond))),
          cpuSeconds: rounded(median(runsOfCount.map((run) => run.cpu))),
          peakMiB: Math.round(Math.max(...runsOfCount.map((run) => run.peakMiB))),
          archiveBytes: runsOfCount[0].archiveBytes
        }
      }),
      resumed: { streams: maxStreams, seconds: rounded(resumed.seconds) },
      runs
    },
    null,
    2
  )}\n`
)
await client.end()
await postgres.stop()
