import * as Fs from "node:fs"
import * as Path from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import {
  startCommand,
  hasShell,
  removeFolder,
  root,
  run,
  type Spoke,
  startFresh,
  temporaryFolder,
  until
} from "../Spoke.ts"

/** The marks of citations in a text, `[1]`, each once and in order. */
const marksOf = (text: string) => [...new Set(text.match(/\[\d\]/gu))].sort()

describe("The first start on an empty data directory", () => {
  const dataDir = temporaryFolder()
  let spoke: Spoke

  beforeAll(async () => {
    spoke = await startFresh(dataDir)
  })

  afterAll(async () => {
    await spoke.kill()
    removeFolder(dataDir)
  })

  it.skipIf(!hasShell)(
    "prints the addresses, the key, the owner's password and a curl line that works as it is",
    async () => {
      const output = spoke.output()
      expect(output).toContain(spoke.apiKey)
      expect(output).toMatch(/Password {3}\S{16}/)
      const [line = ""] = /curl -s[\s\S]*?'\{.*\}'/u.exec(output) ?? []
      const { code, stdout, stderr } = await run(["-c", line], {}, ["bash"])
      expect(stderr).toBe("")
      expect(code).toBe(0)
      const { data } = JSON.parse(stdout)
      expect(data.reply).toContain("POST /v1/sources")
      expect(marksOf(data.reply).length).toBeGreaterThan(0)
      expect(data.citations).toHaveLength(marksOf(data.reply).length)
      expect(data.citations[0]).toMatchObject({ sourceName: "Spoke documentation" })
    }
  )

  it("answers the question of the README as the README shows, once the documentation is read", async () => {
    const [, shown] =
      /````text\n([\s\S]*?)\n````/u.exec(Fs.readFileSync(Path.join(root, "README.md"), "utf8")) ?? []
    const { body: listed } = await spoke.request("GET", "/v1/sources")
    await until(
      () => spoke.request("GET", `/v1/sources/${listed.data.sources[0].id}/embedding`),
      ({ body }) => body.data.chunks > 0 && body.data.embedded === body.data.chunks,
      200_000
    )
    const ask = async () => {
      const { body } = await spoke.request("POST", "/v1/chat", {
        body: { message: "How do I add a source?", persist: false }
      })
      return body.data.reply
    }
    // Until its vectors are loaded into memory, the agent is searched by words only.
    await until(ask, (reply) => reply === shown, 30_000).catch(() => undefined)
    expect(await ask()).toBe(shown)
  }, 260_000)

  it("keeps its files from everybody else", () => {
    const modes = ["credentials.json", "secrets.json"].map(
      (name) => Fs.statSync(Path.join(dataDir, name)).mode & 0o777
    )
    expect(modes).toEqual([0o600, 0o600])
    expect(Fs.statSync(dataDir).mode & 0o077).toBe(0)
  })

  it("makes a second process on the same data directory fail with a clear error that changes nothing", async () => {
    const listing = () => Fs.readdirSync(dataDir).sort().join()
    const before = listing()
    const { code, stderr } = await run(["serve"], { SPOKE_DATA_DIR: dataDir, PORT: "0" })
    expect(code).toBe(1)
    expect(stderr).toContain(String(spoke.process.pid))
    expect(stderr).not.toContain("    at ")
    expect(listing()).toBe(before)
    expect((await spoke.request("GET", "/readyz")).status).toBe(200)
  })

  it("makes nothing when it cannot listen, so that the next start still shows the password", async () => {
    const elsewhere = temporaryFolder()
    for (const [variables, words] of [
      [{ PORT: new URL(spoke.url).port }, "is in use by another program"],
      [{ PORT: "45678", SPOKE_HEALTH_PORT: "45678" }, "PORT and SPOKE_HEALTH_PORT are both 45678"],
      [{ HOST: "999.1.1.1" }, "is not an address to listen on"]
    ] as const) {
      const { code, stderr } = await run(["serve"], { SPOKE_DATA_DIR: elsewhere, ...variables })
      expect(code).toBe(1)
      expect(stderr).toContain(words)
      expect(stderr).not.toContain("    at ")
      expect(Fs.existsSync(Path.join(elsewhere, "credentials.json"))).toBe(false)
    }
    removeFolder(elsewhere)
  })

  it("gives the command line what it needs to reach the server", async () => {
    const found = await run(["retrieve", "how is a source added", "--json"], { SPOKE_DATA_DIR: dataDir })
    expect(found.stderr).toBe("")
    expect(JSON.parse(found.stdout).chunks.length).toBe(5)
    const said = await run(["chat", "What happens when a client disconnects?"], { SPOKE_DATA_DIR: dataDir })
    // Which passages it takes depends on whether their vectors are there yet: each mark must have its line.
    expect(marksOf(said.stdout).length).toBeGreaterThan(0)
    expect(marksOf(said.stderr)).toEqual(marksOf(said.stdout))
    expect(said.code).toBe(0)
  })

  it("is followed by starts that find everything as it was", async () => {
    expect(await spoke.stop()).toBe(0)
    spoke = await startFresh(dataDir)
    expect(spoke.output()).not.toContain("Password")
    const { body, status } = await spoke.request("GET", "/v1/sources")
    expect(status).toBe(200)
    expect(body.data.sources).toHaveLength(1)
    expect(body.data.sources[0]).toMatchObject({ status: "READY", type: "BULK_UPLOAD", lastError: null })
  })

  it("tells the doctor what is well, and exits with 1 when something must be mended", async () => {
    // A server listens before its search is warm.
    await until(
      () => spoke.request("GET", "/readyz"),
      ({ status }) => status === 200,
      60_000
    )
    const well = await run(["doctor"], { SPOKE_DATA_DIR: dataDir })
    expect(well.stdout).toContain("in use by the server")
    expect(well).toMatchObject({ code: 0 })
    const ill = await run(["doctor"], { SPOKE_DATA_DIR: dataDir, PORT: "many", SPOKE_SECRET: "short" })
    expect(ill.code).toBe(1)
    expect(ill.stderr).toContain("PORT: ")
    expect(ill.stderr).toContain("SPOKE_SECRET: ")
    expect(ill.stderr).not.toContain("short")
    const told = JSON.parse((await run(["doctor", "--json"], { SPOKE_DATA_DIR: dataDir })).stdout)
    expect(told).toMatchObject({ ok: true })
    expect(told.findings[0]).toEqual({
      status: "ok",
      check: "configuration",
      message: "every variable is valid"
    })
    const { code, stdout } = await run(["doctor", "--json"], { SPOKE_DATA_DIR: dataDir, PORT: "many" })
    expect([code, JSON.parse(stdout).ok, stdout.includes("many")]).toEqual([1, false, false])
  })
})

describe("A first start that is interrupted while it reads the documentation", () => {
  const dataDir = temporaryFolder()
  afterAll(() => removeFolder(dataDir))

  it("has shown the password, and drains like any other", async () => {
    const { output, stop } = startCommand(["serve"], {
      SPOKE_DATA_DIR: dataDir,
      PORT: "0",
      SPOKE_DRAIN_DELAY: "50 millis"
    })
    await until(
      async () => output.stderr,
      (text) => text.includes("Reading the documentation")
    )
    expect(output.stdout).not.toContain("is listening")
    const [, password = ""] = /Password {3}(\S{16})/u.exec(output.stdout) ?? []
    await stop()
    expect(output.stderr).toContain("Draining")
    const spoke = await startFresh(dataDir)
    try {
      const { status } = await spoke.request("POST", "/api/auth/login", {
        key: null,
        headers: { "x-spoke-csrf": "1" },
        body: { email: "admin@localhost", password }
      })
      expect(status).toBe(200)
    } finally {
      await spoke.kill()
    }
  }, 120_000)
})
