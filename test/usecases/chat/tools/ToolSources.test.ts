/** One suite over every source of tools: what holds for tools holds for all of them, and each stands by itself. */
import { expect, layer } from "@effect/vitest"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { ModelPart } from "../../../../src/capabilities/ModelRuntime.ts"
import { layerOf } from "../../../../src/capabilities/ToolSources/BuiltIn.ts"
import { httpSource } from "../../../../src/capabilities/ToolSources/Http.ts"
import { inProcessSource } from "../../../../src/capabilities/ToolSources/InProcess.ts"
import { mcpSource } from "../../../../src/capabilities/ToolSources/Mcp.ts"
import type { ReadScope } from "../../../../src/domain/accounts/Access.ts"
import type { HostTool } from "../../../../src/domain/agents/HostTool.ts"
import { newToolId, ToolDefinition } from "../../../../src/domain/agents/Tool.ts"
import type { TurnPart } from "../../../../src/domain/chat/ChatTurn.ts"
import { ToolStore } from "../../../../src/store/agents/Tools.ts"
import { ChatTurn } from "../../../../src/usecases/chat/ChatTurn.ts"
import * as Fixtures from "../../../Fixtures.ts"
import { reset, TestDatabase } from "../../../TestDatabase.ts"
import { toolServer } from "../ToolServer.ts"
import { request, type Reply, says, Script, turnLayer } from "../TurnHarness.ts"

const credential = "crm-4711-correct-horse"

let aborted = 0

const hostTool = (call: HostTool["call"]): HostTool => ({
  description: "Finds.",
  parameters: { type: "object", properties: { q: { type: "string" } }, required: ["q"] },
  timeoutMillis: 1_000,
  call
})

const functions = {
  host: hostTool(async ({ q }) => ({ answer: { q, said: `Bearer ${credential}` } })),
  host_slow: hostTool(
    (_, { signal }) =>
      new Promise((_, reject) => {
        signal.addEventListener("abort", () => {
          aborted += 1
          reject(signal.reason)
        })
      })
  )
}

const sources = {
  http: httpSource,
  mcp: mcpSource,
  "in-process": Effect.succeed(inProcessSource(functions))
}
type Source = keyof typeof sources
const names: ReadonlyArray<Source> = ["http", "mcp", "in-process"]

/** What the model calls the quick and the slow tool of each. */
const called: Record<Source, { readonly quick: string; readonly slow: string }> = {
  http: { quick: "web", slow: "web_slow" },
  mcp: { quick: "docs_find_it", slow: "stuck_find_it" },
  "in-process": { quick: "host", slow: "host_slow" }
}

const give = (scope: ReadScope, name: string, definition: unknown) =>
  Effect.gen(function* () {
    const tools = yield* ToolStore
    const decoded = yield* Schema.decodeUnknown(ToolDefinition)(definition)
    return yield* tools.insert(scope, { id: yield* newToolId, name, definition: decoded, secret: null })
  })

/** An agent with a quick and a slow tool of every source. */
const shop = Effect.gen(function* () {
  const scope = yield* Fixtures.agent()
  const server = yield* toolServer
  const { parameters } = functions.host
  const auth = { kind: "bearer", slot: "crm" }
  yield* give(scope, "web", { parameters, http: { url: `${server.url}/x` }, auth })
  yield* give(scope, "web_slow", { parameters, http: { url: `${server.url}/hang` }, timeout: 1 })
  yield* give(scope, "docs", { mcp: { url: `${server.url}/mcp` }, auth })
  yield* give(scope, "stuck", { mcp: { url: `${server.url}/mcp-stuck` }, auth, timeout: 1 })
  const sql = yield* SqlClient.SqlClient
  yield* sql`update agents set tools = '{host,host_slow}' where id = ${scope.agentId}`
  return scope
})

const asks = (...tools: ReadonlyArray<string>): Reply => {
  const parts = tools.map((name, place): ModelPart => ({
    _tag: "ToolCall",
    id: `call_${place}`,
    name,
    input: { q: "hats" },
    rawInput: ""
  }))
  return () =>
    Stream.fromIterable([
      ...parts,
      { _tag: "Finish", reason: "tool-calls", inputTokens: 1, outputTokens: 1 } as const
    ])
}

const turn = (scope: ReadScope, ...tools: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const { reply } = yield* Script
    const replies = [asks(...tools), says("Done.")]
    let place = 0
    yield* Ref.set(reply, (asked) => (replies[place++] ?? says("Done."))(asked))
    const chat = yield* ChatTurn
    const { parts } = yield* chat.start(scope, request({ toolCredentials: { crm: credential } }))
    return Chunk.toReadonlyArray(yield* Stream.runCollect(parts))
  })

