/** The documented behaviour of the API, tested on a real server: requests, answers, refusals and limits. */
import { DefaultChatTransport, readUIMessageStream, type UIMessage } from "ai"
import * as Http from "node:http"
import type { AddressInfo } from "node:net"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Answer, removeFolder, type Spoke, start, temporaryFolder, until } from "./Spoke.ts"
import { makeTeam, type Team } from "./Team.ts"

const dataDir = temporaryFolder()
const site = Http.createServer((_, response) => {
  response.setHeader("content-type", "text/html; charset=utf-8")
  response.end(`<!doctype html><title>Opening hours</title><main><h1>Opening hours</h1>
    <p>The workshop in Lisbon opens at half past nine and closes at seven in the evening.</p></main>`)
})
let spoke: Spoke
let team: Team
let other: Team
let key = ""
let foreign = ""
let address = ""

beforeAll(async () => {
  await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve))
  address = `http://127.0.0.1:${(site.address() as AddressInfo).port}/hours`
  spoke = await start(dataDir, { SPOKE_FETCH_ALLOW: "127.0.0.1" })
  team = await makeTeam(spoke)
  other = await makeTeam(spoke)
  key = (await team.key()).secret
  foreign = (await other.key()).secret
  const made = await post("/v1/sources", { type: "URL", name: "Hours", config: { url: address } })
  expect(made.status).toBe(201)
  const job = await until(
    () => get(`/v1/ingestion-jobs/${made.body.data.ingestionJob.id}`),
    ({ body }) => !["QUEUED", "RUNNING"].includes(body.data.status)
  )
  expect(job.body.data.status).toBe("SUCCEEDED")
})

afterAll(async () => {
  await spoke.kill()
  site.close()
  removeFolder(dataDir)
})

type Headers = Readonly<Record<string, string>>

const post = (path: string, body: unknown, by: string = key, headers: Headers = {}) =>
  spoke.request("POST", path, { key: by, body, headers })
const get = (path: string, by: string = key) => spoke.request("GET", path, { key: by })
const chat = (body: object, by: string = key) =>
  post("/v1/chat", { message: "When do you open?", ...body }, by)

/** The status and code of a refusal, whose envelope must be whole. */
const refused = ({ status, headers, body }: Answer): string => {
  expect(Object.keys(body).sort()).toEqual(["error", "meta"])
  expect(
    Object.keys(body.error)
      .filter((field) => field !== "details")
      .sort()
  ).toEqual(["code", "message"])
  expect(body.error.message).not.toBe("")
  expect(body.meta).toEqual({ requestId: headers.get("x-request-id") })
  return `${status} ${body.error.code}`
}

const times = <A>(count: number, ask: (place: number) => Promise<A>): Promise<Array<A>> =>
  Promise.all(Array.from({ length: count }, (_, place) => ask(place)))

describe("Every answer", () => {
  it("has the envelope and the request's id, and exposes its headers to other origins", async () => {
    for (const [given, kept] of [
      ["order-4711.a:b_c", true],
      ["x".repeat(128), true],
      ["x".repeat(129), false],
      ["white space", false]
    ] as const) {
      const answer = await spoke.request("GET", "/v1/sources", { key, headers: { "x-request-id": given } })
      const id = answer.headers.get("x-request-id") ?? ""
      expect(id === given).toBe(kept)
      expect(id).toMatch(/^[A-Za-z0-9._:-]{1,128}$/)
      expect(answer.body.meta).toEqual({ requestId: id })
    }
    const { headers } = await get("/v1/sources")
    expect(headers.get("access-control-allow-origin")).toBe("*")
    expect(headers.get("access-control-expose-headers")).toMatch(/x-request-id.*x-end-user-id/)
  })

  it("says 404 for unknown routes without a key too, and 405 with `allow` for unknown methods", async () => {
    for (const path of ["/v1", "/v1/nothing", "/nothing", "/api/nothing", "/v1/sources/a/b/c"]) {
      expect(refused(await spoke.request("GET", path, { key: null }))).toBe("404 NOT_FOUND")
    }
    const wrong = await spoke.request("DELETE", "/v1/chat", { key: null })
    expect(refused(wrong)).toBe("405 METHOD_NOT_ALLOWED")
    expect(wrong.headers.get("allow")).toContain("POST")
  })

  it("refuses what is no JSON object with 400, and more than 1 MiB with 413", async () => {
    const raw = async (body: string, headers: Headers = {}) => {
      const response = await fetch(`${spoke.url}/v1/chat`, {
        method: "POST",
        headers: { "x-api-key": key, "content-type": "application/json", ...headers },
        body
      })
      return { status: response.status, headers: response.headers, body: await response.json() }
    }
    for (const body of ["{", "", "null", "[]", '"text"', "{}", '{"message": 1}', "\u0000"]) {
      expect(refused(await raw(body))).toBe("400 VALIDATION_ERROR")
    }
    const empty = JSON.stringify({ message: "Hello", ignored: "" })
    const filled = (bytes: number) =>
      JSON.stringify({ message: "Hello", ignored: "x".repeat(bytes - empty.length) })
    expect((await raw(filled(1_048_576))).status).toBe(200)
    expect(refused(await raw(filled(1_048_577)))).toBe("413 PAYLOAD_TOO_LARGE")
  })

  it("lists the problems of a small request, and the first one of a request with thousands", async () => {
    const page = (
      await post("/v1/sources", { type: "URL", name: "P", config: { url: address }, autoSync: false })
    ).body.data.source
    const form = async (fields: Readonly<Record<string, string>>) => {
      const body = new FormData()
      for (const [name, value] of Object.entries(fields)) body.append(name, value)
      const headers = { "x-api-key": key }
      const response = await fetch(`${spoke.url}/api/v1/chat/stream`, { method: "POST", headers, body })
      return JSON.parse(await response.text()).error.details.issues
    }
    const hosted = async (body: object) => (await post("/api/v1/chat/stream", body)).body.error.details.issues
    const changed = async (source: string, config: object) =>
      (await spoke.request("PATCH", `/v1/sources/${source}`, { key, body: { config } })).body.error.details
        .issues
    const tool = async (given: object) => {
      const params = { name: "retrieve", arguments: given }
      const { body } = await post("/mcp", { jsonrpc: "2.0", id: 1, method: "tools/call", params })
      return JSON.parse(/\{.*\}$/u.exec(body.result.content[0].text)?.[0] ?? "").issues
    }
    const invalid = (length: number): ReadonlyArray<number> => Array.from({ length }, () => 1)
    const routes: Readonly<
      Record<string, (values: ReadonlyArray<number>) => Promise<ReadonlyArray<unknown>>>
    > = {
      form: (values) => form({ message: "Hi", filter: JSON.stringify({ sourceIds: values }) }),
      hosted: (values) => hosted({ message: "Hi", filter: { sourceIds: values } }),
      change: (values) => changed(page.id, { url: address, includePatterns: values }),
      tool: (values) => tool({ query: "hours", filter: { sourceIds: values } })
    }
    for (const [route, issues] of Object.entries(routes)) {
      expect([route, (await issues(invalid(3))).length]).toEqual([route, 3])
      expect([route, (await issues(invalid(5_000))).length]).toEqual([route, 1])
    }
  })

  it("never contains values of the request", async () => {
    const answers = [
      await chat({ persist: "secret-4711" }),
      await chat({ toolCredentials: { slot: ["secret-4711"] } }),
      await chat({ conversationId: "secret-4711" }),
      await post("/v1/sources", { type: "secret-4711", name: "A", config: {} }),
      await get("/v1/sources?limit=secret-4711"),
      await get("/v1/sources?cursor=secret-4711"),
      await get("/v1/sources/secret-4711")
    ]
    for (const { body, status } of answers) {
      expect([400, 404]).toContain(status)
      expect(JSON.stringify(body)).not.toContain("secret-4711")
    }
  })
})

