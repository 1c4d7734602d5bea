/** The official `openai` package against a real server: an agent is a model. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import OpenAI from "openai"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import * as ModelStub from "../../servers/ModelStub.ts"
import { removeFolder, type Spoke, start, temporaryFolder } from "../Spoke.ts"

const scope = Effect.runSync(Scope.make())
const dataDir = temporaryFolder()
let stub: ModelStub.ModelStub
let spoke: Spoke
let client: OpenAI
let model: string

beforeAll(async () => {
  stub = await Effect.runPromise(Scope.extend(ModelStub.make, scope))
  spoke = await start(dataDir, {
    OPENAI_BASE_URL: stub.url,
    OPENAI_API_KEY: "sk-stub-4711",
    SPOKE_EMBEDDING_MODEL: "offline"
  })
  client = new OpenAI({ apiKey: spoke.apiKey, baseURL: `${spoke.url}/v1` })
  const { data } = await client.models.list()
  expect(data).toHaveLength(1)
  model = data[0]?.id ?? ""
}, 60_000)

afterAll(async () => {
  await spoke.kill()
  removeFolder(dataDir)
  await Effect.runPromise(Scope.close(scope, Exit.void))
})

beforeEach(() => stub.reset())

const user = (content: string) => ({ role: "user" as const, content })

const conversations = async () =>
  (await spoke.request("GET", "/v1/conversations")).body.data.conversations.length

/** What the provider was asked, as text. */
const prompt = () => JSON.stringify(stub.requests.at(-1)?.body)

/** What the client throws. */
const refusal = async (asked: Promise<unknown>): Promise<InstanceType<typeof OpenAI.APIError>> => {
  const thrown: unknown = await asked.then(
    () => undefined,
    (cause: unknown) => cause
  )
  if (!(thrown instanceof OpenAI.APIError)) throw new Error("Nothing of the API was thrown.")
  return thrown
}

describe("The openai package", () => {
  it("lists the key's agent as a model", async () => {
    const [agent] = (await client.models.list()).data
    expect(agent).toMatchObject({ object: "model", owned_by: "spoke" })
    expect(agent?.id).toMatch(/^agt_/)
    expect(agent?.created).toBeGreaterThan(1_700_000_000)
  })

  it("gets a complete answer with its usage, and nothing of it is stored", async () => {
    const before = await conversations()
    stub.otherwise = { text: "Thirty days." }
    const answer = await client.chat.completions.create({
      model,
      temperature: 0.2,
      top_p: 1,
      messages: [
        { role: "system", content: "The shop is called Hatter." },
        user("What do you sell?"),
        { role: "assistant", content: "Hats." },
        { role: "user", content: [{ type: "text", text: "How long may I return one?" }] }
      ]
    })
    expect(answer.object).toBe("chat.completion")
    expect(answer.model).toBe(model)
    const [choice] = answer.choices
    expect([choice?.message.role, choice?.message.content, choice?.finish_reason]).toEqual([
      "assistant",
      "Thirty days.",
      "stop"
    ])
    expect(answer.usage?.prompt_tokens).toBeGreaterThan(0)
    expect(answer.usage?.total_tokens).toBe(
      (answer.usage?.prompt_tokens ?? 0) + (answer.usage?.completion_tokens ?? 0)
    )
    for (const said of ["Hatter", "What do you sell?", "Hats.", "How long may I return one?"])
      expect(prompt()).toContain(said)
    expect(await conversations()).toBe(before)
  })

  it("streams chunks that end with a finish reason and, where it asks, the usage", async () => {
    stub.otherwise = { text: "One two three four." }
    const stream = await client.chat.completions.create({
      model,
      stream: true,
      stream_options: { include_usage: true },
      messages: [user("Count")]
    })
    let text = ""
    const reasons: Array<string> = []
    const usages: Array<number> = []
    for await (const { choices, object, usage } of stream) {
      expect(object).toBe("chat.completion.chunk")
      text += choices[0]?.delta.content ?? ""
      if (choices[0]?.finish_reason) reasons.push(choices[0].finish_reason)
      if (usage) usages.push(usage.completion_tokens)
    }
    expect([text, reasons]).toEqual(["One two three four.", ["stop"]])
    expect(usages).toHaveLength(1)
    const response = await fetch(`${spoke.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${spoke.apiKey}`, "content-type": "application/json" },
      body: JSON.stringify({ model, stream: true, messages: [user("Count")] })
    })
    expect((await response.text()).endsWith("data: [DONE]\n\n")).toBe(true)
  })

  it("collects a stream with its own helper", async () => {
    const runner = client.chat.completions.stream({ model, messages: [user("Hello")] })
    expect(await runner.finalContent()).toBe("The stub says hello.")
  })

  it("stores the turn with store: true, and continues its conversation by metadata", async () => {
    const before = await conversations()
    const { data, response } = await client.chat.completions
      .create({ model, store: true, user: "customer-7", messages: [user("My name is Ada.")] })
      .withResponse()
    expect(response.headers.get("x-request-id")).not.toBeNull()
    expect(await conversations()).toBe(before + 1)
    const { spoke: beyond } = data as unknown as {
      spoke: { readonly conversationId: string; readonly runId: string }
    }
    expect(beyond.runId).toMatch(/^run_/)
    await client.chat.completions.create({
      model,
      metadata: { conversationId: beyond.conversationId },
      messages: [user("What is my name?")]
    })
    expect(prompt()).toContain("My name is Ada.")
    expect(await conversations()).toBe(before + 1)
  })

  it("throws what was refused, in words that say what to change", async () => {
    const unknown = await refusal(client.chat.completions.create({ model: "gpt-4o", messages: [user("Hi")] }))
    expect([unknown.status, unknown.code, unknown.type, unknown.param]).toEqual([
      404,
      "NOT_FOUND",
      "invalid_request_error",
      "model"
    ])
    expect(unknown.message).toContain(model)
    const empty = await refusal(client.chat.completions.create({ model, messages: [] }))
    expect([empty.status, empty.code, empty.param]).toEqual([400, "VALIDATION_ERROR", "messages"])
    const silent = await refusal(
      client.chat.completions.create({ model, messages: [{ role: "system", content: "Be kind." }] })
    )
    expect([silent.status, silent.param]).toEqual([400, "messages"])
    const stranger = new OpenAI({ apiKey: "spk_wrong", baseURL: `${spoke.url}/v1` })
    const refused = await refusal(stranger.models.list())
    expect([refused.status, refused.code, refused.type]).toEqual([
      401,
      "UNAUTHORIZED",
      "authentication_error"
    ])
    expect(stub.requests).toHaveLength(0)
  })

  it("is told of a failed turn, which it does not repeat by itself", async () => {
    stub.otherwise = { status: 400 }
    const failed = await refusal(client.chat.completions.create({ model, messages: [user("Hi")] }))
    expect([failed.status, failed.code, failed.type]).toEqual([500, "TURN_FAILED", "server_error"])
    expect(stub.requests).toHaveLength(1)
    const streamed = await refusal(
      (async () => {
        const stream = await client.chat.completions.create({ model, stream: true, messages: [user("Hi")] })
        for await (const _ of stream);
      })()
    )
    expect(streamed.code).toBe("TURN_FAILED")
    expect(stub.requests).toHaveLength(2)
  })
})
