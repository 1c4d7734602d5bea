/**
 * The cost of hostile files for the server that reads them: its maximum memory and event loop delay, for each file,
 * on its embedded database. `npm run bench:hostile` prints a table and writes bench/hostile.json. Linux only, because
 * memory is read from /proc. The files are created before the server starts. A separate thread polls health.
 */
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { pathToFileURL } from "node:url"
import { Worker } from "node:worker_threads"
import { build } from "esbuild"
import { buildServer } from "../scripts/build.mjs"

const root = path.resolve(import.meta.dirname, "..")
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds))

/** Writes every hostile file into `folder`. */
const makeFiles = async (folder) => {
  const program = path.join(folder, "Hostile.mjs")
  await build({
    entryPoints: [path.join(root, "test/fixtures/documents/Hostile.ts")],
    outfile: program,
    bundle: true,
    platform: "node",
    format: "esm",
    logLevel: "error"
  })
  const { hostileDocuments, hostileImage } = await import(pathToFileURL(program).href)
  return [...hostileDocuments, hostileImage].map(({ name, bytes }, place) => {
    const file = path.join(folder, `${place}.bin`)
    fs.writeFileSync(file, bytes())
    return { name, file }
  })
}

const start = async (dataDir) => {
  const child = spawn(process.execPath, [path.join(root, "dist/main.js"), "serve"], {
    cwd: root,
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      PORT: "0",
      SPOKE_DATA_DIR: dataDir,
      LOG_LEVEL: "warning"
    },
    stdio: ["ignore", "pipe", "inherit"]
  })
  const url = await new Promise((resolve, reject) => {
    let output = ""
    child.stdout.on("data", (chunk) => {
      output += chunk
      const found = /listening on (\S+)/.exec(output)
      if (found !== null) resolve(found[1])
    })
    child.once("exit", () => reject(new Error(`It ended before it listened: ${output}`)))
  })
  const { apiKey } = JSON.parse(fs.readFileSync(path.join(dataDir, "credentials.json"), "utf8"))
  return { child, url, apiKey }
}

/** Asks `/healthz` every 20 ms in its own thread until `stop`; milliseconds of each answer. */
const askHealth = (url) => {
  const worker = new Worker(
    `const { parentPort, workerData } = require("node:worker_threads")
    const took = []
    let asking = true
    parentPort.once("message", () => (asking = false))
    const ask = async () => {
      while (asking) {
        const from = performance.now()
        const answer = await fetch(workerData + "/healthz").catch(() => undefined)
        await answer?.text()
        took.push(answer?.ok ? performance.now() - from : Infinity)
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
      parentPort.postMessage(took)
    }
    ask()`,
    { eval: true, workerData: url }
  )
  return () =>
    new Promise((resolve) => {
      worker.once("message", resolve)
      worker.postMessage("stop")
    })
}

const statusOf = (pid, field) =>
  Math.round(
    Number(
      new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(fs.readFileSync(`/proc/${pid}/status`, "utf8"))[1]
    ) / 1024
  )
/** Resets `VmHWM`, the maximum memory. */
const resetPeak = (pid) => fs.writeFileSync(`/proc/${pid}/clear_refs`, "5")

/** The server's own figures of the last five seconds, in milliseconds. */
const delays = async (url) => {
  const text = await (await fetch(`${url}/metrics`)).text()
  const of = (percentile) =>
    Number(
      new RegExp(`^spoke_event_loop_delay_seconds\\{percentile="${percentile}"\\} (\\S+)$`, "m").exec(
        text
      )?.[1]
    ) * 1_000
  return { p50: of("50"), p99: of("99"), max: of("100") }
}

const upload = async ({ url, apiKey }, { name, file }) => {
  const form = new FormData()
  form.set("name", name)
  form.set("file", await fs.openAsBlob(file), "upload.bin")
  const answer = await fetch(`${url}/v1/sources/upload`, {
    method: "POST",
    headers: { "x-api-key": apiKey },
    body: form
  })
  if (answer.status !== 201) throw new Error(`${name}: ${answer.status} ${await answer.text()}`)
  return (await answer.json()).data.ingestionJob.id
}

const waitForJob = async ({ url, apiKey }, id) => {
  for (;;) {
    const answer = await fetch(`${url}/v1/ingestion-jobs/${id}`, { headers: { "x-api-key": apiKey } })
    const { status, error } = (await answer.json()).data
    if (status !== "QUEUED" && status !== "RUNNING") return { status, error }
    await pause(50)
  }
}

const quantile = (values, part) =>
  Number((values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) * part)] ?? 0).toFixed(1))

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "spoke-hostile-"))
try {
  await buildServer()
  const wanted = new RegExp(process.argv[2] ?? "", "u")
  const files = (await makeFiles(folder)).filter(({ name }) => wanted.test(name))
  const server = await start(path.join(folder, "data"))
  const { pid } = server.child
  try {
    await pause(10_000)
    const before = statusOf(pid, "VmRSS")
    const stopHealth = askHealth(server.url)
    const windows = []
    const delayTimer = setInterval(
      () => void delays(server.url).then((window) => windows.push(window)),
      2_500
    )
    const rows = []
    for (const file of files) {
      resetPeak(pid)
      const from = performance.now()
      const { status, error } = await waitForJob(server, await upload(server, file))
      const seconds = Number(((performance.now() - from) / 1_000).toFixed(1))
      rows.push({
        file: file.name,
        outcome: error?.split(":", 1)[0] ?? status,
        seconds,
        peakMiB: statusOf(pid, "VmHWM")
      })
    }
    await pause(5_500)
    clearInterval(delayTimer)
    const durations = await stopHealth()
    const report = {
      cores: os.cpus().length,
      node: process.version,
      mebibytesBefore: before,
      mebibytesPeak: Math.max(...rows.map(({ peakMiB }) => peakMiB)),
      mebibytesAfter: statusOf(pid, "VmRSS"),
      eventLoopDelayMs: {
        p50: quantile(
          windows.map(({ p50 }) => p50),
          1
        ),
        p99: quantile(
          windows.map(({ p99 }) => p99),
          1
        ),
        most: quantile(
          windows.map(({ max }) => max),
          1
        )
      },
      healthzMs: {
        p50: quantile(durations, 0.5),
        p99: quantile(durations, 0.99),
        most: quantile(durations, 1),
        asked: durations.length
      },
      files: rows
    }
    console.table(rows)
    console.log(JSON.stringify({ ...report, files: undefined }, null, 2))
    if (process.argv[2] === undefined) {
      fs.writeFileSync(path.join(root, "bench/hostile.json"), `${JSON.stringify(report, null, 2)}\n`)
    }
  } finally {
    const ended = new Promise((resolve) => server.child.once("exit", resolve))
    server.child.kill("SIGTERM")
    await ended
  }
} finally {
  fs.rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 })
}
process.exit(0)
