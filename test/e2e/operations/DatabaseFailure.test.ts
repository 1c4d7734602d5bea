/** Reports of a database that fails: at the start, in the log, and by `spoke doctor`. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as Pg from "pg"
import * as Path from "node:path"
import { noDisk, smallDisk } from "../../faults/Disk.ts"
import { binaries } from "../../servers/PostgresServer.ts"
import { postgresStub } from "../../servers/PostgresStub.ts"
import { freshDatabase } from "../Fleet.ts"
import { removeFolder, run, start, temporaryFolder } from "../Spoke.ts"

const secret = { SPOKE_SECRET: "a secret of these tests, thirty-two bytes", PORT: "0" }

describe("A database that refuses the password", () => {
  const scope = Effect.runSync(Scope.make())
  const variables = { ...secret, DATABASE_URL: "" }
  beforeAll(async () => {
    const refusal = {
      code: "28P01",
      message: 'password authentication failed for user "spoke"',
      detail: "4711"
    }
    variables.DATABASE_URL = await Effect.runPromise(Scope.extend(postgresStub(refusal), scope))
  })
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

  const words = 'password authentication failed for user "spoke" (SQLSTATE 28P01). Check user and password'

  it("is told as one line of words", async () => {
    const { code, stderr } = await run(["serve"], { ...variables, LOG_FORMAT: "pretty" })
    expect(code).toBe(1)
    expect(stderr.trim()).toContain(words)
    expect(stderr.trim().split("\n")).toHaveLength(1)
  }, 60_000)

  it("is told as one JSON line where the log is JSON", async () => {
    const { code, stderr } = await run(["serve"], { ...variables, LOG_FORMAT: "json" })
    expect(code).toBe(1)
    const lines = stderr
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line))
    expect(lines.at(-1)).toMatchObject({ level: "fatal", message: expect.stringContaining(words) })
    expect(stderr).not.toMatch(/4711|hunter2/u)
  }, 60_000)

  it("is told by the doctor and by spoke migrate", async () => {
    const doctor = await run(["doctor", "--json"], variables)
    const { findings } = JSON.parse(doctor.stdout)
    expect(findings).toContainEqual({
      status: "problem",
      check: "database",
      message: expect.stringContaining(words)
    })
    expect((await run(["migrate"], variables)).stderr).toContain(words)
  }, 60_000)
})

describe.skipIf(binaries === undefined)("A role that may not make tables", () => {
  it("is told what to grant, by the doctor where the tables are another's", async () => {
    const url = new URL(await freshDatabase())
    const role = `limited_${process.pid}`
    const client = new Pg.Client({ connectionString: url.href })
    await client.connect()
    try {
      await client.query(`create role ${role} login`)
      const own = { ...secret, DATABASE_URL: url.href }
      url.username = role
      const limited = { ...secret, DATABASE_URL: url.href, LOG_FORMAT: "pretty" }
      const first = await run(["serve"], limited)
      expect(first.code).toBe(1)
      expect(first.stderr).toContain(`GRANT USAGE, CREATE ON SCHEMA public TO ${role}`)
      expect((await run(["migrate"], own)).code).toBe(0)
      const doctor = await run(["doctor"], limited)
      expect(doctor.code).toBe(1)
      expect(doctor.stdout).toContain("permission denied for table migrations (SQLSTATE 42501)")
      expect(doctor.stdout).toContain(`OWNER TO ${role}`)
    } finally {
      await client.query(`drop role if exists ${role}`)
      await client.end()
    }
  }, 120_000)
})

describe.skipIf(noDisk !== null)("An embedded store on a disk that is full", () => {
  it("says so at its start, makes nothing, and starts with all it had once there is room", async () => {
    const folder = temporaryFolder()
    const disk = smallDisk(Path.join(folder, "disk"), "256m")
    const dataDir = Path.join(folder, "disk/data")
    try {
      disk?.fill()
      const variables = {
        SPOKE_DATA_DIR: dataDir,
        PORT: "0",
        LOG_FORMAT: "pretty",
        SPOKE_EMBEDDING_MODEL: "offline"
      }
      const first = await run(["serve"], variables)
      expect(first.code).toBe(1)
      expect(first.stderr).toMatch(/make room|Make room/u)
      disk?.free()
      const spoke = await start(dataDir, variables)
      const made = await spoke.request("POST", "/v1/chat", { body: { message: "How do I add a source?" } })
      expect(made.status).toBe(200)
      expect(await spoke.stop()).toBe(0)
      disk?.fill()
      const full = await run(["serve"], variables)
      expect(full.code).toBe(1)
      expect(full.stderr).toMatch(/make room|Make room/u)
      expect(full.stderr).not.toContain("    at ")
      disk?.free()
      const again = await start(dataDir, variables)
      const path = `/v1/conversations/${made.body.data.conversationId}`
      expect((await again.request("GET", path)).status).toBe(200)
      expect(await again.stop()).toBe(0)
    } finally {
      disk?.close()
      removeFolder(folder)
    }
  }, 240_000)
})
