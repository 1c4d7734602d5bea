/** What visitors of a page may read, over HTTP: what their token says, and without one what the widget's settings leave. */
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest"
import { createSpoke, type Spoke, type SpokeAgent } from "../../src/index.ts"

const root = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-visitors-"))
const url = "http://spoke.test"
const question = "How long does the warranty of the lantern last?"
const about = (name: string) => `How long does the warranty of the ${name} lantern last?`

const labelled = {
  open: [],
  staff: ["staff"],
  partners: ["partners", "press"],
  board: ["board"]
} as const
type Name = keyof typeof labelled
const names: ReadonlyArray<Name> = ["open", "staff", "partners", "board"]

interface Scope {
  readonly labels?: ReadonlyArray<string>
  readonly sourceIds?: ReadonlyArray<string>
}

type Permission = "chat" | "retrieve" | "visitor_tokens" | "*"

describe("A visitor", () => {
  let spoke: Spoke
  let agent: SpokeAgent
  let widget = ""
  const ids = new Map<Name, string>()
  let cookie = ""

  const send = async (
    method: string,
    path: string,
    headers: Readonly<Record<string, string>>,
    body?: unknown
  ) => {
    const answer = await spoke.fetch(
      new Request(`${url}${path}`, {
        method,
        headers: { "content-type": "application/json", ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) })
      })
    )
    const text = await answer.text()
    const isJson = answer.headers.get("content-type")?.includes("application/json") === true
    return {
      status: answer.status,
      text,
      runId: answer.headers.get("x-run-id") ?? "",
      ...(isJson ? JSON.parse(text) : {})
    }
  }

  const own = (method: string, path: string, body?: unknown) =>
    send(method, path, { cookie, "x-spoke-csrf": "1" }, body)

  const by = (secret: string, visitorToken?: string) => ({
    "x-api-key": secret,
    ...(visitorToken === undefined ? {} : { "x-visitor-token": visitorToken })
  })

  const keyOf = async (permissions: ReadonlyArray<Permission>, sourceScope?: Scope) => {
    const { key, secret } = await agent.keys.create({
      name: "server",
      permissions,
      ...(sourceScope === undefined ? {} : { sourceScope })
    })
    return { id: key.id, secret }
  }

  /** A token that a key of the page's server makes. */
  const tokenOf = async (asked: Readonly<Record<string, unknown>>, secret?: string) => {
    const maker = secret ?? (await keyOf(["visitor_tokens"])).secret
    const made = await send("POST", "/v1/visitor-tokens", by(maker), asked)
    expect(made.status).toBe(201)
    return String(made.data.visitorToken)
  }

  /** Every source that a text tells anything of. */
  const toldBy = (text: string) =>
    names.filter((name) => text.includes(`years-${name}`) || text.includes(ids.get(name) ?? "-"))

  const begin = async (headers: Readonly<Record<string, string>>, body: unknown = {}) =>
    await send("POST", "/api/sdk/init", headers, body)

  /** Everything that a visitor gets to see of a turn on a page. */
  const seenBy = async (headers: Readonly<Record<string, string>>, message = question) => {
    const { data } = await begin(headers)
    const turn = await send("POST", "/api/v1/chat/stream", headers, {
      sessionId: data.sessionId,
      message
    })
    const path = `/api/sdk/messages?sessionId=${data.sessionId}`
    const messages = await send("GET", path, headers)
    const followed = await send("GET", `/api/v1/chat/stream/${turn.runId}`, headers)
    expect([turn.status, messages.status, followed.status]).toEqual([200, 200, 200])
    expect(messages.data.messages).toHaveLength(2)
    return { seen: toldBy(turn.text + messages.text + followed.text), path, runId: turn.runId }
  }

  /** Which sources are told of when they are asked for by name; whatever is asked, nothing else is. */
  const readBy = async (headers: Readonly<Record<string, string>>) => {
    const read = new Set<Name>()
    for (const name of names) for (const told of (await seenBy(headers, about(name))).seen) read.add(told)
    return [...read].toSorted()
  }

  beforeAll(async () => {
    const admin = { email: "owner@example.com", password: "correct horse battery" }
    spoke = await createSpoke({ dataDir: Path.join(root, "data"), admin })
    agent = spoke.agent((await spoke.agents.create({ name: "Lanterns" })).id)
    for (const name of names) {
      const { source } = await agent.sources.create({
        type: "TEXT",
        name,
        labels: labelled[name],
        config: { text: `# Lantern\n\nThe warranty of the ${name} lantern lasts years-${name} years.` }
      })
      await agent.sources.ready(source.id, { every: 20 })
      ids.set(name, source.id)
    }
    const signedIn = await spoke.fetch(
      new Request(`${url}/api/auth/login`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-spoke-csrf": "1" },
        body: JSON.stringify(admin)
      })
    )
    cookie = signedIn.headers.get("set-cookie")?.split(";")[0] ?? ""
    const made = await own("PATCH", `/api/agents/${agent.id}/widget`, { color: "#3d4fc4" })
    expect(made.data.widget.sourceScope).toEqual({ labels: [] })
    widget = made.data.widget.publicId
  })
  afterAll(async () => {
    await spoke.close()
    Fs.rmSync(root, { recursive: true, force: true })
  })
  afterEach(() => {
    vi.restoreAllMocks()
  })

  it("without a token reads what has no labels, or what the widget is given", async () => {
    expect(await readBy(by(widget))).toEqual(["open"])
    const path = `/api/agents/${agent.id}/widget`
    const press = await own("PATCH", path, { sourceScope: { labels: ["press"] } })
    expect(press.data.widget).toMatchObject({ publicId: widget, sourceScope: { labels: ["press"] } })
    expect(await readBy(by(widget))).toEqual(["open", "partners"])
    await own("PATCH", path, { sourceScope: null })
    expect((await own("GET", path)).data.widget.sourceScope).toBeNull()
    expect(await readBy(by(widget))).toEqual(names.toSorted())
    await own("PATCH", path, { sourceScope: { labels: [] } })
    expect(await readBy(by(widget))).toEqual(["open"])
  })

  it("with a token of the server reads what the token says, and without a scope in it what has no labels", async () => {
    const cases: ReadonlyArray<readonly [Scope | undefined, ReadonlyArray<Name>]> = [
      [undefined, ["open"]],
      [{}, ["open"]],
      [{ labels: ["staff"] }, ["open", "staff"]],
      [{ labels: ["press", "board"] }, ["board", "open", "partners"]],
      [{ labels: ["staff", "board"], sourceIds: [ids.get("board") ?? ""] }, ["board"]],
      [{ labels: ["Staff", "nobody"] }, ["open"]]
    ]
    for (const [sourceScope, expected] of cases) {
      const token = await tokenOf(sourceScope === undefined ? {} : { sourceScope })
      expect([sourceScope, await readBy(by(widget, token))]).toEqual([sourceScope, expected])
    }
  })

  it("gets no more than the key that made the token may read", async () => {
    const { secret } = await keyOf(["visitor_tokens"], { labels: ["staff"] })
    const asked = { sourceScope: { labels: ["staff", "board"] } }
    const made = await send("POST", "/v1/visitor-tokens", by(secret), asked)
    expect(made.data.sourceScope).toEqual({ labels: ["staff"] })
    expect(await readBy(by(widget, made.data.visitorToken))).toEqual(["open", "staff"])
  })

  it("is given nothing by a key of its own: a token takes away from what that key reads, everywhere", async () => {
    const { secret } = await keyOf(["chat", "retrieve"], { labels: ["staff", "board"] })
    const token = await tokenOf({ sourceScope: { labels: ["staff", "partners"] } })
    const search = { query: question, topK: 20 }
    const call = {
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { name: "retrieve", arguments: search }
    }
    const retrieved = await send("POST", "/v1/retrieve", by(secret, token), search)
    expect(toldBy(retrieved.text).toSorted()).toEqual(["open", "staff"])
    expect(toldBy((await send("POST", "/v1/retrieve", by(secret), search)).text)).toContain("board")
    for (const [path, body] of [
      ["/v1/chat", { message: question }],
      ["/v1/chat/stream", { message: question }],
      ["/api/v1/chat/stream", { message: question }],
      ["/v1/chat", { message: question, filter: { labels: ["board", "partners"] } }],
      ["/mcp", call]
    ] as const) {
      const { status, text } = await send("POST", path, by(secret, token), body)
      expect([path, status]).toEqual([path, 200])
      expect(toldBy(text).filter((name) => name === "board" || name === "partners")).toEqual([])
    }
  })

  it("whose token is forged, altered, of another agent, late or of a key that has ended is refused, and reads nothing", async () => {
    const maker = await keyOf(["visitor_tokens"])
    const good = await tokenOf({ sourceScope: { labels: ["staff"] } }, maker.secret)
    const cut = good.lastIndexOf(".")
    const said = JSON.parse(Buffer.from(good.slice(0, cut), "base64url").toString())
    const wider = { ...said, sourceScope: { labels: ["staff", "board"] } }
    const altered = `${Buffer.from(JSON.stringify(wider)).toString("base64url")}${good.slice(cut)}`
    const other = spoke.agent((await spoke.agents.create({ name: "Other" })).id)
    const { secret } = await other.keys.create({ name: "server", permissions: ["visitor_tokens"] })
    const foreign = await tokenOf({ sourceScope: { labels: ["staff"] } }, secret)
    const { secret: reader } = await keyOf(["chat", "retrieve"])
    const refused = async (token: string) => {
      for (const [path, key, body] of [
        ["/api/sdk/init", widget, {}],
        ["/api/v1/chat/stream", widget, { message: question }],
        ["/v1/retrieve", reader, { query: question }],
        ["/v1/chat", reader, { message: question }]
      ] as const) {
        const { status, text } = await send("POST", path, by(key, token), body)
        expect([path, status, toldBy(text)]).toEqual([path, 401, []])
      }
    }
    expect((await begin(by(widget, good))).status).toBe(200)
    for (const token of ["", "a.b", altered, foreign, good.slice(0, -2), "x".repeat(20_000)])
      await refused(token)
    const now = Date.now()
    const brief = await tokenOf({ expiresIn: 60 }, maker.secret)
    expect((await begin(by(widget, brief))).status).toBe(200)
    vi.spyOn(Date, "now").mockImplementation(() => now + 120_000)
    await refused(brief)
    vi.restoreAllMocks()
    await own("DELETE", `/api/keys/${maker.id}`)
    await refused(good)
  })

  it("does not see under one scope what was said under another", async () => {
    const token = await tokenOf({ sourceScope: { labels: ["board"] } })
    const { path, runId } = await seenBy(by(widget, token))
    for (const headers of [by(widget), by(widget, await tokenOf({ sourceScope: { labels: ["staff"] } }))]) {
      expect((await send("GET", path, headers)).data.messages).toEqual([])
      const place = await send("GET", path.replace("messages", "conversation"), headers)
      expect(place.data).toMatchObject({ conversation: null, turn: null, realtimeToken: null })
      expect((await send("GET", `/api/v1/chat/stream/${runId}`, headers)).status).toBe(404)
    }
    expect((await send("GET", path, by(widget, token))).data.messages).toHaveLength(2)

    const { secret } = await keyOf(["chat"])
    const repeat = (visitor: string) =>
      send("POST", "/v1/chat", { ...by(secret, visitor), "idempotency-key": "one" }, { message: question })
    const first = await repeat(token)
    expect((await repeat(token)).data).toMatchObject({ runId: first.data.runId, reply: first.data.reply })
    const second = await repeat(await tokenOf({ sourceScope: { labels: ["staff"] } }))
    expect([second.status, toldBy(second.text)]).toEqual([409, []])
  })

  it("is who the token says, under no other name", async () => {
    const token = await tokenOf({ externalEndUserId: "customer-17" })
    const first = await begin(by(widget, token))
    const second = await begin(by(widget, token), { externalEndUserId: "customer-17" })
    expect(second.data.endUserId).toBe(first.data.endUserId)
    const { sessionId } = first.data
    for (const [path, body] of [
      ["/api/sdk/init", { externalEndUserId: "customer-18" }],
      ["/api/sdk/identify", { sessionId, externalEndUserId: "customer-18" }],
      ["/api/v1/chat/stream", { externalEndUserId: "customer-18", message: question }]
    ] as const) {
      const { error, status } = await send("POST", path, by(widget, token), body)
      expect([path, status, error.details.issues[0].path]).toEqual([path, 400, ["externalEndUserId"]])
    }
    const path = "/api/v1/chat/stream"
    const refused = await send("POST", path, by(widget, token), {
      endUserId: first.data.endUserId,
      message: question
    })
    expect([refused.status, refused.error.details.issues[0].path]).toEqual([400, ["endUserId"]])
    // Also without a session.
    const turn = await send("POST", path, by(widget, token), { message: question })
    expect(turn.text).toContain(`"endUserId":"${first.data.endUserId}"`)
    // A session of somebody without a name becomes theirs; one of another person's does not.
    const nameless = await begin(by(widget))
    const named = await begin(by(widget, token), { sessionId: nameless.data.sessionId })
    expect(named.data.endUserId).toBe(first.data.endUserId)
    const stranger = await tokenOf({ externalEndUserId: "customer-19" })
    expect((await begin(by(widget, stranger), { sessionId })).status).toBe(409)
  })

  it("does not read or continue the session of another one", async () => {
    const visitor = by(widget, await tokenOf({ externalEndUserId: "customer-20" }))
    const { sessionId } = (await begin(visitor)).data
    const ask = { sessionId, message: question }
    expect((await send("POST", "/api/v1/chat/stream", visitor, ask)).status).toBe(200)
    const listed = `/api/sdk/messages?sessionId=${sessionId}`
    const { messages } = (await send("GET", listed, visitor)).data
    expect(messages).toHaveLength(2)
    const stranger = by(widget, await tokenOf({ externalEndUserId: "customer-21" }))
    for (const [method, path, body] of [
      ["GET", listed, undefined],
      ["GET", `/api/sdk/conversation?sessionId=${sessionId}`, undefined],
      ["POST", "/api/sdk/feedback", { sessionId, messageId: messages[1].id, rating: 1 }],
      ["POST", "/api/sdk/handoff", { sessionId }],
      ["POST", "/api/v1/chat/stream", ask],
      ["POST", "/api/v1/chat/stream", { ...ask, persist: false }]
    ] as const) {
      expect([path, (await send(method, path, stranger, body)).status]).toEqual([path, 404])
    }
    expect((await send("GET", listed, visitor)).data.messages).toEqual(messages)
  })

  it("does not read, continue or stop the turns of another one, whose ids it knows", async () => {
    const visitor = by(widget, await tokenOf({ externalEndUserId: "customer-22" }))
    const { sessionId } = (await begin(visitor)).data
    const { runId } = await send("POST", "/api/v1/chat/stream", visitor, { sessionId, message: question })
    const listed = `/api/sdk/messages?sessionId=${sessionId}`
    const begun = await send("GET", `/api/sdk/conversation?sessionId=${sessionId}`, visitor)
    const conversationId = String(begun.data.conversation.id)
    const { messages } = (await send("GET", listed, visitor)).data
    const { secret } = await keyOf(["chat"])
    const token = await tokenOf({ externalEndUserId: "customer-23" })
    const next = { conversationId, message: question }
    const followed = `/api/v1/chat/stream/${runId}`
    for (const key of [widget, secret]) {
      for (const [method, path, body] of [
        ["POST", "/api/v1/chat/stream", next],
        ["POST", "/api/v1/chat/stream", { ...next, persist: false }],
        ["GET", followed, undefined],
        ["POST", `${followed}/stop`, {}]
      ] as const) {
        expect([path, (await send(method, path, by(key, token), body)).status]).toEqual([path, 404])
      }
    }
    expect((await send("POST", "/v1/chat", by(secret, token), next)).status).toBe(404)
    expect((await send("GET", listed, visitor)).data.messages).toEqual(messages)
    expect((await send("GET", followed, visitor)).status).toBe(200)
    expect((await send("POST", "/api/v1/chat/stream", visitor, next)).status).toBe(200)
  })

  it("neither reads nor begins conversations of another one over the API", async () => {
    const { secret } = await keyOf(["chat"])
    const other = by(secret, await tokenOf({ externalEndUserId: "customer-24" }))
    const visitor = by(secret, await tokenOf({ externalEndUserId: "customer-25" }))
    const asked = { externalEndUserId: "customer-24", message: question }
    const begun = await send("POST", "/v1/chat", other, asked)
    expect(begun.status).toBe(200)
    const path = `/v1/conversations/${begun.data.conversationId}`
    const idsOf = async (headers: Readonly<Record<string, string>>) => {
      const { data } = await send("GET", "/v1/conversations", headers)
      return data.conversations.map(({ id }: { readonly id: string }) => id)
    }
    expect(await idsOf(visitor)).not.toContain(begun.data.conversationId)
    for (const read of [path, `${path}/messages`]) {
      expect([read, (await send("GET", read, visitor)).status]).toEqual([read, 404])
      for (const headers of [other, by(secret, await tokenOf({}))]) {
        expect([read, (await send("GET", read, headers)).status]).toEqual([read, 200])
      }
    }
    expect(await idsOf(other)).toContain(begun.data.conversationId)
    const { endUserId } = begun.data
    for (const route of ["/v1/chat", "/v1/chat/stream"]) {
      expect([route, (await send("POST", route, visitor, asked)).status]).toEqual([route, 400])
      const named = await send("POST", route, visitor, { endUserId, message: question })
      expect([route, named.status]).toEqual([route, 404])
    }
    expect((await send("POST", "/v1/chat", other, { endUserId, message: question })).status).toBe(200)
  })

  it("begins conversations over the API as who the token says, without a name in the request", async () => {
    const { secret } = await keyOf(["chat"])
    const visitor = by(secret, await tokenOf({ externalEndUserId: "customer-28" }))
    const stranger = by(secret, await tokenOf({ externalEndUserId: "customer-29" }))
    const messages = [{ role: "user", content: question }]
    const call = { name: "chat", arguments: { message: question } }
    for (const [path, body] of [
      ["/v1/chat", { message: question }],
      ["/v1/chat/stream", { message: question }],
      ["/v1/chat/completions", { model: agent.id, messages, store: true }],
      ["/mcp", { jsonrpc: "2.0", id: 1, method: "tools/call", params: call }]
    ] as const) {
      const begun = await send("POST", path, visitor, body)
      const id = /"conversationId":"(cnv_\w+)"/.exec(begun.text)?.[1] ?? "none"
      const read = `/v1/conversations/${id}`
      expect([path, (await send("GET", read, visitor)).status]).toEqual([path, 200])
      expect([path, (await send("GET", read, stranger)).status]).toEqual([path, 404])
    }
    const listed = async (headers: Readonly<Record<string, string>>) => {
      const { data } = await send("GET", "/v1/conversations", headers)
      return new Set(data.conversations.map((one: { readonly endUserId: string }) => one.endUserId))
    }
    const { endUserId } = (await send("POST", "/v1/chat", visitor, { message: question })).data
    expect(await listed(stranger)).not.toContain(endUserId)
    // All turns of the visitor have one person.
    expect(await listed(visitor)).toContain(endUserId)
    // A turn that stores nothing creates nobody.
    const unstored = await send("POST", "/v1/chat", visitor, { message: question, persist: false })
    expect([unstored.status, unstored.data.endUserId]).toEqual([200, undefined])
  })

  it("lists their own conversations alone, not those of people without a name either", async () => {
    const { secret } = await keyOf(["chat"])
    const visitor = by(secret, await tokenOf({ externalEndUserId: "customer-30" }))
    const started = async (headers: Readonly<Record<string, string>>, body: object = {}) =>
      (await send("POST", "/v1/chat", headers, { message: question, ...body })).data
    const anonymous = await started(by(secret, await tokenOf({})))
    await started(by(secret, await tokenOf({ externalEndUserId: "customer-31" })))
    const own = await started(visitor)
    for (const filter of ["", `?endUserId=${own.endUserId}`]) {
      const { data } = await send("GET", `/v1/conversations${filter}`, visitor)
      expect(data.conversations.map(({ id }: { readonly id: string }) => id)).toEqual([own.conversationId])
    }
    const { data } = await send("GET", `/v1/conversations?endUserId=${anonymous.endUserId}`, visitor)
    expect(data.conversations).toEqual([])
    // Whoever knows the id began it, perhaps before they signed in.
    expect((await send("GET", `/v1/conversations/${anonymous.conversationId}`, visitor)).status).toBe(200)
  })

  it("neither continues the chat of another one nor has its last message answered again", async () => {
    const { secret } = await keyOf(["chat"])
    const other = by(secret, await tokenOf({ externalEndUserId: "customer-26" }))
    const visitor = by(secret, await tokenOf({ externalEndUserId: "customer-27" }))
    const chat = { id: "chat-of-26", message: question }
    const begun = await send("POST", "/v1/chat", other, { ...chat, externalEndUserId: "customer-26" })
    expect(begun.status).toBe(200)
    const again = (text: string) => ({
      id: "chat-of-26",
      trigger: "regenerate-message",
      messages: [{ id: "m1", role: "user", parts: [{ type: "text", text }] }]
    })
    for (const body of [chat, again(question), again("A guess")]) {
      const refused = await send("POST", "/v1/chat", visitor, body)
      expect([refused.status, refused.error?.code]).toEqual([404, "CONVERSATION_NOT_FOUND"])
    }
    expect((await send("POST", "/v1/chat", other, again("A guess"))).status).toBe(400)
    expect((await send("POST", "/v1/chat", other, again(question))).status).toBe(200)
  })

  it("neither reads the list of sources nor names another visitor, whatever the key allows", async () => {
    const { secret } = await keyOf(["*"])
    const token = await tokenOf({ externalEndUserId: "customer-30", sourceScope: { labels: ["staff"] } })
    const board = ids.get("board") ?? ""
    for (const [method, path, body] of [
      ["GET", "/v1/sources", undefined],
      ["GET", `/v1/sources/${board}`, undefined],
      ["PATCH", `/v1/sources/${board}`, { labels: ["staff"] }],
      ["POST", "/v1/visitor-tokens", { externalEndUserId: "customer-31" }]
    ] as const) {
      const refused = await send(method, path, by(secret, token), body)
      expect([path, refused.status, refused.error?.code]).toEqual([path, 403, "FORBIDDEN"])
      expect(toldBy(refused.text)).toEqual([])
    }
    expect((await send("GET", "/v1/usage", by(secret, token))).status).toBe(200)
    expect((await send("GET", "/v1/sources", by(secret))).status).toBe(200)
    expect((await send("GET", "/v1/sources", by(secret, "forged"))).status).toBe(401)
  })

  it("has a token from the program that embeds the library", async () => {
    const { sourceScope, visitorToken } = await agent.visitorToken({ sourceScope: { labels: ["staff"] } })
    expect(sourceScope).toEqual({ labels: ["staff"] })
    expect(await readBy(by(widget, visitorToken))).toEqual(["open", "staff"])
  })

  it("has tokens from keys with the permission alone, and never from the page", async () => {
    for (const secret of [widget, (await keyOf(["chat", "retrieve"])).secret]) {
      expect((await send("POST", "/v1/visitor-tokens", by(secret), {})).status).toBe(403)
    }
    const { secret } = await keyOf(["visitor_tokens"])
    for (const wrong of [{ expiresIn: 59 }, { expiresIn: 86_401 }, { sourceScope: { labels: [""] } }]) {
      expect((await send("POST", "/v1/visitor-tokens", by(secret), wrong)).status).toBe(400)
    }
    const { data } = await send("POST", "/v1/visitor-tokens", by(secret), { expiresIn: 600 })
    const left = Date.parse(data.expiresAt) - Date.now()
    expect([left > 500_000, left <= 600_000]).toEqual([true, true])
  })
})
