/** Stored turns that are run again: the same where nothing has changed, and without any way to the outside. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect, expectTypeOf, it as test } from "vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { increment } from "effect/Number"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Extractive from "../../../src/capabilities/ModelRuntime/extractive/Extractive.ts"
import type { AuditLog } from "../../../src/capabilities/AuditLog.ts"
import type { JobQueue } from "../../../src/capabilities/JobQueue.ts"
import type { Mailer } from "../../../src/capabilities/Mailer.ts"
import { type ModelPart, ModelRuntime } from "../../../src/capabilities/ModelRuntime.ts"
import type { OutboundHttp } from "../../../src/capabilities/OutboundHttp.ts"
import type { Realtime } from "../../../src/capabilities/Realtime.ts"
import type { ToolSources } from "../../../src/capabilities/ToolSources.ts"
import { withOwner } from "../../../src/concurrency/CurrentOwner.ts"
import type { ReadScope } from "../../../src/domain/accounts/Access.ts"
import { newToolId, ToolDefinition } from "../../../src/domain/agents/Tool.ts"
import { ConversationId, RunId } from "../../../src/domain/Ids.ts"
import { AgentStore } from "../../../src/store/agents/Agents.ts"
import { ToolStore } from "../../../src/store/agents/Tools.ts"
import { RecordedRunStore } from "../../../src/store/chat/RecordedRuns.ts"
import type { Turns } from "../../../src/store/chat/Turns.ts"
import { ChatTurn } from "../../../src/usecases/chat/ChatTurn.ts"
import type { ChannelSender } from "../../../src/usecases/channels/ChannelSender.ts"
import { Replays } from "../../../src/usecases/chat/replay/Replays.ts"
import type { ReplayEnvironment } from "../../../src/usecases/chat/replay/ReplayTurn.ts"
import type { ChatTools } from "../../../src/usecases/chat/tools/Tools.ts"
import type { RealtimeFeed } from "../../../src/usecases/conversations/RealtimeFeed.ts"
import * as Fixtures from "../../Fixtures.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { chunk, request, type Reply, says, Script, turnLayer } from "./TurnHarness.ts"
import { toolServer } from "./ToolServer.ts"

const replays = Replays.Default.pipe(
  Layer.provideMerge(turnLayer()),
  Layer.provideMerge(Layer.merge(AgentStore.Default, RecordedRunStore.Default))
)

const onFreshData = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.zipRight(reset, Effect.provide(effect, replays))

const asks = (name: string, input: Record<string, string>): Reply => {
  const call: ModelPart = { _tag: "ToolCall", id: "call_1", name, input, rawInput: "" }
  return () =>
    Stream.fromIterable([
      call,
      { _tag: "Finish", reason: "tool-calls", inputTokens: 1, outputTokens: 1 } as const
    ])
}

const inTurn = (...replies: ReadonlyArray<Reply>): Reply => {
  let place = 0
  return (asked) => (replies[Math.min(place++, replies.length - 1)] ?? says(""))(asked)
}

const replay = (scope: ReadScope, ...runIds: ReadonlyArray<string>) =>
  Effect.flatMap(Replays, ({ run }) =>
    run(scope, { runIds: runIds.map((id) => RunId.make(id)) }, () => Effect.void)
  )

type Asking = Effect.Effect.Success<ReturnType<typeof Fixtures.agent>>

const ask = (scope: Asking, message: string, fields: Readonly<Record<string, unknown>> = {}) =>
  Effect.flatMap(ChatTurn, (chat) =>
    chat.complete(scope, request({ message, includeRealtimeToken: false, ...fields }))
  )

/** Everything that is stored but when processes were last alive, and the calls of models, which are counted. */
const stored = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const tables = yield* sql<{ readonly name: string }>`
    select quote_ident(tablename) as name from pg_tables where schemaname = 'public'
      and tablename not in ('instances', 'model_usage', 'other_model_usage') order by 1`
  return yield* Effect.forEach(tables, ({ name }) =>
    sql.unsafe<{ readonly text: string }>(`select to_jsonb(t)::text as text from ${name} t order by 1`)
  )
})

