/** Replies that are objects of the caller's schema: asked of the provider, checked, corrected once, typed. */
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { z } from "zod"
import { createSpoke, type Spoke, type SpokeAgent, SpokeError } from "../../src/index.ts"
import * as ModelStub from "../servers/ModelStub.ts"

const root = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-objects-"))
const scope = Effect.runSync(Scope.make())
let stub: ModelStub.ModelStub
let spoke: Spoke
let agent: SpokeAgent
let key: string

const schema = {
  type: "object",
  properties: { city: { type: "string" }, degrees: { type: "integer" } },
  required: ["city", "degrees"],
  additionalProperties: false
} as const

const message = "How warm is it?"
const oslo = { city: "Oslo", degrees: 4 }
const fits = { text: JSON.stringify(oslo) }
const lacks = { text: '{"city": "Oslo"}' }

const opened = (name: string, settings = {}) => createSpoke({ dataDir: Path.join(root, name), ...settings })

beforeAll(async () => {
  stub = await Effect.runPromise(Scope.extend(ModelStub.make, scope))
  spoke = await opened("data", {
    openai: { apiKey: "sk-stub-4711", baseUrl: stub.url, embeddingModel: "offline" }
  })
  agent = spoke.agent((await spoke.agents.create({ name: "Weather" })).id)
  key = (await agent.keys.create({ name: "Test", permissions: ["*"] })).secret
}, 60_000)

afterAll(async () => {
  await spoke.close()
  Fs.rmSync(root, { recursive: true, force: true })
  await Effect.runPromise(Scope.close(scope, Exit.void))
})

beforeEach(() => stub.reset())

const rejection = async (promise: Promise<unknown>): Promise<SpokeError> => {
  const thrown: unknown = await promise.then(
    () => undefined,
    (cause: unknown) => cause
  )
  if (!(thrown instanceof SpokeError)) throw new Error("Nothing was rejected.", { cause: thrown })
  return thrown
}

const post = async (path: string, body: unknown, headers: Readonly<Record<string, string>> = {}) => {
  const response = await spoke.fetch(
    new Request(`http://spoke.test${path}`, {
      method: "POST",
      headers: { "x-api-key": key, "content-type": "application/json", ...headers },
      body: JSON.stringify(body)
    })
  )
  return { status: response.status, text: await response.text() }
}

