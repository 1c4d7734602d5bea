/** A model object of the AI SDK that answers for every agent: the real package, and one made by hand of the older version. */
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { createOpenAI } from "@ai-sdk/openai"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type AiSdkModel, createSpoke, type Spoke, tool } from "../../src/index.ts"
import type { AiSdkCall } from "../../src/domain/chat/AiSdkModel.ts"
import * as ModelStub from "../servers/ModelStub.ts"

const root = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-ai-sdk-"))

const opened = async (
  name: string,
  model: AiSdkModel,
  tools = {},
  env: Readonly<Record<string, string>> = {}
) => {
  const spoke = await createSpoke({ dataDir: Path.join(root, name), model, tools, workers: false, env })
  const { id } = await spoke.agents.create({ name: "Agent", tools: Object.keys(tools) })
  return { spoke, agent: spoke.agent(id) }
}

afterAll(() => Fs.rmSync(root, { recursive: true, force: true }))

describe("A model of the AI SDK", () => {
  const scope = Effect.runSync(Scope.make())
  let stub: ModelStub.ModelStub
  let spoke: Spoke
  let agent: ReturnType<Spoke["agent"]>
  const asked: Array<unknown> = []

  beforeAll(async () => {
    stub = await Effect.runPromise(Scope.extend(ModelStub.make, scope))
    const provider = createOpenAI({ baseURL: stub.url, apiKey: "sk-canary" })
    const orderStatus = tool({
      description: "Says where an order is",
      input: Schema.Struct({ id: Schema.Number }),
      execute: (input) => {
        asked.push(input)
        return { state: "sent" }
      }
    })
    ;({ agent, spoke } = await opened("package", provider.chat("gpt-6-luna"), { orderStatus }))
  }, 60_000)

  afterAll(async () => {
    await spoke.close()
    await Effect.runPromise(Scope.close(scope, Exit.void))
  })

  it("answers, with tools, and is asked with the agent's conversation", async () => {
    stub.reset()
    stub.script.push({ calls: [{ name: "orderStatus", arguments: '{"id":7}' }] }, { text: "It was sent." })
    expect((await agent.chat({ message: "Where is order 7?" })).reply).toBe("It was sent.")
    expect(asked).toEqual([{ id: 7 }])
    const [first, second] = stub.requests
    expect(first?.body).toMatchObject({ model: "gpt-6-luna", stream: true })
    expect(second?.body.messages.slice(-2)).toMatchObject([
      { role: "assistant", tool_calls: [{ function: { name: "orderStatus", arguments: '{"id":7}' } }] },
      { role: "tool", content: '{"state":"sent"}' }
    ])
  })

  it("is set up as the documentation says", async () => {
    stub.reset()
    stub.otherwise = { text: "At eighty degrees." }
    const page = Fs.readFileSync(new URL("../../docs/library.md", import.meta.url), "utf8")
    const [, section = ""] = page.split("## A model of the AI SDK")
    const [, code = ""] = /```ts\n(.*?)```/su.exec(section) ?? []
    expect(code).toContain("createSpoke")
    const told: Array<unknown> = []
    const given = {
      createOpenAI: (settings: object) =>
        createOpenAI({ ...settings, baseURL: stub.url, apiKey: "sk-canary" }),
      createSpoke: (settings: object) =>
        createSpoke({ ...settings, dataDir: Path.join(root, "docs"), workers: false }),
      console: { log: (text: unknown) => told.push(text) }
    }
    const statements = code.replaceAll(/^import .*$/gmu, "")
    const { constructor: Program } = Object.getPrototypeOf(async () => undefined)
    await new Program(...Object.keys(given), statements)(...Object.values(given))
    expect(told).toEqual(["At eighty degrees."])
  }, 60_000)

  it("fails as any provider does, and its key is told nobody", async () => {
    stub.reset()
    stub.otherwise = { text: "Half of an answer", breaks: "reset" }
    const failure: unknown = await agent.chat({ message: "Hello" }).catch((error: unknown) => error)
    expect(failure).toMatchObject({ code: "TURN_FAILED" })
    expect(JSON.stringify(failure)).not.toContain("canary")
    stub.otherwise = { status: 401 }
    await expect(agent.chat({ message: "Hello" })).rejects.toMatchObject({ code: "TURN_FAILED" })
  }, 30_000)
})

