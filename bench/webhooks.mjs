/**
 * Webhooks of messaging providers accepted a second, beside a bare `node:http` server that only checks the HMAC and keeps
 * nothing, in alternating rounds of one run, on the embedded database and on a PostgreSQL server that syncs to disk.
 * `npm run bench:webhooks` prints a table and writes bench/webhooks.json.
 *
 * Every webhook carries one new message, which Spoke has in its inbox and its queue, committed, before it answers. Beside
 * PostgreSQL the process only accepts (`--role api`); the embedded database has one process, whose workers take the jobs
 * meanwhile.
 */
import { execFileSync, spawn } from "node:child_process"
import { createHmac, randomUUID, timingSafeEqual } from "node:crypto"
import * as fs from "node:fs"
import * as http from "node:http"
import { createServer } from "node:net"
import * as os from "node:os"
import * as path from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { buildAll } from "../scripts/build.mjs"

const root = path.resolve(import.meta.dirname, "..")
const secret = "the app secret of the benchmark"
const seconds = Number(process.env["BENCH_SECONDS"] ?? 4)
const rounds = Number(process.env["BENCH_ROUNDS"] ?? 3)
const connections = [1, 16, 64]

const hmac = (body) => createHmac("sha256", secret).update(body).digest()

/** What a careful bare server would do: whole body, HMAC in constant time, a fixed answer. */
const bare = () => {
  const server = http.createServer((request, response) => {
    const chunks = []
    request.on("data", (chunk) => chunks.push(chunk))
    request.on("end", () => {
      const given = Buffer.from(String(request.headers["x-hub-signature-256"]).slice(7), "hex")
      const expected = hmac(Buffer.concat(chunks))
      const good = given.length === expected.length && timingSafeEqual(given, expected)
      response.writeHead(good ? 200 : 401, { "content-type": "application/json" })
      response.end('{"data":{"received":true,"deduped":false,"dedupedCount":0,"enqueued":1}}')
    })
  })
  server.listen({ port: 0, host: "127.0.0.1", backlog: 2_048 }, () => console.log(server.address().port))
}

const started = (child, pattern) =>
  new Promise((resolve, reject) => {
    let output = ""
    child.stdout.on("data", (chunk) => {
      output += chunk
      const found = pattern.exec(output)
      if (found !== null) resolve(found[1])
    })
    child.stderr?.on("data", (chunk) => (output += chunk))
    child.once("exit", () => reject(new Error(`It ended before it listened: ${output}`)))
  })

let sent = 0
const run = randomUUID()

/** As the provider's documentation shows one, of one of 5,000 customers. */
const delivery = () => {
  const from = String(491_700_000_000 + (sent % 5_000))
  const id = `wamid.${run}.${sent++}`
  return JSON.stringify({
    object: "whatsapp_business_account",
    entry: [
      {
        id: "102290129340398",
        changes: [
          {
            value: {
              messaging_product: "whatsapp",
              metadata: { display_phone_number: "15550783881", phone_number_id: "106540352242922" },
              contacts: [{ profile: { name: "Sheena Nelson" }, wa_id: from, user_id: `DE.${from}` }],
              messages: [
                {
                  from,
                  from_user_id: `DE.${from}`,
                  id,
                  timestamp: String(Math.floor(Date.now() / 1_000)),
                  type: "text",
                  text: { body: "Does it come in another color, and when would it be here?" }
                }
              ]
            },
            field: "messages"
          }
        ]
      }
    ]
  })
}

const post = (url, agent) =>
  new Promise((resolve) => {
    const body = delivery()
    const start = performance.now()
    const request = http.request(
      url,
      {
        method: "POST",
        agent,
        headers: {
          "content-type": "application/json",
          "content-length": Buffer.byteLength(body),
          "x-hub-signature-256": `sha256=${hmac(body).toString("hex")}`
        }
      },
      (response) => {
        response.resume()
        response.on("end", () => resolve({ ok: response.statusCode === 200, ms: performance.now() - start }))
      }
    )
    request.on("error", () => resolve({ ok: false, ms: performance.now() - start }))
    request.end(body)
  })

const quantile = (values, part) => values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) * part)]
const median = (values) => quantile(values, 0.5)

/** Each connection sends its next webhook when the last one is answered. */
const round = async (url, clients, duration = seconds) => {
  const agent = new http.Agent({ keepAlive: true, maxSockets: clients })
  const begin = performance.now()
  const end = begin + duration * 1_000
  const results = []
  await Promise.all(
    Array.from({ length: clients }, async () => {
      while (performance.now() < end) results.push(await post(url, agent))
    })
  )
  const elapsed = (performance.now() - begin) / 1_000
  agent.destroy()
  const good = results.filter(({ ok }) => ok)
  return {
    perSecond: good.length / elapsed,
    p50: quantile(
      good.map(({ ms }) => ms),
      0.5
    ),
    p99: quantile(
      good.map(({ ms }) => ms),
      0.99
    ),
    errors: results.length - good.length
  }
}

