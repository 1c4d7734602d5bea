/** Which sources a turn may read, over HTTP and by the library: what a key's scope and a filter leave, and nothing else. */
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { makeClient } from "../../src/client.ts"
import { createSpoke, type Spoke, type SpokeAgent, SpokeError } from "../../src/index.ts"

const root = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-scope-"))
const url = "http://spoke.test"
const question = "How long does the warranty of the lantern last?"

const labelled = {
  open: [],
  staff: ["staff"],
  partners: ["partners", "press"],
  board: ["board"]
} as const
type Name = keyof typeof labelled
const names: ReadonlyArray<Name> = ["open", "staff", "partners", "board"]

const isName = (text: string): text is Name => names.some((name) => name === text)

interface Asked {
  readonly labels?: ReadonlyArray<string>
  readonly sources?: ReadonlyArray<Name>
}

/** The rule, as plainly as it can be written. */
const mayRead = ({ labels, sources }: Asked, name: Name): boolean => {
  const own: ReadonlyArray<string> = labelled[name]
  const byLabels = labels === undefined || own.length === 0 || own.some((label) => labels.includes(label))
  return byLabels && (sources === undefined || sources.includes(name))
}

const rejection = async (promise: Promise<unknown>) => {
  const cause: unknown = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown
  )
  if (!(cause instanceof SpokeError)) throw new Error("It was not rejected with a SpokeError.", { cause })
  return cause
}