describe("A model that is made by hand, in the older version", () => {
  const finish = {
    type: "finish",
    finishReason: "stop",
    usage: { inputTokens: 30, outputTokens: 2, cachedInputTokens: 10 }
  }
  const delta = (text: string) => ({ type: "text-delta", id: "1", delta: text })
  const calls: Array<AiSdkCall> = []
  let answer: (call: AiSdkCall) => PromiseLike<{ readonly stream: ReadableStream<unknown> }> = () =>
    Promise.reject(new Error("not scripted"))
  const says = (...parts: ReadonlyArray<unknown>) => {
    answer = () => Promise.resolve({ stream: streamed(parts) })
  }
  let spoke: Spoke
  let agent: ReturnType<Spoke["agent"]>

  beforeAll(async () => {
    const model: AiSdkModel = {
      specificationVersion: "v2",
      provider: "hand",
      modelId: "made",
      doStream: (call) => {
        calls.push(call)
        return answer(call)
      }
    }
    const next = tool({
      description: "Counts",
      input: Schema.Struct({ from: Schema.Number }),
      execute: () => 1
    })
    ;({ spoke } = await opened("by-hand", model, { next }))
    agent = spoke.agent((await spoke.agents.create({ name: "Without tools" })).id)
  }, 60_000)
  afterAll(() => spoke.close())

  it("answers; one that ends without a finish has failed", async () => {
    says({ type: "stream-start", warnings: [] }, delta("Hel"), delta("lo."), finish)
    expect((await agent.chat({ message: "Hi" })).reply).toBe("Hello.")
    says(delta("Hel"))
    await expect(agent.chat({ message: "Hi" })).rejects.toMatchObject({ code: "TURN_FAILED" })
  }, 30_000)

  it("is streamed as it comes, and counted with its tokens under its own name", async () => {
    says(delta("Hel"), delta("lo."), finish)
    const before = await agent.usage()
    let text = ""
    for await (const part of agent.stream({ message: "Hi" }))
      if (part.type === "text-delta") text += part.delta
    expect(text).toBe("Hello.")
    const { tokens } = await agent.usage()
    expect([tokens.input - before.tokens.input, tokens.output - before.tokens.output]).toEqual([30, 2])
  }, 30_000)

  it("declares tools that may not be called any more, because the prompt has their calls", async () => {
    calls.length = 0
    const number = spoke.agent((await spoke.agents.create({ name: "Counting", tools: ["next"] })).id)
    const finished = { ...finish, finishReason: "tool-calls" }
    answer = () => {
      const call = {
        type: "tool-call",
        toolCallId: `c${calls.length}`,
        toolName: "next",
        input: '{"from":0}'
      }
      return Promise.resolve({
        stream: streamed(calls.at(-1)?.toolChoice ? [delta("Six."), finish] : [call, finished])
      })
    }
    expect((await number.chat({ message: "Count." })).reply).toBe("Six.")
    const last = calls.at(-1)
    expect([last?.toolChoice, last?.tools?.map(({ name }) => name)]).toEqual([{ type: "none" }, ["next"]])
    expect(calls.slice(0, -1).every((call) => call.toolChoice === undefined)).toBe(true)
  })

  it("is asked for an object of a schema, and once more for one that does not fit", async () => {
    const object = { type: "object", properties: { degrees: { type: "number" } }, required: ["degrees"] }
    const texts = ["It is warm.", '{"degrees":21}']
    answer = () => Promise.resolve({ stream: streamed([delta(texts.shift() ?? ""), finish]) })
    calls.length = 0
    const { object: told } = await agent.chat({ message: "How warm is it?", responseSchema: object })
    expect(told).toEqual({ degrees: 21 })
    expect(calls).toHaveLength(2)
    expect(calls[0]?.responseFormat).toMatchObject({ type: "json", schema: { required: ["degrees"] } })
  }, 30_000)

  it("is asked again after a refusal that passes, and not after one that stays or after its first text", async () => {
    const limited = Object.assign(new Error("sk-canary"), { statusCode: 429, responseHeaders: {} })
    let tries = 0
    answer = () => {
      tries += 1
      return tries < 3
        ? Promise.reject(limited)
        : Promise.resolve({ stream: streamed([delta("Yes."), finish]) })
    }
    expect((await agent.chat({ message: "Hi" })).reply).toBe("Yes.")
    expect(tries).toBe(3)
    const spent = {
      statusCode: 429,
      responseBody: '{"error":{"code":"insufficient_quota","message":"sk-canary"}}'
    }
    for (const refusal of [spent, { statusCode: 400 }, new Error("sk-canary"), "sk-canary", null]) {
      tries = 0
      answer = () => {
        tries += 1
        return Promise.reject(refusal)
      }
      const failure: unknown = await agent.chat({ message: "Hi" }).catch((error: unknown) => error)
      expect(failure).toMatchObject({ code: "TURN_FAILED" })
      expect(JSON.stringify(failure)).not.toContain("canary")
      expect(tries).toBe(1)
    }
    tries = 0
    answer = () => {
      tries += 1
      return Promise.resolve({ stream: streamed([delta("Half"), { type: "error", error: limited }]) })
    }
    await expect(agent.chat({ message: "Hi" })).rejects.toMatchObject({ code: "TURN_FAILED" })
    expect(tries).toBe(1)
  }, 60_000)

  it("fails where its client breaks the rules, without taking the process along", async () => {
    const broken: ReadonlyArray<() => unknown> = [
      () => {
        throw new Error("sk-canary")
      },
      () => ({}),
      () => ({ stream: null }),
      () => ({ stream: streamed([null]) }),
      () => ({ stream: streamed([{ type: "text-delta", delta: 7 }]) }),
      () => ({ stream: streamed([{ type: "tool-call", toolCallId: "1" }]) }),
      () => ({
        stream: new ReadableStream({
          pull: () => {
            throw new Error("sk-canary")
          }
        })
      })
    ]
    for (const make of broken) {
      // What a program without types may give.
      answer = async () => Object(make())
      await expect(agent.chat({ message: "Hi" })).rejects.toMatchObject({ code: "TURN_FAILED" })
    }
  }, 60_000)
})

