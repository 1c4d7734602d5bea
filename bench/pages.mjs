/**
 * Whether the last page of a long list costs what the first does: a conversation of 1,000,000 messages and an agent of
 * 100,000 conversations, over HTTP from a running server, on both engines. `npm run bench:pages` walks both lists to their
 * ends, counts what it got, prints a table, writes bench/pages.json and fails when a last page takes more than 1.5 times
 * the first. `--messages` and `--conversations` set other sizes.
 */
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as http from "node:http"
import * as os from "node:os"
import * as path from "node:path"
import { parseArgs } from "node:util"
import { PGlite } from "@electric-sql/pglite"
import * as esbuild from "esbuild"
import pg from "pg"
import { buildAll } from "../scripts/build.mjs"

const root = path.resolve(import.meta.dirname, "..")
const most = 1.5
const rounds = 21

const { values } = parseArgs({
  options: {
    messages: { type: "string", default: "1000000" },
    conversations: { type: "string", default: "100000" }
  }
})
const messages = Number(values.messages)
const conversations = Number(values.conversations)

const operatorToken = "operator-of-the-benchmark"
const owner = { email: "bench@example.com", password: "correct horse battery" }

const serve = async (variables) => {
  const child = spawn(process.execPath, [path.join(root, "dist/main.js"), "serve"], {
    env: {
      ...process.env,
      PORT: "0",
      SPOKE_OPERATOR_TOKEN: operatorToken,
      SPOKE_SECRET: "a secret of the benchmark, thirty-two bytes",
      LOG_LEVEL: "warn",
      ...variables
    }
  })
  process.on("exit", () => child.kill("SIGKILL"))
  const url = await new Promise((resolve, reject) => {
    let output = ""
    const read = (chunk) => {
      output += chunk
      const found = /listening on (\S+)/.exec(output)
      if (found !== null) resolve(found[1])
    }
    child.stdout.on("data", read)
    child.stderr.on("data", read)
    child.once("exit", () => reject(new Error(`It ended before it listened: ${output}`)))
  })
  const stop = () =>
    new Promise((resolve) => {
      child.once("exit", resolve)
      child.kill("SIGTERM")
    })
  return { url, pid: child.pid, stop }
}

const agent = new http.Agent({ keepAlive: true })

/** The parsed body; `onData` instead sees the bytes as they come. */
const request = (url, { method = "GET", headers = {}, body, onData } = {}) =>
  new Promise((resolve, reject) => {
    const sent = http.request(
      url,
      { method, agent, headers: { ...headers, ...(body && { "content-type": "application/json" }) } },
      (response) => {
        const chunks = []
        response.on("data", onData ?? ((chunk) => chunks.push(chunk)))
        response.on("error", reject)
        response.on("end", () => {
          const cookie = response.headers["set-cookie"]?.[0]?.split(";")[0]
          if (response.statusCode >= 300) reject(new Error(`${response.statusCode} ${Buffer.concat(chunks)}`))
          else resolve(onData ? undefined : { cookie, data: JSON.parse(Buffer.concat(chunks)).data })
        })
      }
    )
    sent.on("error", reject)
    sent.end(body && JSON.stringify(body))
  })

/** A tenant with an agent and a key. */
const setUp = async (url) => {
  const operator = { authorization: `Bearer ${operatorToken}` }
  const post = (place, body, headers) => request(`${url}${place}`, { method: "POST", body, headers })
  const { data } = await post("/api/operator/tenants", { name: "Bench", owner }, operator)
  const { cookie } = await post("/api/auth/login", owner, { "x-spoke-csrf": "1" })
  const session = { cookie, "x-spoke-csrf": "1" }
  const made = await post("/api/agents", { name: "Bench" }, session)
  const agentId = made.data.agent.id
  const key = await post(`/api/agents/${agentId}/keys`, { name: "Bench", permissions: ["chat"] }, session)
  return { tenantId: data.tenant.id, agentId, key: key.data.secret }
}

/** Statements that fill the lists. Ids ascend, as those of the service do. */
const fill = ({ agentId, tenantId }) => [
  `insert into end_users (id, tenant_id) values ('usr_bench', '${tenantId}')`,
  `insert into conversations (id, tenant_id, agent_id, end_user_id, channel, message_count)
    select 'cnv_' || lpad(n::text, 26, '0'), '${tenantId}', '${agentId}', 'usr_bench', 'api',
      case when n = 1 then ${messages} else 0 end
    from generate_series(1, ${conversations}) n`,
  ...Array.from(
    { length: Math.ceil(messages / 100_000) },
    (_, part) => `insert into messages (id, conversation_id, agent_id, position, role, content)
      select 'msg_' || lpad(n::text, 26, '0'), 'cnv_' || lpad('1', 26, '0'), '${agentId}', n,
        case when n % 2 = 1 then 'user' else 'assistant' end, 'What was said as message number ' || n
      from generate_series(${part * 100_000 + 1}, ${Math.min(messages, (part + 1) * 100_000)}) n`
  )
]

const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]
const rounded = (number) => Number(number.toFixed(2))

