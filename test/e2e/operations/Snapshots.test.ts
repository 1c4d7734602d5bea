/** Snapshots of an embedded store in use: a server can start on each of them. */
import * as Fs from "node:fs"
import * as Path from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { production, removeFolder, run, start, temporaryFolder, until } from "../Spoke.ts"

describe.skipIf(production)("Snapshots of an embedded store", () => {
  const dataDir = temporaryFolder()
  const folder = Path.join(temporaryFolder(), "copies")
  afterAll(() => {
    removeFolder(dataDir)
    removeFolder(Path.dirname(folder))
  })
  const copies = () =>
    Fs.existsSync(folder)
      ? Fs.readdirSync(folder)
          .filter((name) => !name.endsWith(".partial"))
          .toSorted()
      : []

  const timeOf = (name: string) => Date.parse(name.replace(/T(\d\d)-(\d\d)-(\d\d)Z$/u, "T$1:$2:$3Z"))

  it("are taken while turns run, replace the oldest, and hold all replies from before them", async () => {
    const spoke = await start(dataDir, {
      SPOKE_SNAPSHOT_INTERVAL: "2 seconds",
      SPOKE_SNAPSHOT_DIR: folder,
      SPOKE_SNAPSHOTS_KEPT: "2"
    })
    const asked: Array<{ readonly id: string; readonly at: number }> = []
    let isOver = false
    const load = async () => {
      while (!isOver) {
        const answer = await spoke.request("POST", "/v1/chat", {
          body: { message: "How do I add a source?" }
        })
        expect(answer.status).toBe(200)
        asked.push({ id: String(answer.body.data.conversationId), at: Date.now() })
      }
    }
    const turns = Promise.all([load(), load()])
    const [first = ""] = await until(
      async () => copies(),
      (names) => names.length > 0
    )
    const answered = await until(
      async () => asked.at(-1)?.at ?? Infinity,
      (at) => at < Infinity
    )
    await until(
      async () => copies(),
      (names) => !names.includes(first) && names.some((name) => timeOf(name) > answered)
    )
    isOver = true
    await turns
    await spoke.kill()
    // The oldest is removed after the newest is complete.
    const kept = copies()
    expect(kept.length).toBeLessThanOrEqual(3)
    const name = kept.at(-1) ?? ""
    expect(name).toMatch(/^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ$/u)
    const copy = await start(Path.join(folder, name))
    try {
      const before = asked.filter(({ at }) => at < timeOf(name))
      expect(before.length).toBeGreaterThan(0)
      for (const { id } of before.slice(-20)) {
        // The key from the first start also works on the copy.
        const found = await copy.request("GET", `/v1/conversations/${id}/messages`, { key: spoke.apiKey })
        expect([found.status, found.body.data.messages.length]).toEqual([200, 2])
      }
      const again = await copy.request("POST", "/v1/chat", { key: spoke.apiKey, body: { message: "Hello" } })
      expect(again.status).toBe(200)
    } finally {
      await copy.kill()
    }
  }, 120_000)

  it("are refused beside a database server, and without an interval", async () => {
    const variables = { SPOKE_DATA_DIR: dataDir, SPOKE_SNAPSHOTS_KEPT: "3" }
    const alone = await run(["serve"], variables)
    expect([alone.code, alone.stderr]).toEqual([
      1,
      expect.stringContaining("Required with SPOKE_SNAPSHOTS_KEPT")
    ])
    const server = await run(["serve"], {
      SPOKE_DATA_DIR: dataDir,
      DATABASE_URL: "postgres://127.0.0.1:1/spoke",
      SPOKE_SECRET: "a secret of these tests, which is long enough",
      SPOKE_SNAPSHOT_INTERVAL: "1 day"
    })
    expect([server.code, server.stderr]).toEqual([1, expect.stringContaining("SPOKE_SNAPSHOT_INTERVAL")])
  }, 60_000)
})