eachEngineLive("A replay", (it) => {
  it.scoped("with an unchanged history sends the model the same request and gives the same reply", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const { chunks, reply, requests } = yield* Script
      yield* Ref.set(chunks, [chunk(1), chunk(2)])
      yield* Ref.set(reply, says("Fact number 1. [1] ", "Fact number 2. [2]"))
      const first = yield* ask(scope, "What is fact one?")
      const { conversationId } = first
      const second = yield* ask(scope, "And fact two, please?", { conversationId })
      yield* ask(scope, "Thank you, that is all", { conversationId })
      const [asked] = (yield* Ref.get(requests)).slice(1)
      const before = yield* stored
      const runs = yield* replay(scope, String(second.runId), String(first.runId))
      expect(runs.map(({ outcome, runId }) => [runId, outcome])).toEqual([
        [second.runId, "same"],
        [first.runId, "same"]
      ])
      expect(runs[0]?.after?.reply).toBe(second.reply)
      expect(runs[0]?.after?.citations).toEqual(second.citations)
      expect((yield* Ref.get(requests)).at(3)?.prompt).toEqual(asked?.prompt)
      expect(yield* stored).toEqual(before)
    }).pipe(onFreshData)
  )

  it.scoped("returns the new reply next to the stored one", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const { reply } = yield* Script
      const { runId } = yield* ask(scope, "Hello there?")
      yield* Ref.set(reply, says("Good day"))
      const [run] = yield* replay(scope, String(runId))
      expect(run).toMatchObject({
        outcome: "changed",
        before: { reply: "Hello" },
        after: { reply: "Good day" }
      })
    }).pipe(onFreshData)
  )

  it.scoped("uses the recorded answers of tools, and calls no server", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const server = yield* toolServer
      const definition = yield* Schema.decodeUnknown(ToolDefinition)({
        parameters: { type: "object", properties: { id: { type: "string" } } },
        http: { url: `${server.url}/orders/{id}` }
      })
      yield* (yield* ToolStore).insert(scope, {
        id: yield* newToolId,
        name: "order",
        definition,
        secret: null
      })
      const { reply, requests } = yield* Script
      yield* Ref.set(reply, inTurn(asks("order", { id: "7" }), says("It is on its way.")))
      const { runId } = yield* ask(scope, "Where is my order 7?")
      expect(server.received).toHaveLength(1)
      const told = (yield* Ref.get(requests)).at(-1)?.prompt
      yield* Ref.set(reply, inTurn(asks("order", { id: "7" }), says("It is on its way.")))
      expect(yield* replay(scope, String(runId))).toMatchObject([{ outcome: "same" }])
      expect((yield* Ref.get(requests)).at(-1)?.prompt).toEqual(told)
      for (const call of [asks("order", { id: "8" }), asks("refund", { id: "7" })]) {
        yield* Ref.set(reply, inTurn(call, says("Done.")))
        const [run] = yield* replay(scope, String(runId))
        expect(run).toMatchObject({ outcome: "diverged", after: null })
        expect(run?.reason).toMatch(/was not recorded/u)
      }
      yield* Ref.set(reply, inTurn(asks("order", { id: "7" }), asks("order", { id: "7" }), says("Done.")))
      expect(yield* replay(scope, String(runId))).toMatchObject([{ outcome: "diverged" }])
      expect(server.received).toHaveLength(1)
    }).pipe(onFreshData)
  )

  it.scoped("uses the recorded answers whatever a model passes that the tool does not declare", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const server = yield* toolServer
      const http = { url: `${server.url}/orders/{id}` }
      const parameters = { type: "object", properties: { id: { type: "string" } } }
      const definition = yield* Schema.decodeUnknown(ToolDefinition)({ http, parameters })
      yield* (yield* ToolStore).insert(scope, {
        id: yield* newToolId,
        name: "order",
        definition,
        secret: null
      })
      const { reply } = yield* Script
      const calls = (input: Record<string, string>) => inTurn(asks("order", input), says("Done."))
      yield* Ref.set(reply, calls({ id: "7", admin: "yes" }))
      const { runId } = yield* ask(scope, "Where is my order 7?")
      for (const input of [{ id: "7", admin: "yes" }, { id: "7" }]) {
        yield* Ref.set(reply, calls(input))
        expect(yield* replay(scope, String(runId))).toMatchObject([{ outcome: "same" }])
      }
      // A run that was recorded with all arguments.
      const sql = yield* SqlClient.SqlClient
      yield* sql`
        update agent_run_events set payload = jsonb_set(payload, '{input,admin}', '"yes"')
        where type = 'tool.started'`
      expect(yield* replay(scope, String(runId))).toMatchObject([{ outcome: "same" }])
    }).pipe(onFreshData)
  )

  it.scoped("offers the tools of the replaying version, and no others that were called originally", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const sql = yield* SqlClient.SqlClient
      const { reply, requests } = yield* Script
      const calls = () => inTurn(asks("crm", {}), asks("search_sources", { query: "tea" }), says("Hello"))
      yield* sql`update agents set tools = '{crm}'`
      yield* Ref.set(reply, calls())
      const { runId } = yield* ask(scope, "Who am I?")
      const offered = Effect.gen(function* () {
        yield* Ref.set(reply, calls())
        expect(yield* replay(scope, String(runId))).toMatchObject([{ outcome: "same" }])
        return (yield* Ref.get(requests)).at(-1)?.tools.map(({ name }) => name)
      })
      expect(yield* offered).toEqual(["crm"])
      yield* sql`update agents set tools = '{}'`
      expect(yield* offered).toEqual([])
    }).pipe(onFreshData)
  )

  it.scoped("accepts only the tenant's own runs and existing versions", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const other = yield* Fixtures.agent()
      const { runId } = yield* ask(scope, "Hello there?")
      const failed = yield* Effect.flip(replay(other, String(runId)))
      expect(failed).toMatchObject({ _tag: "NOT_FOUND" })
      const { run } = yield* Replays
      const ids = { runIds: [RunId.make(String(runId))] }
      expect(yield* run(scope, { ...ids, version: 1 }, () => Effect.void)).toHaveLength(1)
      expect(yield* Effect.flip(run(scope, { ...ids, version: 2 }, () => Effect.void))).toMatchObject({
        _tag: "NOT_FOUND"
      })
    }).pipe(onFreshData)
  )

  it.scoped("of a failed turn is the same while it fails, and changed once it is answered", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const sql = yield* SqlClient.SqlClient
      const { reply } = yield* Script
      yield* Ref.set(reply, () => Stream.empty)
      const { conversationId } = yield* Effect.zipRight(
        Effect.ignore(ask(scope, "Are you there?")),
        Effect.map(
          sql<{
            readonly conversationId: string
          }>`select conversation_id as "conversationId" from agent_runs`,
          ([row]) => ({ conversationId: ConversationId.make(row?.conversationId ?? "") })
        )
      )
      const [row] = yield* sql<{ readonly id: string }>`
        select id from agent_runs where conversation_id = ${conversationId}`
      expect(yield* replay(scope, row?.id ?? "")).toMatchObject([
        { outcome: "same", before: { failure: "TURN_FAILED" }, after: { failure: "TURN_FAILED" } }
      ])
      yield* Ref.set(reply, says("Yes"))
      expect(yield* replay(scope, row?.id ?? "")).toMatchObject([
        { outcome: "changed", after: { reply: "Yes" } }
      ])
    }).pipe(onFreshData)
  )
})