describe("A key", () => {
  it("is taken from x-api-key or Authorization: Bearer", async () => {
    const ask = (headers: Headers) => spoke.request("GET", "/v1/sources", { key: null, headers })
    expect((await ask({ authorization: `Bearer ${key}` })).status).toBe(200)
    expect((await ask({ authorization: `bearer ${key}` })).status).toBe(200)
    expect((await ask({ "x-api-key": key })).status).toBe(200)
    expect((await ask({ "x-api-key": "", authorization: `Bearer ${key}` })).status).toBe(200)
    expect(refused(await ask({ "x-api-key": "wrong", authorization: `Bearer ${key}` }))).toBe(
      "401 UNAUTHORIZED"
    )
    expect(refused(await ask({}))).toBe("401 UNAUTHORIZED")
    expect(refused(await ask({ authorization: `Basic ${key}` }))).toBe("401 UNAUTHORIZED")
    expect(refused(await ask({ "x-api-key": `${key}x` }))).toBe("401 UNAUTHORIZED")
    expect(refused(await ask({ "x-api-key": "x".repeat(4_000) }))).toBe("401 UNAUTHORIZED")
  })

  it("that is inactive, expired, revoked or whose agent is deleted is 401 within a second", async () => {
    const expiresAt = new Date(Date.now() + 1_500).toISOString()
    const keys = [await team.key(), await team.key(), await team.key({ expiresAt })] as const
    const spare = await team.agent("Spare")
    const orphan = await team.key({ agentId: spare })
    for (const { secret } of [...keys, orphan]) expect((await get("/v1/sources", secret)).status).toBe(200)
    expect((await team.owner("PATCH", `/api/keys/${keys[0].id}`, { active: false })).status).toBe(200)
    expect((await team.owner("DELETE", `/api/keys/${keys[1].id}`)).status).toBe(200)
    expect((await team.owner("DELETE", `/api/agents/${spare}`)).status).toBe(200)
    for (const { secret } of [keys[0], keys[1], orphan]) {
      const answer = await until(
        () => get("/v1/sources", secret),
        ({ status }) => status !== 200,
        1_000
      )
      expect(refused(answer)).toBe("401 UNAUTHORIZED")
    }
    const expired = await until(
      () => get("/v1/sources", keys[2].secret),
      ({ status }) => status !== 200,
      2_600
    )
    expect(refused(expired)).toBe("401 UNAUTHORIZED")
    expect((await team.owner("PATCH", `/api/keys/${keys[0].id}`, { active: true })).status).toBe(200)
    await until(
      () => get("/v1/sources", keys[0].secret),
      ({ status }) => status === 200,
      1_000
    )
    expect(refused(await team.owner("PATCH", `/api/keys/${keys[1].id}`, { active: true }))).toBe(
      "409 CONFLICT"
    )
  })

  it("of the organisation is 403 on every /v1 route", async () => {
    const { body } = await team.owner("POST", "/api/keys", { name: "Org", scope: "org", permissions: ["*"] })
    const { secret } = body.data
    for (const path of ["/v1/sources", "/v1/sources/src_1", "/v1/ingestion-jobs/job_1"]) {
      expect(refused(await get(path, secret))).toBe("403 FORBIDDEN")
    }
    for (const path of ["/v1/chat", "/v1/chat/stream", "/v1/retrieve", "/v1/sources"]) {
      expect(refused(await post(path, {}, secret))).toBe("403 FORBIDDEN")
    }
  })

  it("needs the route's permission, where any member of an alias group will do", async () => {
    const routes = {
      chat: ["POST", "/v1/chat"],
      retrieve: ["POST", "/v1/retrieve"],
      ingest: ["POST", "/v1/sources"]
    } as const
    const table = {
      chat: ["chat"],
      "chat:write": ["chat"],
      retrieve: ["retrieve"],
      "sources:read": ["retrieve"],
      "retrieval:read": ["retrieve"],
      ingest: ["ingest"],
      "ingest.read": ["ingest"],
      "ingest.write": ["ingest"],
      "sources:write": ["ingest"],
      trace_read: [],
      "usage.read": [],
      "skills:read": [],
      "*": ["chat", "retrieve", "ingest"]
    } as const
    for (const [permission, granted] of Object.entries(table)) {
      const { secret } = await team.key({ permissions: [permission] })
      for (const [name, [method, path]] of Object.entries(routes)) {
        // A body that cannot be right tells 400, after the permission, from 403, before the body.
        const answer = refused(await spoke.request(method, path, { key: secret, body: { nothing: 1 } }))
        const expected = granted.some((one) => one === name) ? "400 VALIDATION_ERROR" : "403 FORBIDDEN"
        expect(`${permission} ${name} ${answer}`).toBe(`${permission} ${name} ${expected}`)
      }
    }
  })

  it("with allowed origins needs an Origin that matches exactly; without them any origin may call", async () => {
    const { secret } = await team.key({ allowedOrigins: ["https://shop.example"] })
    const ask = (by: string, headers: Headers) => spoke.request("GET", "/v1/sources", { key: by, headers })
    expect((await ask(secret, { origin: "https://shop.example" })).status).toBe(200)
    for (const origin of [
      "https://shop.example.evil",
      "http://shop.example",
      "https://a.shop.example",
      "null"
    ]) {
      expect(refused(await ask(secret, { origin }))).toBe("403 FORBIDDEN")
    }
    expect(refused(await ask(secret, {}))).toBe("403 FORBIDDEN")
    expect((await ask(key, { origin: "https://anywhere.example" })).status).toBe(200)
    const preflight = await fetch(`${spoke.url}/v1/chat`, {
      method: "OPTIONS",
      headers: {
        origin: "https://anywhere.example",
        "access-control-request-method": "POST",
        "access-control-request-headers": "x-api-key, content-type"
      }
    })
    expect(preflight.status).toBe(204)
    expect(preflight.headers.get("access-control-allow-headers")).toBe("x-api-key, content-type")
  })

  it("is checked first, then the plan, the origin, the permission and the body", async () => {
    const lone = await makeTeam(spoke)
    const strict = await lone.key({ permissions: ["retrieve"], allowedOrigins: ["https://shop.example"] })
    const open = await lone.key({ permissions: ["retrieve"] })
    await lone.entitle({ publicApi: false })
    expect(refused(await post("/v1/chat", {}, "spk_unknown"))).toBe("401 UNAUTHORIZED")
    expect(refused(await post("/v1/chat", {}, strict.secret))).toBe("403 PLAN_RESTRICTED")
    expect((await lone.owner("GET", "/api/agents")).status).toBe(200)
    await lone.entitle({})
    const blocked = await post("/v1/chat", {}, strict.secret)
    expect(refused(blocked)).toBe("403 FORBIDDEN")
    expect(blocked.body.error.message).toMatch(/origin/)
    const lacking = await post("/v1/chat", {}, open.secret)
    expect(refused(lacking)).toBe("403 FORBIDDEN")
    expect(lacking.body.error.message).toMatch(/permission/)
    expect(refused(await post("/v1/retrieve", {}, open.secret))).toBe("400 VALIDATION_ERROR")
  })
})