describe("responseSchema", () => {
  it("is asked of the provider and of the model, and the answer has the object beside its text", async () => {
    stub.script.push(fits)
    const result = await agent.chat({ message, responseSchema: schema })
    expect([result.object, result.reply, result.citations]).toEqual([oslo, fits.text, []])
    const asked = stub.requests[0]?.body
    expect(asked.response_format).toEqual({
      type: "json_schema",
      json_schema: { name: "reply", schema, strict: true }
    })
    expect(asked.messages[0].content).toContain(JSON.stringify(schema))
    expect((await agent.chat({ message })).object).toBeUndefined()
    expect(stub.requests[1]?.body.response_format).toBeUndefined()
  })

  it("is told loosely where strict mode does not take all of it", async () => {
    stub.script.push(fits)
    const { required: _, ...loose } = schema
    await agent.chat({ message, responseSchema: loose })
    expect(stub.requests[0]?.body.response_format.json_schema.strict).toBe(false)
  })

  it("is asked by instruction alone of a provider that refuses the format", async () => {
    stub.script.push({ status: 400 }, { text: `\`\`\`json\n${fits.text}\n\`\`\`` })
    const { object, reply } = await agent.chat({ message, responseSchema: schema })
    expect([object, reply]).toEqual([oslo, fits.text])
    expect(stub.requests.map(({ body }) => body.response_format === undefined)).toEqual([false, true])
    stub.reset()
    stub.script.push({ status: 401 })
    expect((await rejection(agent.chat({ message, responseSchema: schema }))).code).toBe("TURN_FAILED")
    expect(stub.requests).toHaveLength(1)
  })

  it("is told to the model once more when the reply does not fit, with what is wrong", async () => {
    stub.script.push(lacks, fits)
    const { object, runId } = await agent.chat({ message, responseSchema: schema })
    expect(object).toEqual(oslo)
    expect(stub.requests).toHaveLength(2)
    const messages = stub.requests[1]?.body.messages
    expect(messages.at(-2)).toEqual({ role: "assistant", content: lacks.text })
    expect(messages.at(-1).content).toContain("/degrees is missing")
    const { events } = await agent.runs.get(runId ?? "")
    expect(events.map(({ type }) => type).filter((type) => type === "model.completed")).toHaveLength(2)
  })

  it("fails the turn when the reply does not fit twice, and the run says so", async () => {
    stub.otherwise = { text: "I do not know." }
    const made = spoke.agent((await spoke.agents.create({ name: "Silent" })).id)
    let runId = ""
    for await (const part of made.stream({ message, responseSchema: schema })) {
      if (part.type === "data-agent-run-event") ({ runId } = part.data)
      expect(part.type).not.toBe("text-delta")
      expect(part.type).not.toBe("data-done")
      if (part.type === "error") expect(part.errorText).toBe("TURN_FAILED")
    }
    expect(stub.requests).toHaveLength(2)
    const run = await made.runs.get(runId)
    expect(run.status).toBe("failed")
    expect(run.events.at(-1)?.payload).toEqual({ code: "TURN_FAILED", provider: "answer_broken" })
    const { code, message: told, status } = await rejection(made.chat({ message, responseSchema: schema }))
    expect([code, status]).toEqual(["TURN_FAILED", 500])
    expect(told).toContain("did not match the responseSchema")
  })

  it("holds what is said after tools to it, not what is said before", async () => {
    stub.script.push({ text: "Let me see.", calls: [{ name: "nobody", arguments: "{}" }] }, fits)
    expect((await agent.chat({ message, responseSchema: schema })).object).toEqual(oslo)
  })

  it("streams the object's text in one piece, and a repeat gets the same object", async () => {
    stub.script.push(lacks, fits)
    const deltas: Array<string> = []
    let done: unknown
    for await (const part of agent.stream({ message, responseSchema: schema })) {
      if (part.type === "text-delta") deltas.push(part.delta)
      if (part.type === "data-done") done = part.data.result.reply
    }
    expect([deltas, done]).toEqual([[fits.text], fits.text])
    stub.script.push(fits)
    const request = { message, responseSchema: schema, includeRealtimeToken: false }
    const first = await agent.chat(request, { idempotencyKey: "once" })
    expect(await agent.chat(request, { idempotencyKey: "once" })).toEqual(first)
    expect(first.object).toEqual(oslo)
    const other = { ...request, responseSchema: { type: "object" as const } }
    expect((await rejection(agent.chat(other, { idempotencyKey: "once" }))).code).toBe("CONFLICT")
  })

  it("has citations and no marks, and its own numbers stay", async () => {
    const made = spoke.agent((await spoke.agents.create({ name: "Sourced" })).id)
    const { source } = await made.sources.upload({
      file: "It is four degrees warm in Oslo.",
      fileName: "o.md"
    })
    await made.sources.ready(source.id)
    stub.script.push({ text: '{"says": "It is four degrees warm in Oslo [1]. So [9].", "list": [1]}' })
    const result = await made.chat({
      message: "How warm is it in Oslo?",
      responseSchema: {
        type: "object",
        properties: { says: { type: "string", maxLength: 40 }, list: { type: "array" } }
      }
    })
    expect(result.object).toEqual({ says: "It is four degrees warm in Oslo. So.", list: [1] })
    const [citation] = result.citations
    expect([citation?.index, citation?.supported, citation?.start]).toEqual([1, "yes", undefined])
    const { messages } = await made.conversations.get(result.conversationId ?? "")
    expect(messages.at(-1)?.content).toBe(result.reply)
  }, 30_000)

  it("withholds an object that its sources do not support, where the agent's policy says so", async () => {
    const { id } = await spoke.agents.create({ name: "Strict", grounding: { unsupported: "withhold" } })
    const made = spoke.agent(id)
    const { source } = await made.sources.upload({
      file: "It is four degrees warm in Oslo.",
      fileName: "o.md"
    })
    await made.sources.ready(source.id)
    stub.script.push({ text: '{"says": "It is 31 degrees warm in Oslo [1]."}' })
    const asked = made.chat({ message: "How warm is it in Oslo?", responseSchema: { type: "object" } })
    expect((await rejection(asked)).message).toBe("The sources do not support what the model replied.")
  }, 30_000)

  it("is refused with what is wrong with it, before anything is asked", async () => {
    const asked = agent.chat({ message, responseSchema: { type: "object", not: {} } })
    const { code, details } = await rejection(asked)
    expect([code, details?.["issues"]]).toEqual([
      "VALIDATION_ERROR",
      [{ path: ["responseSchema", "not"], message: "The keyword not is not supported" }]
    ])
    expect(stub.requests).toHaveLength(0)
  })

  it("needs a model: without a provider the answer says what to configure", async () => {
    const offline = await opened("offline")
    const { id } = await offline.agents.create({ name: "Extracts" })
    const { code, message: told } = await rejection(
      offline.agent(id).chat({ message, responseSchema: schema })
    )
    expect([code, told]).toEqual(["NOT_CONFIGURED", expect.stringContaining("OPENAI_API_KEY")])
    expect((await offline.agent(id).usage()).turns.used).toBe(0)
    await offline.close()
  }, 60_000)
})

