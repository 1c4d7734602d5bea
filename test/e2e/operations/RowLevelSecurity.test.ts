/** Two tenants with one of everything, under row level security, on a database whose owner is an ordinary role. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as Path from "node:path"
import { binaries } from "../../servers/PostgresServer.ts"
import * as ModelStub from "../../servers/ModelStub.ts"
import { ordinary } from "../../servers/OrdinaryRole.ts"
import { ask, makeTenant, makeWorld, type Owner, type World } from "../routes/RouteWorld.ts"
import { removeFolder, run, type Spoke, start, temporaryFolder } from "../Spoke.ts"

describe.skipIf(binaries === undefined)("Two tenants under row level security", () => {
  const folder = temporaryFolder()
  const scope = Effect.runSync(Scope.make())
  let variables: Record<string, string> = {}
  let spoke: Spoke
  const tenants: Array<{ readonly owner: Owner; readonly world: World }> = []

  beforeAll(async () => {
    const { role, url } = await ordinary()
    const stub = await Effect.runPromise(Scope.extend(ModelStub.make, scope))
    variables = {
      OPENAI_BASE_URL: stub.url,
      OPENAI_API_KEY: "sk-stub",
      SPOKE_EMBEDDING_MODEL: "offline",
      DATABASE_URL: url,
      SPOKE_TENANT_ROLE: role,
      SPOKE_SECRET: "a secret of these tests, thirty-two bytes",
      SPOKE_OPERATOR_TOKEN: "operator",
      SPOKE_DATABASE_POOL: "6",
      SPOKE_VECTOR: "in-process"
    }
    spoke = await start(folder, variables)
  }, 120_000)

  afterAll(async () => {
    await spoke.kill()
    await Effect.runPromise(Scope.close(scope, Exit.void))
    removeFolder(folder)
  })

  it("have one of everything, and see their own alone", async () => {
    for (const mark of ["pangolin", "axolotl"]) {
      const owner = await makeTenant(spoke, mark)
      tenants.push({ owner, world: await makeWorld(spoke, owner, mark) })
    }
    for (const [place, { owner, world }] of tenants.entries()) {
      const other = tenants[1 - place]
      for (const path of ["/api/agents", "/api/users", "/api/webhook-endpoints", "/api/inbox?q=Hello"]) {
        const { status, text } = await ask(spoke, "GET", path, { cookie: owner.cookie })
        expect([path, status]).toEqual([path, 200])
        expect(text).not.toContain(other?.world.ids["AgentId"])
        expect(text).not.toContain(other?.world.mark)
      }
      const found = await ask(spoke, "GET", "/v1/sources", { key: world.key })
      expect(found.text).toContain(world.ids["SourceId"])
      const foreign = await ask(spoke, "GET", `/v1/sources/${other?.world.ids["SourceId"]}`, {
        key: world.key
      })
      expect(foreign.status).toBe(404)
    }
  }, 120_000)

  it("doctor says that it is on; export and import take every tenant along", async () => {
    const looked = await run(["doctor", "--json"], { ...variables, SPOKE_DATA_DIR: folder })
    expect(looked.stdout).toContain("tenants' statements run as")
    await spoke.stop()
    const archive = Path.join(folder, "archive")
    const exported = await run(["export", archive], { ...variables, SPOKE_DATA_DIR: folder })
    expect(exported).toMatchObject({ code: 0 })
    const { role, url } = await ordinary()
    const there = { ...variables, DATABASE_URL: url, SPOKE_TENANT_ROLE: role }
    const imported = await run(["import", archive], { ...there, SPOKE_DATA_DIR: folder })
    expect(imported).toMatchObject({ code: 0 })
    spoke = await start(folder, there)
    for (const { world } of tenants) {
      const { status, text } = await ask(spoke, "GET", `/v1/sources/${world.ids["SourceId"]}`, {
        key: world.key
      })
      expect([status, text]).toEqual([200, expect.stringContaining(world.mark)])
    }
  }, 120_000)
})
