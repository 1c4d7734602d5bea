import * as Http from "node:http"
import type { AddressInfo } from "node:net"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { finished, removeFolder, type Spoke, start, temporaryFolder, until } from "./Spoke.ts"

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
    const { body: job } = await finished(spoke, id)
    expect(job.data.status).toBe("SUCCEEDED")
    expect(spoke.output()).not.toContain("attempt")
  }, 90_000)
})