describe("POST /v1/chat", () => {
  it("answers with reply, citations and media, and with a token while a conversation exists", async () => {
    const { body, headers, status } = await chat({})
    expect(status).toBe(200)
    expect(headers.get("content-type")).toMatch(/^application\/json/)
    const { data } = body
    expect(Object.keys(data).sort()).toEqual([
      "citations",
      "conversationId",
      "endUserId",
      "media",
      "realtimeToken",
      "realtimeUrl",
      "reply",
      "runId"
    ])
    expect(data.reply).toContain("half past nine")
    expect(Object.keys(data.citations[0]).sort()).toEqual(
      ["index", "sourceId", "sourceName", "documentId", "chunkId", "title", "url", "text", "score"].sort()
    )
    expect(data.realtimeUrl).toMatch(/^wss?:\/\/[^/]+\/api\/realtime$/)
    const bare = (await chat({ includeRealtimeToken: false })).body.data
    expect([bare.realtimeToken, bare.realtimeUrl]).toEqual([undefined, undefined])
    expect(bare.conversationId).toMatch(/^cnv_/)
  })

  it("resolves identity and persists as the tables say", async () => {
    const first = (await chat({ externalEndUserId: "  ada  " })).body.data
    const { conversationId, endUserId } = first
    expect([conversationId.slice(0, 4), endUserId.slice(0, 4)]).toEqual(["cnv_", "usr_"])
    const told = async (fields: object) => {
      const { body, status } = await chat(fields)
      expect(status).toBe(200)
      return {
        conversation: body.data.conversationId,
        user: body.data.endUserId,
        token: body.data.realtimeToken !== undefined
      }
    }
    expect(await told({ externalEndUserId: "ada" })).toMatchObject({ user: endUserId, token: true })
    const named = await told({ endUserId })
    expect(named).toMatchObject({ user: endUserId, token: true })
    expect(named.conversation).not.toBe(conversationId)
    expect(await told({ conversationId })).toEqual({
      conversation: conversationId,
      user: undefined,
      token: true
    })
    expect(await told({ conversationId, persist: false })).toEqual({
      conversation: conversationId,
      user: undefined,
      token: true
    })
    const nothing = { conversation: undefined, token: false }
    expect(await told({ endUserId, persist: false })).toEqual({ ...nothing, user: endUserId })
    expect(await told({ externalEndUserId: "ada", persist: false })).toEqual({ ...nothing, user: endUserId })
    expect(await told({ persist: false })).toEqual({ ...nothing, user: undefined })
    const [one, two] = [await told({}), await told({})]
    expect(one.user).not.toBe(two.user)
    // Another agent of the tenant knows the user, and not the conversation.
    const sister = (await team.key({ agentId: await team.agent("Sister") })).secret
    expect((await chat({ endUserId, persist: false }, sister)).body.data.endUserId).toBe(endUserId)
    expect((await chat({ externalEndUserId: "ada" }, sister)).body.data.endUserId).toBe(endUserId)
    expect(refused(await chat({ conversationId }, sister))).toBe("404 CONVERSATION_NOT_FOUND")
    expect(refused(await chat({ conversationId }, foreign))).toBe("404 CONVERSATION_NOT_FOUND")
    expect(refused(await chat({ endUserId }, foreign))).toBe("404 END_USER_NOT_FOUND")
  })

  it("takes at most one identity field, each well formed", async () => {
    const ids = { conversationId: "cnv_1", endUserId: "usr_1", externalEndUserId: "ada" }
    const { conversationId, endUserId, externalEndUserId } = ids
    for (const body of [
      ids,
      { conversationId, endUserId },
      { conversationId, externalEndUserId },
      { endUserId, externalEndUserId },
      { externalEndUserId: "" },
      { externalEndUserId: " \n\t " },
      { externalEndUserId: "x".repeat(201) },
      { externalEndUserId: 7 },
      { externalEndUserId: null },
      { conversationId: null },
      { endUserId: null },
      { persist: null },
      { persist: "true" },
      { includeRealtimeToken: "no" }
    ]) {
      expect(`${JSON.stringify(body)} ${refused(await chat(body))}`).toMatch(/400 VALIDATION_ERROR$/)
    }
    for (const length of [1, 200]) {
      expect((await chat({ externalEndUserId: ` ${"x".repeat(length)} ` })).status).toBe(200)
    }
    for (const id of ["cnv_unknown", "anything", "", "x".repeat(500), "\u0000", "'; drop table x"]) {
      expect(["400 VALIDATION_ERROR", "404 CONVERSATION_NOT_FOUND"]).toContain(
        refused(await chat({ conversationId: id }))
      )
    }
    expect(refused(await chat({ conversationId: "cnv_unknown" }))).toBe("404 CONVERSATION_NOT_FOUND")
    expect(refused(await chat({ endUserId: "usr_unknown" }))).toBe("404 END_USER_NOT_FOUND")
    expect(refused(await chat({ endUserId: "4711" }))).toBe("404 END_USER_NOT_FOUND")
    expect(refused(await chat({ conversationId: "4711" }))).toBe("404 CONVERSATION_NOT_FOUND")
  })

  it("takes messages of 1 to 32,000 characters", async () => {
    for (const message of ["", "  ", null, 1, "x".repeat(32_001)]) {
      expect(refused(await chat({ message }))).toBe("400 VALIDATION_ERROR")
    }
    for (const message of ["?", ` ${"x".repeat(32_000)} `, "\ud800 half a pair, and \u0000"]) {
      expect((await chat({ message })).status).toBe(200)
    }
  })

  it("takes runtime fields of JSON objects, together at most 64 KiB, and never says them back", async () => {
    for (const body of [
      { context: [] },
      { context: "text" },
      { context: null },
      { toolContext: 1 },
      { toolContext: null },
      { toolCredentials: { slot: 1 } },
      { toolCredentials: { slot: null } },
      { toolCredentials: [] },
      { toolCredentials: null }
    ]) {
      expect(`${JSON.stringify(body)} ${refused(await chat(body))}`).toMatch(/400 VALIDATION_ERROR$/)
    }
    const infinite = await fetch(`${spoke.url}/v1/chat`, {
      method: "POST",
      headers: { "x-api-key": key, "content-type": "application/json" },
      body: '{"message": "Hello", "context": {"deep": [{"number": 1e999}]}}'
    })
    expect(infinite.status).toBe(400)
    const filled = (bytes: number) => ({
      context: { filler: "x".repeat(bytes - '{"filler":""}{}{}'.length) },
      toolContext: {},
      toolCredentials: {}
    })
    expect((await chat(filled(65_536))).status).toBe(200)
    expect(refused(await chat(filled(65_537)))).toBe("400 VALIDATION_ERROR")
    const { body, status } = await chat({
      context: { plan: null, nested: { list: [1, true, "a"] } },
      toolContext: { account: "hidden-1" },
      toolCredentials: { crm: "hidden-2" }
    })
    expect(status).toBe(200)
    expect(JSON.stringify(body)).not.toMatch(/hidden-/)
  })

  it("resolves 50 concurrent first turns of one externalEndUserId to one end user", async () => {
    const answers = await times(50, () => chat({ externalEndUserId: "everybody-at-once" }))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    expect(new Set(answers.map(({ body }) => body.data.endUserId)).size).toBe(1)
    expect(new Set(answers.map(({ body }) => body.data.conversationId)).size).toBe(50)
  })

  it("runs concurrent turns of one conversation, each to its end", async () => {
    const { conversationId } = (await chat({})).body.data
    const answers = await times(8, () => chat({ conversationId }))
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
  })
})

