/** Health and metrics of a process that answers no requests, at SPOKE_HEALTH_PORT. */
import { once } from "node:events"
import * as Net from "node:net"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { binaries } from "../../servers/PostgresServer.ts"
import { freshDatabase } from "../Fleet.ts"
import { removeFolder, run, type Spoke, start, temporaryFolder, until } from "../Spoke.ts"

const skipped = binaries === undefined && process.env["CI"] !== "true"

describe.skipIf(skipped)("A worker with SPOKE_HEALTH_PORT", () => {
  const folder = temporaryFolder()
  let worker: Spoke
  let url = ""
  let variables: Readonly<Record<string, string>> = {}

  beforeAll(async () => {
    variables = {
      DATABASE_URL: await freshDatabase(),
      SPOKE_SECRET: "a secret of these tests, thirty-two bytes",
      SPOKE_EMBEDDING_MODEL: "offline",
      SPOKE_DRAIN_DELAY: "2 seconds",
      SPOKE_HEALTH_PORT: "0"
    }
    worker = await start(folder, variables, ["--role", "worker"])
    url = /Health and metrics are at (http:\S+)\./u.exec(worker.output())?.[1] ?? ""
  }, 120_000)

  afterAll(async () => {
    await worker.kill()
    removeFolder(folder)
  })

  it("tells there that it is up and ready, and its metrics", async () => {
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/u)
    const health = await fetch(`${url}/healthz`)
    expect(health.status).toBe(200)
    expect(await health.json()).toMatchObject({
      data: { status: "ok" },
      meta: { requestId: expect.any(String) }
    })
    const { body } = await until(
      async () => {
        const answer = await fetch(`${url}/readyz`)
        return { status: answer.status, body: JSON.stringify(await answer.json()) }
      },
      ({ status }) => status === 200
    )
    expect(body).toContain('{"name":"search","ok":true}')
    const metrics = await (await fetch(`${url}/metrics`)).text()
    expect(metrics).toContain("spoke_database_connections_limit 10")
    expect(metrics).toContain("process_resident_memory_bytes")
  }, 60_000)

  it("has nothing else there", async () => {
    for (const [method, path] of [
      ["POST", "/v1/chat"],
      ["GET", "/"],
      ["GET", "/api/operator/queues"],
      ["GET", "/openapi.json"]
    ] as const) {
      const answer = await fetch(`${url}${path}`, { method })
      expect(answer.status).toBe(404)
      expect(await answer.json()).toMatchObject({ error: { code: "NOT_FOUND" } })
    }
  }, 60_000)

  it("does not start where the port is taken, and names the variable", async () => {
    const taken = Net.createServer().listen(0, "127.0.0.1")
    await once(taken, "listening")
    const address = taken.address()
    const port = address !== null && typeof address === "object" ? address.port : 0
    const { code, stderr } = await run(["serve", "--role", "worker"], {
      ...variables,
      SPOKE_HEALTH_PORT: String(port)
    })
    expect(code).toBe(1)
    expect(stderr).toContain(`127.0.0.1:${port} is in use by another program`)
    expect(stderr).toContain("SPOKE_HEALTH_PORT")
    taken.close()
  }, 60_000)

  it("says there that it drains, until it ends", async () => {
    const ended = worker.stop()
    const answer = await until(
      () => fetch(`${url}/readyz`),
      ({ status }) => status !== 200
    )
    expect(answer.status).toBe(503)
    expect(await answer.json()).toMatchObject({
      error: { details: { checks: expect.arrayContaining([{ name: "accepting", ok: false }]) } }
    })
    expect(await ended).toBe(0)
    await expect(fetch(`${url}/healthz`)).rejects.toThrow("fetch failed")
  }, 60_000)
})
