import * as SqlClient from "@effect/sql/SqlClient"
import { expect, layer } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Inspectable from "effect/Inspectable"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { randomBytes } from "node:crypto"
import { ModelError, type ModelPart } from "../../../src/capabilities/ModelRuntime.ts"
import type { ReadScope } from "../../../src/domain/accounts/Access.ts"
import { newToolId, ToolDefinition } from "../../../src/domain/agents/Tool.ts"
import { SecretBox } from "../../../src/capabilities/SecretBox.ts"
import * as Sse from "../../../src/http/Sse.ts"
import { ToolStore } from "../../../src/store/agents/Tools.ts"
import { ChatTurn } from "../../../src/usecases/chat/ChatTurn.ts"
import * as Fixtures from "../../Fixtures.ts"
import { reset, TestDatabase } from "../../TestDatabase.ts"
import { request, type Reply, says, Script, turnLayer } from "./TurnHarness.ts"
import { toolServer } from "./ToolServer.ts"

const onFreshData =
  <P, PE, PR>(process: Layer.Layer<P, PE, PR>) =>
  <A, E, R>(test: Effect.Effect<A, E, R>) =>
    Effect.zipRight(reset, Effect.provide(test, process))

const give = (scope: ReadScope, name: string, definition: unknown, secret: string | null = null) =>
  Effect.gen(function* () {
    const tools = yield* ToolStore
    const decoded = yield* Schema.decodeUnknown(ToolDefinition)(definition)
    return yield* tools.insert(scope, { id: yield* newToolId, name, definition: decoded, secret })
  })

const asks = (
  ...calls: ReadonlyArray<readonly [name: string, input: Record<string, string> | null]>
): Reply => {
  const parts = calls.map(([name, input], place): ModelPart => ({
    _tag: "ToolCall",
    id: `call_${place}`,
    name,
    input,
    rawInput: ""
  }))
  return () =>
    Stream.fromIterable([
      ...parts,
      { _tag: "Finish", reason: "tool-calls", inputTokens: 1, outputTokens: 1 } as const
    ])
}

/** Answers with each reply in turn, and with the last for good. */
const inTurn = (...replies: ReadonlyArray<Reply>): Reply => {
  let place = 0
  return (asked) => replies[Math.min(place++, replies.length - 1)]!(asked)
}

const run = (scope: ReadScope, fields: Record<string, unknown> = {}) =>
  Effect.gen(function* () {
    const chat = yield* ChatTurn
    const turn = yield* chat.start(scope, request(fields))
    return Chunk.toReadonlyArray(yield* Stream.runCollect(turn.parts))
  })

const failures = (parts: ReadonlyArray<{ readonly _tag: string; readonly message?: string }>) =>
  parts.flatMap(({ _tag, message }) => (_tag === "ToolFailure" ? [message] : []))

