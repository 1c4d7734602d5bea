/**
 * Time until the page of agents can be used on a slow line and processor: 1.6 Mbit/s, a processor four times slower, an
 * empty cache, and no latency or 150 ms. `npm run bench:interface` prints a table and writes bench/interface.json; with a
 * number of rounds it only prints.
 * Usable means that the rows are drawn and no task of more than 50 ms runs that began within the next 300 ms.
 */
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { chromium } from "playwright-core"
import { buildServer } from "../../scripts/build.mjs"
import { buildUi } from "../../scripts/ui.mjs"
import { root, startSpoke, temporaryFolder } from "../machine.mjs"

const rounds = Number(process.argv[2] ?? 9)
const bitsPerSecond = 1_600_000
const slowdown = 4
const owner = { email: "owner@example.com", password: "correct horse battery" }
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium"

/** Watches long tasks, and when the first row is drawn. */
const watch = `
  window.tasks = []
  new PerformanceObserver((list) => tasks.push(...list.getEntries().map(({ duration, startTime }) => [startTime, duration])))
    .observe({ type: "longtask", buffered: true })
  const look = () =>
    requestAnimationFrame(() => {
      if (document.querySelector("table a") === null) look()
      else requestAnimationFrame(() => (window.drawn = performance.now()))
    })
  look()`

const view = async (url, latency) => {
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] })
  try {
    const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, locale: "en-GB" })
    await context.request.post(`${url}/api/auth/login`, { headers: { "x-spoke-csrf": "1" }, data: owner })
    const page = await context.newPage()
    await page.addInitScript(watch)
    const protocol = await context.newCDPSession(page)
    await protocol.send("Network.enable")
    let bytes = 0
    let isDrawn = false
    protocol.on("Network.loadingFinished", ({ encodedDataLength }) => {
      if (!isDrawn) bytes += encodedDataLength
    })
    await protocol.send("Network.emulateNetworkConditions", {
      offline: false,
      latency,
      downloadThroughput: bitsPerSecond / 8,
      uploadThroughput: bitsPerSecond / 8
    })
    await protocol.send("Emulation.setCPUThrottlingRate", { rate: slowdown })
    await page.goto(`${url}/app/agents`, { waitUntil: "commit" })
    await page.waitForFunction(() => globalThis.drawn !== undefined, undefined, { polling: 100 })
    isDrawn = true
    await page.waitForTimeout(1_500)
    const { drawn, painted, tasks } = await page.evaluate(
      `({ drawn, tasks, painted: performance.getEntriesByName("first-contentful-paint")[0].startTime })`
    )
    const ends = tasks.filter(([from]) => from < drawn + 300).map(([from, took]) => from + took)
    return {
      painted,
      drawn,
      usable: Math.max(drawn, ...ends),
      longestTask: Math.max(0, ...tasks.map(([, took]) => took)),
      kilobytes: bytes / 1_000
    }
  } finally {
    await browser.close()
  }
}

const median = (values) => Math.round(values.toSorted((one, other) => one - other)[values.length >> 1])

await buildServer()
await buildUi()
const server = await startSpoke({
  SPOKE_DATA_DIR: path.join(temporaryFolder(), "data"),
  SPOKE_ADMIN_EMAIL: owner.email,
  SPOKE_ADMIN_PASSWORD: owner.password
})
try {
  const rows = []
  for (const latency of [0, 150]) {
    const views = []
    for (let round = 0; round < rounds; round += 1) views.push(await view(server.url, latency))
    const of = (name) => views.map((one) => one[name])
    rows.push({
      latencyMs: latency,
      firstPaintMs: median(of("painted")),
      rowsMs: median(of("drawn")),
      usableMs: median(of("usable")),
      usableMsMost: Math.round(Math.max(...of("usable"))),
      longestTaskMs: median(of("longestTask")),
      kilobytes: median(of("kilobytes"))
    })
  }
  console.table(rows)
  const report = { cores: os.cpus().length, node: process.version, rounds, bitsPerSecond, slowdown, rows }
  if (process.argv[2] === undefined)
    fs.writeFileSync(path.join(root, "bench/interface.json"), `${JSON.stringify(report, null, 2)}\n`)
} finally {
  await server.stop()
}
