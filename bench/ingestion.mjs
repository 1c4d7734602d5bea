/**
 * What reading sources costs: documents a second from a site of 240 pages to `READY`, and how much of the processor's
 * time goes elsewhere than into the embedding model, in one run of the built server on its embedded database.
 * `npm run bench:ingestion` prints a table and writes bench/ingestion.json.
 *
 * First with an embedding provider that costs nothing (a stub), so that what is left is Spoke's own; then a part of the
 * site with the model that ships with it, against the first run's cost for each document.
 */
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as http from "node:http"
import * as os from "node:os"
import * as path from "node:path"
import { buildAll } from "../scripts/build.mjs"

const root = path.resolve(import.meta.dirname, "..")
const pages = 240
const offlinePages = 24
const dimensions = 512

/** Words that are the same in every run. */
const wordsOf = (seed, count) => {
  let state = seed * 2_654_435_761 + 1
  return Array.from({ length: count }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return `word${state % 4_000}`
  }).join(" ")
}

/** A page of about 6,000 characters under four headings. */
const html = (place) =>
  `<!doctype html><html><head><title>Page ${place}</title></head><body><main><h1>Page ${place}</h1>${[
    1, 2, 3, 4
  ]
    .map(
      (part) =>
        `<h2>Part ${part}</h2><p>${wordsOf(place * 10 + part, 90)}.</p><p>${wordsOf(place * 10 + part + 5_000, 90)}.</p>`
    )
    .join("")}</main></body></html>`

const listening = (handler) =>
  new Promise((resolve) => {
    const server = http.createServer(handler)
    server.listen(0, "127.0.0.1", () => resolve({ server, port: server.address().port }))
  })

const site = () =>
  listening((request, response) => {
    const { pathname } = new URL(request.url, "http://site")
    const list = /^\/sitemap-(\d+)\.xml$/.exec(pathname)
    const page = /^\/p\/(\d+)$/.exec(pathname)
    if (list !== null) {
      const host = `http://${request.headers.host}`
      const urls = Array.from(
        { length: Number(list[1]) },
        (_, place) => `<url><loc>${host}/p/${place}</loc></url>`
      )
      response.writeHead(200, { "content-type": "application/xml" })
      return response.end(
        `<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">${urls.join("")}</urlset>`
      )
    }
    if (page === null) return response.writeHead(404).end()
    response.writeHead(200, { "content-type": "text/html; charset=utf-8" })
    return response.end(html(Number(page[1])))
  })

/** Answers `POST /embeddings` with vectors that cost nothing to make. */
const provider = () =>
  listening((request, response) => {
    let text = ""
    request
      .on("data", (chunk) => (text += chunk))
      .on("end", () => {
        const { input, model } = JSON.parse(text)
        const all = Array.isArray(input) ? input : [input]
        const data = all.map((value, index) => ({
          object: "embedding",
          index,
          embedding: Array.from({ length: dimensions }, (_, at) => (at === value.length % dimensions ? 1 : 0))
        }))
        response.writeHead(200, { "content-type": "application/json" })
        response.end(
          JSON.stringify({ object: "list", model, data, usage: { prompt_tokens: 1, total_tokens: 1 } })
        )
      })
  })

const start = async (dataDir, variables) => {
  const child = spawn(process.execPath, [path.join(root, "dist/main.js"), "serve"], {
    cwd: root,
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      PORT: "0",
      SPOKE_DATA_DIR: dataDir,
      SPOKE_FETCH_ALLOW: "127.0.0.1",
      LOG_LEVEL: "warning",
      ...variables
    },
    stdio: ["ignore", "pipe", "inherit"]
  })
  const url = await new Promise((resolve, reject) => {
    let output = ""
    const timer = setTimeout(() => reject(new Error(`It did not listen within a minute: ${output}`)), 60_000)
    child.stdout.on("data", (chunk) => {
      output += chunk
      const found = /(http:\/\/127\.0\.0\.1:\d+)/.exec(output)
      if (found !== null) {
        clearTimeout(timer)
        resolve(found[1])
      }
    })
    child.once("exit", () => reject(new Error(`It ended before it listened: ${output}`)))
  })
  return { child, url }
}

const stop = ({ child }) =>
  new Promise((resolve) => {
    child.once("exit", resolve)
    child.kill("SIGTERM")
  })

/** Seconds of processor time that the process, its threads included, has used. */
const cpu = (pid) => {
  const fields = fs.readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ")
  return (Number(fields[11]) + Number(fields[12])) / 100
}

