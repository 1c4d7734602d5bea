/** Integers in the arguments of tools that a double cannot hold: they arrive with every digit. */
import { describe, expect, it as test, layer } from "@effect/vitest"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { toolCall } from "../../../../src/capabilities/ModelRuntime/ToolCalls.ts"
import { layerOf } from "../../../../src/capabilities/ToolSources/BuiltIn.ts"
import { httpSource } from "../../../../src/capabilities/ToolSources/Http.ts"
import { inProcessSource } from "../../../../src/capabilities/ToolSources/InProcess.ts"
import { mcpSource } from "../../../../src/capabilities/ToolSources/Mcp.ts"
import type { ReadScope } from "../../../../src/domain/accounts/Access.ts"
import { newToolId, ToolDefinition } from "../../../../src/domain/agents/Tool.ts"
import * as LongIntegers from "../../../../src/domain/agents/LongIntegers.ts"
import type { JsonObject } from "../../../../src/domain/Text.ts"
import { ToolStore } from "../../../../src/store/agents/Tools.ts"
import { ChatTurn } from "../../../../src/usecases/chat/ChatTurn.ts"
import * as Fixtures from "../../../Fixtures.ts"
import { reset, TestDatabase } from "../../../TestDatabase.ts"
import { toolServer } from "../ToolServer.ts"
import { request, type Reply, says, Script, turnLayer } from "../TurnHarness.ts"

const parameters = {
  type: "object",
  properties: {
    id: { type: "integer", maximum: 2 ** 63 },
    ids: { type: "array", items: { anyOf: [{ type: "integer" }, { type: "null" }] } },
    text: { type: "string" }
  },
  required: ["id"],
  additionalProperties: false
}
const written = `{"id":1234567890123456789,"ids":[-9007199254740993,7,null],"text":"1234567890123456789"}`
const kept = {
  id: "1234567890123456789",
  ids: ["-9007199254740993", 7, null],
  text: "1234567890123456789"
}

const received: Array<JsonObject> = []
const host = {
  description: "Finds.",
  parameters,
  timeoutMillis: 1_000,
  call: async (input: JsonObject) => {
    received.push(input)
    return { answer: "found" }
  }
}

const give = (scope: ReadScope, name: string, definition: unknown) =>
  Effect.gen(function* () {
    const tools = yield* ToolStore
    const decoded = yield* Schema.decodeUnknown(ToolDefinition)(definition)
    return yield* tools.insert(scope, { id: yield* newToolId, name, definition: decoded, secret: null })
  })

const calls = (...names: ReadonlyArray<string>): Reply => {
  const parts = names.map((name, place) => toolCall(`call_${place}`, name, written))
  return () =>
    Stream.fromIterable([
      ...parts,
      { _tag: "Finish", reason: "tool-calls", inputTokens: 1, outputTokens: 1 } as const
    ])
}

const sources = layerOf([httpSource, mcpSource, Effect.succeed(inProcessSource({ host }))])

layer(TestDatabase, { excludeTestServices: true })("Long integers in arguments", (it) => {
  it.scoped("reach every kind of tool with all digits, as numbers where its schema asks for them", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const server = yield* toolServer
      yield* give(scope, "web", { parameters, http: { method: "POST", url: `${server.url}/x` } })
      yield* give(scope, "path", { parameters, http: { url: `${server.url}/orders/{id}` } })
      yield* give(scope, "loose", {
        parameters: { type: "object", properties: { id: {}, ids: {}, text: {} } },
        http: { method: "POST", url: `${server.url}/y` }
      })
      yield* give(scope, "docs", { mcp: { url: `${server.url}/mcp` } })
      const sql = yield* SqlClient.SqlClient
      yield* sql`update agents set tools = '{host}' where id = ${scope.agentId}`
      const { reply } = yield* Script
      const replies = [calls("web", "path", "loose", "docs_find_it", "host"), says("Done.")]
      let place = 0
      yield* Ref.set(reply, (asked) => (replies[place++] ?? says("Done."))(asked))
      const chat = yield* ChatTurn
      const { parts } = yield* chat.start(scope, request({}))
      const told = Chunk.toReadonlyArray(yield* Stream.runCollect(parts))
      expect(told.flatMap((part) => (part._tag === "ToolFailure" ? [part.message] : []))).toEqual([
        "INVALID_ARGUMENTS: /q is missing"
      ])
      expect(server.received.find(({ url }) => url === "/x")?.body).toBe(written)
      expect(server.received.map(({ url }) => url)).toContain(
        `/orders/1234567890123456789?ids=${encodeURIComponent(JSON.stringify(kept.ids))}&text=1234567890123456789`
      )
      expect(JSON.parse(server.received.find(({ url }) => url === "/y")!.body)).toEqual(kept)
      expect(received).toEqual([kept])
      expect(told.flatMap((part) => (part._tag === "ToolCall" ? [part.input] : []))).toEqual(
        Array.from({ length: 5 }, () => kept)
      )
    }).pipe(Effect.provide(turnLayer(undefined, undefined, undefined, sources)), (run) =>
      Effect.zipRight(reset, run)
    )
  )
})

describe("Long integers", () => {
  const schema = { properties: { n: { type: ["integer", "null"] }, s: { type: ["integer", "string"] } } }

  test("become doubles for a function of the host only if no digit is lost", () => {
    const input = { n: "1000000000000000000", s: "1000000000000000000" }
    expect(LongIntegers.toExactDoubles(schema, input)).toEqual({ n: 1e18, s: "1000000000000000000" })
    expect(LongIntegers.toExactDoubles(schema, { n: "1000000000000000001" })).toEqual({
      n: "1000000000000000001"
    })
    expect(LongIntegers.toExactDoubles(schema, { n: "9".repeat(400) })).toEqual({ n: "9".repeat(400) })
  })

  test("are written as JSON numbers, and texts that only look alike are not", () => {
    const input = {
      n: "12345678901234567890",
      s: "12345678901234567890",
      o: "\\u000012345678901234567\\u0000"
    }
    expect(LongIntegers.writeMarked(LongIntegers.withMarks(schema, input))).toBe(
      `{"n":12345678901234567890,"s":"12345678901234567890","o":"\\\\u000012345678901234567\\\\u0000"}`
    )
    expect(LongIntegers.withMarks(schema, { n: "00012345678901234567" })).toEqual({
      n: "00012345678901234567"
    })
  })
})
