import * as Fs from "node:fs"
import * as Path from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { Worker } from "node:worker_threads"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Hostile, hostileDocuments, hostileImage } from "../fixtures/documents/Hostile.ts"
import { removeFolder, type Spoke, start, temporaryFolder } from "./Spoke.ts"

/** Asks `/healthz` in a thread that does nothing else; resolves to the milliseconds of each answer once it is told to stop. */
const askHealth = (url: string) => {
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
    new Promise<ReadonlyArray<number>>((resolve) => {
      worker.once("message", resolve)
      worker.postMessage("stop")
    })
}

/** The most memory that the process ever held, in MiB; Linux tells. */
const peakOf = (pid: number | undefined) =>
  Number(/^VmHWM:\s+(\d+) kB/m.exec(Fs.readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1_024

describe.skipIf(process.platform !== "linux")("Hostile files", () => {
  const dataDir = temporaryFolder()
  const folder = temporaryFolder()
  const files: Array<{ readonly hostile: Hostile; readonly path: string }> = []
  let spoke: Spoke

  const read = async (name: string, path: string) => {
    const form = new FormData()
    form.set("name", name)
    form.set("file", await Fs.openAsBlob(path), "upload.bin")
    const answer = await fetch(`${spoke.url}/v1/sources/upload`, {
      method: "POST",
      headers: { "x-api-key": spoke.apiKey },
      body: form
    })
    expect([name, answer.status]).toEqual([name, 201])
    const { data } = (await answer.json()) as { data: { ingestionJob: { id: string } } }
    for (;;) {
      const { body } = await spoke.request("GET", `/v1/ingestion-jobs/${data.ingestionJob.id}`)
      if (body.data.status !== "QUEUED" && body.data.status !== "RUNNING") return body.data
      await delay(100)
    }
  }

  beforeAll(async () => {
    for (const [place, hostile] of [...hostileDocuments, hostileImage].entries()) {
      const path = Path.join(folder, `${place}.bin`)
      Fs.writeFileSync(path, hostile.bytes())
      files.push({ hostile, path })
    }
    spoke = await start(dataDir)
  })

  afterAll(async () => {
    await spoke.kill()
    removeFolder(dataDir)
    removeFolder(folder)
  })

  it("fail alone and say why, within bounded memory, while the server answers", async () => {
    const stop = askHealth(spoke.url)
    for (const { hostile, path } of files) {
      const job = await read(hostile.name, path)
      const { outcome } = hostile
      if ("codes" in outcome && outcome.codes !== undefined) {
        expect([hostile.name, job.status]).toEqual([hostile.name, "FAILED"])
        const code = String(job.error).split(":", 1)[0] ?? ""
        // Whichever bound is met first: beside all that the process holds, memory may be.
        const known = [...outcome.codes, "out_of_memory"].includes(code)
        expect([hostile.name, job.error, known]).toEqual([hostile.name, job.error, true])
      } else if (hostile.name === "PDF of 1,600 pages" || job.status !== "FAILED") {
        expect([hostile.name, job.status, job.error]).toEqual([hostile.name, "SUCCEEDED", null])
      } else {
        expect(`${hostile.name}: ${job.error}`).toContain(": out_of_memory: ")
      }
    }
    const good = Path.join(folder, "good.txt")
    Fs.writeFileSync(good, "The lighthouse keeper counts ships until midnight.")
    expect((await read("good", good)).status).toBe("SUCCEEDED")
    const found = await spoke.request("POST", "/v1/retrieve", { body: { query: "lighthouse keeper" } })
    expect(found.body.data.chunks[0].text).toContain("lighthouse")

    const took = (await stop()).toSorted((a, b) => a - b)
    expect(took.length).toBeGreaterThan(100)
    // Our machines are noisy: bench/hostile.json records how it is on a quiet one.
    expect(took[Math.floor(took.length * 0.99)]).toBeLessThan(1_000)
    expect(peakOf(spoke.process.pid)).toBeLessThan(1_024)
  }, 300_000)
})
