/** Delete, then retrieve: nothing of it, ever, also when a sync of it was running. */
import * as Http from "node:http"
import type { AddressInfo } from "node:net"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Answer, waitForJob, removeFolder, type Spoke, start, temporaryFolder, until } from "./Spoke.ts"

const pages = 30

const page = (number: number): string =>
  `<!doctype html><title>Part ${number}</title><main><h1>Part ${number}</h1>
   <p>The serial number of part ${number} is SN-${1000 + number}. It is kept on shelf ${number % 7}.</p></main>
   <nav>${Array.from({ length: pages }, (_, other) => `<a href="/part/${other}">Part ${other}</a>`).join(" ")}</nav>`

describe("A source that is deleted", () => {
  const dataDir = temporaryFolder()
  const site = Http.createServer((request, response) => {
    const [, number] = /^\/part\/(\d+)$/u.exec(request.url ?? "") ?? []
    if (number === undefined) return void response.writeHead(404).end()
    setTimeout(() => response.setHeader("content-type", "text/html").end(page(Number(number))), 25)
  })
  let spoke: Spoke

  beforeAll(async () => {
    await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve))
    spoke = await start(dataDir, { SPOKE_FETCH_ALLOW: "127.0.0.1" })
  }, 120_000)

  afterAll(async () => {
    await spoke?.kill()
    site.close()
    removeFolder(dataDir)
  })

  const create = async (name: string, maxDepth: number) => {
    const url = `http://127.0.0.1:${(site.address() as AddressInfo).port}/part/0`
    const { body } = await spoke.request("POST", "/v1/sources", {
      body: { type: "URL", name, config: { url, maxDepth } }
    })
    await waitForJob(spoke, body.data.ingestionJob.id, 90_000)
    return String(body.data.source.id)
  }

  const sourcesFound = async (): Promise<ReadonlyArray<string>> => {
    const query = "the serial number of a part on its shelf"
    const { body } = await spoke.request("POST", "/v1/retrieve", { body: { query, topK: 20 } })
    return body.data.chunks.map(({ sourceName }: { sourceName: string }) => sourceName)
  }

  const sync = (id: string) => spoke.request("POST", `/v1/sources/${id}/sync`, { body: { force: true } })

  /** Asks until it is gone; what was answered until then. */
  const remove = async (id: string) => {
    const before: Array<string> = []
    const gone = await until(
      () => spoke.request("DELETE", `/v1/sources/${id}`),
      ({ body, status }) => {
        if (status === 409) before.push(body.error.code)
        return status !== 409
      }
    )
    expect([gone.status, gone.body.data]).toEqual([200, { id, deleted: true }])
    return before
  }

  const running = (job: Answer) =>
    until(
      () => spoke.request("GET", `/v1/ingestion-jobs/${job.body.data.jobId}`),
      ({ body }) => body.data.status === "RUNNING" && body.data.progress > 1
    )

  it("is found no more from then on, whatever a sync of it was doing", async () => {
    await create("Kept", 0)
    for (const when of ["at rest", "as its sync begins", "while its sync runs"]) {
      const name = `Parts ${when}`
      const id = await create(name, 1)
      expect(await sourcesFound()).toContain(name)
      if (when === "at rest") {
        expect(await remove(id)).toEqual([])
      } else if (when === "as its sync begins") {
        const [synced] = await Promise.all([sync(id), remove(id)])
        expect([202, 404]).toContain(synced.status)
      } else {
        await running(await sync(id))
        // Until the job has ended it answers, and says so each time.
        expect(new Set(await remove(id))).toEqual(new Set(["ARTIFACT_DELETE_CONFLICT"]))
      }
      // Longer than the sync that was on its way would have taken.
      for (let look = 0; look < 25; look++) {
        const found = await sourcesFound()
        expect([when, found.includes(name), found.includes("Kept")]).toEqual([when, false, true])
        await new Promise((resolve) => setTimeout(resolve, 80))
      }
      expect((await spoke.request("GET", `/v1/sources/${id}`)).status).toBe(404)
      expect((await spoke.request("GET", `/v1/sources/${id}/crawl`)).status).toBe(404)
      expect((await sync(id)).status).toBe(404)
      const left = await spoke.request("GET", "/v1/sources?type=URL")
      expect(left.body.data.sources.map((source: { name: string }) => source.name)).toEqual(["Kept"])
    }
  }, 180_000)
})
