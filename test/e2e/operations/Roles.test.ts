import * as Http from "node:http"
import type { AddressInfo } from "node:net"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Pg from "pg"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { binaries } from "../../servers/PostgresServer.ts"
import { serverUrl } from "../../TestDatabase.ts"
import { removeFolder, run, type Spoke, start, temporaryFolder, until } from "../Spoke.ts"
import { makeTeam } from "../Team.ts"

const skipped = binaries === undefined && process.env["CI"] !== "true"

describe.skipIf(skipped)("API and worker processes on one PostgreSQL server", () => {
  const folder = temporaryFolder()
  const site = Http.createServer((_, response) => {
    response.setHeader("content-type", "text/plain; charset=utf-8")
    response.end("The museum is closed on Mondays. Admission is free on the first Sunday of the month.")
  })
  let variables: Readonly<Record<string, string>> = {}
  let api: Spoke
  let other: Spoke
  let worker: Spoke

  beforeAll(async () => {
    await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve))
    const server = new URL(Redacted.value(await Effect.runPromise(serverUrl)))
    const admin = new Pg.Client({ connectionString: server.href })
    await admin.connect()
    await admin.query("create database roles")
    await admin.end()
    server.pathname = "/roles"
    variables = {
      DATABASE_URL: server.href,
      SPOKE_SECRET: "a secret of these tests, thirty-two bytes",
      SPOKE_OPERATOR_TOKEN: "operator",
      SPOKE_FETCH_ALLOW: "127.0.0.1"
    }
    // All at once, on an empty database: each of them would migrate it.
    ;[api, other, worker] = await Promise.all([
      start(folder, variables, ["--role", "api"]),
      start(folder, variables, ["--role", "api"]),
      start(folder, variables, ["--role", "worker"])
    ])
  }, 60_000)

  afterAll(async () => {
    await Promise.all([api, other, worker].map((process) => process.kill()))
    site.close()
    removeFolder(folder)
  })

  it("share their work: what one accepts another does, and every one of them answers", async () => {
    const team = await makeTeam(api)
    const { id, secret: key } = await team.key({ permissions: ["chat", "ingest"] })
    const url = `http://127.0.0.1:${(site.address() as AddressInfo).port}/hours.txt`
    const created = await api.request("POST", "/v1/sources", {
      key,
      body: { type: "FILE", name: "Hours", config: { fileUrl: url } }
    })
    expect(created.status).toBe(201)
    const job = await until(
      () => other.request("GET", `/v1/ingestion-jobs/${created.body.data.ingestionJob.id}`, { key }),
      ({ body }) => !["QUEUED", "RUNNING"].includes(body.data.status)
    )
    expect(job.body.data).toMatchObject({ status: "SUCCEEDED", chunksCreated: 1 })
    const first = await api.request("POST", "/v1/chat", {
      key,
      body: { message: "When is the museum closed?" }
    })
    expect(first.body.data.reply).toContain("closed on Mondays")
    const { conversationId } = first.body.data
    const second = await other.request("POST", "/v1/chat", {
      key,
      body: { message: "When is admission free?", conversationId }
    })
    expect(second.body.data).toMatchObject({ conversationId })
    expect(second.body.data.reply).toContain("first Sunday")
    // A revocation on one process holds on the other within a second.
    await team.owner("DELETE", `/api/keys/${id}`)
    const refused = await until(
      () => other.request("POST", "/v1/chat", { key, body: { message: "Hello?" } }),
      ({ status }) => status === 401,
      1_000
    )
    expect(refused.body.error.code).toBe("UNAUTHORIZED")
  }, 60_000)

  it("are refused to the embedded database, which belongs to one process", async () => {
    const { code, stderr } = await run(["serve", "--role", "worker"], { SPOKE_DATA_DIR: folder })
    expect(code).toBe(1)
    expect(stderr).toContain("DATABASE_URL")
  })
})
