/** The functions that a model is offered: their names, and how many there are. */
import { describe, expect, it as test, layer } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { toolCall } from "../../../../src/capabilities/ModelRuntime/ToolCalls.ts"
import { layerOf } from "../../../../src/capabilities/ToolSources/BuiltIn.ts"
import { httpSource } from "../../../../src/capabilities/ToolSources/Http.ts"
import type { SourcedTool, ToolSource } from "../../../../src/capabilities/ToolSources.ts"
import type { ReadScope } from "../../../../src/domain/accounts/Access.ts"
import { newToolId, ToolDefinition } from "../../../../src/domain/agents/Tool.ts"
import { ToolStore } from "../../../../src/store/agents/Tools.ts"
import { ChatTurn } from "../../../../src/usecases/chat/ChatTurn.ts"
import { functionNames, isFunctionOf } from "../../../../src/usecases/chat/tools/FunctionNames.ts"
import * as Fixtures from "../../../Fixtures.ts"
import { reset, TestDatabase } from "../../../TestDatabase.ts"
import { request, says, Script, turnLayer } from "../TurnHarness.ts"

const long = "x".repeat(80)

/** Servers and the functions that they list. */
const listed: Record<string, ReadonlyArray<string>> = {
  docs: Array.from({ length: 64 }, (_, at) => `find${at}`),
  files: Array.from({ length: 64 }, (_, at) => `read${at}`),
  twins: [`${long}_one`, `${long}_two`, "same", "same"]
}

const servers: ToolSource = {
  name: "mcp",
  offered: new Set(),
  has: (tool) => tool._tag === "Configured" && tool.definition.mcp !== undefined,
  open: ({ name }) =>
    Effect.succeed(
      (listed[name] ?? []).map((one): SourcedTool => ({
        declaration: { name: `${name}_${one}`, description: "Finds.", parameters: { type: "object" } },
        timeoutMillis: 1_000,
        call: () => Effect.succeed(one)
      }))
    )
}

const give = (scope: ReadScope, name: string, definition: unknown) =>
  Effect.gen(function* () {
    const tools = yield* ToolStore
    const decoded = yield* Schema.decodeUnknown(ToolDefinition)(definition)
    return yield* tools.insert(scope, { id: yield* newToolId, name, definition: decoded, secret: null })
  })

const mcp = { url: "https://mcp.example/mcp" }

/** The parts of a turn in which the model calls the functions whose names `choose` returns. */
const turn = (scope: ReadScope, choose: (names: ReadonlyArray<string>) => ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const { reply, requests } = yield* Script
    let round = 0
    yield* Ref.set(reply, (asked) => {
      if (round++ > 0) return says("Done.")(asked)
      const names = choose(asked.tools.map(({ name }) => name))
      return Stream.fromIterable([
        ...names.map((name, at) => toolCall(`call_${at}`, name, "{}")),
        { _tag: "Finish", reason: "tool-calls", inputTokens: 1, outputTokens: 1 } as const
      ])
    })
    const chat = yield* ChatTurn
    const { parts } = yield* chat.start(scope, request({}))
    const told = Chunk.toReadonlyArray(yield* Stream.runCollect(parts))
    const [first] = yield* Ref.get(requests)
    return { told, names: (first?.tools ?? []).map(({ name }) => name) }
  })

const run = <A, E, R>(test: Effect.Effect<A, E, R>) =>
  Effect.zipRight(
    reset,
    Effect.provide(
      test,
      turnLayer(undefined, undefined, undefined, layerOf([httpSource, Effect.succeed(servers)]))
    )
  )

layer(TestDatabase, { excludeTestServices: true })("Functions of a turn", (it) => {
  it.scoped("whose names agree in their first 64 characters are all offered, and each is called", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      yield* give(scope, "twins", { mcp })
      const { names, told } = yield* turn(scope, (offered) => offered.slice(0, 2))
      expect(names).toHaveLength(3)
      expect(new Set(names).size).toBe(3)
      expect(names.every((name) => /^twins_[\w-]{1,58}$/u.test(name))).toBe(true)
      expect(told.flatMap((part) => (part._tag === "ToolResult" ? [part.output] : []))).toEqual([
        `${long}_one`,
        `${long}_two`
      ])
      const incomplete = told.flatMap((part) =>
        part._tag === "RunEvent" && part.event.label === "twins is not complete" ? [part.event.payload] : []
      )
      expect(incomplete).toEqual([
        {
          tool: "twins",
          code: "TOOL_FAILED",
          message: "TOOL_FAILED: the names of 1 of its functions are taken"
        }
      ])
    }).pipe(run)
  )

  it.scoped(
    "are at most as many as providers accept; those of servers come last, and the trace says so",
    () =>
      Effect.gen(function* () {
        const scope = yield* Fixtures.agent()
        yield* give(scope, "docs", { mcp })
        yield* give(scope, "files", { mcp })
        yield* give(scope, "order", { http: { url: "https://shop.example/orders" } })
        const { names, told } = yield* turn(scope, () => [])
        expect(names).toEqual([
          ...listed["docs"]!.map((name) => `docs_${name}`),
          ...listed["files"]!.slice(0, 61).map((name) => `files_${name}`),
          "order"
        ])
        const incomplete = told.flatMap((part) =>
          part._tag === "RunEvent" && part.event.type === "tool.failed" ? [part.event.payload] : []
        )
        expect(incomplete).toEqual([
          {
            tool: "files",
            code: "TOOL_FAILED",
            message: "TOOL_FAILED: 3 of its functions are above the maximum of 126 in all"
          }
        ])
      }).pipe(run)
  )
})

describe("Names of functions", () => {
  test("do not depend on the order of the functions, and keep what providers accept", () => {
    const given = ["a.b", "a_b", "a b", "docs_find", `${long}1`, `${long}2`, `${long}3`.slice(0, 64)]
    const names = functionNames(given)
    expect(new Set(names).size).toBe(given.length)
    expect(names.slice(1, 2)).toEqual(["a_b"])
    expect(names[3]).toBe("docs_find")
    expect(names[6]).toBe(given[6])
    expect(functionNames(given.toReversed()).toReversed()).toEqual(names)
    expect(functionNames([`${long}1`])).toEqual([long.slice(0, 64)])
  })

  test("show in a replay which tool they belong to", () => {
    const tool = "t".repeat(64)
    for (const name of functionNames([`${tool}_one`, `${tool}_two`]))
      expect(isFunctionOf(tool, name)).toBe(true)
    expect(isFunctionOf("docs", "docs_find")).toBe(true)
    expect(isFunctionOf("docs", "docsfind")).toBe(false)
  })
})