describe("Quotas", () => {
  it("end turns with 429, after identity, and only for turns that were run", async () => {
    const lone = await makeTeam(spoke)
    const { secret } = await lone.key()
    await lone.entitle({ turns: 3 })
    expect(refused(await chat({ conversationId: "cnv_unknown" }, secret))).toBe("404 CONVERSATION_NOT_FOUND")
    expect(refused(await chat({ endUserId: "usr_unknown" }, secret))).toBe("404 END_USER_NOT_FOUND")
    expect(refused(await chat({ message: "" }, secret))).toBe("400 VALIDATION_ERROR")
    expect((await chat({ persist: false }, secret)).status).toBe(200)
    expect((await chat({ externalEndUserId: "ada" }, secret)).status).toBe(200)
    const race = await times(6, () => chat({}, secret))
    expect(race.map(({ status }) => status).sort()).toEqual([200, 429, 429, 429, 429, 429])
    for (const body of [{}, { persist: false }, { externalEndUserId: "ada" }]) {
      expect(refused(await chat(body, secret))).toBe("429 TURN_LIMIT_EXCEEDED")
    }
    expect(refused(await post("/v1/chat/stream", { message: "Hello" }, secret))).toBe(
      "429 TURN_LIMIT_EXCEEDED"
    )
    expect(refused(await chat({ conversationId: "cnv_unknown" }, secret))).toBe("404 CONVERSATION_NOT_FOUND")
    expect(refused(await chat({ endUserId: "usr_unknown" }, secret))).toBe("404 END_USER_NOT_FOUND")
    await lone.entitle({ turns: 3, overageEnabled: true })
    expect((await chat({}, secret)).status).toBe(200)
    await lone.entitle({ turns: 4 })
    expect(refused(await chat({}, secret))).toBe("429 TURN_LIMIT_EXCEEDED")
    await lone.entitle({ turns: 5 })
    expect((await chat({}, secret)).status).toBe(200)
    await lone.entitle({ turns: 0 })
    expect(refused(await chat({}, secret))).toBe("429 TURN_LIMIT_EXCEEDED")
  })

  it("end sources and ingestion jobs with 429, and the last place has one winner", async () => {
    const lone = await makeTeam(spoke)
    const { secret } = await lone.key()
    const source = (place: number) => ({
      type: "BULK_UPLOAD",
      name: `S${place}`,
      config: {},
      autoSync: false
    })
    await lone.entitle({ sources: 2 })
    const race = await times(6, (place) => post("/v1/sources", source(place), secret))
    expect(race.map(({ status }) => status).sort()).toEqual([201, 201, 429, 429, 429, 429])
    const late = await post("/v1/sources", source(7), secret)
    expect(refused(late)).toBe("429 LIMIT_EXCEEDED")
    const list = await get("/v1/sources", secret)
    expect(list.body.data.sources).toHaveLength(2)
    await lone.entitle({ ingestionJobs: 1 })
    const [one, two] = list.body.data.sources
    const jobs = await Promise.all(
      [one, two].map(({ id }: { id: string }) => post(`/v1/sources/${id}/sync`, {}, secret))
    )
    expect(jobs.map(({ status }) => status).sort()).toEqual([202, 429])
    const body = { type: "URL", name: "More", config: { url: address } }
    expect(refused(await post("/v1/sources", body, secret))).toBe("429 LIMIT_EXCEEDED")
    // Refused requests stored nothing.
    expect((await get("/v1/sources", secret)).body.data.sources).toHaveLength(2)
    expect((await post("/v1/sources", { ...body, autoSync: false }, secret)).status).toBe(201)
  })
})

