import * as Http from "node:http"
import type { AddressInfo } from "node:net"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { removeFolder, type Spoke, start, temporaryFolder, until } from "./Spoke.ts"

describe("SIGTERM during an ingestion", () => {
  const dataDir = temporaryFolder()
  let asked = 0
  const site = Http.createServer((_, response) => {
    asked++
    setTimeout(() => {
      response.setHeader("content-type", "text/html")
      response.end("<!doctype html><title>Slow</title><main><p>The slow page was read to its end.</p></main>")
    }, 500)
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

  it("lets the running job come to its end, and exits with 0", async () => {
    const url = `http://127.0.0.1:${(site.address() as AddressInfo).port}/`
    const create = async (name: string): Promise<string> => {
      const body = { type: "URL", name, config: { url: `${url}${name}` } }
      return (await spoke.request("POST", "/v1/sources", { body })).body.data.ingestionJob.id
    }
    const status = async (id: string): Promise<string> =>
      (await spoke.request("GET", `/v1/ingestion-jobs/${id}`)).body.data.status
    const running = await create("running")
    await until(
      async () => asked,
      (count) => count > 0
    )
    expect(await spoke.stop()).toBe(0)
    expect(spoke.output()).not.toContain("attempt")
    spoke = await start(dataDir, { SPOKE_FETCH_ALLOW: "127.0.0.1" })
    expect(await status(running)).toBe("SUCCEEDED")
  }, 60_000)
})