layer(TestDatabase, { excludeTestServices: true })("Tools in a turn", (it) => {
  it.scoped("are called with the values of the model, the tool and the caller, and the model continues", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const server = yield* toolServer
      yield* give(scope, "order", {
        parameters: { type: "object", properties: { id: { type: "string" }, note: { type: "string" } } },
        http: {
          method: "POST",
          url: `${server.url}/orders/{id}/of/{account}`,
          query: { v: "1" },
          body: { fixed: true }
        },
        bindings: [
          { from: "/account/id", to: "path:account" },
          { from: "/account/id", to: "body:/customer/id" },
          { from: "/region", to: "header:X-Region" }
        ],
        auth: { kind: "basic", name: "widget-session" }
      })
      const { reply, requests } = yield* Script
      yield* Ref.set(reply, inTurn(asks(["order", { id: "a/b", note: "x" }]), says("Done.")))
      const parts = yield* run(scope, {
        toolContext: { account: { id: "acct-778899" }, region: "north-7" },
        toolCredentials: { "widget-session": "ada:passphrase" }
      })
      const [received] = server.received
      expect(received).toMatchObject({ method: "POST", url: "/orders/a%2Fb/of/acct-778899?v=1" })
      expect(received?.headers).toMatchObject({
        "x-region": "north-7",
        authorization: `Basic ${Buffer.from("ada:passphrase").toString("base64")}`
      })
      expect(JSON.parse(received?.body ?? "")).toEqual({
        fixed: true,
        note: "x",
        customer: { id: "acct-778899" }
      })
      const types = parts.flatMap((part) => (part._tag === "RunEvent" ? [part.event.type] : []))
      expect(types).toEqual([
        "run.started",
        "retrieval.completed",
        "model.completed",
        "tool.started",
        "tool.completed",
        "model.completed",
        "run.completed"
      ])
      const [, second] = yield* Ref.get(requests)
      expect(second?.prompt.content.map(({ role }) => role)).toEqual(["system", "user", "assistant", "tool"])
      expect(parts.at(-1)).toMatchObject({ _tag: "Done", result: { reply: "Done." } })
    }).pipe(onFreshData(turnLayer()))
  )

  it.scoped("keep the query of their address, with its bound values, whatever else the model passes", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const server = yield* toolServer
      yield* give(scope, "orders", {
        parameters: { type: "object", properties: { customer: {}, role: {}, page: {} } },
        http: { url: `${server.url}/orders?customer={account}&role=reader` },
        bindings: [{ from: "/account/id", to: "path:account" }]
      })
      const { reply } = yield* Script
      const input = { customer: "acct-of-another", role: "admin", page: "2" }
      yield* Ref.set(reply, inTurn(asks(["orders", input]), says("Done.")))
      yield* run(scope, { toolContext: { account: { id: "acct-778899" } } })
      expect(server.received.map(({ url }) => url)).toEqual([
        "/orders?customer=acct-778899&role=reader&page=2"
      ])
    }).pipe(onFreshData(turnLayer()))
  )

  it.scoped("send the arguments that their parameters declare, which the trace shows, and no others", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const server = yield* toolServer
      const parameters = { type: "object", properties: { page: { type: "string" } } }
      const http = { url: `${server.url}/orders/{id}` }
      yield* give(scope, "list", { parameters, http })
      yield* give(scope, "change", { parameters, http: { ...http, method: "POST" } })
      yield* give(scope, "any", { parameters: { ...parameters, additionalProperties: true }, http })
      const { reply, requests } = yield* Script
      const input = { id: "7", page: "2", customer: "acct-of-another" }
      yield* Ref.set(reply, inTurn(asks(["list", input], ["change", input], ["any", input]), says("Done.")))
      const parts = yield* run(scope)
      expect(server.received.map(({ body, method, url }) => `${method} ${url} ${body}`).toSorted()).toEqual([
        "GET /orders/7?page=2 ",
        "GET /orders/7?page=2&customer=acct-of-another ",
        'POST /orders/7 {"page":"2"}'
      ])
      const declared = { id: "7", page: "2" }
      const shown = parts.flatMap((part) => (part._tag === "ToolCall" ? [[part.name, part.input]] : []))
      const events = parts.flatMap((part) => (part._tag === "RunEvent" ? [part.event] : []))
      const traced = events.flatMap(({ payload, type }) =>
        type === "tool.started" ? [[payload?.["tool"], payload?.["input"]]] : []
      )
      for (const calls of [shown, traced])
        expect(calls.toSorted()).toEqual([
          ["any", input],
          ["change", declared],
          ["list", declared]
        ])
      // The provider gets the call as its model made it.
      expect(JSON.stringify((yield* Ref.get(requests)).at(-1)?.prompt)).toContain("acct-of-another")
    }).pipe(onFreshData(turnLayer()))
  )

  it.scoped("that fail report it to the model, and the turn continues", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const server = yield* toolServer
      const http = { url: `${server.url}/x` }
      const parameters = { type: "object", properties: { id: { type: "string" } }, required: ["id"] }
      yield* give(scope, "slot", { http, auth: { kind: "bearer", slot: "crm" } })
      yield* give(scope, "bound", { http, bindings: [{ from: "/a/b", to: "query:b" }] })
      yield* give(scope, "strict", { http, parameters })
      yield* give(scope, "broken", { http: { url: `${server.url}/fail` } })
      yield* give(scope, "slow", { http: { url: `${server.url}/hang` }, timeout: 1 })
      yield* give(scope, "dots", { http: { url: `${server.url}/a/{id}/b` }, parameters })
      yield* give(scope, "large", { http: { url: `${server.url}/largest-of-all` } })
      yield* give(scope, "hidden", { http: { url: "http://10.0.0.1/" } })
      const { reply } = yield* Script
      const calls = asks(
        ["slot", {}],
        ["bound", {}],
        ["strict", {}],
        ["strict", null],
        ["broken", {}],
        ["slow", {}],
        ["dots", { id: ".." }],
        ["large", {}],
        ["hidden", {}],
        ["nobody", {}]
      )
      yield* Ref.set(reply, inTurn(calls, says("Sorry.")))
      const parts = yield* run(scope)
      expect(
        failures(parts)
          .toSorted()
          .map((text) => text?.slice(0, 42))
      ).toEqual([
        "BINDING_REQUIRED: /a/b",
        "INVALID_ARGUMENTS: /id is missing",
        "INVALID_ARGUMENTS: expected a JSON object",
        "INVALID_ARGUMENTS: no part of the path may be dots".slice(0, 42),
        "SESSION_CREDENTIAL_REQUIRED: crm",
        expect.stringMatching(/^TOOL_FAILED: /),
        expect.stringMatching(/^TOOL_FAILED: /),
        expect.stringMatching(/^TOOL_FAILED: /),
        expect.stringMatching(/^TOOL_TIMEOUT: /),
        expect.stringMatching(/^UNKNOWN_TOOL: /)
      ])
      expect(parts.at(-1)).toMatchObject({ _tag: "Done", result: { reply: "Sorry." } })
    }).pipe(onFreshData(turnLayer()))
  )

  it.scoped("end after eight rounds, the last of which has no tools", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const server = yield* toolServer
      yield* give(scope, "again", { http: { url: `${server.url}/large` } })
      const { reply, requests } = yield* Script
      yield* Ref.set(reply, asks(["again", {}]))
      yield* run(scope)
      const asked = yield* Ref.get(requests)
      expect(asked.map(({ tools }) => tools.length)).toEqual([1, 1, 1, 1, 1, 1, 1, 0])
      expect(JSON.stringify(asked.at(-1)?.prompt).length).toBeLessThan(40_000)
    }).pipe(onFreshData(turnLayer()))
  )

  it.scoped("that have run prevent a retry of the model's request", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const server = yield* toolServer
      yield* give(scope, "good", { http: { url: `${server.url}/ok` } })
      const { reply, requests } = yield* Script
      const busy = new ModelError({ reason: "RateLimited", message: "busy", retryable: true })
      yield* Ref.set(
        reply,
        inTurn(asks(["good", {}]), () => Stream.fail(busy))
      )
      const failure = yield* Effect.flip(run(scope))
      expect(failure._tag).toBe("TURN_FAILED")
      expect(yield* Ref.get(requests)).toHaveLength(2)
      expect(server.received).toHaveLength(1)
    }).pipe(onFreshData(turnLayer()))
  )

  it.scoped(
    "are declared by schemas that providers accept, and their arguments are checked by their own",
    () =>
      Effect.gen(function* () {
        const scope = yield* Fixtures.agent()
        const server = yield* toolServer
        const http = { url: `${server.url}/ok` }
        yield* give(scope, "ping", { parameters: { type: "object" }, http })
        const tags = { type: "array", description: "Tags." }
        const point = { type: ["array", "null"], prefixItems: [{ type: "number" }] }
        const names = { type: "array", items: { type: "object", properties: { all: { type: "array" } } } }
        // A property may have the name of a keyword.
        const properties = { a: { type: "string" }, type: tags, default: tags, point, names }
        const anyOf = [{ required: ["a"] }, { required: ["point"] }]
        const example = { default: { type: "array" } }
        yield* give(scope, "find", { parameters: { type: "object", properties, anyOf, ...example }, http })
        const { reply, requests } = yield* Script
        yield* Ref.set(reply, inTurn(asks(["ping", {}], ["find", {}]), says("Done.")))
        expect(failures(yield* run(scope))).toEqual([
          `INVALID_ARGUMENTS: the object fits none of its alternatives: ${JSON.stringify(anyOf)}`
        ])
        const [asked] = yield* Ref.get(requests)
        expect(asked?.tools.map(({ parameters }) => parameters)).toEqual([
          { type: "object", properties: {} },
          {
            type: "object",
            properties: {
              a: { type: "string" },
              type: { ...tags, items: {} },
              default: { ...tags, items: {} },
              point: { ...point, items: {} },
              names: {
                type: "array",
                items: { type: "object", properties: { all: { type: "array", items: {} } } }
              }
            },
            ...example
          }
        ])
      }).pipe(onFreshData(turnLayer()))
  )

  it.scoped("of a remote MCP server have its names, and its list is cached", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const server = yield* toolServer
      yield* give(
        scope,
        "docs",
        { mcp: { url: `${server.url}/mcp` }, auth: { kind: "bearer" } },
        yield* Effect.flatMap(SecretBox, (box) => box.seal("tool-secret", "mcp-secret-value"))
      )
      const { reply, requests } = yield* Script
      for (const _ of [1, 2]) {
        yield* Ref.set(reply, inTurn(asks(["docs_find_it", { q: "hats" }]), says("Found.")))
        const parts = yield* run(scope)
        expect(failures(parts)).toEqual([])
        expect(JSON.stringify(parts)).toContain("hats")
        expect(JSON.stringify(parts)).not.toContain("mcp-secret-value")
      }
      const methods = server.received.map(({ body }) => JSON.parse(body).method)
      expect(methods.filter((method) => method === "tools/list")).toHaveLength(1)
      expect(server.received.at(-1)?.headers).toMatchObject({ "mcp-session-id": "session-1" })
      expect((yield* Ref.get(requests))[0]?.tools).toMatchObject([{ name: "docs_find_it" }])
    }).pipe(onFreshData(turnLayer()))
  )

  it.scoped("leave no credential and no binding anywhere: parts, trace, prompts, logs, database", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const server = yield* toolServer
      const canary = () => `cnry/${randomBytes(12).toString("base64")}"&`
      const [slot, bound, unused] = [canary(), canary(), canary()]
      const stored = canary()
      const auth = { kind: "header", header: "x-key", slot: "crm" }
      const bindings = [{ from: "/who", to: "query:who" }]
      yield* give(scope, "good", { http: { url: `${server.url}/ok` }, bindings, auth })
      yield* give(scope, "bad", { http: { url: `${server.url}/fail` }, bindings, auth })
      const box = yield* SecretBox
      const kept = { http: { url: `${server.url}/ok` }, auth: { kind: "header", header: "x-stored" } }
      yield* give(scope, "kept", kept, yield* box.seal("tool-secret", stored))
      const { reply, requests } = yield* Script
      const leak = `${slot}, credential-299 and ${unused}.`
      yield* Ref.set(reply, inTurn(asks(["good", {}], ["bad", {}], ["kept", {}]), says("It is ", ...leak)))
      const logs: Array<unknown> = []
      const logger = Logger.replace(
        Logger.defaultLogger,
        Logger.make((entry) => void logs.push(entry.message, entry.annotations, entry.cause))
      )
      const others = Array.from({ length: 300 }, (_, place) => [`slot${place}`, `credential-${place}`])
      const parts = yield* run(scope, {
        toolContext: { who: bound },
        toolCredentials: { ...Object.fromEntries(others), crm: slot, other: unused }
      }).pipe(Effect.provide(logger))
      const sent = server.received.map(({ headers }) => headers["x-key"] ?? headers["x-stored"])
      expect(sent.toSorted()).toEqual([slot, slot, stored].toSorted())
      expect(parts.at(-1)).toMatchObject({
        result: { reply: "It is [redacted], [redacted] and [redacted]." }
      })
      const sql = yield* SqlClient.SqlClient
      const tables = yield* sql<{ readonly name: string }>`
        select table_name as name from information_schema.tables where table_schema = 'public'`
      const dump = yield* Effect.forEach(tables, ({ name }) => sql`select * from ${sql(name)}`)
      const bytes = yield* Stream.mkString(Stream.decodeText(Sse.body(Stream.fromIterable(parts), true)))
      const allOutput = Inspectable.stringifyCircular([parts, bytes, logs, yield* Ref.get(requests), dump])
      for (const secret of [slot, bound, unused, stored]) {
        const raw = Buffer.from(secret)
        const forms = [
          secret,
          JSON.stringify(secret).slice(1, -1),
          encodeURIComponent(secret),
          raw.toString("hex"),
          raw.toString("base64").slice(2, -4),
          secret.slice(5, 19)
        ]
        for (const form of forms) expect(allOutput.includes(form)).toBe(false)
      }
    }).pipe(onFreshData(turnLayer()))
  )
})
