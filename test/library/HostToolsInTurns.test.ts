/** The contract of tools, on functions of the host: scrubbed, bounded, concurrent, aborted, handed off. */
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { toStandardJsonSchema } from "@valibot/to-json-schema"
import * as Schema from "effect/Schema"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as v from "valibot"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { z } from "zod"
import { createSpoke, type Spoke, type StreamPart, tool, type ToolCallContext } from "../../src/index.ts"
import * as ModelStub from "../servers/ModelStub.ts"

const root = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-host-tools-"))
const scope = Effect.runSync(Scope.make())
const secret = "crm-4711-correct-horse"
let stub: ModelStub.ModelStub
let spoke: Spoke

let running = 0
let mostAtOnce = 0
let calls = 0
let arrived = () => {}
let hasArrived = Promise.resolve()
let aborted: Array<unknown> = []

const input = z.object({})

/** Ends when as many run as may run at once, or when nothing more begins. */
const together = async () => {
  calls += 1
  running += 1
  mostAtOnce = Math.max(mostAtOnce, running)
  await new Promise((resolve) => setTimeout(resolve, 20))
  running -= 1
  return calls
}

const waiting = (_: unknown, { progress, signal }: ToolCallContext) =>
  new Promise<never>(() => {
    progress("waiting")
    signal.addEventListener("abort", () => {
      aborted.push(signal.reason)
      progress("aborted")
    })
    arrived()
  })

const telling = (_: unknown, { progress }: ToolCallContext) => {
  progress(`Half done with ${secret}`)
  for (let more = 0; more < 200; more++) progress("x".repeat(600))
  return "done"
}

const tools = {
  leaky: tool({ description: "Leaks.", input, execute: () => ({ [secret]: [`Bearer ${secret}`] }) }),
  shouting: tool({
    description: "Throws.",
    input,
    execute: () => {
      throw new Error(`401 for ${secret}`)
    }
  }),
  together: tool({ description: "Runs beside others.", input, execute: together }),
  long: tool({ description: "Answers a lot.", input, execute: () => "x".repeat(40_000) }),
  tooLong: tool({ description: "Answers too much.", input, execute: () => "x".repeat(300_000) }),
  waiting: tool({ description: "Waits.", input, execute: waiting }),
  telling: tool({ description: "Tells.", input, execute: telling }),
  price: tool({
    description: "Tells a price.",
    input: toStandardJsonSchema(v.object({ article: v.string(), count: v.pipe(v.number(), v.minValue(1)) })),
    execute: ({ article, count }) => {
      const text: string = article
      const number: number = count
      return `${number} ${text}`
    }
  })
}

const names = Object.keys(tools)

beforeAll(async () => {
  stub = await Effect.runPromise(Scope.extend(ModelStub.make, scope))
  spoke = await createSpoke({
    dataDir: Path.join(root, "data"),
    openai: { apiKey: "sk-stub-4711", baseUrl: stub.url, embeddingModel: "offline" },
    tools
  })
}, 60_000)

afterAll(async () => {
  await spoke.close()
  Fs.rmSync(root, { recursive: true, force: true })
  await Effect.runPromise(Scope.close(scope, Exit.void))
})

beforeEach(() => {
  stub.reset()
  running = mostAtOnce = calls = 0
  aborted = []
  hasArrived = new Promise((resolve) => {
    arrived = resolve
  })
})

const shop = async () => spoke.agent((await spoke.agents.create({ name: "Shop", tools: names })).id)

const call = (name: string, argument: unknown = {}) => ({ name, arguments: JSON.stringify(argument) })

/** A turn in which the model makes `asked` at once and then answers; with all that anybody got to see of it. */
const turn = async (asked: ReadonlyArray<ReturnType<typeof call>>, more = {}) => {
  const agent = await shop()
  stub.script.push({ calls: [...asked] }, { text: "Done." })
  const parts: Array<StreamPart> = []
  let runId = ""
  for await (const part of agent.stream({ message: "Go", ...more })) {
    parts.push(part)
    if (part.type === "data-agent-run-event") ({ runId } = part.data)
  }
  const { events } = await agent.runs.get(runId, { limit: 100 })
  return { parts, events, told: JSON.stringify(stub.requests.at(-1)?.body) }
}

