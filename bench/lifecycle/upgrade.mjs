/**
 * Upgrades a filled database of release 0.1.0 under load: a service of the release answers turns at a fixed rate, a report
 * holds a transaction open, and a service of this version starts beside it, which migrates. Then the old one is stopped
 * and the new one answers, as in an update without downtime. Counts refused turns, and compares their times before,
 * while the new service starts and migrates, and afterwards. The record is bench/upgrade.json.
 *
 *   node bench/lifecycle/upgrade.mjs --old ../spoke-0.1.0     a built checkout of the release
 *   node bench/lifecycle/upgrade.mjs --old … --quick          small, short and not recorded
 *
 * The embedded database has one process, so an upgrade is a restart: its time is measured too.
 */
import * as fs from "node:fs"
import * as http from "node:http"
import * as path from "node:path"
import { parseArgs } from "node:util"
import { gunzipSync } from "node:zlib"
import pg from "pg"
import { buildAll } from "../../scripts/build.mjs"
import { startPostgres } from "../databases.mjs"
import { fillChunks, fillTurns } from "./fill.mjs"
import {
  machine,
  pause,
  quantile,
  root,
  rounded,
  startScript,
  startSpoke,
  temporaryFolder
} from "../machine.mjs"
import { call } from "../spoke.mjs"

const { values } = parseArgs({
  options: {
    old: { type: "string" },
    messages: { type: "string" },
    chunks: { type: "string" },
    rate: { type: "string", default: "10" },
    seconds: { type: "string" },
    quick: { type: "boolean", default: false }
  }
})
if (values.old === undefined) throw new Error("--old names a built checkout of the release.")
const old = path.resolve(values.old)
const { quick } = values
const messages = Number(values.messages ?? (quick ? 10_000 : 1_000_000))
const chunks = Number(values.chunks ?? (quick ? 3_000 : 300_000))
const rate = Number(values.rate)
/** Of each part of the measurement, and of the report's transaction. */
const seconds = Number(values.seconds ?? (quick ? 5 : 45))
const turnsPerConversation = 5

const release = path.join(root, "test/fixtures/releases/0.1.0")
const world = JSON.parse(fs.readFileSync(path.join(release, "world.json"), "utf8"))
const dump = gunzipSync(fs.readFileSync(path.join(release, "database.sql.gz")))
  .toString("utf8")
  .replaceAll(/^\\(?:un)?restrict .*$/gmu, "")

await buildAll()
const model = await startScript("model.mjs")
// The pace of a fast model.
await call(`${model.url}/pace`, { method: "POST", body: { first: 300, gap: 10, tokens: 50 } })
const settings = {
  SPOKE_SECRET: world.secret,
  SPOKE_OPERATOR_TOKEN: world.operatorToken,
  OPENAI_BASE_URL: `${model.url}/v1`,
  OPENAI_API_KEY: "sk-bench",
  SPOKE_CHAT_MODEL: "gpt-4.1-mini",
  SPOKE_EMBEDDING_MODEL: "offline"
}

/** The originals of the release in a new data directory. */
const dataFolder = () => {
  const folder = temporaryFolder()
  for (const [name, bytes] of Object.entries(world.originals)) {
    const file = path.join(folder, "artifacts", name)
    fs.mkdirSync(path.dirname(file), { recursive: true })
    fs.writeFileSync(file, Buffer.from(bytes, "base64"))
  }
  return folder
}

const tenants = 20

/** The release's schema and clients, further tenants, and the rows of past turns and sources. `run` is one connection. */
const fill = async (run, { chunks, messages }) => {
  await run(
    `insert into tenants (id, name) select 'ten_filled' || lpad(n::text, 2, '0'), 'Filled' from generate_series(1, ${tenants}) n`
  )
  await run(`insert into agents (id, tenant_id, name)
    select 'agt_filled' || lpad(n::text, 2, '0'), 'ten_filled' || lpad(n::text, 2, '0'), 'Filled' from generate_series(1, ${tenants}) n`)
  const { rows } = await run(
    `select tenant_id as "tenantId", id as "agentId" from agents where id like 'agt_filled%' order by id`
  )
  const conversations = Math.ceil(messages / 2 / turnsPerConversation)
  await fillTurns(run, rows, { conversations, days: 300, turns: turnsPerConversation })
  await fillChunks(run, rows, chunks)
}

const agent = new http.Agent({ keepAlive: true, maxSockets: 1_000 })

/** One turn at `url`: when it began, its milliseconds and its status. */
const sendTurn = (url, { conversationId, key, question }, place) =>
  new Promise((resolve) => {
    const begun = performance.now()
    const done = (status) => resolve({ begun, status, ms: performance.now() - begun })
    // A tenth of the turns continue a conversation of before.
    const speaker = place % 10 === 0 ? { conversationId } : { externalEndUserId: `live-${place % 100}` }
    const body = JSON.stringify({ message: question, ...speaker })
    const request = http.request(
      `${url}/v1/chat`,
      {
        agent,
        method: "POST",
        timeout: 60_000,
        headers: {
          "x-api-key": key,
          "content-type": "application/json",
          "content-length": Buffer.byteLength(body)
        }
      },
      (response) => {
        response.resume()
        response.on("end", () => done(response.statusCode))
        response.on("error", ({ code }) => done(code ?? "reset"))
      }
    )
    request.on("timeout", () => request.destroy(new Error("timeout")))
    request.on("error", ({ code, message }) => done(code ?? message))
    request.end(body)
  })