/** To the end of a list by its cursors: how many rows, all different, and the cursor of its last page. */
const walk = async (url, headers, field) => {
  const seen = new Set()
  let rows = 0
  let cursor = ""
  for (;;) {
    const place = cursor === "" ? url : `${url}&cursor=${encodeURIComponent(cursor)}`
    const { data } = await request(place, { headers })
    rows += data[field].length
    for (const { id } of data[field]) seen.add(id)
    if (data.nextCursor === null) {
      if (seen.size !== rows) throw new Error(`${rows - seen.size} rows came twice.`)
      return { rows, last: place }
    }
    cursor = data.nextCursor
  }
}

/** The first and the last page in turns, so that whatever else the machine does meets both. */
const compare = async (first, last, headers) => {
  const times = { first: [], last: [] }
  for (let round = -5; round < rounds; round++) {
    for (const [name, url] of Object.entries({ first, last })) {
      const begun = performance.now()
      await request(url, { headers })
      if (round >= 0) times[name].push(performance.now() - begun)
    }
  }
  const [firstMs, lastMs] = [median(times.first), median(times.last)]
  return { firstMs: rounded(firstMs), lastMs: rounded(lastMs), ratio: rounded(lastMs / firstMs) }
}

const memory = (pid) => {
  const [, kilobytes] = /VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, "utf8")) ?? []
  return Number(kilobytes) / 1024
}

/** The whole conversation in one response: how long, how much, and what the server needed more memory for it. */
const whole = async (url, headers, pid) => {
  const before = memory(pid)
  let peak = before
  let bytes = 0
  const begun = performance.now()
  await request(url, {
    headers,
    onData: (chunk) => {
      bytes += chunk.length
      peak = Math.max(peak, memory(pid))
    }
  })
  return {
    seconds: rounded((performance.now() - begun) / 1_000),
    mebibytes: Math.round(bytes / 1_048_576),
    memoryMiB: Math.round(peak - before)
  }
}

const measure = async (engine, { url, pid }, key) => {
  const headers = { "x-api-key": key }
  const id = `cnv_${"1".padStart(26, "0")}`
  const lists = [
    { list: "messages", url: `${url}/v1/conversations/${id}/messages?limit=1000`, expected: messages },
    { list: "conversations", url: `${url}/v1/conversations?limit=100`, expected: conversations }
  ]
  const rows = []
  for (const { expected, list, url: first } of lists) {
    console.error(`${engine}: ${list}`)
    const found = await walk(first, headers, list)
    if (found.rows !== expected) throw new Error(`${found.rows} ${list} of ${expected} came.`)
    rows.push({ engine, list, rows: found.rows, ...(await compare(first, found.last, headers)) })
  }
  return { rows, whole: { engine, ...(await whole(`${url}/v1/conversations/${id}`, headers, pid)) } }
}

const embedded = async (folder) => {
  const variables = { SPOKE_DATA_DIR: folder, DATABASE_URL: "" }
  const first = await serve(variables)
  const made = await setUp(first.url)
  await first.stop()
  const database = await PGlite.create({ dataDir: path.join(folder, "database") })
  for (const statement of fill(made)) await database.exec(statement)
  await database.close()
  return { server: await serve(variables), key: made.key }
}

const native = async (folder) => {
  // Started as the tests start it.
  const script = path.join(root, "dist", `bench-postgres.${process.pid}.mjs`)
  esbuild.buildSync({
    entryPoints: [path.join(root, "test/PostgresServer.ts")],
    outfile: script,
    format: "esm"
  })
  const { binaries, startServer } = await import(script)
  fs.rmSync(script)
  if (binaries === undefined) return undefined
  fs.chmodSync(folder, 0o755)
  const url = await startServer(folder)
  const server = await serve({ DATABASE_URL: url, SPOKE_DATA_DIR: path.join(folder, "data") })
  const made = await setUp(server.url)
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  for (const statement of [...fill(made), "vacuum analyze"]) await client.query(statement)
  await client.end()
  return { server, key: made.key }
}

await buildAll()
const result = {
  node: process.version,
  cores: os.availableParallelism(),
  pageSize: { messages: 1_000, conversations: 100 },
  rounds,
  pages: [],
  whole: []
}
for (const [engine, start] of Object.entries({ embedded, server: native })) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "spoke-pages-"))
  const started = await start(folder)
  if (started === undefined) {
    console.log("No PostgreSQL binaries were found: the server half is skipped.")
    continue
  }
  try {
    const measured = await measure(engine, started.server, started.key)
    result.pages.push(...measured.rows)
    result.whole.push(measured.whole)
  } finally {
    await started.server.stop()
    process.on("exit", () => fs.rmSync(folder, { recursive: true, force: true }))
  }
}
console.table(result.pages)
console.table(result.whole)
fs.writeFileSync(path.join(import.meta.dirname, "pages.json"), `${JSON.stringify(result, null, 2)}\n`)
const slow = result.pages.filter(({ ratio }) => ratio > most)
process.exit(slow.length > 0 ? 1 : 0)
