/** A master secret that is lost, damaged or another database's is noticed before anything is sealed under a new one. */
import * as Fs from "node:fs"
import * as Path from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { csrf, makeTenant, signIn } from "../routes/RouteWorld.ts"
import { removeFolder, run, type Spoke, start, startFresh, temporaryFolder } from "../Spoke.ts"

describe("The master secret of an embedded database", () => {
  const dataDir = temporaryFolder()
  const other = temporaryFolder()
  const file = Path.join(dataDir, "secrets.json")
  const variables = { SPOKE_DATA_DIR: dataDir, PORT: "0" }
  let kept = ""
  let others = ""
  let agentId = ""

  const asked = async (spoke: Spoke, method: string, path: string, body?: unknown) => {
    const cookie = await signIn(spoke, "first@example.com")
    return spoke.request(method, path, { key: null, headers: { ...csrf, cookie }, body })
  }

  const files = () => Fs.readdirSync(dataDir).toSorted()

  /** A start that is refused, says how to go on, and changes nothing. */
  const refused = async (what: string, extra: Readonly<Record<string, string>> = {}) => {
    const before = files()
    const text = Fs.existsSync(file) ? Fs.readFileSync(file, "utf8") : null
    const { code, stderr } = await run(["serve"], { ...variables, ...extra })
    expect([code, stderr]).toEqual([1, expect.stringContaining(what)])
    expect(stderr).toContain("spoke new-secret")
    expect(stderr).toContain("the secrets of tools and the access tokens of channels")
    expect(stderr).not.toContain("    at ")
    expect(files()).toEqual(before)
    expect(Fs.existsSync(file) ? Fs.readFileSync(file, "utf8") : null).toBe(text)
    return stderr
  }

  beforeAll(async () => {
    const first = await start(dataDir)
    await makeTenant(first, "first")
    const { body } = await asked(first, "POST", "/api/agents", { name: "Keeper" })
    agentId = body.data.agent.id
    const tool = {
      name: "order",
      http: { url: "https://shop.example/" },
      auth: { kind: "bearer", secret: "a secret of a tool" }
    }
    expect((await asked(first, "POST", `/api/agents/${agentId}/tools`, tool)).status).toBe(201)
    await first.stop()
    kept = Fs.readFileSync(file, "utf8")
    // Prepared data directories share one secret.
    const second = await startFresh(other)
    await second.stop()
    others = Fs.readFileSync(Path.join(other, "secrets.json"), "utf8")
  }, 120_000)

  afterAll(() => {
    removeFolder(dataDir)
    removeFolder(other)
  })

  it("is missed when its file is gone, and nothing takes its place", async () => {
    Fs.rmSync(file)
    const words = await refused(`${file} is missing`)
    expect(words).toContain("Put the file back from a backup")
    expect(words).toContain("set SPOKE_SECRET to the `secret` that stood in it")
    const { code, stderr } = await run(["export", Path.join(other, "archive")], variables)
    expect([code, stderr]).toEqual([1, expect.stringContaining(`${file} is missing`)])
    expect(Fs.existsSync(file)).toBe(false)
  }, 120_000)

  it("is missed when its file was cut off, emptied or damaged", async () => {
    for (const text of [
      kept.slice(0, kept.length / 2),
      "",
      "{}",
      "null",
      kept.replace(/"secret": "[^"]*"/u, '"secret": ""'),
      kept.replace(/"secret": "[^"]{20}/u, '"secret": "')
    ]) {
      Fs.writeFileSync(file, text)
      await refused(`${file} is damaged`)
    }
  }, 120_000)

  it("is missed when its file belongs to another database, or the configuration names another", async () => {
    Fs.writeFileSync(file, others)
    await refused(`${file} belongs to another database`)
    Fs.writeFileSync(file, kept)
    await refused("SPOKE_SECRET is not the master secret that the database was written under", {
      SPOKE_SECRET: "another secret of at least thirty-two bytes"
    })
  }, 120_000)

  it("is good from the configuration, and from its file once that is back", async () => {
    Fs.rmSync(file)
    const given = await start(dataDir, { SPOKE_SECRET: JSON.parse(kept).secret })
    expect((await given.request("GET", "/readyz", { key: null })).status).toBe(200)
    await given.stop()
    Fs.writeFileSync(file, kept)
    const back = await start(dataDir)
    expect((await back.request("GET", "/readyz", { key: null })).status).toBe(200)
    await back.stop()
    const { code, stdout } = await run(["new-secret"], variables)
    expect([code, stdout]).toEqual([0, expect.stringContaining("Nothing was changed")])
    expect(Fs.readFileSync(file, "utf8")).toBe(kept)
  }, 120_000)

  it("is replaced by a command that says what has to be entered again, and leaves the old file beside it", async () => {
    Fs.writeFileSync(file, others)
    const { code, stderr, stdout } = await run(["new-secret"], variables)
    expect([code, stderr]).toEqual([0, ""])
    expect(stdout).toContain("secrets of 1 tools and the access tokens of 0 channels")
    const aside = files().filter((name) => /^secrets\.json\.\d+\.old$/u.test(name))
    expect(aside.map((name) => Fs.readFileSync(Path.join(dataDir, name), "utf8"))).toEqual([others])
    expect(Fs.statSync(file).mode & 0o777).toBe(0o600)
    const spoke = await start(dataDir)
    const { body } = await asked(spoke, "GET", `/api/agents/${agentId}/tools`)
    expect(body.data.tools).toHaveLength(1)
    await spoke.stop()
  }, 120_000)
})