describe("POST /v1/chat/stream", () => {
  const stream = (body: object, by: string = key) =>
    fetch(`${spoke.url}/v1/chat/stream`, {
      method: "POST",
      headers: { "x-api-key": by, "content-type": "application/json" },
      body: JSON.stringify({ message: "When do you open?", ...body })
    })

  const partsOf = async (response: Response) => {
    const frames = (await response.text())
      .split("\n\n")
      .filter((frame) => frame.startsWith("data: "))
      .map((frame) => frame.slice(6))
    expect(frames.at(-1)).toBe("[DONE]")
    // Parts are asserted on field by field.
    // eslint-disable-next-line @typescript-eslint/no-explicit-any
    return frames.slice(0, -1).map((frame): any => JSON.parse(frame))
  }

  it("streams text, then the settled result, then [DONE], with the run and the end user in its headers", async () => {
    const response = await stream({ externalEndUserId: "ada" })
    expect(response.status).toBe(200)
    expect(response.headers.get("content-type")).toMatch(/^text\/event-stream/)
    expect(response.headers.get("x-vercel-ai-ui-message-stream")).toBe("v1")
    expect(response.headers.get("x-request-id")).toMatch(/./)
    expect(response.headers.get("access-control-expose-headers")).toMatch(/x-request-id.*x-end-user-id/)
    const endUserId = response.headers.get("x-end-user-id")
    expect(endUserId).toMatch(/^usr_/)
    const parts = await partsOf(response)
    const done = parts.at(-1)
    expect(done.type).toBe("data-done")
    const { result } = done.data
    expect(result.endUserId).toBe(endUserId)
    expect(result.conversationId).toMatch(/^cnv_/)
    expect([result.realtimeToken, result.realtimeUrl]).toEqual([undefined, undefined])
    const text = parts.filter(({ type }) => type === "text-delta").map(({ delta }) => delta)
    expect(text.join("")).toBe(result.reply)
    const [first] = parts.filter(({ type }) => type === "data-agent-run-event")
    expect(first.data).toMatchObject({
      type: "run.started",
      runId: response.headers.get("x-run-id"),
      sequence: 1
    })
    const continued = await stream({ conversationId: result.conversationId })
    expect(continued.headers.get("x-end-user-id")).toBeNull()
    await continued.text()
    const passing = await stream({ persist: false })
    expect(passing.headers.get("x-run-id")).toBeNull()
    expect(passing.headers.get("x-end-user-id")).toBeNull()
    await passing.text()
  })

  it("is read by the AI SDK's own client", async () => {
    const transport = new DefaultChatTransport<UIMessage>({
      api: `${spoke.url}/v1/chat/stream`,
      headers: { "x-api-key": key },
      prepareSendMessagesRequest: () => ({ body: { message: "When do you open?" } })
    })
    const chunks = await transport.sendMessages({
      trigger: "submit-message",
      chatId: "chat",
      messageId: undefined,
      messages: [],
      abortSignal: undefined
    })
    let last: UIMessage | undefined
    for await (const message of readUIMessageStream({ stream: chunks })) last = message
    const texts = last?.parts.flatMap((part) => (part.type === "text" ? [part.text] : [])) ?? []
    expect(texts.join("")).toContain("half past nine")
    expect(last?.parts.some(({ type }) => type === "data-done")).toBe(true)
    expect(last?.parts.some(({ type }) => type === "source-url")).toBe(true)
  })

  it("shows payloads of run events only to keys that hold trace_read", async () => {
    const payloads = async (permissions: ReadonlyArray<string>) => {
      const parts = await partsOf(await stream({}, (await team.key({ permissions })).secret))
      return parts.flatMap(({ type, data }) =>
        type === "data-agent-run-event" && data.payload !== undefined ? [data.type] : []
      )
    }
    expect(await payloads(["chat"])).toEqual([])
    expect(await payloads(["chat", "trace_read"])).toContain("retrieval.completed")
    expect(await payloads(["*"])).toContain("retrieval.completed")
  })

  it("refuses with a JSON error whatever fails before the stream", async () => {
    const stranger = (await team.key({ permissions: ["retrieve"] })).secret
    for (const [body, by, expected] of [
      [{ message: "" }, key, "400 VALIDATION_ERROR"],
      [{ context: [] }, key, "400 VALIDATION_ERROR"],
      [{ conversationId: "cnv_unknown" }, key, "404 CONVERSATION_NOT_FOUND"],
      [{ endUserId: "usr_unknown" }, key, "404 END_USER_NOT_FOUND"],
      [{}, stranger, "403 FORBIDDEN"],
      [{}, "spk_unknown", "401 UNAUTHORIZED"]
    ] as const) {
      const response = await stream(body, by)
      expect(response.headers.get("content-type")).toMatch(/^application\/json/)
      expect(refused({ ...pick(response), body: await response.json() })).toBe(expected)
    }
  })
})

