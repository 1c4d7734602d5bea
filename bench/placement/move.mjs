/**
 * Measures moves of a tenant there and back, while it and another tenant send turns: how long its requests wait, and what the
 * other tenant notices. `npm run bench:placement` writes bench/placement/move.json.
 * Options: `--moves=5` there and back, `--rate=20` turns a second of each tenant, `--conversations=20000` stored before,
 * `--out=FILE`. Linux only.
 */
import { spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"
import { parseArgs } from "node:util"
import pg from "pg"
import { startPostgres } from "../databases.mjs"
import { machine, median, pause, quantile, root, rounded, startSpoke, temporaryFolder } from "../machine.mjs"
import { call } from "../spoke.mjs"

const { values } = parseArgs({
  options: {
    conversations: { type: "string", default: "20000" },
    moves: { type: "string", default: "5" },
    rate: { type: "string", default: "20" },
    out: { type: "string" }
  }
})
const [conversations, moves, rate] = [values.conversations, values.moves, values.rate].map(Number)
const progress = (text) => process.stderr.write(`${text}\n`)
const folder = temporaryFolder()
const token = "operator-of-the-benchmark"
const password = "correct horse battery"

const postgres = await startPostgres()

/** An installation on a database of its own, or with the embedded one. */
const startInstallation = async (name, embedded) => {
  const variables = {
    SPOKE_DATA_DIR: path.join(folder, name),
    SPOKE_OPERATOR_TOKEN: token,
    SPOKE_EMBEDDING_MODEL: "offline",
    SPOKE_VECTOR: "in-process",
    ...(embedded
      ? {}
      : {
          DATABASE_URL: await postgres.database(name),
          SPOKE_SECRET: `the master secret of ${name}, long enough`
        })
  }
  return { ...(await startSpoke(variables)), variables }
}

const tenantAt = async ({ url }, name) => {
  const owner = { email: `${name}@example.com`, password }
  const post = (place, body, headers) => call(`${url}${place}`, { method: "POST", body, headers })
  const { data } = await post("/api/operator/tenants", { name, owner }, { authorization: `Bearer ${token}` })
  const { cookie } = await post("/api/auth/login", owner, { "x-spoke-csrf": "1" })
  const session = { cookie, "x-spoke-csrf": "1" }
  const { data: created } = await post("/api/agents", { name }, session)
  const key = await post(
    `/api/agents/${created.agent.id}/keys`,
    { name: "Bench", permissions: ["*"] },
    session
  )
  return { tenantId: data.tenant.id, agentId: created.agent.id, key: key.data.secret, url }
}

/** Sends turns at a steady pace. Refused turns are retried, at the address that the refusal names, if any. */
const sendTurns = ({ key, url }) => {
  let address = url
  let running = true
  const answers = []
  const refused = []
  const turn = async () => {
    const started = performance.now()
    const idempotencyKey = randomUUID()
    for (;;) {
      const response = await fetch(`${address}/v1/chat`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-api-key": key, "idempotency-key": idempotencyKey },
        body: JSON.stringify({ message: `What is ${randomUUID()}?` })
      })
      const body = await response.json()
      if (response.ok) return answers.push({ at: started, took: performance.now() - started })
      refused.push(response.status)
      address = body.error?.details?.servedAt ?? address
      await pause(50)
    }
  }
  const turns = []
  const loop = (async () => {
    while (running) {
      turns.push(turn())
      await pause(1_000 / rate)
    }
  })()
  return {
    refused,
    since: (moment) => answers.filter(({ at }) => at >= moment).map(({ took }) => took),
    stop: async () => {
      running = false
      await loop
      await Promise.all(turns)
    }
  }
}

