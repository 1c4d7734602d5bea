import * as Http from "node:http"
import type { AddressInfo } from "node:net"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { connect } from "../../http/HostileClients.ts"
import { waitForJob, removeFolder, type Spoke, start, temporaryFolder, until } from "../Spoke.ts"

describe("SIGTERM during an ingestion", () => {
  const dataDir = temporaryFolder()
  const page = "<!doctype html><title>Slow</title><main><p>The slow page was read to its end.</p></main>"
  const waiting: Array<Http.ServerResponse> = []
  let open = false
  const site = Http.createServer((_, response) => {
    response.setHeader("content-type", "text/html")
    if (open) response.end(page)
    else waiting.push(response)
  })
  let spoke: Spoke

  beforeAll(async () => {
    await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve))
    spoke = await start(dataDir, { SPOKE_FETCH_ALLOW: "127.0.0.1" })
  })

  afterAll(async () => {
    await spoke.kill()
    site.closeAllConnections()
    site.close()
    removeFolder(dataDir)
  })

  it("gives the running job back, exits with 0 without waiting for it, and goes on with it at the next start", async () => {
    const url = `http://127.0.0.1:${(site.address() as AddressInfo).port}/slow`
    const body = { type: "URL", name: "Slow", config: { url } }
    const id = (await spoke.request("POST", "/v1/sources", { body })).body.data.ingestionJob.id
    await until(
      async () => waiting.length,
      (count) => count > 0
    )
    const began = performance.now()
    expect(await spoke.stop()).toBe(0)
    // A third of what a running turn is given; about a second on a machine that has nothing else to do.
    expect(performance.now() - began).toBeLessThan(10_000)
    expect(spoke.output()).not.toContain("attempt")
    open = true
    spoke = await start(dataDir, { SPOKE_FETCH_ALLOW: "127.0.0.1" })
    const { body: job } = await waitForJob(spoke, id)
    expect(job.data.status).toBe("SUCCEEDED")
    expect(spoke.output()).not.toContain("attempt")
  }, 90_000)
})

describe("SIGTERM while 600 requests wait", () => {
  const dataDir = temporaryFolder()
  let spoke: Spoke

  beforeAll(async () => {
    spoke = await start(dataDir, { SPOKE_DRAIN_DELAY: "50 millis" })
  })

  afterAll(async () => {
    await spoke.kill()
    removeFolder(dataDir)
  })

  it("has each of them answered, or refused with 503, before its connection closes", async () => {
    const port = Number(new URL(spoke.url).port)
    const clients = await Promise.all(Array.from({ length: 600 }, () => connect(port)))
    const body = '{"query":"What is a turn?"}'
    for (const client of clients)
      client.send(
        `POST /v1/retrieve HTTP/1.1\r\nhost: a\r\nx-api-key: ${spoke.apiKey}\r\ncontent-type: application/json\r\n` +
          `content-length: ${body.length}\r\n\r\n${body}`
      )
    await until(
      async () => clients.filter((client) => client.received() !== "").length,
      (count) => count > 0
    )
    expect(await spoke.stop()).toBe(0)
    const answers = await Promise.all(clients.map(({ closed }) => closed))
    const heard = answers.map((text) => /^HTTP\/1\.1 (200|503) /u.exec(text)?.[1] ?? `"${text.slice(0, 80)}"`)
    expect(heard.filter((status) => status !== "200" && status !== "503")).toEqual([])
    expect(heard).toContain("503")
    for (const text of answers.filter((one) => one.startsWith("HTTP/1.1 503 "))) {
      expect(text).toMatch(/^retry-after: \d+\r$/mu)
      expect(text).toMatch(/^connection: close\r$/imu)
    }
  }, 90_000)
})
