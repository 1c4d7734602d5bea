import * as Http from "node:http"
import type { AddressInfo } from "node:net"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Answer, removeFolder, type Spoke, start, temporaryFolder, until } from "../Spoke.ts"

const pages = 60

const page = (number: number): string =>
  `<!doctype html><title>Part ${number}</title><main><h1>Part ${number}</h1>
   <p>The serial number of part ${number} is SN-${1000 + number}. It is kept on shelf ${number % 7}.</p>
   </main><nav>${Array.from({ length: pages }, (_, other) => `<a href="/part/${other}">Part ${other}</a>`).join(" ")}</nav>`

describe("A process killed (-9) during an ingestion", () => {
  const dataDir = temporaryFolder()
  let served = 0
  const site = Http.createServer((request, response) => {
    const [, number] = /^\/part\/(\d+)$/u.exec(request.url ?? "") ?? []
    if (number === undefined) return void response.writeHead(404).end()
    served++
    setTimeout(() => response.setHeader("content-type", "text/html").end(page(Number(number))), 20)
  })
  let spoke: Spoke

  beforeAll(async () => {
    await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve))
    spoke = await start(dataDir, { SPOKE_FETCH_ALLOW: "127.0.0.1" })
  })

  afterAll(async () => {
    await spoke.kill()
    site.close()
    removeFolder(dataDir)
  })

  it("loses nothing: started again the job finishes, its progress never goes back, and no chunk is doubled or lost", async () => {
    const url = `http://127.0.0.1:${(site.address() as AddressInfo).port}/part/0`
    const { body } = await spoke.request("POST", "/v1/sources", {
      body: { type: "URL", name: "Parts", config: { url, maxDepth: 2 } }
    })
    const { id } = body.data.ingestionJob
    const progress: Array<number> = []
    const ask = async () => {
      const job = await spoke.request("GET", `/v1/ingestion-jobs/${id}`)
      progress.push(job.body.data.progress)
      return job
    }
    await until(ask, ({ body: { data } }) => served > pages / 3 && data.progress > 5)
    await spoke.kill()
    spoke = await start(dataDir, { SPOKE_FETCH_ALLOW: "127.0.0.1" })
    const ended = ({ body }: Answer) => !["QUEUED", "RUNNING"].includes(body.data.status)
    const job = await until(ask, ended, 90_000)
    // A new attempt begins anew, and is not seen to go back.
    expect(progress).toEqual(progress.toSorted((one, other) => one - other))
    expect(new Set(progress).size).toBeGreaterThan(3)
    expect(job.body.data).toMatchObject({ status: "SUCCEEDED", progress: 100, error: null })
    expect(job.body.data.chunksCreated).toBe(pages)
    for (const number of [0, 17, 42, 59]) {
      const found = await spoke.request("POST", "/v1/retrieve", {
        body: { query: `serial number of part ${number} SN-${1000 + number}`, topK: 20 }
      })
      const hits = found.body.data.chunks.filter(({ text }: { text: string }) =>
        text.includes(`SN-${1000 + number}.`)
      )
      expect(hits).toHaveLength(1)
    }
  }, 180_000)
})