const until = async (what, limit, probe) => {
  const end = performance.now() + limit
  for (;;) {
    const found = await probe()
    if (found !== undefined) return found
    if (performance.now() > end) throw new Error(`${what} took too long`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

const keyOf = (dataDir) =>
  until("The first key", 30_000, () => {
    for (const name of fs.readdirSync(dataDir)) {
      const file = path.join(dataDir, name)
      if (!fs.statSync(file).isFile()) continue
      const found = /spk_[A-Za-z0-9_-]{16,}/.exec(fs.readFileSync(file, "utf8"))
      if (found !== null) return found[0]
    }
    return undefined
  })

/** Reads `count` pages: seconds and processor seconds to READY and to the last vector. */
const read = async (server, key, origin, count) => {
  const headers = { "x-api-key": key, "content-type": "application/json" }
  const call = async (method, route, body) => {
    const answer = await fetch(`${server.url}${route}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) })
    })
    if (!answer.ok) throw new Error(`${method} ${route} answered ${answer.status}: ${await answer.text()}`)
    return (await answer.json()).data
  }
  // The sample source of the first start is out of the way.
  await until("The sample source", 120_000, async () => {
    const { sources } = await call("GET", "/v1/sources")
    const states = await Promise.all(sources.map(({ id }) => call("GET", `/v1/sources/${id}/embedding`)))
    return sources.every(({ status }) => status === "READY") &&
      states.every(({ chunks, embedded }) => chunks === embedded)
      ? true
      : undefined
  })
  const before = cpu(server.child.pid)
  const begun = performance.now()
  const { source } = await call("POST", "/v1/sources", {
    type: "SITEMAP",
    name: "Bench",
    config: { sitemapUrl: `${origin}/sitemap-${count}.xml` }
  })
  const ready = await until("Reading", 300_000, async () => {
    const { status, error } = await call("GET", `/v1/sources/${source.id}`)
    if (status === "FAILED") throw new Error(error)
    return status === "READY"
      ? { seconds: (performance.now() - begun) / 1_000, cpu: cpu(server.child.pid) - before }
      : undefined
  })
  const { chunks } = await until("Embedding", 300_000, async () => {
    const state = await call("GET", `/v1/sources/${source.id}/embedding`)
    return state.chunks > 0 && state.chunks === state.embedded ? state : undefined
  })
  return { ready, chunks, seconds: (performance.now() - begun) / 1_000, cpu: cpu(server.child.pid) - before }
}

const run = async (variables, origin, count) => {
  const dataDir = fs.mkdtempSync(path.join(os.tmpdir(), "spoke-bench-"))
  const server = await start(dataDir, variables)
  try {
    return await read(server, await keyOf(dataDir), origin, count)
  } finally {
    await stop(server)
    fs.rmSync(dataDir, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 })
  }
}

const round = (value, digits = 2) => Number(value.toFixed(digits))

await buildAll()
const fixture = await site()
const stub = await provider()
try {
  const origin = `http://127.0.0.1:${fixture.port}`
  const free = await run(
    {
      OPENAI_API_KEY: "bench",
      OPENAI_BASE_URL: `http://127.0.0.1:${stub.port}/v1`,
      SPOKE_EMBEDDING_MODEL: "bench",
      SPOKE_EMBEDDING_DIMENSIONS: String(dimensions)
    },
    origin,
    pages
  )
  const offline = await run({}, origin, offlinePages)
  const own = (free.cpu / free.chunks) * offline.chunks
  const report = {
    cores: os.cpus().length,
    node: process.version,
    pages,
    chunks: free.chunks,
    documentsPerSecondToReady: round(pages / free.ready.seconds, 1),
    cpuMillisecondsPerDocumentToReady: round((free.ready.cpu * 1_000) / pages, 1),
    cpuMillisecondsPerChunkWithVectors: round((free.cpu * 1_000) / free.chunks, 1),
    offline: {
      pages: offlinePages,
      chunks: offline.chunks,
      cpuMillisecondsPerChunk: round((offline.cpu * 1_000) / offline.chunks, 1),
      shareOutsideTheModel: round(own / offline.cpu)
    }
  }
  console.table({ ...report, offline: JSON.stringify(report.offline) })
  fs.writeFileSync(path.join(root, "bench/ingestion.json"), `${JSON.stringify(report, null, 2)}\n`)
} finally {
  fixture.server.close()
  stub.server.close()
}
