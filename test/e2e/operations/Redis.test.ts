import { afterAll, beforeAll, expect, it } from "vitest"
import { startRedis, withRedis } from "../../servers/RedisServer.ts"
import { waitForJob, removeFolder, run, type Spoke, start, temporaryFolder, until } from "../Spoke.ts"

withRedis("A server with Redis", () => {
  const folder = temporaryFolder()
  let redis: Awaited<ReturnType<typeof startRedis>>
  let spoke: Spoke

  beforeAll(async () => {
    redis = await startRedis()
    spoke = await start(folder, { REDIS_URL: redis.url })
  }, 60_000)

  afterAll(async () => {
    await spoke.kill()
    await redis.stop()
    removeFolder(folder)
  })

  const checks = async () => {
    const { body, status } = await spoke.request("GET", "/readyz", { key: null })
    const found = body.data.checks.find(({ name }: { readonly name: string }) => name === "redis")
    return [status, found?.ok]
  }

  const ingest = async (name: string) => {
    const created = await spoke.request("POST", "/v1/sources", {
      body: { type: "FILE", name, config: { fileUrl: `${spoke.url}/healthz` } }
    })
    expect(created.status).toBe(201)
    const { body } = await waitForJob(spoke, created.body.data.ingestionJob.id, 30_000)
    return body.data.status
  }

  it("ingests, tells the operator of its queues, and says that Redis answers", async () => {
    expect(await checks()).toEqual([200, true])
    expect(["SUCCEEDED", "FAILED"]).toContain(await ingest("With Redis"))
    const { body } = await spoke.request("GET", "/api/operator/queues", {
      key: null,
      headers: { authorization: `Bearer ${spoke.operatorToken}` }
    })
    expect(body.data.queues.map(({ name }: { readonly name: string }) => name)).toContain("channel-inbound")
  })

  it("uses no other database of Redis when the one of REDIS_URL does not exist, and says so", async () => {
    const own = temporaryFolder()
    const wrong = await start(own, { REDIS_URL: `${redis.url}/99` })
    try {
      expect((await wrong.request("GET", "/v1/usage")).status).toBe(200)
      expect(wrong.output()).toContain("Redis refuses the database that REDIS_URL names; trying again")
      expect(wrong.output()).not.toContain("Redis is back")
    } finally {
      await wrong.kill()
      removeFolder(own)
    }
  }, 60_000)

  it("goes on when Redis is gone, stays ready, and says so", async () => {
    await redis.stop()
    expect(await until(checks, ([, ok]) => ok === false, 20_000)).toEqual([200, false])
    expect(["SUCCEEDED", "FAILED"]).toContain(await ingest("Without Redis"))
    const found = await run(["doctor"], { SPOKE_DATA_DIR: folder, REDIS_URL: redis.url })
    expect(found.code).toBe(1)
    expect(found.stdout).toContain("does not answer at REDIS_URL")
  }, 90_000)
})