const runMove = (from, to, tenantId, ...flags) =>
  new Promise((resolve, reject) => {
    const child = spawn(
      process.execPath,
      [path.join(root, "dist/main.js"), "tenant", "move", tenantId, "--to", to.url, "--json", ...flags],
      {
        env: {
          ...process.env,
          SPOKE_URL: from.url,
          SPOKE_OPERATOR_TOKEN: token,
          SPOKE_TO_OPERATOR_TOKEN: token
        },
        stdio: ["ignore", "pipe", "pipe"]
      }
    )
    let out = ""
    let stderr = ""
    child.stdout.on("data", (chunk) => (out += chunk))
    child.stderr.on("data", (chunk) => (stderr += chunk))
    child.once("close", (code) => (code === 0 ? resolve({ out, stderr }) : reject(new Error(stderr))))
  })

const fillConversations = async ({ variables }, { agentId, tenantId }) => {
  const client = new pg.Client(variables.DATABASE_URL)
  await client.connect()
  await client.query(`
    insert into end_users (tenant_id, id) select '${tenantId}', 'usr_' || n from generate_series(1, 100) n;
    insert into conversations (tenant_id, id, agent_id, end_user_id, channel, message_count)
      select '${tenantId}', 'cnv_' || lpad(n::text, 10, '0'), '${agentId}', 'usr_' || (1 + n % 100), 'api', 4 from generate_series(1, ${conversations}) n;
    insert into messages (tenant_id, id, conversation_id, agent_id, position, role, author, content)
      select '${tenantId}', 'msg_' || lpad(n::text, 10, '0') || '_' || p, 'cnv_' || lpad(n::text, 10, '0'), '${agentId}', p,
        case when p % 2 = 1 then 'user' else 'assistant' end, case when p % 2 = 0 then 'agent' end, repeat('words of a message ', 20)
      from generate_series(1, ${conversations}) n, generate_series(1, 4) p`)
  await client.end()
}

const measureMoves = async (name, isEmbedded) => {
  const from = await startInstallation(`${name}_from`, isEmbedded)
  const to = await startInstallation(`${name}_to`, false)
  const movedTenant = await tenantAt(from, `${name}-mine`)
  const otherTenant = await tenantAt(from, `${name}-other`)
  if (!isEmbedded) await fillConversations(from, movedTenant)
  const [movedTraffic, otherTraffic] = [sendTurns(movedTenant), sendTurns(otherTenant)]
  await pause(10_000)
  const before = otherTraffic.since(0)
  const rounds = []
  for (let round = 0; round < moves; round++) {
    for (const flags of [[], ["--rollback"]]) {
      const started = performance.now()
      const { out, stderr } = await runMove(from, to, movedTenant.tenantId, ...flags)
      await pause(2_000)
      const pausedMs = JSON.parse(out).pausedMillis
      const attempts = 1 + (stderr.match(/next attempt/gu)?.length ?? 0)
      const longestMs = Math.max(...movedTraffic.since(started))
      rounds.push({
        direction: flags.length === 0 ? "there" : "back",
        seconds: rounded((performance.now() - started - 2_000) / 1_000),
        pausedMillis: rounded(pausedMs),
        attempts,
        longestTurnMillis: rounded(longestMs),
        otherP99Millis: rounded(quantile(otherTraffic.since(started), 0.99))
      })
      progress(`${name} ${JSON.stringify(rounds.at(-1))}`)
    }
  }
  await Promise.all([movedTraffic.stop(), otherTraffic.stop()])
  await Promise.all([from.stop(), to.stop()])
  return {
    pausedMillis: {
      median: rounded(median(rounds.map(({ pausedMillis }) => pausedMillis))),
      max: Math.max(...rounds.map(({ pausedMillis }) => pausedMillis))
    },
    otherTenant: {
      refused: otherTraffic.refused.length,
      p99MillisBefore: rounded(quantile(before, 0.99)),
      p99MillisDuring: rounded(median(rounds.map(({ otherP99Millis }) => otherP99Millis)))
    },
    rounds
  }
}

const result = {
  machine: machine(),
  postgres: postgres.version,
  rate,
  conversations,
  embeddedToPostgres: await measureMoves("embedded", true),
  postgresToPostgres: await measureMoves("postgres", false)
}
const out = values.out ?? path.join(root, "bench/placement/move.json")
fs.writeFileSync(out, `${JSON.stringify(result, null, 2)}\n`)
await postgres.stop()