/** Sends turns at fixed times until `stop`, also while earlier ones run. `to()` is the next one's address. */
const load = (to) => {
  const turns = []
  let isOver = false
  const begun = performance.now()
  const sender = (async () => {
    for (let place = 0; !isOver; place++) {
      await pause(Math.max(0, begun + (place * 1_000) / rate - performance.now()))
      turns.push(sendTurn(to(), world.clients[place % world.clients.length], place))
    }
  })()
  return {
    stop: async () => {
      isOver = true
      await sender
      return Promise.all(turns)
    }
  }
}

const summary = (turns) => {
  const good = turns.filter(({ status }) => status === 200)
  const kinds = {}
  for (const { status } of turns) if (status !== 200) kinds[status] = (kinds[status] ?? 0) + 1
  const milliseconds = good.map(({ ms }) => ms)
  return {
    turns: turns.length,
    refused: turns.length - good.length,
    ...(good.length < turns.length && { kinds }),
    p50: rounded(quantile(milliseconds, 0.5)),
    p99: rounded(quantile(milliseconds, 0.99)),
    max: rounded(Math.max(...milliseconds))
  }
}

const onServer = async () => {
  const postgres = await startPostgres()
  if (postgres === undefined) throw new Error("PostgreSQL is needed.")
  const url = await postgres.database("upgrade")
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(dump)
  await client.query("set search_path = public")
  await fill((text, parameters) => client.query(text, parameters), { chunks, messages })
  await client.query("vacuum analyze")
  const { rows } = await client.query(`select
    (select count(*) from messages)::int as messages, (select count(*) from chunks)::int as chunks,
    (select count(*) from agent_runs)::int as runs, (select count(*) from agent_run_events)::int as events,
    (select count(*) from run_passages)::int as passages, round(pg_database_size(current_database()) / 1e6)::int as megabytes`)
  console.error("filled", rows[0])
  const variables = { ...settings, DATABASE_URL: url, SPOKE_DATA_DIR: dataFolder() }
  const before = await startSpoke(variables, [], old)
  let current = before
  for (let place = 0; place < 20; place++)
    await sendTurn(before.url, world.clients[place % world.clients.length], place)
  const running = load(() => current.url)
  await pause(seconds * 1_000)
  const upgradeStarted = performance.now()
  await client.query(
    "begin; select id from conversations limit 1; select id from messages limit 1; select run_id from agent_run_events limit 1; select run_id from run_passages limit 1; select id from agents limit 1"
  )
  const report = pause(seconds * 1_000).then(() => client.query("rollback"))
  const after = await startSpoke(variables, [], root, { timeoutMs: 600_000 })
  // A load balancer sends nothing to it before it is ready.
  for (let tries = 0; !(await fetch(`${after.url}/readyz`)).ok; tries++) {
    if (tries === 600) throw new Error("The new version is not ready after a minute.")
    await pause(100)
  }
  const ready = performance.now()
  await report
  current = after
  await pause(1_000)
  await before.stop()
  const oldStopped = performance.now()
  await pause(seconds * 1_000)
  const turns = await running.stop()
  const summaryBetween = (from, to) =>
    summary(turns.filter(({ begun, ms }) => begun + ms > from && begun < to))
  const { rows: kept } = await client.query(
    "select count(*)::int as messages from messages where conversation_id like 'cnv%'"
  )
  await client.end()
  await after.stop()
  return {
    postgres: postgres.version,
    ...rows[0],
    rate,
    reportSeconds: seconds,
    upgradeSeconds: rounded((ready - upgradeStarted) / 1_000),
    keptMessages: kept[0].messages >= rows[0].messages,
    before: summaryBetween(0, upgradeStarted),
    during: summaryBetween(upgradeStarted, oldStopped),
    after: summaryBetween(oldStopped, Number.POSITIVE_INFINITY)
  }
}

/** The same with the embedded database: seconds of the first start of this version, and of the next one. */
const onEmbedded = async () => {
  const { PGlite } = await import("@electric-sql/pglite")
  const folder = dataFolder()
  const sizes = { messages: Math.ceil(messages / 10), chunks: Math.ceil(chunks / 10) }
  const database = await PGlite.create({ dataDir: path.join(folder, "database") })
  await database.exec(dump)
  await database.exec("set search_path = public")
  await fill((text, parameters) => database.query(text, parameters), sizes)
  await database.exec("vacuum analyze")
  await database.close()
  const measureStart = async (folderOfVersion) => {
    const begun = performance.now()
    const spoke = await startSpoke({ ...settings, SPOKE_DATA_DIR: folder }, [], folderOfVersion, {
      timeoutMs: 600_000
    })
    const startMs = performance.now() - begun
    const turns = []
    for (let place = 0; place < 20; place++)
      turns.push(await sendTurn(spoke.url, world.clients[place % 2], place))
    await spoke.stop()
    return { seconds: rounded(startMs / 1_000), refused: summary(turns).refused }
  }
  const release = await measureStart(old)
  const upgrade = await measureStart(root)
  return { ...sizes, release, upgrade, next: await measureStart(root) }
}

const record = { ...machine(), server: await onServer(), embedded: await onEmbedded() }
console.log(JSON.stringify(record, null, 2))
if (!quick)
  fs.writeFileSync(path.join(import.meta.dirname, "../upgrade.json"), `${JSON.stringify(record, null, 2)}\n`)
process.exit(0)
