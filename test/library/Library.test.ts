/** The embedded library on the embedded database: every method, and errors by their code. */
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { makeClient } from "../../src/client.ts"
import {
  createSpoke,
  type LogEntry,
  type Spoke,
  type SpokeAgent,
  SpokeError,
  type StreamPart
} from "../../src/index.ts"

const root = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-library-"))
const directory = (name: string) => Path.join(root, name)

const rejection = async (promise: Promise<unknown>) => {
  const cause: unknown = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown
  )
  if (!(cause instanceof SpokeError)) throw new Error("It was not rejected with a SpokeError.", { cause })
  return cause
}

const all = async <A>(parts: AsyncIterable<A>) => {
  const found: Array<A> = []
  for await (const part of parts) found.push(part)
  return found
}

const tea = "# Tea\n\nGreen tea is brewed at eighty degrees. Black tea is brewed with boiling water."

/** The HTTP client of `spoke`, over its own handler. */
const over = (spoke: Spoke, apiKey: string) =>
  makeClient({
    baseUrl: "http://spoke.test",
    apiKey,
    fetch: (input, init) => spoke.fetch(new Request(input, init))
  })

describe("The library", () => {
  const log: Array<LogEntry> = []
  const signals = ["SIGTERM", "SIGINT"] as const
  const listeners = signals.map((name) => process.listenerCount(name))
  let spoke: Spoke
  let agent: SpokeAgent

  beforeAll(async () => {
    spoke = await createSpoke({
      dataDir: directory("first"),
      admin: { email: "owner@example.com", password: "correct horse battery" },
      log: (entry) => log.push(entry)
    })
    const { id } = await spoke.agents.create({ name: "Tea guide" })
    agent = spoke.agent(id)
  })
  afterAll(async () => {
    await spoke.close()
    Fs.rmSync(root, { recursive: true, force: true })
  })

  it("catches no signal and reads no environment unless it is asked", () => {
    expect(signals.map((name) => process.listenerCount(name))).toEqual(listeners)
  })

  it("makes, lists, reads, changes and deletes agents", async () => {
    const made = await spoke.agents.create({ name: "Short-lived", instructions: "Be brief." })
    expect((await spoke.agents.list({ limit: 1 })).agents.map(({ id }) => id)).toEqual([made.id])
    expect((await spoke.agents.update(made.id, { greeting: "Hello" })).greeting).toBe("Hello")
    expect((await spoke.agents.get(made.id)).instructions).toBe("Be brief.")
    expect(await spoke.agents.delete(made.id)).toEqual({ id: made.id, deleted: true })
    expect((await rejection(spoke.agents.get(made.id))).code).toBe("NOT_FOUND")
  })

  it("fails with NOT_FOUND for an agent that does not exist, whatever is asked of it", async () => {
    const nobody = spoke.agent("agt_nobody")
    expect((await rejection(nobody.chat({ message: "Hi" }))).code).toBe("NOT_FOUND")
    expect((await rejection(all(nobody.stream({ message: "Hi" })))).code).toBe("NOT_FOUND")
    expect((await rejection(nobody.sources.list())).code).toBe("NOT_FOUND")
    expect((await rejection(spoke.agent("").usage())).code).toBe("NOT_FOUND")
  })

  it("takes documents as bytes and waits for them with progress; then retrieves and cites them", async () => {
    const progress: Array<number> = []
    const { ingestionJob, source } = await agent.sources.upload({ file: tea, fileName: "tea.md" })
    const ready = await agent.sources.ready(source.id, { onProgress: (at) => progress.push(at), every: 20 })
    expect(ready).toMatchObject({ id: source.id, status: "READY", error: null })
    expect(progress.at(-1)).toBe(100)
    expect((await agent.ingestionJobs.get(ingestionJob?.id ?? "")).status).toBe("SUCCEEDED")
    expect((await agent.sources.list({ status: "READY" })).sources).toHaveLength(1)
    expect((await agent.sources.embedding(source.id)).chunks).toBeGreaterThan(0)
    expect((await agent.sources.crawlReport(source.id)).entries).toEqual(expect.any(Array))
    const { chunks } = await agent.retrieve({ query: "How is green tea brewed?", topK: 1 })
    expect(chunks[0]?.text).toContain("eighty degrees")
    const { citations, reply } = await agent.chat({ message: "How is green tea brewed?" })
    expect(reply).toContain("eighty degrees")
    expect(citations[0]?.sourceId).toBe(source.id)
    expect((await agent.sources.update(source.id, { name: "Teas" })).name).toBe("Teas")
    expect((await agent.sources.sync(source.id, { force: true })).sourceId).toBe(source.id)
    await agent.sources.ready(source.id, { every: 20 })
    expect(await agent.sources.delete(source.id)).toEqual({ id: source.id, deleted: true })
  })

  it("creates a source once for each idempotency key of an agent", async () => {
    const other = spoke.agent((await spoke.agents.create({ name: "Another" })).id)
    const asked = {
      type: "URL",
      name: "Once",
      config: { url: "https://example.com/" },
      autoSync: false
    } as const
    const options = { idempotencyKey: "once" }
    const { source } = await agent.sources.create(asked, options)
    expect((await agent.sources.create(asked, options)).source.id).toBe(source.id)
    expect((await other.sources.create(asked, options)).source.id).not.toBe(source.id)
  })

  it("says why a source that it waits for has failed", async () => {
    const { source } = await agent.sources.create({
      type: "URL",
      name: "Private",
      config: { url: "http://127.0.0.1:9/" }
    })
    const error = await rejection(agent.sources.ready(source.id, { every: 20 }))
    expect(error.code).toBe("SOURCE_FAILED")
    expect(error.message).not.toBe("")
    const { urls } = await agent.sources.dryRun({
      type: "URL",
      config: { url: "https://example.com/" },
      urls: ["https://example.com/a"]
    })
    expect(urls[0]?.url).toBe("https://example.com/a")
  })

  it("streams exactly the parts that the HTTP stream sends, and stores the turn under the same rules", async () => {
    const parts = await all(agent.stream({ message: "Hello" }))
    const { secret } = await agent.keys.create({ name: "Network", permissions: ["*"] })
    const kinds = (found: ReadonlyArray<StreamPart>) => found.map(({ type }) => type)
    const sent = await all(over(spoke, secret).stream({ message: "Hello" }))
    expect(kinds(parts)).toEqual(kinds(sent))
    const done = parts.find((part) => part.type === "data-done")
    const conversationId = done?.data.result.conversationId ?? ""
    const { messages } = await agent.conversations.get(conversationId)
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant"])
    expect((await agent.conversations.messages(conversationId)).hasMore).toBe(false)
    expect((await agent.conversations.list({ limit: 100 })).conversations.map(({ id }) => id)).toContain(
      conversationId
    )
    const event = parts.find((part) => part.type === "data-agent-run-event")
    const run = await agent.runs.get(event?.data.runId ?? "")
    expect(run).toMatchObject({ status: "complete", conversationId })
    expect((await agent.runs.stop(run.id)).status).toBe("complete")
    expect((await agent.usage()).turns.used).toBeGreaterThanOrEqual(2)
  })

  it("counts turns against the plan as the network's", async () => {
    const before = (await agent.usage()).turns.used
    await agent.chat({ message: "Hello", persist: false })
    expect((await agent.usage()).turns.used).toBe(before + 1)
  })

  it("refuses what the API refuses, with its code and issues", async () => {
    const error = await rejection(agent.chat({ message: "  " }))
    expect(error).toMatchObject({ code: "VALIDATION_ERROR", status: 400 })
    expect(error.details).toHaveProperty("issues")
    expect((await rejection(agent.chat({ message: "Hi", conversationId: "cnv_none" }))).code).toBe(
      "CONVERSATION_NOT_FOUND"
    )
    expect((await rejection(agent.sources.get("src_none"))).code).toBe("NOT_FOUND")
    const reason = new Error("enough")
    await expect(agent.usage({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
  })

  it("makes, lists, changes and revokes keys, which the handler wants as the network does", async () => {
    const { key, secret } = await agent.keys.create({ name: "One", permissions: ["chat"] })
    const client = over(spoke, secret)
    expect((await client.chat({ message: "Hello" })).reply).not.toBe("")
    expect((await rejection(client.sources.list())).code).toBe("FORBIDDEN")
    expect((await agent.keys.update(key.id, { active: false })).status).toBe("INACTIVE")
    expect((await rejection(client.chat({ message: "Hello" }))).code).toBe("UNAUTHORIZED")
    expect((await agent.keys.list()).keys.map(({ id }) => id)).toContain(key.id)
    expect(await agent.keys.revoke(key.id)).toEqual({ id: key.id, deleted: true })
    expect((await rejection(over(spoke, "spk_wrong").usage())).code).toBe("UNAUTHORIZED")
  })

  it("answers every surface as a web-standard handler", async () => {
    const get = (path: string) => spoke.fetch(new Request(`http://spoke.test${path}`))
    expect((await get("/healthz")).status).toBe(200)
    expect((await get("/readyz")).status).toBe(200)
    expect((await get("/openapi.json")).headers.get("content-type")).toContain("json")
    const page = await get("/")
    expect([page.status, page.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"])
    expect((await get("/api/agents")).status).toBe(401)
    expect((await get("/v1/nothing")).status).toBe(404)
    const signIn = await spoke.fetch(
      new Request("http://spoke.test/api/auth/login", {
        method: "POST",
        headers: { "content-type": "application/json", origin: "http://127.0.0.1:3000" },
        body: JSON.stringify({ email: "owner@example.com", password: "correct horse battery" })
      }),
      { clientAddress: "192.0.2.1" }
    )
    expect([signIn.status, signIn.headers.get("set-cookie")]).toEqual([
      200,
      expect.stringContaining("spoke_session=")
    ])
  })

  it("ends a stream whose reader leaves; the turn is stored all the same", async () => {
    for await (const part of agent.stream({ message: "Leave early", externalEndUserId: "leaver" })) {
      if (part.type === "data-agent-run-event") break
    }
    await expect
      .poll(async () => {
        const { conversations } = await agent.conversations.list({ limit: 1 })
        return conversations[0]?.messageCount
      })
      .toBe(2)
  })

  it("opens a second data directory in the same process, and refuses the same one with a clear error", async () => {
    const error = await rejection(createSpoke({ dataDir: directory("first") }))
    expect(error.code).toBe("DATA_DIRECTORY_IN_USE")
    expect(error.message).toContain("in use")
    const second = await createSpoke({ dataDir: directory("second") })
    expect((await second.agents.list()).agents).toEqual([])
    expect((await rejection(second.agents.get(agent.id))).code).toBe("NOT_FOUND")
    await second[Symbol.asyncDispose]()
    expect((await agent.usage()).turns.used).toBeGreaterThan(0)
  })

  it("says of a data directory that cannot be made that it cannot be used", async () => {
    const file = directory("a file")
    Fs.writeFileSync(file, "")
    // The system's own answer to a new folder in /proc is that there is no such thing.
    const nowhere = process.platform === "linux" ? ["/proc/spoke", "/proc/spoke/below"] : []
    for (const dataDir of [Path.join(file, "below"), file, ...nowhere]) {
      const { code, message } = await rejection(createSpoke({ dataDir }))
      expect([dataDir, code]).toEqual([dataDir, "DATA_DIRECTORY_UNUSABLE"])
      expect(message).toContain(dataDir)
    }
  })

  it("names every setting that has to be mended as the program calls it", async () => {
    const error = await rejection(
      createSpoke({ databaseUrl: "nonsense", env: { SPOKE_TURN_TIMEOUT: "soon" } })
    )
    expect(error.code).toBe("INVALID_CONFIG")
    expect(error.details).toMatchObject({
      issues: expect.arrayContaining([
        expect.objectContaining({ path: ["databaseUrl"] }),
        expect.objectContaining({ path: ["secret"] }),
        expect.objectContaining({ path: ["SPOKE_TURN_TIMEOUT"] })
      ])
    })
    const missing = { databaseUrl: "postgres://127.0.0.1:9/none", secret: "s".repeat(32) }
    expect((await rejection(createSpoke(missing))).code).toBe("DATABASE_UNAVAILABLE")
    expect((await rejection(createSpoke({ dataDir: directory("third"), tenant: "ten_none" }))).code).toBe(
      "VALIDATION_ERROR"
    )
  })

  it("lets running turns settle when it closes, keeps what it had and answers nothing more", async () => {
    const dataDir = directory("fourth")
    const before = await createSpoke({ dataDir })
    const { id } = await before.agents.create({ name: "Kept" })
    const turn = before.agent(id).chat({ message: "Hello" })
    await Promise.all([before.close(), before.close()])
    const { conversationId = "" } = await turn
    expect((await rejection(before.agent(id).usage())).code).toBe("CLOSED")
    expect((await before.fetch(new Request("http://spoke.test/healthz"))).status).toBe(503)
    const after = await createSpoke({ dataDir })
    expect((await after.agent(id).conversations.get(conversationId)).messages).toHaveLength(2)
    await after.close()
  })

  it("tells the host's log what a server would print", () => {
    const failures = log.filter(({ level }) => level === "error" || level === "fatal")
    expect(failures.map(({ message }) => message)).toEqual([expect.stringContaining("fetch_refused")])
  })
})