const pick = ({ status, headers }: Response) => ({ status, headers })

describe("POST /v1/retrieve", () => {
  const retrieve = (body: object, by: string = key) =>
    post("/v1/retrieve", { query: "opening hours", ...body }, by)

  it("answers with the chunks of the key's agent, best first, none below minScore", async () => {
    const { body, status } = await retrieve({})
    expect(status).toBe(200)
    const [chunk] = body.data.chunks
    expect(Object.keys(chunk).sort()).toEqual(["documentId", "id", "score", "sourceName", "text", "url"])
    expect(chunk).toMatchObject({ sourceName: "Hours", url: address })
    expect(chunk.score).toBeGreaterThan(0)
    expect(chunk.score).toBeLessThanOrEqual(1)
    expect((await retrieve({ minScore: 1 })).body.data.chunks).toEqual([])
    expect((await retrieve({}, foreign)).body.data.chunks).toEqual([])
    const many = await spoke.request("POST", "/v1/retrieve", { body: { query: "source", topK: 20 } })
    const scores: Array<number> = many.body.data.chunks.map(({ score }: { score: number }) => score)
    expect(scores).toHaveLength(20)
    expect(scores).toEqual(scores.toSorted((a, b) => b - a))
    const cut = scores[9] ?? 0
    const above = await spoke.request("POST", "/v1/retrieve", {
      body: { query: "source", topK: 20, minScore: cut }
    })
    const kept: Array<number> = above.body.data.chunks.map(({ score }: { score: number }) => score)
    expect(kept.every((score) => score >= cut)).toBe(true)
    expect(kept.length).toBeLessThan(20)
    expect(
      (await spoke.request("POST", "/v1/retrieve", { body: { query: "source" } })).body.data.chunks
    ).toHaveLength(5)
  })

  it("enforces its limits exactly", async () => {
    for (const body of [
      { query: "" },
      { query: null },
      { query: "x".repeat(1_001) },
      { query: "😀".repeat(1_001) },
      { topK: 0 },
      { topK: 21 },
      { topK: 1.5 },
      { topK: "5" },
      { topK: null },
      { minScore: -0.01 },
      { minScore: 1.01 },
      { minScore: "0" },
      { minScore: null }
    ]) {
      expect(`${JSON.stringify(body)} ${refused(await retrieve(body))}`).toMatch(/400 VALIDATION_ERROR$/)
    }
    for (const body of [
      { query: "x".repeat(1_000) },
      { query: "😀".repeat(1_000) },
      { topK: 1 },
      { topK: 20 },
      { minScore: 0 },
      { minScore: 1 }
    ]) {
      expect((await retrieve(body)).status).toBe(200)
    }
  })
})