describe("The scope of a key and the filter of a request", () => {
  let spoke: Spoke
  let agent: SpokeAgent
  const ids = new Map<Name, string>()

  const idsOf = (some: ReadonlyArray<Name>) => some.map((name) => ids.get(name) ?? "")

  const send = (secret: string, path: string, body?: unknown) =>
    spoke.fetch(
      new Request(`${url}${path}`, {
        method: body === undefined ? "GET" : "POST",
        headers: { "x-api-key": secret, "content-type": "application/json" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) })
      })
    )

  const over = (apiKey: string) =>
    makeClient({
      baseUrl: url,
      apiKey,
      fetch: (input, init) => spoke.fetch(new Request(input, init))
    })

  /** The secret of a new key. */
  const keyOf = async (scope: Asked | null) => {
    const { secret } = await agent.keys.create({
      name: "scoped",
      permissions: ["chat", "retrieve", "trace_read"],
      ...(scope === null
        ? {}
        : {
            sourceScope: {
              ...(scope.labels === undefined ? {} : { labels: scope.labels }),
              ...(scope.sources === undefined ? {} : { sourceIds: idsOf(scope.sources) })
            }
          })
    })
    return secret
  }

  const filterOf = ({ labels, sources }: Asked) => ({
    ...(labels === undefined ? {} : { labels }),
    ...(sources === undefined ? {} : { sourceIds: idsOf(sources) })
  })

  /** Every source that a text tells anything of. */
  const toldBy = (text: string) => names.filter((name) => text.includes(`years-${name}`))

  beforeAll(async () => {
    spoke = await createSpoke({
      dataDir: Path.join(root, "data"),
      admin: { email: "owner@example.com", password: "correct horse battery" }
    })
    agent = spoke.agent((await spoke.agents.create({ name: "Lanterns" })).id)
    for (const name of names) {
      const { source } = await agent.sources.create({
        type: "TEXT",
        name,
        labels: labelled[name],
        config: { text: `# Lantern\n\nThe warranty of the lantern lasts years-${name} years.` }
      })
      expect(source.labels ?? []).toEqual([...labelled[name]])
      await agent.sources.ready(source.id, { every: 20 })
      ids.set(name, source.id)
    }
    // Replies without a model depend on scores, which change while vectors are made.
    for (const id of ids.values()) {
      await vi.waitUntil(
        async () => {
          const { chunks, embedded } = await agent.sources.embedding(id)
          return chunks > 0 && embedded === chunks
        },
        { timeout: 60_000, interval: 100 }
      )
    }
  })
  afterAll(async () => {
    await spoke.close()
    Fs.rmSync(root, { recursive: true, force: true })
  })

  const scopes: ReadonlyArray<Asked | null> = [
    null,
    {},
    { labels: ["staff"] },
    { labels: ["press", "board"] },
    { labels: ["staff"], sources: ["staff", "board"] },
    { sources: ["open", "staff"] },
    { labels: ["Staff", "sta"] }
  ]
  const filters: ReadonlyArray<Asked> = [{}, { labels: ["staff", "board"] }, { sources: ["staff", "open"] }]

  it("leave the same sources in retrieval, in a reply, in a stream, in its trace, in MCP and on the hosted stream", async () => {
    for (const scope of scopes) {
      const secret = await keyOf(scope)
      const key: Asked = scope === null ? {} : { labels: [], ...scope }
      for (const filter of filters) {
        const expected = names.filter((name) => mayRead(key, name) && mayRead(filter, name))
        const sent = filterOf(filter)
        const client = over(secret)
        const { chunks } = await client.retrieve({ query: question, topK: 20, filter: sent })
        expect([scope, filter, chunks.map(({ sourceName }) => sourceName).toSorted()]).toEqual([
          scope,
          filter,
          expected.toSorted()
        ])

        const body = { message: question, filter: sent }
        const reply = await (await send(secret, "/v1/chat", body)).text()
        const streamed = await send(secret, "/v1/chat/stream", body)
        const runId = streamed.headers.get("x-run-id") ?? ""
        const stream = await streamed.text()
        const trace = await client.runs.get(runId)
        const called = await send(secret, "/mcp", {
          jsonrpc: "2.0",
          id: 1,
          method: "tools/call",
          params: { name: "retrieve", arguments: { query: question, topK: 20, filter: sent } }
        })
        const hosted = await (await send(secret, "/api/v1/chat/stream", body)).text()
        for (const text of [reply, stream, await called.text(), hosted, JSON.stringify(trace)]) {
          expect(toldBy(text).filter((name) => !expected.includes(name))).toEqual([])
        }
        expect(JSON.parse(reply).data.citations.length > 0).toBe(expected.length > 0)
        const searched = trace.events.find(({ type }) => type === "retrieval.completed")?.payload?.["chunks"]
        const seen = JSON.stringify(searched)
        expect(names.filter((name) => seen.includes(ids.get(name) ?? "-")).toSorted()).toEqual(
          expected.toSorted()
        )
      }
    }
  })

  it("are taken by the library's chat and stream", async () => {
    const { citations } = await agent.chat({ message: question, filter: filterOf({ sources: ["board"] }) })
    expect(citations.map(({ sourceName }) => sourceName)).toEqual(["board"])
    let told = ""
    for await (const part of agent.stream({ message: question, filter: filterOf({ sources: ["staff"] }) })) {
      told += JSON.stringify(part)
    }
    expect(told).toContain("source-document")
    expect(toldBy(told).filter((name) => name !== "staff")).toEqual([])
  })

  it("let a conversation and a run be read and continued under the same scope alone", async () => {
    const staff = over(await keyOf({ labels: ["staff"] }))
    const again = over(await keyOf({ labels: ["staff", "staff"] }))
    const other = over(await keyOf({ labels: ["board"] }))
    const all = over(await keyOf(null))
    const { conversationId = "" } = await staff.chat({ message: question })
    const { conversationId: wide = "" } = await all.chat({ message: question })

    expect((await again.conversations.get(conversationId)).messages).toHaveLength(2)
    expect((await again.chat({ message: question, conversationId })).conversationId).toBe(conversationId)
    expect((await all.conversations.get(conversationId)).messages).toHaveLength(4)
    expect((await rejection(other.conversations.get(conversationId))).code).toBe("NOT_FOUND")
    expect((await other.conversations.list()).conversations).toEqual([])
    for (const [client, id] of [
      [other, conversationId],
      [staff, wide],
      // Readers of the conversation under its own scope must not see such a reply.
      [all, conversationId]
    ] as const) {
      const refused = await rejection(client.chat({ message: question, conversationId: id }))
      expect(refused.code).toBe("CONVERSATION_NOT_FOUND")
    }

    const streamed = await send(await keyOf(null), "/v1/chat/stream", { message: question })
    const runId = streamed.headers.get("x-run-id") ?? ""
    await streamed.text()
    expect((await all.runs.get(runId)).status).toBe("complete")
    expect((await rejection(staff.runs.get(runId))).code).toBe("NOT_FOUND")
    expect((await rejection(staff.runs.stop(runId))).code).toBe("NOT_FOUND")
  })

  it("follow new labels at once", async () => {
    const secret = await keyOf({ labels: ["late"] })
    const found = async () => {
      const { chunks } = await over(secret).retrieve({ query: question, topK: 20 })
      return chunks.map(({ sourceName }) => sourceName).filter(isName)
    }
    expect(await found()).toEqual(["open"])
    const board = ids.get("board") ?? ""
    expect((await agent.sources.update(board, { labels: ["late", "board"] })).labels).toEqual([
      "board",
      "late"
    ])
    expect((await found()).toSorted()).toEqual(["board", "open"])
    await agent.sources.update(board, { labels: ["board"] })
    expect(await found()).toEqual(["open"])
    expect((await agent.sources.get(board)).labels).toEqual(["board"])
  })

  it("are refused when they are too large, and with permissions that write sources", async () => {
    const many = Array.from({ length: 21 }, (_, at) => `label ${at}`)
    for (const labels of [many, ["x".repeat(65)], [" "], ["a", ""]]) {
      const text = { type: "TEXT" as const, name: "Wrong", labels, config: { text: "Lantern" } }
      expect((await rejection(agent.sources.create(text))).code).toBe("VALIDATION_ERROR")
      expect((await rejection(agent.chat({ message: "Hi", filter: { labels } }))).code).toBe(
        "VALIDATION_ERROR"
      )
      const key = { name: "Wrong", permissions: ["chat" as const], sourceScope: { labels } }
      expect((await rejection(agent.keys.create(key))).code).toBe("VALIDATION_ERROR")
    }
    for (const permission of ["*", "ingest", "sources:write", "ingest.read"] as const) {
      const key = { name: "Wrong", permissions: ["chat" as const, permission], sourceScope: {} }
      const refused = await rejection(agent.keys.create(key))
      expect(refused.details).toMatchObject({ issues: [{ path: ["permissions"] }] })
    }
    expect((await agent.sources.list({ type: "TEXT" })).sources).toHaveLength(names.length)
  })

  it("are set by a signed-in admin over the routes of the dashboard", async () => {
    const signedIn = await spoke.fetch(
      new Request(`${url}/api/auth/login`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-spoke-csrf": "1" },
        body: JSON.stringify({ email: "owner@example.com", password: "correct horse battery" })
      })
    )
    const cookie = signedIn.headers.get("set-cookie")?.split(";")[0] ?? ""
    const own = async (method: string, path: string, body?: unknown) => {
      const headers = { cookie, "content-type": "application/json", "x-spoke-csrf": "1" }
      const sent = body === undefined ? {} : { body: JSON.stringify(body) }
      const answer = await spoke.fetch(new Request(`${url}${path}`, { method, headers, ...sent }))
      const { data, error } = JSON.parse(await answer.text())
      return { status: answer.status, data, error }
    }
    const pairs = [{ question: "Where is the lantern kept?", answer: "In the cellar of years-board." }]
    const made = await own("POST", "/api/sources", {
      agentId: agent.id,
      type: "QA",
      name: "Kept",
      labels: [" cellar ", "board", "cellar"],
      config: { pairs }
    })
    expect(made.data.source).toMatchObject({ type: "QA", labels: ["board", "cellar"], config: { pairs } })
    const path = `/api/sources/${made.data.source.id}`
    await agent.sources.ready(made.data.source.id, { every: 20 })
    const scoped = await own("POST", `/api/agents/${agent.id}/keys`, {
      name: "Cellar",
      permissions: ["chat"],
      sourceScope: { labels: ["cellar"] }
    })
    expect(scoped.data.key.sourceScope).toEqual({ labels: ["cellar"] })
    const listed = await own("GET", `/api/agents/${agent.id}/keys?limit=1`)
    expect(listed.data.keys[0].sourceScope).toEqual({ labels: ["cellar"] })
    const asked = async () =>
      await (await send(scoped.data.secret, "/v1/chat", { message: pairs[0]?.question })).text()
    expect(await asked()).toContain("In the cellar")
    expect((await own("PATCH", path, { labels: Array.from({ length: 21 }, String) })).status).toBe(400)
    expect((await own("PATCH", path, { labels: ["board"] })).data.labels).toEqual(["board"])
    expect(await asked()).not.toContain("In the cellar")
    expect((await own("PATCH", path, { labels: [] })).data).not.toHaveProperty("labels")
    expect(await asked()).toContain("In the cellar")
    expect((await own("DELETE", path)).status).toBe(200)
  })

  it("hide an uploaded document that came with labels from its first moment on", async () => {
    const form = new FormData()
    form.set("labels", JSON.stringify(["board"]))
    form.set("file", new Blob(["# Lantern\n\nThe warranty of the lantern is secret."]), "secret.md")
    const { secret } = await agent.keys.create({ name: "writer", permissions: ["ingest"] })
    const upload = (body: FormData) =>
      spoke.fetch(
        new Request(`${url}/v1/sources/upload`, { method: "POST", headers: { "x-api-key": secret }, body })
      )
    const { data } = JSON.parse(await (await upload(form)).text())
    expect(data.source.labels).toEqual(["board"])
    await agent.sources.ready(data.source.id, { every: 20 })
    const { chunks } = await over(await keyOf({ labels: ["staff"] })).retrieve({ query: question, topK: 20 })
    expect(JSON.stringify(chunks)).not.toContain("secret")
    form.set("labels", "board")
    expect((await upload(form)).status).toBe(400)
    await agent.sources.delete(data.source.id)
  })
})