const eventTypes = (parts: ReadonlyArray<TurnPart>) =>
  parts.flatMap((part) => (part._tag === "RunEvent" ? [part.event.type] : []))

const process = (registered: ReadonlyArray<Source>) =>
  turnLayer(undefined, undefined, undefined, layerOf(registered.map((name) => sources[name])))

const onFreshData =
  <P, PE, PR>(services: Layer.Layer<P, PE, PR>) =>
  <A, E, R>(test: Effect.Effect<A, E, R>) =>
    Effect.zipRight(reset, Effect.provide(test, services))

for (const name of names) {
  const { quick, slow } = called[name]
  layer(TestDatabase, { excludeTestServices: true })(`Tools of the source ${name}`, (it) => {
    it.scoped("answer with what the model asked, and no credential is left in it", () =>
      Effect.gen(function* () {
        const parts = yield* turn(yield* shop, quick)
        expect(eventTypes(parts)).toContain("tool.completed")
        const [result] = parts.flatMap((part) => (part._tag === "ToolResult" ? [JSON.stringify(part)] : []))
        expect(result).toContain("hats")
        expect(result).toContain("[redacted]")
        const { requests } = yield* Script
        expect(JSON.stringify([parts, yield* Ref.get(requests)])).not.toContain(credential)
        const [asked] = yield* Ref.get(requests)
        const declared = asked?.tools.find((tool) => tool.name === quick)
        expect(declared?.parameters).toEqual(functions.host.parameters)
      }).pipe(onFreshData(process(names)))
    )

    it.scoped("get only arguments that match their declared schema", () =>
      Effect.gen(function* () {
        const scope = yield* shop
        const { reply } = yield* Script
        const wrong: ModelPart = { _tag: "ToolCall", id: "call_0", name: quick, input: {}, rawInput: "" }
        let place = 0
        yield* Ref.set(reply, (asked) =>
          place++ === 0
            ? Stream.make(wrong, {
                _tag: "Finish",
                reason: "tool-calls",
                inputTokens: 1,
                outputTokens: 1
              } as const)
            : says("Done.")(asked)
        )
        const chat = yield* ChatTurn
        const { parts } = yield* chat.start(scope, request({ toolCredentials: { crm: credential } }))
        const told = Chunk.toReadonlyArray(yield* Stream.runCollect(parts))
        expect(told.flatMap((part) => (part._tag === "ToolFailure" ? [part.message] : []))).toEqual([
          "INVALID_ARGUMENTS: /q is missing"
        ])
      }).pipe(onFreshData(process(names)))
    )

    it.scoped("are interrupted at their time limit, and run concurrently", () =>
      Effect.gen(function* () {
        aborted = 0
        const scope = yield* shop
        const began = performance.now()
        const parts = yield* turn(scope, slow, slow, slow, quick)
        expect(performance.now() - began).toBeLessThan(2_900)
        const failures = parts.flatMap((part) => (part._tag === "ToolFailure" ? [part.message] : []))
        expect(failures).toEqual(
          Array.from({ length: 3 }, () => "TOOL_TIMEOUT: no whole answer within 1 seconds")
        )
        expect(eventTypes(parts).filter((type) => type === "tool.completed")).toHaveLength(1)
        expect(aborted).toBe(name === "in-process" ? 3 : 0)
      }).pipe(onFreshData(process(names)))
    )
  })

  layer(TestDatabase, { excludeTestServices: true })(`Without the source ${name}`, (it) => {
    it.scoped("its tools are not offered, which the trace records, and all other tools answer", () =>
      Effect.gen(function* () {
        const others = names.filter((other) => other !== name)
        yield* Effect.gen(function* () {
          const scope = yield* shop
          const parts = yield* turn(scope, ...names.map((one) => called[one].quick))
          const outcome = new Map(
            parts.flatMap((part) => (part._tag === "ToolCall" ? [[part.id, part.name] as const] : []))
          )
          const answered = parts.flatMap((part) => (part._tag === "ToolResult" ? [outcome.get(part.id)] : []))
          expect(answered.toSorted()).toEqual(others.map((one) => called[one].quick).toSorted())
          const { requests } = yield* Script
          const [asked] = yield* Ref.get(requests)
          const told = asked?.tools.map((tool) => tool.name).toSorted()
          expect(told).toEqual(others.flatMap((one) => Object.values(called[one])).toSorted())
          const missing = parts.flatMap((part) =>
            part._tag === "RunEvent" && part.event.label.endsWith("is not available")
              ? [part.event.payload?.["code"]]
              : []
          )
          expect(missing).toEqual(["UNKNOWN_TOOL", "UNKNOWN_TOOL"])
        }).pipe(onFreshData(process(others)))
      })
    )
  })
}
