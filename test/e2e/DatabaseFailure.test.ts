/** What somebody sees whose database does not do what it has to: at the start, in the log, and from the doctor. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as Pg from "pg"
import { binaries } from "../PostgresServer.ts"
import { postgresStub } from "../PostgresStub.ts"
import { freshDatabase } from "./Fleet.ts"
import { run } from "./Spoke.ts"

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
