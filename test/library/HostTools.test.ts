/** Functions of the host as tools of its agents: whatever an HTTP tool may be, within the same bounds. */
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { z } from "zod"
import {
  createSpoke,
  type Spoke,
  SpokeError,
  type StandardInput,
  tool,
  type ToolCallContext
} from "../../src/index.ts"
import * as ModelStub from "../servers/ModelStub.ts"

const root = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-tools-"))
const scope = Effect.runSync(Scope.make())
let stub: ModelStub.ModelStub
let spoke: Spoke

const contexts: Array<ToolCallContext> = []
const inputs: Array<unknown> = []
let aborted = 0

/** Never answers; tells when it is told to stop. */
const waiting = (_: unknown, { signal }: ToolCallContext) =>
  new Promise<never>(() => {
    signal.addEventListener("abort", () => {
      aborted += 1
    })
  })

const tools = {
  orderStatus: tool({
    description: "Tells where an order is.",
    input: Schema.Struct({ id: Schema.String, days: Schema.optional(Schema.NumberFromString) }),
    execute: (input, context) => {
      const days: number | undefined = input.days
      contexts.push(context)
      inputs.push(input)
      return { id: input.id, status: "shipped", days }
    }
  }),
  stock: tool({
    description: "Counts what is there.",
    input: z.object({ article: z.string().transform((text) => text.length) }),
    execute: async ({ article }) => {
      const length: number = article
      return [length]
    }
  }),
  broken: tool({
    description: "Fails.",
    input: z.object({}),
    execute: () => {
      throw new Error("The warehouse is closed.")
    }
  }),
  circular: tool({
    description: "Answers what is no JSON.",
    input: z.object({}),
    execute: () => {
      const self: { self?: unknown } = {}
      self.self = self
      return self
    }
  }),
  slow: tool({ description: "Waits.", input: z.object({}), execute: waiting, timeout: 1 })
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
  contexts.length = 0
  inputs.length = 0
  aborted = 0
})

const rejection = async (promise: Promise<unknown>): Promise<SpokeError> => {
  const thrown: unknown = await promise.then(
    () => undefined,
    (cause: unknown) => cause
  )
  if (!(thrown instanceof SpokeError)) throw new Error("Nothing was rejected.", { cause: thrown })
  return thrown
}

const refusal = (make: () => unknown): string => {
  try {
    make()
  } catch (cause) {
    if (cause instanceof SpokeError && cause.code === "INVALID_CONFIG") return cause.message
    throw cause
  }
  throw new Error("Nothing was thrown.")
}

/** A turn in which the model calls `name` once and then answers. */
const turn = async (name: string, argument: unknown) => {
  const agent = spoke.agent((await spoke.agents.create({ name: "Shop", tools: names })).id)
  stub.script.push({ calls: [{ name, arguments: JSON.stringify(argument) }] }, { text: "Done." })
  const result = await agent.chat({ message: "Where is my order?" })
  const { events } = await agent.runs.get(result.runId ?? "")
  return {
    result,
    events: events.filter(({ type }) => type.startsWith("tool.")),
    told: JSON.stringify(stub.requests.at(-1)?.body)
  }
}