describe("A schema of a library", () => {
  it("of Effect makes the object what it decodes, and types it", async () => {
    stub.script.push({ text: '{"at": "2026-11-22T10:00:00.000Z", "degrees": 4}' })
    const { object } = await agent.chat({
      message,
      responseSchema: Schema.Struct({ at: Schema.Date, degrees: Schema.Int })
    })
    const at: Date = object.at
    expect([at.getTime(), object.degrees]).toEqual([Date.UTC(2026, 10, 22, 10), 4])
  })

  it("of zod does so too", async () => {
    stub.script.push(fits)
    const { object } = await agent.chat({
      message,
      responseSchema: z.object({ city: z.string().transform((city) => city.length), degrees: z.int() })
    })
    const length: number = object.city
    expect(length).toBe(4)
  })

  it("has the last word on the object", async () => {
    stub.script.push(fits)
    const cold = z.object({ degrees: z.number().refine((degrees) => degrees < 0, "must be below zero") })
    const { code, message: told } = await rejection(agent.chat({ message, responseSchema: cold }))
    expect([code, told]).toEqual([
      "INVALID_RESPONSE",
      "The reply's object does not fit the schema: degrees: must be below zero"
    ])
  })
})

describe("response_format of /v1/chat/completions", () => {
  const ask = (format: unknown, more = {}) =>
    post("/v1/chat/completions", {
      model: agent.id,
      messages: [{ role: "user", content: message }],
      response_format: format,
      ...more
    })

  it("json_schema is responseSchema", async () => {
    stub.script.push(lacks, fits)
    const { status, text } = await ask({
      type: "json_schema",
      json_schema: { name: "weather", strict: true, schema }
    })
    expect([status, JSON.parse(text).choices[0].message.content]).toEqual([200, fits.text])
    stub.script.push(fits)
    const streamed = await ask({ type: "json_schema", json_schema: { schema } }, { stream: true })
    expect(streamed.text).toContain(JSON.stringify({ content: fits.text }))
  })

  it("says where a schema is wrong, and lets other formats be", async () => {
    const refused = await ask({ type: "json_schema", json_schema: { schema: { type: "object", not: {} } } })
    expect(refused.status).toBe(400)
    expect(refused.text).toContain("response_format")
    expect((await ask({ type: "json_schema" })).status).toBe(400)
    stub.script.push({ text: "Warm." })
    expect((await ask({ type: "text" })).status).toBe(200)
  })
})