describe("Sources", () => {
  const create = (body: object, headers: Headers = {}, by: string = key) =>
    post(
      "/v1/sources",
      { type: "URL", name: "Page", config: { url: address }, autoSync: false, ...body },
      by,
      headers
    )

  it("are created PENDING with a QUEUED job, or without one when autoSync is false", async () => {
    const { body, status } = await create({ autoSync: true })
    expect(status).toBe(201)
    expect(Object.keys(body.data.source).sort()).toEqual([
      "agentId",
      "config",
      "id",
      "name",
      "status",
      "type"
    ])
    expect(body.data.source).toMatchObject({
      agentId: team.agentId,
      type: "URL",
      name: "Page",
      status: "PENDING",
      config: { url: address }
    })
    expect(body.data.ingestionJob).toEqual({ id: expect.stringMatching(/^job_/), status: "QUEUED" })
    const quiet = await create({})
    expect(quiet.body.data.ingestionJob).toBeNull()
    const { id } = quiet.body.data.source
    const synced = await post(`/v1/sources/${id}/sync`, {})
    expect(synced.status).toBe(202)
    expect(synced.body.data).toEqual({
      jobId: expect.stringMatching(/^job_/),
      status: "QUEUED",
      sourceId: id
    })
    const job = await until(
      () => get(`/v1/ingestion-jobs/${synced.body.data.jobId}`),
      ({ body: { data } }) => data.status === "SUCCEEDED"
    )
    expect(job.body.data).toEqual({
      id: synced.body.data.jobId,
      sourceId: id,
      type: "INGEST",
      status: "SUCCEEDED",
      progress: 100,
      chunksCreated: 1,
      error: null,
      startedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      completedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    })
    const one = (await get(`/v1/sources/${id}`)).body.data
    expect(Object.keys(one).sort()).toEqual(
      ["agentId", "config", "error", "id", "latestJob", "name", "status", "type"].sort()
    )
    expect(one).toMatchObject({ status: "READY", error: null })
    expect(Object.keys(one.latestJob).sort()).toEqual(
      ["chunksCreated", "error", "id", "progress", "status", "type"].sort()
    )
    const again = await post(`/v1/sources/${id}/sync`, { force: true })
    const reindex = await get(`/v1/ingestion-jobs/${again.body.data.jobId}`)
    expect(reindex.body.data.type).toBe("REINDEX")
  })

  it("need the config of their type", async () => {
    const url = address
    for (const body of [
      { config: {} },
      { config: null },
      { config: { url: "ftp://example.com/" } },
      { config: { url: "not a url" } },
      { config: { url: null } },
      { config: { url, maxDepth: -1 } },
      { config: { url, maxDepth: 6 } },
      { config: { url, maxDepth: 1.5 } },
      { config: { url, includePatterns: "*" } },
      { type: "SITEMAP", config: {} },
      { type: "FILE", config: { url } },
      { type: "IMAGE", config: {} },
      { type: "TEXT" },
      { type: "url" },
      { type: null },
      { name: "" },
      { name: "  " },
      { name: null },
      { autoSync: null },
      { autoSync: "false" }
    ]) {
      expect(`${JSON.stringify(body)} ${refused(await create(body))}`).toMatch(/400 VALIDATION_ERROR$/)
    }
    for (const body of [
      { config: { url, maxDepth: 0 } },
      { config: { url, maxDepth: 5, includePatterns: ["**"], excludePatterns: [] } },
      { type: "SITEMAP", config: { sitemapUrl: url } },
      { type: "SITEMAP", config: { url } },
      { type: "FILE", config: { fileUrl: url, fileName: "a.html" } },
      { type: "IMAGE", config: { fileUrl: url } },
      { type: "BULK_UPLOAD", config: {} }
    ]) {
      const answer = await create(body)
      expect(`${JSON.stringify(body)} ${answer.status}`).toMatch(/201$/)
      expect(answer.body.data.source.config).toEqual({ ...("config" in body ? body.config : {}) })
    }
  })

  it("are created once for each Idempotency-Key of an API key", async () => {
    const again = { "idempotency-key": "order-4711" }
    const answers = await times(10, () => create({ autoSync: true }, again))
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 201))
    expect(new Set(answers.map(({ body }) => JSON.stringify(body.data))).size).toBe(1)
    expect(new Set(answers.map(({ body }) => body.meta.requestId)).size).toBe(10)
    const first = answers[0]?.body.data
    // The answer is the original one, whatever the job's state is now.
    await until(
      () => get(`/v1/ingestion-jobs/${first.ingestionJob.id}`),
      ({ body }) => body.data.status === "SUCCEEDED"
    )
    expect((await create({ autoSync: true }, again)).body.data).toEqual(first)
    const colleague = (await team.key()).secret
    expect((await create({}, again, colleague)).body.data.source.id).not.toBe(first.source.id)
    const fresh = { "idempotency-key": "!".repeat(255) }
    expect(refused(await create({ name: "" }, fresh))).toBe("400 VALIDATION_ERROR")
    expect((await create({}, fresh)).status).toBe(201)
    for (const bad of ["!".repeat(256), "a b", "é"]) {
      expect(refused(await create({}, { "idempotency-key": bad }))).toBe("400 VALIDATION_ERROR")
    }
  })

  it("that were refused for the quota do not use their Idempotency-Key up", async () => {
    const lone = await makeTeam(spoke)
    const { secret } = await lone.key()
    const once = { "idempotency-key": "one" }
    await lone.entitle({ sources: 0 })
    expect(refused(await create({}, once, secret))).toBe("429 LIMIT_EXCEEDED")
    await lone.entitle({})
    expect((await create({}, once, secret)).status).toBe(201)
  })

  it("are listed newest first in pages of 1 to 100, by status and type where those are known", async () => {
    const lone = await makeTeam(spoke)
    const { secret } = await lone.key()
    const made: Array<string> = []
    for (let place = 0; place < 7; place++) {
      const type = place % 2 === 0 ? "BULK_UPLOAD" : "URL"
      const config = type === "URL" ? { url: address } : {}
      made.unshift((await create({ type, config, name: `N${place}` }, {}, secret)).body.data.source.id)
    }
    const page = async (query: string) => (await get(`/v1/sources?${query}`, secret)).body.data
    const ids = ({ sources }: { sources: ReadonlyArray<{ id: string }> }) => sources.map(({ id }) => id)
    const whole = await page("")
    expect(ids(whole)).toEqual(made)
    expect(whole.nextCursor).toBeNull()
    expect(Object.keys(whole.sources[0]).sort()).toEqual(
      ["agentId", "config", "id", "lastError", "lastSyncedAt", "latestJob", "name", "status", "type"].sort()
    )
    const collected: Array<string> = []
    for (let cursor: string | null = ""; cursor !== null;) {
      const part = await page(`limit=3${cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`}`)
      collected.push(...ids(part))
      cursor = part.nextCursor
    }
    expect(collected).toEqual(made)
    expect((await page("limit=7")).nextCursor).toBeNull()
    expect(ids(await page("type=URL"))).toHaveLength(3)
    expect(ids(await page("status=READY"))).toHaveLength(0)
    expect(ids(await page("status=PENDING&type=URL"))).toHaveLength(3)
    for (const query of ["type=nonsense", "status=nonsense", "status=", "type=url", "status=a&status=b"]) {
      expect(`${query} ${ids(await page(query)).length}`).toBe(`${query} 7`)
    }
    for (const limit of ["0", "101", "-1", "1.5", "1e1", "0x10", "%2B5", "%205", "abc", ""]) {
      expect(`${limit} ${refused(await get(`/v1/sources?limit=${limit}`, secret))}`).toBe(
        `${limit} 400 VALIDATION_ERROR`
      )
    }
    expect((await get("/v1/sources?limit=100", secret)).status).toBe(200)
    const { nextCursor } = await page("limit=3")
    for (const query of ["cursor=nonsense", "cursor=", `cursor=${encodeURIComponent(nextCursor)}x`]) {
      expect(refused(await get(`/v1/sources?${query}`, secret))).toBe("400 VALIDATION_ERROR")
    }
    // A cursor of another agent's list.
    const strange = await get(`/v1/sources?cursor=${encodeURIComponent(nextCursor)}`)
    expect(refused(strange)).toBe("400 VALIDATION_ERROR")
  })

  it("and their jobs are 404 where they do not exist for the key's agent", async () => {
    const { source, ingestionJob } = (await create({ autoSync: true })).body.data
    for (const [id, by] of [
      [source.id, foreign],
      ["src_unknown", key],
      ["4711", key],
      ["x".repeat(300), key]
    ] as const) {
      expect(refused(await get(`/v1/sources/${id}`, by))).toBe("404 NOT_FOUND")
      expect(refused(await post(`/v1/sources/${id}/sync`, {}, by))).toBe("404 NOT_FOUND")
    }
    expect(refused(await get(`/v1/ingestion-jobs/${ingestionJob.id}`, foreign))).toBe("404 NOT_FOUND")
    expect(refused(await get("/v1/ingestion-jobs/job_unknown"))).toBe("404 NOT_FOUND")
    expect(refused(await post(`/v1/sources/${source.id}/sync`, { force: "yes" }))).toBe(
      "400 VALIDATION_ERROR"
    )
  })

  it("that fail say why in words", async () => {
    const { body } = await create({ autoSync: true, config: { url: "http://169.254.169.254/latest" } })
    const metadata = await until(
      () => get(`/v1/ingestion-jobs/${body.data.ingestionJob.id}`),
      ({ body: { data } }) => ["FAILED", "SUCCEEDED"].includes(data.status)
    )
    expect(metadata.body.data).toMatchObject({
      status: "FAILED",
      error: expect.stringMatching(/\w+ \w+ \w+/)
    })
    const failed = (await get(`/v1/sources/${body.data.source.id}`)).body.data
    expect(failed).toMatchObject({ status: "FAILED", error: metadata.body.data.error })
  })

  it("are uploaded as one file of a form", async () => {
    const upload = async (fill: (form: FormData) => void) => {
      const form = new FormData()
      fill(form)
      const response = await fetch(`${spoke.url}/v1/sources/upload`, {
        method: "POST",
        headers: { "x-api-key": key },
        body: form
      })
      const answer: Answer = { ...pick(response), body: await response.json() }
      return answer
    }
    const text = new Blob(["# Parcels\n\nParcels leave the depot at noon sharp."])
    const { body, status } = await upload((form) => form.append("file", text, "parcels.md"))
    expect(status).toBe(201)
    expect(body.data.source).toMatchObject({ type: "FILE", name: "parcels.md", status: "PENDING" })
    const job = await until(
      () => get(`/v1/ingestion-jobs/${body.data.ingestionJob.id}`),
      ({ body: { data } }) => ["FAILED", "SUCCEEDED"].includes(data.status)
    )
    expect(job.body.data).toMatchObject({ status: "SUCCEEDED", error: null })
    expect(refused(await upload((form) => form.append("name", "Nothing")))).toBe("400 VALIDATION_ERROR")
    expect(refused(await post("/v1/sources/upload", {}))).toBe("400 VALIDATION_ERROR")
  })
})

describe("The operator and the dashboard", () => {
  const operator = (method: string, path: string, body?: unknown, token = spoke.operatorToken) =>
    spoke.request(method, `/api/operator${path}`, {
      key: null,
      headers: { authorization: `Bearer ${token}` },
      ...(body === undefined ? {} : { body })
    })

  it("need the operator's token, and a tenant that exists", async () => {
    const owner = { email: "new@example.com", password: "correct horse" }
    expect(refused(await operator("GET", "/tenants", undefined, "wrong"))).toBe("401 UNAUTHORIZED")
    expect(refused(await spoke.request("GET", "/api/operator/tenants"))).toBe("401 UNAUTHORIZED")
    expect((await operator("POST", "/tenants", { name: "New", owner })).status).toBe(201)
    expect(refused(await operator("POST", "/tenants", { name: "New", owner }))).toBe("409 CONFLICT")
    for (const body of [
      {},
      { name: "", owner },
      { name: "A" },
      { name: "A", owner: { email: "x", password: "y" } }
    ]) {
      expect(refused(await operator("POST", "/tenants", body))).toBe("400 VALIDATION_ERROR")
    }
    const { tenants } = (await operator("GET", "/tenants")).body.data
    expect(tenants.map(({ name }: { name: string }) => name)).toContain("New")
    const entitlements = { publicApi: true, turns: 1, ingestionJobs: 1, sources: 1, overageEnabled: false }
    const missing = await operator("PUT", "/tenants/ten_unknown/subscription", { plan: "a", entitlements })
    expect(refused(missing)).toBe("404 NOT_FOUND")
    for (const body of [
      {},
      { plan: "a", entitlements: { ...entitlements, turns: -1 } },
      { plan: "a", entitlements, period: { start: "2026-02-01T00:00:00Z", end: "2026-01-01T00:00:00Z" } }
    ]) {
      const answer = await operator("PUT", `/tenants/${team.tenantId}/subscription`, body)
      expect(refused(answer)).toBe("400 VALIDATION_ERROR")
    }
  })

  it("need a session, and proof that a change is meant", async () => {
    expect(refused(await spoke.request("GET", "/api/agents", { key: null }))).toBe("401 UNAUTHORIZED")
    expect(refused(await spoke.request("GET", "/api/agents"))).toBe("401 UNAUTHORIZED")
    const login = { email: "owner-1@example.com", password: "correct horse battery" }
    const cross = await spoke.request("POST", "/api/auth/login", {
      key: null,
      headers: { origin: "https://evil.example", "x-spoke-csrf": "1" },
      body: login
    })
    expect(refused(cross)).toBe("403 FORBIDDEN")
    expect(refused(await spoke.request("POST", "/api/auth/login", { key: null, body: login }))).toBe(
      "403 FORBIDDEN"
    )
    const past = { name: "Old", permissions: ["chat"], expiresAt: "2020-01-01T00:00:00.000Z" }
    expect(refused(await team.owner("POST", `/api/agents/${team.agentId}/keys`, past))).toBe(
      "400 VALIDATION_ERROR"
    )
    expect(refused(await team.owner("GET", `/api/agents/${other.agentId}`))).toBe("404 NOT_FOUND")
    const made = await team.owner("POST", `/api/agents/${other.agentId}/keys`, {
      name: "A",
      permissions: ["chat"]
    })
    expect(refused(made)).toBe("404 NOT_FOUND")
  })
})

describe("The system", () => {
  it("says that it is up and ready, in the envelope, to anybody", async () => {
    for (const path of ["/healthz", "/readyz"]) {
      const { body, headers, status } = await spoke.request("GET", path, { key: null })
      expect(status).toBe(200)
      expect(body.meta.requestId).toBe(headers.get("x-request-id"))
    }
  })
})