describe("A tool of the host", () => {
  it("is offered to the model with the JSON Schema of its input, and called with what the schema makes of it", async () => {
    const { events, result, told } = await turn("orderStatus", { id: "A-17", days: "3" })
    expect(result.reply).toBe("Done.")
    expect(inputs).toEqual([{ id: "A-17", days: 3 }])
    expect(JSON.stringify(stub.requests[0]?.body)).toContain("Tells where an order is.")
    expect(JSON.stringify(stub.requests[0]?.body)).toContain('"required":["id"]')
    expect(told).toContain("shipped")
    expect(events.map(({ type }) => type)).toEqual(["tool.started", "tool.completed"])
    expect(events[1]?.payload).toMatchObject({
      tool: "orderStatus",
      output: { id: "A-17", status: "shipped" }
    })
    const [context] = contexts
    expect([context?.runId, context?.conversationId]).toEqual([result.runId, result.conversationId])
    expect(context?.signal.aborted).toBe(false)
  })

  it("takes a schema of zod, whose transformations it applies", async () => {
    const { events } = await turn("stock", { article: "hats" })
    expect(events[1]?.payload).toMatchObject({ output: [4] })
  })

  it("is not called with what its schema refuses: the model is told what is wrong", async () => {
    const { events } = await turn("orderStatus", { id: "A-17", days: "many" })
    expect(inputs).toEqual([])
    expect(events[1]?.type).toBe("tool.failed")
    expect(events[1]?.payload).toMatchObject({ code: "INVALID_ARGUMENTS" })
    expect(JSON.stringify(events[1]?.payload)).toContain("days")
  })

  it("may throw and may answer nonsense: the turn goes on", async () => {
    const { events, result } = await turn("broken", {})
    expect(result.reply).toBe("Done.")
    expect(events[1]?.payload).toMatchObject({ message: "TOOL_FAILED: The warehouse is closed." })
    const circular = await turn("circular", {})
    expect(circular.events[1]?.payload).toMatchObject({
      message: "TOOL_FAILED: the answer cannot be written as JSON"
    })
  })

  it("is aborted when its time is up", async () => {
    const { events } = await turn("slow", {})
    expect(events[1]?.payload).toMatchObject({ code: "TOOL_TIMEOUT" })
    expect(aborted).toBe(1)
  })

  it("is aborted when the turn is stopped", async () => {
    const { id } = await spoke.agents.create({ name: "Shop", tools: ["slow"] })
    const agent = spoke.agent(id)
    stub.script.push({ text: "One moment.", calls: [{ name: "slow", arguments: "{}" }] })
    for await (const part of agent.stream({ message: "Wait" })) {
      if (part.type === "data-agent-run-event" && part.data.type === "tool.started") {
        void agent.runs.stop(part.data.runId)
      }
    }
    expect(aborted).toBe(1)
  })

  it("is switched on by name, shown with the agent, and changed with it", async () => {
    const made = await spoke.agents.create({ name: "Shop", tools: ["stock"] })
    expect(made.tools).toEqual(["stock"])
    await spoke.agent(made.id).chat({ message: "Hello" })
    const offered = JSON.stringify(stub.requests[0]?.body.tools)
    expect([offered.includes("stock"), offered.includes("orderStatus")]).toEqual([true, false])
    const changed = await spoke.agents.update(made.id, { tools: ["orderStatus"] })
    expect(changed.tools).toEqual(["orderStatus"])
    expect((await spoke.agents.update(made.id, { tools: null })).tools).toEqual([])
    expect((await spoke.agents.create({ name: "None" })).tools).toEqual([])
    const { code, details } = await rejection(spoke.agents.create({ name: "Shop", tools: ["orderstatus"] }))
    expect(code).toBe("VALIDATION_ERROR")
    expect(JSON.stringify(details)).toContain("did you mean orderStatus?")
  })
})

/** A library that says nothing of JSON Schema. */
const plain: StandardInput<{ readonly id: string }> = {
  "~standard": {
    version: 1,
    vendor: "plain",
    validate: () => ({ value: { id: "1" } })
  }
}

const notUsed: ToolCallContext = {
  signal: new AbortController().signal,
  agentId: "agt_1",
  runId: "run_1",
  conversationId: null,
  endUserId: null,
  progress: () => {}
}

describe("tool()", () => {
  it("refuses a schema that cannot be written as JSON Schema, and takes one beside it", () => {
    const options = { description: "Plain.", input: plain, execute: () => null }
    expect(refusal(() => tool(options))).toBe(
      "The input schema of a tool cannot be written as JSON Schema (plain does not support it): " +
        "pass its JSON Schema as jsonSchema."
    )
    expect(tool({ ...options, jsonSchema: { type: "object" } }).parameters).toEqual({ type: "object" })
    const date = z.object({ at: z.date() })
    expect(refusal(() => tool({ ...options, input: date }))).toContain("pass its JSON Schema as jsonSchema")
    const map = Schema.Struct({ at: Schema.SymbolFromSelf })
    expect(refusal(() => tool({ ...options, input: map }))).toContain("pass its JSON Schema as jsonSchema")
    expect(refusal(() => tool({ ...options, input: Schema.String }))).toContain('"type": "object"')
  })
})

describe("A schema with a name", () => {
  class Order extends Schema.Class<Order>("Order")({
    id: Schema.String,
    days: Schema.optional(Schema.Int)
  }) {}
  const named = z.object({ id: z.string() }).meta({ id: "Named" })

  it("is a tool's input, as of a class", async () => {
    const { call, parameters } = tool({ description: "Of a class.", input: Order, execute: (order) => order })
    expect(parameters).toMatchObject({
      type: "object",
      required: ["id"],
      properties: { id: { type: "string" } }
    })
    expect(parameters).not.toHaveProperty("$ref")
    expect(await call({ id: "7" }, notUsed)).toEqual({ answer: new Order({ id: "7" }) })
    expect(tool({ description: "", input: named, execute: () => null }).parameters).toMatchObject({
      type: "object",
      properties: { id: { type: "string" } }
    })
  })
})

describe("createSpoke", () => {
  it("refuses a setting that nobody knows, with the one that was probably meant", async () => {
    const settings: object = { dataDirr: "x", openai: { apikey: "sk", apiKey: "sk" }, banana: 1 }
    const { code, details, message } = await rejection(createSpoke(settings))
    expect(code).toBe("INVALID_CONFIG")
    expect(message).toBe(
      "Invalid settings: unknown field dataDirr; did you mean dataDir?; unknown field banana; " +
        "unknown field openai.apikey; did you mean apiKey?"
    )
    expect(details?.["issues"]).toHaveLength(3)
  })

  it("refuses a tool whose name no model takes", async () => {
    const { message } = await rejection(createSpoke({ tools: { "order status": tools.stock } }))
    expect(message).toContain("A tool's name must be")
  })
})
