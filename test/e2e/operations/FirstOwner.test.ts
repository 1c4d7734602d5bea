/** The first owner whom the configuration names, on each engine. */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Pg from "pg"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { binaries } from "../../servers/PostgresServer.ts"
import { serverUrl } from "../../TestDatabase.ts"
import { removeFolder, run, type Spoke, start, temporaryFolder } from "../Spoke.ts"

const skipped = binaries === undefined && process.env["CI"] !== "true"

const owner = { SPOKE_ADMIN_EMAIL: "Ada@Example.com", SPOKE_ADMIN_PASSWORD: "correct horse battery" }

const signIn = async (spoke: Spoke, email = "ada@example.com", password = owner.SPOKE_ADMIN_PASSWORD) => {
  const answer = await spoke.request("POST", "/api/auth/login", {
    key: null,
    headers: { "x-spoke-csrf": "1" },
    body: { email, password }
  })
  return [answer.status, answer.body.data?.user?.role]
}

describe("On the embedded database", () => {
  const folder = temporaryFolder()
  afterAll(() => removeFolder(folder))

  it("the named owner signs in with the given password, which is not printed", async () => {
    const spoke = await start(folder, owner)
    try {
      expect(await signIn(spoke)).toEqual([200, "owner"])
      expect(spoke.output()).not.toContain(owner.SPOKE_ADMIN_PASSWORD)
      expect(spoke.output()).not.toContain("Password ")
    } finally {
      await spoke.kill()
    }
  })
})

describe.skipIf(skipped)("On a PostgreSQL server", () => {
  const folder = temporaryFolder()
  const started: Array<Spoke> = []
  let admin: Pg.Client
  let variables: Readonly<Record<string, string>> = {}

  const begin = async (more: Readonly<Record<string, string>>, role = "api") => {
    const spoke = await start(folder, { ...variables, ...more }, ["--role", role])
    started.push(spoke)
    return spoke
  }

  const people = async () => {
    const { rows } = await admin.query<{ email: string; tenants: number }>(
      "select email, (select count(*)::int from tenants) as tenants from users order by email"
    )
    return rows
  }

  beforeAll(async () => {
    const server = new URL(Redacted.value(await Effect.runPromise(serverUrl)))
    const creator = new Pg.Client({ connectionString: server.href })
    await creator.connect()
    await creator.query("create database first_owner")
    await creator.end()
    server.pathname = "/first_owner"
    variables = {
      DATABASE_URL: server.href,
      SPOKE_SECRET: "a secret of these tests, thirty-two bytes",
      SPOKE_OPERATOR_TOKEN: "operator"
    }
    admin = new Pg.Client({ connectionString: server.href })
    await admin.connect()
  }, 60_000)

  afterAll(async () => {
    await Promise.all(started.map((spoke) => spoke.kill()))
    await admin.end()
    removeFolder(folder)
  })

  it("an address without a password is a problem of the configuration, and nothing starts", async () => {
    const { code, stderr } = await run(["serve"], {
      ...variables,
      SPOKE_DATA_DIR: folder,
      PORT: "0",
      SPOKE_ADMIN_EMAIL: owner.SPOKE_ADMIN_EMAIL
    })
    expect(code).toBe(1)
    expect(stderr).toContain("SPOKE_ADMIN_PASSWORD: Required with SPOKE_ADMIN_EMAIL")
  })

  it("without either nobody is made", async () => {
    await begin({})
    expect(await people()).toEqual([])
  }, 60_000)

  it("of processes that start at once exactly one makes owner and tenant, and all sign the owner in", async () => {
    const processes = await Promise.all([
      begin(owner),
      begin({ ...owner, SPOKE_ADMIN_EMAIL: "bob@example.com" }),
      begin(owner),
      begin(owner, "worker")
    ])
    const [only, ...others] = await people()
    expect([others, only?.tenants]).toEqual([[], 1])
    for (const spoke of processes.filter(({ url }) => url !== "")) {
      expect(await signIn(spoke, only?.email)).toEqual([200, "owner"])
    }
  }, 60_000)

  it("once there is a user, the variables make nobody and change nobody's password", async () => {
    const before = await people()
    const spoke = await begin({
      SPOKE_ADMIN_EMAIL: before[0]?.email ?? "",
      SPOKE_ADMIN_PASSWORD: "another password"
    })
    expect(await people()).toEqual(before)
    expect((await signIn(spoke, before[0]?.email, "another password"))[0]).toBe(401)
    expect((await signIn(spoke, before[0]?.email))[0]).toBe(200)
  }, 60_000)
})
