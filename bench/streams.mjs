/**
 * What streaming through Spoke adds to a model: time to the first token and errors, beside a bare `node:http` proxy to the
 * same stub, in alternating rounds of one run. `npm run bench:streams` prints a table and writes bench/streams.json.
 *
 * The stub's first token comes after 200 ms, forty more follow 20 ms apart. Spoke runs as users run it: embedded
 * database, retrieval from its own documentation, conversations and traces stored.
 */
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as http from "node:http"
import * as os from "node:os"
import * as path from "node:path"
import { buildAll } from "../scripts/build.mjs"

const root = path.resolve(import.meta.dirname, "..")
const tokens = 40
const first = 200
const gap = 20

const frame = (delta, finish = null) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`

/** Serves and tells its port on standard output: stub and proxy are processes of their own. */
const serve = (handler) => {
  const server = http.createServer(handler)
  server.listen({ port: 0, host: "127.0.0.1", backlog: 2_048 }, () => console.log(server.address().port))
}

const stub = () =>
  serve((request, response) => {
    request.resume().on("end", () => {
      response.writeHead(200, { "content-type": "text/event-stream" })
      let sent = 0
      const next = () => {
        if (response.destroyed) return
        if (sent++ < tokens) {
          response.write(frame({ content: "word " }))
          setTimeout(next, gap)
        } else response.end(`${frame({}, "stop")}data: [DONE]\n\n`)
      }
      setTimeout(next, first)
    })
  })

const proxy = (target) => {
  const agent = new http.Agent({ keepAlive: true, maxSockets: Infinity })
  serve((request, response) => {
    const onward = http.request(
      `${target}/v1/chat/completions`,
      { method: "POST", agent, headers: { "content-type": "application/json" } },
      (answer) => {
        response.writeHead(answer.statusCode, { "content-type": "text/event-stream" })
        answer.pipe(response)
      }
    )
    request.pipe(onward)
  })
}

const started = (child, pattern) =>
  new Promise((resolve, reject) => {
    let output = ""
    child.stdout.on("data", (chunk) => {
      output += chunk
      const found = pattern.exec(output)
      if (found !== null) resolve(found[1])
    })
    child.once("exit", () => reject(new Error(`It ended before it listened: ${output}`)))
  })

const self = (...args) => spawn(process.execPath, [import.meta.filename ?? process.argv[1], ...args])

const agent = new http.Agent({ keepAlive: true, maxSockets: Infinity })

/** One stream: milliseconds to the first token and to the end, or an error. */
const stream = ({ url, headers }) =>
  new Promise((resolve) => {
    const start = performance.now()
    let firstAt
    let text = ""
    const request = http.request(
      url,
      { method: "POST", agent, headers: { "content-type": "application/json", ...headers } },
      (response) => {
        response.on("data", (chunk) => {
          text += chunk
          if (firstAt === undefined && text.includes("word")) firstAt = performance.now() - start
        })
        response.on("end", () => {
          const whole =
            response.statusCode === 200 &&
            text.trimEnd().endsWith("[DONE]") &&
            !text.includes('"type":"error"')
          resolve({ ok: whole && firstAt !== undefined, first: firstAt, total: performance.now() - start })
        })
      }
    )
    request.on("error", () => resolve({ ok: false }))
    request.end(JSON.stringify({ message: "How do I add a source?" }))
  })

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]

const round = async (target, clients, each) => {
  const all = await Promise.all(
    Array.from({ length: clients }, async () => {
      const done = []
      for (let turn = 0; turn < each; turn++) done.push(await stream(target))
      return done
    })
  )
  const results = all.flat()
  const good = results.filter(({ ok }) => ok)
  return {
    errors: results.length - good.length,
    first: good.length === 0 ? Infinity : median(good.map((result) => result.first))
  }
}

const memory = (pid) => {
  const [, kilobytes] = /VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, "utf8")) ?? []
  return Number(kilobytes) / 1024
}

const compare = async (targets, clients, each, rounds) => {
  const seen = { bare: [], spoke: [] }
  for (let turn = 0; turn < rounds; turn++) {
    for (const name of ["bare", "spoke"]) seen[name].push(await round(targets[name], clients, each))
  }
  const [bare, spoke] = ["bare", "spoke"].map((name) => median(seen[name].map((result) => result.first)))
  return {
    clients,
    firstTokenMs: { bare: Math.round(bare), spoke: Math.round(spoke), added: Math.round(spoke - bare) },
    ratio: Number((spoke / bare).toFixed(2)),
    errors: seen.spoke.reduce((sum, { errors }) => sum + errors, 0)
  }
}

const main = async () => {
  await buildAll()
  const dataDir = fs.mkdtempSync(path.join(os.tmpdir(), "spoke-bench-"))
  const model = self("stub")
  const modelUrl = `http://127.0.0.1:${await started(model, /(\d+)/)}`
  const bare = self("proxy", modelUrl)
  const bareUrl = `http://127.0.0.1:${await started(bare, /(\d+)/)}`
  const spoke = spawn(process.execPath, [path.join(root, "dist/main.js"), "serve"], {
    env: {
      ...process.env,
      SPOKE_DATA_DIR: dataDir,
      PORT: "0",
      OPENAI_API_KEY: "sk-bench",
      OPENAI_BASE_URL: `${modelUrl}/v1`,
      SPOKE_EMBEDDING_MODEL: "offline",
      LOG_LEVEL: "warn"
    }
  })
  try {
    const url = await started(spoke, /listening on (\S+)/)
    const { apiKey } = JSON.parse(fs.readFileSync(path.join(dataDir, "credentials.json"), "utf8"))
    const targets = {
      bare: { url: bareUrl, headers: {} },
      spoke: { url: `${url}/v1/chat/stream`, headers: { "x-api-key": apiKey } }
    }
    for (const name of ["bare", "spoke"]) await round(targets[name], 8, 3)
    const rows = [await compare(targets, 1, 3, 3), await compare(targets, 64, 2, 2)]
    const idle = memory(spoke.pid)
    let peak = idle
    const watch = setInterval(() => (peak = Math.max(peak, memory(spoke.pid))), 50)
    rows.push(await compare(targets, 500, 1, 2))
    clearInterval(watch)
    const result = {
      node: process.version,
      cores: os.availableParallelism(),
      model: { firstTokenMs: first, tokens, gapMs: gap },
      rows,
      memoryPerStreamKiB: Math.round(((peak - idle) * 1024) / 500)
    }
    fs.writeFileSync(path.join(import.meta.dirname, "streams.json"), `${JSON.stringify(result, null, 2)}\n`)
    console.table(
      rows.map(({ clients, errors, firstTokenMs, ratio }) => ({ clients, ...firstTokenMs, ratio, errors }))
    )
    console.log(`${result.memoryPerStreamKiB} KiB a stream at 500`)
  } finally {
    for (const child of [spoke, bare, model]) child.kill("SIGKILL")
    fs.rmSync(dataDir, { recursive: true, force: true })
  }
}

const [, , role, target] = process.argv
if (role === "stub") stub()
else if (role === "proxy") proxy(target)
else await main()