const compare = async (database, targets, clients) => {
  const seen = { bare: [], spoke: [] }
  for (let turn = 0; turn < rounds; turn++) {
    for (const name of ["bare", "spoke"]) seen[name].push(await round(targets[name], clients))
  }
  const of = (name, field) => median(seen[name].map((result) => result[field]))
  const ms = (name) => ({ p50: Number(of(name, "p50").toFixed(2)), p99: Number(of(name, "p99").toFixed(2)) })
  return {
    database,
    connections: clients,
    perSecond: { bare: Math.round(of("bare", "perSecond")), spoke: Math.round(of("spoke", "perSecond")) },
    ratio: Number((of("spoke", "perSecond") / of("bare", "perSecond")).toFixed(2)),
    ms: { bare: ms("bare"), spoke: ms("spoke") },
    errors: seen.spoke.reduce((sum, { errors }) => sum + errors, 0)
  }
}

const debian = "/usr/lib/postgresql"
const binaries = [
  ...(fs.existsSync(debian)
    ? fs.readdirSync(debian).map((version) => path.join(debian, version, "bin"))
    : []),
  ...(process.env["PATH"] ?? "").split(path.delimiter)
].find((folder) => ["initdb", "postgres"].every((name) => fs.existsSync(path.join(folder, name))))

const freePort = () =>
  new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const { port } = probe.address()
      probe.close(() => resolve(port))
    })
  })

/** PostgreSQL as it comes, durable; it refuses to run as root. */
const postgres = async (folder) => {
  const owner = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}
  fs.mkdirSync(folder)
  if (owner.uid !== undefined) fs.chownSync(folder, owner.uid, owner.gid)
  const data = path.join(folder, "data")
  const options = { ...owner, cwd: folder, env: { LC_ALL: "C", TZ: "UTC" }, stdio: "ignore" }
  execFileSync(
    path.join(binaries, "initdb"),
    ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8"],
    options
  )
  const port = await freePort()
  const settings = ["listen_addresses=127.0.0.1", "unix_socket_directories=", `port=${port}`]
  const child = spawn(
    path.join(binaries, "postgres"),
    ["-D", data, ...settings.flatMap((setting) => ["-c", setting])],
    options
  )
  await delay(2_000)
  return { child, url: `postgres://postgres@127.0.0.1:${port}/postgres` }
}

const serve = (dataDir, role, variables) =>
  spawn(process.execPath, [path.join(root, "dist/main.js"), "serve", "--role", role], {
    env: {
      ...process.env,
      SPOKE_DATA_DIR: dataDir,
      PORT: "0",
      CHANNEL_APP_SECRET: secret,
      LOG_LEVEL: "warn",
      ...variables
    }
  })

const measure = async (database, dataDir, bareUrl, variables) => {
  const spoke = serve(dataDir, variables["DATABASE_URL"] === undefined ? "all" : "api", variables)
  try {
    const address = await started(spoke, /listening on (\S+)/)
    const targets = { bare: bareUrl, spoke: `${address}/api/webhooks/whatsapp` }
    for (const name of ["bare", "spoke"]) await round(targets[name], 16, 2)
    const rows = []
    for (const clients of connections) rows.push(await compare(database, targets, clients))
    return rows
  } finally {
    spoke.kill("SIGKILL")
  }
}

const main = async () => {
  await buildAll()
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "spoke-bench-"))
  fs.chmodSync(folder, 0o755)
  const baseline = spawn(process.execPath, [import.meta.filename ?? process.argv[1], "bare"])
  const bareUrl = `http://127.0.0.1:${await started(baseline, /(\d+)/)}/`
  const rows = await measure("embedded", path.join(folder, "embedded"), bareUrl, {})
  if (binaries !== undefined) {
    const server = await postgres(path.join(folder, "postgres"))
    try {
      const variables = { DATABASE_URL: server.url, SPOKE_SECRET: randomUUID() }
      rows.push(...(await measure("PostgreSQL", path.join(folder, "server"), bareUrl, variables)))
    } finally {
      server.child.kill("SIGQUIT")
      await delay(500)
    }
  }
  baseline.kill("SIGKILL")
  const result = {
    node: process.version,
    cores: os.availableParallelism(),
    secondsARound: seconds,
    rounds,
    rows
  }
  fs.writeFileSync(path.join(import.meta.dirname, "webhooks.json"), `${JSON.stringify(result, null, 2)}\n`)
  console.table(
    rows.map(({ database, connections: clients, perSecond, ratio, ms, errors }) => ({
      database,
      connections: clients,
      ...perSecond,
      ratio,
      "p50 ms": ms.spoke.p50,
      "p99 ms": ms.spoke.p99,
      errors
    }))
  )
  fs.rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 })
}

if (process.argv[2] === "load")
  console.log(await round(process.argv[3], Number(process.argv[4]), Number(process.argv[5] ?? 3)))
else if (process.argv[2] === "bare") bare()
else await main()