eachEngineLive("Replays of two tenants", (it) => {
  it.scoped("are scheduled fairly: many replays of one tenant do not delay another's", () =>
    Effect.gen(function* () {
      const busy = yield* Fixtures.agent()
      const other = yield* Fixtures.agent()
      const { reply } = yield* Script
      const [first, second] = [yield* ask(busy, "Hello there?"), yield* ask(other, "Hello there?")]
      const asked = yield* Ref.make(0)
      const end = yield* Deferred.make<void>()
      yield* Ref.set(reply, (from) =>
        Stream.unwrap(
          Effect.as(Effect.zipRight(Ref.update(asked, increment), Deferred.await(end)), says("Hello")(from))
        )
      )
      const many = yield* Effect.fork(
        Effect.all(
          Array.from({ length: 3 }, () => withOwner(busy.tenantId)(replay(busy, String(first.runId)))),
          { concurrency: "unbounded" }
        )
      )
      yield* Effect.repeat(Effect.zipRight(Effect.sleep("20 millis"), Ref.get(asked)), {
        until: (count) => count > 0
      })
      yield* Ref.set(reply, says("Hello"))
      const replayed = withOwner(other.tenantId)(replay(other, String(second.runId)))
      expect(yield* Effect.timeout(replayed, "10 seconds")).toMatchObject([{ outcome: "same" }])
      yield* Deferred.succeed(end, undefined)
      expect(yield* Fiber.join(many)).toHaveLength(3)
    }).pipe(onFreshData)
  )

  it.scoped("beyond the limit are refused with a time to retry", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const { reply } = yield* Script
      const { runId } = yield* ask(scope, "Hello there?")
      yield* Ref.set(reply, () => Stream.never)
      const refused = yield* Effect.raceAll(
        Array.from({ length: 66 }, () => Effect.flip(replay(scope, String(runId))))
      )
      expect(refused).toMatchObject({
        _tag: "SERVICE_UNAVAILABLE",
        details: { retryAfterSeconds: expect.any(Number) }
      })
    }).pipe(onFreshData)
  )
})