describe("A model that never ends", () => {
  it("is aborted when the turn's time is up, whatever it makes of that", async () => {
    const signals: Array<AbortSignal> = []
    let cancelled = 0
    const { agent, spoke } = await opened(
      "hanging",
      {
        specificationVersion: "v3",
        provider: "hand",
        modelId: "hanging",
        doStream: ({ abortSignal }) => {
          signals.push(abortSignal)
          if (signals.length === 1) return new Promise(() => undefined)
          return Promise.resolve({
            stream: new ReadableStream({
              // It never says that it has ended.
              cancel: () => {
                cancelled += 1
                return new Promise(() => undefined)
              }
            })
          })
        }
      },
      {},
      { SPOKE_TURN_TIMEOUT: "1 second" }
    )
    await expect(agent.chat({ message: "Hi" })).rejects.toMatchObject({ code: "RUNTIME_TIMEOUT" })
    await expect(agent.chat({ message: "Hi" })).rejects.toMatchObject({ code: "RUNTIME_TIMEOUT" })
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true])
    expect(cancelled).toBe(1)
    await spoke.close()
  }, 60_000)
})

const streamed = (parts: ReadonlyArray<unknown>) =>
  new ReadableStream<unknown>({
    start: (controller) => {
      for (const part of parts) controller.enqueue(part)
      controller.close()
    }
  })