describe("A function of the host, in a turn", () => {
  it("has credentials of the request taken out of what it answers and throws, wherever that goes", async () => {
    for (const name of ["leaky", "shouting"]) {
      const { events, parts, told } = await turn([call(name)], { toolCredentials: { crm: secret } })
      expect(events.map(({ type }) => type)).toContain(name === "leaky" ? "tool.completed" : "tool.failed")
      expect(JSON.stringify([parts, events, told])).not.toContain(secret)
    }
  })

  it("runs beside others of the same round, four at a time", async () => {
    const { events } = await turn(Array.from({ length: 8 }, () => call("together")))
    expect([calls, mostAtOnce]).toEqual([8, 4])
    expect(events.filter(({ type }) => type === "tool.completed")).toHaveLength(8)
  })

  it("is called sixteen times a round at most, and the model is told of the rest", async () => {
    const { events } = await turn(Array.from({ length: 18 }, () => call("together")))
    expect(calls).toBe(16)
    const refused = events.filter(({ type }) => type === "tool.failed")
    expect(refused.map(({ payload }) => payload?.["code"])).toEqual(["TOOL_FAILED", "TOOL_FAILED"])
  })

  it("is offered in eight rounds at most: in the last one the model has to answer", async () => {
    const agent = await shop()
    stub.otherwise = { calls: [call("together")] }
    const { reply } = await agent.chat({ message: "Go" })
    expect([calls, stub.requests.length, reply]).toEqual([7, 8, ""])
    expect(stub.requests.at(-1)?.body.tools).toBeUndefined()
  })

  it("may answer 256 KiB, of which the model is shown 32", async () => {
    const { events, told } = await turn([call("long"), call("tooLong")])
    expect(told).toContain("The rest of the answer was cut off.")
    expect(told.length).toBeLessThan(40_000)
    const failed = events.find(({ type }) => type === "tool.failed")
    expect(failed?.payload?.["message"]).toBe("TOOL_FAILED: the answer is longer than 262144 characters")
  })

  it("is aborted when the caller of a turn that stores nothing has left", async () => {
    const agent = await shop()
    stub.script.push({ calls: [call("waiting")] })
    const leaving = new AbortController()
    const asked = agent.chat({ message: "Go", persist: false }, { signal: leaving.signal })
    await hasArrived
    leaving.abort(new Error("gone"))
    await expect(asked).rejects.toThrow("gone")
    await expect.poll(() => aborted.length).toBe(1)
  })

  it("tells of its progress while it runs, scrubbed and bounded, and what it says later reaches nobody", async () => {
    const { events, parts } = await turn([call("telling")], { toolCredentials: { crm: secret } })
    const outputs = parts.flatMap((part) => (part.type === "tool-output-available" ? [part] : []))
    const [first, second] = outputs
    expect(first).toMatchObject({
      preliminary: true,
      output: { progress: expect.stringContaining("Half done") }
    })
    expect(JSON.stringify(first)).not.toContain(secret)
    expect(second?.output).toEqual({ progress: "x".repeat(500) })
    expect(outputs).toHaveLength(101)
    expect(outputs.at(-1)).toEqual({
      type: "tool-output-available",
      toolCallId: first?.toolCallId,
      output: "done",
      dynamic: true
    })
    expect(JSON.stringify(events)).not.toContain("Half done")
  })

  it("shows nothing of its progress to a key that may not read traces", async () => {
    const agent = await shop()
    const key = (await agent.keys.create({ name: "Page", permissions: ["chat"] })).secret
    stub.script.push({ calls: [call("telling")] }, { text: "Done." })
    const response = await spoke.fetch(
      new Request("http://spoke.test/v1/chat/stream", {
        method: "POST",
        headers: { "x-api-key": key, "content-type": "application/json" },
        body: '{"message": "Go"}'
      })
    )
    const text = await response.text()
    expect(text).toContain("tool-output-available")
    expect(text).not.toContain("progress")
  })

  it("stands beside the tool that hands over to a human, and both are called", async () => {
    const agent = await shop()
    const key = (await agent.keys.create({ name: "Page", permissions: ["*"] })).secret
    const post = async (path: string, body: unknown) => {
      const headers = { "x-api-key": key, "content-type": "application/json" }
      const request = new Request(`http://spoke.test${path}`, {
        method: "POST",
        headers,
        body: JSON.stringify(body)
      })
      return (await spoke.fetch(request)).text()
    }
    const { sessionId } = JSON.parse(await post("/api/sdk/init", {})).data
    stub.script.push(
      { calls: [call("together"), call("hand_off_to_human", { reason: "asked" })] },
      { text: "Somebody will answer." }
    )
    const said = await post("/api/v1/chat/stream", { sessionId, message: "A human, please" })
    expect(calls).toBe(1)
    expect(said).toContain("HUMAN_REQUESTED")
    expect(said).toContain("Somebody will answer.")
    const next = await post("/api/v1/chat/stream", { sessionId, message: "Hello?" })
    expect(next).toContain('"state":"HUMAN_REQUESTED"')
  })

  it("takes a schema of valibot", async () => {
    const { events } = await turn([call("price", { article: "hats", count: 2 })])
    expect(events.find(({ type }) => type === "tool.completed")?.payload?.["output"]).toBe("2 hats")
    const refused = await turn([call("price", { article: "hats", count: 0 })])
    expect(refused.events.find(({ type }) => type === "tool.failed")?.payload?.["code"]).toBe(
      "INVALID_ARGUMENTS"
    )
  })
})

describe("responseSchema", () => {
  it("takes a class of Effect Schema", async () => {
    class Found extends Schema.Class<Found>("Found")({ article: Schema.String, count: Schema.Int }) {}
    stub.script.push({ text: '{"article": "hats", "count": 3}' })
    const { object } = await (await shop()).chat({ message: "What?", responseSchema: Found })
    const count: number = object.count
    expect([object, count]).toEqual([new Found({ article: "hats", count: 3 }), 3])
  })

  it("takes a schema of valibot", async () => {
    stub.script.push({ text: '{"article": "hats"}' })
    const { object } = await (
      await shop()
    ).chat({
      message: "What?",
      responseSchema: toStandardJsonSchema(
        v.object({
          article: v.pipe(
            v.string(),
            v.transform((text) => text.length)
          )
        })
      )
    })
    const length: number = object.article
    expect(length).toBe(4)
  })
})