const offline = Replays.Default.pipe(
  // Fresh: the harness builds the same layer with its scripted model.
  Layer.provideMerge(Layer.fresh(ChatTurn.Default).pipe(Layer.provide(Extractive.layerExtractive))),
  Layer.provide(Extractive.layerExtractive),
  Layer.provideMerge(turnLayer()),
  Layer.provideMerge(Layer.merge(AgentStore.Default, RecordedRunStore.Default))
)

eachEngineLive("Replays of the runtime without a model", (it) => {
  it.scoped("are identical byte for byte while the knowledge is unchanged", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const { chunks } = yield* Script
      const ids: Array<string> = []
      let conversationId: string | undefined
      for (let place = 0; place < 30; place++) {
        yield* Ref.set(chunks, [chunk(place % 7), chunk((place % 7) + 1)])
        const message = `What is fact number ${place % 7}, and what about fact ${place}?`
        const asked = yield* ask(scope, message, place % 3 === 0 ? {} : { conversationId })
        conversationId = asked.conversationId
        ids.push(String(asked.runId))
        const [run] = yield* replay(scope, String(asked.runId))
        expect(run).toMatchObject({ outcome: "same", after: { reply: asked.reply } })
      }
      const again = yield* replay(scope, ids.at(-1) ?? "")
      expect(JSON.stringify(again)).toBe(JSON.stringify(yield* replay(scope, ids.at(-1) ?? "")))
    }).pipe((effect) => Effect.zipRight(reset, Effect.provide(effect, offline)))
  )
})

test("A replay gets no service with side effects", () => {
  type Needs = Layer.Layer.Context<typeof Replays.Default>
  type Acting =
    | AuditLog
    | ChannelSender
    | ChatTools
    | JobQueue
    | Mailer
    | OutboundHttp
    | Realtime
    | RealtimeFeed
    | ToolSources
    | Turns
    | SqlClient.SqlClient
  expectTypeOf<Extract<Needs, Acting>>().toEqualTypeOf<never>()
  expectTypeOf<keyof ReplayEnvironment>().toEqualTypeOf<
    "search" | "texts" | "embedder" | "runtime" | "checker"
  >()
  expectTypeOf<Extract<Needs, ModelRuntime>>().toEqualTypeOf<ModelRuntime>()
})
