/** Whatever a tool, a model or a database makes of a turn's content, the turn settles and its conversation goes on. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { ModelPart } from "../../../src/capabilities/ModelRuntime.ts"
import type { ReadScope } from "../../../src/domain/accounts/Access.ts"
import type { TurnPart } from "../../../src/domain/chat/ChatTurn.ts"
import { type ConversationId, EndUserId } from "../../../src/domain/Ids.ts"
import { newToolId, ToolDefinition } from "../../../src/domain/agents/Tool.ts"
import { EndUserStore } from "../../../src/store/conversations/EndUsers.ts"
import { ProcessLeases } from "../../../src/store/chat/ProcessLeases.ts"
import { ToolStore } from "../../../src/store/agents/Tools.ts"
import { ChatTurn } from "../../../src/usecases/chat/ChatTurn.ts"
import * as Fixtures from "../../Fixtures.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { toolServer } from "./ToolServer.ts"
import { request, type Reply, says, Script, turnLayer } from "./TurnHarness.ts"

const onFreshData =
  <P, PE, PR>(process: Layer.Layer<P, PE, PR>) =>
  <A, E, R>(test: Effect.Effect<A, E, R>) =>
    Effect.zipRight(reset, Effect.provide(test, Layer.provideMerge(EndUserStore.Default, process)))

const give = (scope: ReadScope, name: string, definition: unknown) =>
  Effect.gen(function* () {
    const tools = yield* ToolStore
    const decoded = yield* Schema.decodeUnknown(ToolDefinition)(definition)
    return yield* tools.insert(scope, { id: yield* newToolId, name, definition: decoded, secret: null })
  })

const asks = (name: string): Reply => {
  const parts: ReadonlyArray<ModelPart> = [
    { _tag: "ToolCall", id: "call_1", name, input: { q: "?" }, rawInput: "" },
    { _tag: "Finish", reason: "tool-calls", inputTokens: 1, outputTokens: 1 }
  ]
  return () => Stream.fromIterable(parts)
}

const inTurn = (...replies: ReadonlyArray<Reply>): Reply => {
  let place = 0
  return (asked) => replies[Math.min(place++, replies.length - 1)]?.(asked) ?? Stream.empty
}

const run = (scope: ReadScope, fields: Record<string, unknown> = {}) =>
  Effect.gen(function* () {
    const chat = yield* ChatTurn
    const turn = yield* chat.start(scope, request(fields))
    return Chunk.toReadonlyArray(yield* Stream.runCollect(turn.parts))
  })

const outputOf = (parts: ReadonlyArray<TurnPart>) =>
  parts.flatMap((part) =>
    part._tag === "ToolResult" ? [part.output] : part._tag === "ToolFailure" ? [part.message] : []
  )[0]

const runs = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ readonly status: string }>`select status from agent_runs order by id`
  return rows.map(({ status }) => status)
})

const transcript = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ readonly line: string }>`
    select position || ' ' || role || ': ' || content as line from messages order by conversation_id, position`
  return rows.map(({ line }) => line)
})

/** The person's data are read out to the end, and erased. */
const exportedAndErased = (scope: ReadScope) =>
  Effect.gen(function* () {
    const users = yield* EndUserStore
    const sql = yield* SqlClient.SqlClient
    const conversations = yield* sql<{ readonly id: string; readonly user: string }>`
      select id, end_user_id as "user" from conversations`
    for (const { id, user } of conversations) {
      expect((yield* users.runs(scope, id, "", 20)).length).toBeGreaterThan(0)
      expect(yield* users.erase(scope, EndUserId.make(user), () => Effect.void)).toBe("erased")
    }
    expect(conversations.length).toBeGreaterThan(0)
  })

const nested = (levels: number) => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`
const list = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`
const deep = (levels: number) =>
  `TOOL_FAILED: the answer cannot be used: it is nested more than ${levels} levels deep`

/** What a tool answers, and what the model and the trace are told of it. */
const answers: ReadonlyArray<readonly [said: string, told: unknown]> = [
  [String.raw`{"a":"x\u0000y"}`, { a: "xy" }],
  [String.raw`{"a":["\ud800",{"b":"\udc00z"}]}`, { a: ["\ufffd", { b: "\ufffdz" }] }],
  [String.raw`{"k\u0000":{"\ud83d":1}}`, { k: { "\ufffd": 1 } }],
  [String.raw`"x\u0000\ud800"`, "x\ufffd"],
  ["x\u0000 is no JSON", "x is no JSON"],
  [`{"pair":"${String.raw`\ud83d\ude00`}"}`, { pair: "😀" }],
  [nested(64), JSON.parse(nested(64))],
  [nested(65), deep(64)],
  [nested(6_000), deep(64)],
  [list(100_000), deep(64)],
  [`{"__proto__":{"a":${String.raw`"\u0000"`}}}`, JSON.parse('{"__proto__":{"a":""}}')],
  [`{"value":${list(65)}, "broken`, `{"value":${list(65)}, "broken`]
]

/** Results of an MCP server's `tools/call`. */
const results: ReadonlyArray<readonly [said: string, told: unknown]> = [
  [String.raw`{"content":[],"structuredContent":{"a\u0000":"x\u0000\ud800"}}`, { a: "x\ufffd" }],
  [String.raw`{"content":[{"type":"text","text":"x\u0000\ud800"}]}`, "x\ufffd"],
  [String.raw`{"content":[{"type":"\u0000"}]}`, "()"],
  [String.raw`{"isError":true,"content":[{"type":"text","text":"no\u0000\udc00"}]}`, "TOOL_FAILED: no\ufffd"],
  [
    `{"content":[],"structuredContent":${nested(6_000)}}`,
    "TOOL_FAILED: the MCP server's answer cannot be used: it is nested more than 64 levels deep"
  ]
]

/** Refuses rows of `table` for which `condition` holds, with `code`, as a server does that cannot store them. */
const refusing = (table: string, condition: string, code: string) =>
  Effect.acquireRelease(
    Effect.flatMap(SqlClient.SqlClient, (sql) =>
      sql.unsafe(`
        create or replace function refuse_${table}() returns trigger language plpgsql as $$
        begin
          if ${condition} then raise exception 'refused' using errcode = '${code}'; end if;
          return new;
        end $$;
        create or replace trigger refuse before insert or update on ${table}
          for each row execute function refuse_${table}()`)
    ),
    () =>
      Effect.flatMap(SqlClient.SqlClient, (sql) =>
        Effect.orDie(sql.unsafe(`drop trigger refuse on ${table}`))
      )
  )

eachEngineLive("Content", (it) => {
  it.scoped("of a tool's answer is made storable, or fails only the call; the turn settles", () =>
    Effect.gen(function* () {
      const { reply } = yield* Script
      const server = yield* toolServer
      for (const [said, told] of answers) {
        yield* reset
        const scope = yield* Fixtures.agent()
        yield* give(scope, "odd", { http: { url: `${server.url}/odd` } })
        server.answers.set("/odd?q=%3F", said)
        yield* Ref.set(reply, inTurn(asks("odd"), says("Done.")))
        const parts = yield* run(scope)
        expect([said.slice(0, 80), outputOf(parts)]).toEqual([said.slice(0, 80), told])
        expect(parts.at(-1)).toMatchObject({ _tag: "Done", result: { reply: "Done." } })
        expect(yield* runs).toEqual(["complete"])
        yield* exportedAndErased(scope)
      }
    }).pipe(onFreshData(turnLayer()))
  )

  it.scoped("of an MCP server is made storable, or fails only the call; the turn settles", () =>
    Effect.gen(function* () {
      const { reply } = yield* Script
      const server = yield* toolServer
      for (const [said, told] of results) {
        yield* reset
        const scope = yield* Fixtures.agent()
        yield* give(scope, "remote", { mcp: { url: `${server.url}/mcp` } })
        server.answers.set("/mcp", said)
        yield* Ref.set(reply, inTurn(asks("remote_find_it"), says("Done.")))
        const parts = yield* run(scope)
        expect([said.slice(0, 80), outputOf(parts)]).toEqual([said.slice(0, 80), told])
        expect(yield* runs).toEqual(["complete"])
        yield* exportedAndErased(scope)
      }
    }).pipe(onFreshData(turnLayer()))
  )

  it.scoped("that is truncated is not cut within a character", () =>
    Effect.gen(function* () {
      const { reply } = yield* Script
      const server = yield* toolServer
      const scope = yield* Fixtures.agent()
      yield* give(scope, "remote", { mcp: { url: `${server.url}/mcp` } })
      for (let before = 0; before < 2; before++) {
        const text = `${"x".repeat(before)}${"😀".repeat(2_000)}`
        server.answers.set("/mcp", JSON.stringify({ isError: true, content: [{ type: "text", text }] }))
        yield* Ref.set(reply, inTurn(asks("remote_find_it"), says("Done.")))
        yield* run(scope)
        const question = `${"y".repeat(before)}${"😀".repeat(400)} ok`
        const { conversationId } = yield* (yield* ChatTurn).complete(scope, request({ message: question }))
        yield* run(scope, { conversationId, message: "And why?" })
      }
      expect(new Set(yield* runs)).toEqual(new Set(["complete"]))
    }).pipe(onFreshData(turnLayer()))
  )

  it.scoped("with more tokens than a column can hold does not prevent the turn from settling", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const { reply } = yield* Script
      yield* Ref.set(reply, () =>
        Stream.fromIterable([
          { _tag: "TextDelta", delta: "Hello" } as const,
          { _tag: "Finish", reason: "stop", inputTokens: 3e9, outputTokens: Number.MAX_SAFE_INTEGER } as const
        ])
      )
      const chat = yield* ChatTurn
      expect((yield* chat.complete(scope, request())).reply).toBe("Hello")
      expect(yield* runs).toEqual(["complete"])
    }).pipe(onFreshData(turnLayer()))
  )

  for (const code of ["22P05", "22003", "54000", "23514", "XX000"]) {
    it.scoped(`that the database refuses (${code}) fails only its turn, and the conversation continues`, () =>
      Effect.gen(function* () {
        const scope = yield* Fixtures.agent()
        const { reply } = yield* Script
        const server = yield* toolServer
        yield* give(scope, "odd", { http: { url: `${server.url}/odd` } })
        server.answers.set("/odd?q=%3F", '"poison"')
        const chat = yield* ChatTurn
        const { conversationId } = yield* chat.complete(scope, request({ message: "First" }))
        yield* refusing("agent_run_events", "new.payload::text like '%poison%'", code)
        yield* Ref.set(reply, inTurn(asks("odd"), says("Done.")))
        const failed = yield* Effect.either(
          chat.complete(scope, request({ conversationId, message: "Second" }))
        )
        expect(Either.mapLeft(failed, ({ _tag }) => _tag)).toEqual(Either.left("TURN_FAILED"))
        expect(yield* runs).toEqual(["complete", "failed"])
        yield* Ref.set(reply, says("Third."))
        yield* chat.complete(scope, request({ conversationId, message: "Third" }))
        expect(yield* transcript).toEqual([
          "1 user: First",
          "2 assistant: Hello",
          "3 user: Second",
          "4 user: Third",
          "5 assistant: Third."
        ])
        const sql = yield* SqlClient.SqlClient
        const events = yield* sql`
          select type, payload->>'code' as code from agent_run_events
          where run_id = (select id from agent_runs where status = 'failed') order by sequence`
        expect(events).toEqual([
          { type: "run.started", code: null },
          { type: "run.failed", code: "TURN_FAILED" }
        ])
        yield* exportedAndErased(scope)
      }).pipe(Effect.scoped, onFreshData(turnLayer()))
    )
  }

  it.scoped(
    "of a message that the database refuses still ends the run, and returns the turn to the quota",
    () =>
      Effect.gen(function* () {
        const scope = yield* Fixtures.agent()
        const chat = yield* ChatTurn
        const { conversationId } = yield* chat.complete(scope, request({ message: "First" }))
        yield* refusing("messages", "new.content like 'Poison%'", "54000")
        const failed = yield* Effect.either(
          chat.complete(scope, request({ conversationId, message: "Poison" }))
        )
        expect(Either.mapLeft(failed, ({ _tag }) => _tag)).toEqual(Either.left("TURN_FAILED"))
        expect(yield* runs).toEqual(["complete", "failed"])
        const { reply } = yield* chat.complete(scope, request({ conversationId, message: "Third" }))
        expect(reply).toBe("Hello")
        expect(yield* transcript).toEqual([
          "1 user: First",
          "2 assistant: Hello",
          "3 user: Third",
          "4 assistant: Hello"
        ])
        yield* exportedAndErased(scope)
      }).pipe(Effect.scoped, onFreshData(turnLayer()))
  )

  it.scoped("of one running turn does not prevent the events of others from being stored", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const { reply } = yield* Script
      const server = yield* toolServer
      const sql = yield* SqlClient.SqlClient
      yield* give(scope, "odd", { http: { url: `${server.url}/odd` } })
      server.answers.set("/odd?q=%3F", '"poison"')
      yield* refusing("agent_run_events", "new.payload::text like '%poison%'", "54000")
      const forever: Reply = () => Stream.never
      yield* Ref.set(reply, inTurn(asks("odd"), forever))
      yield* Effect.fork(run(scope, { message: "Poisoned" }))
      yield* Effect.sleep("300 millis")
      yield* Ref.set(reply, forever)
      yield* Effect.fork(run(scope, { message: "Other" }))
      const stored = (message: string, type: string) =>
        Effect.repeat(
          sql`select 1 from agent_run_events e join agent_runs r on r.id = e.run_id
            where r.user_message = ${message} and e.type = ${type}`,
          { until: (rows) => rows.length > 0, schedule: Schedule.spaced("50 millis") }
        ).pipe(Effect.timeout("8 seconds"))
      yield* stored("Other", "retrieval.completed")
      // What the database refuses of it is left out, the rest is there.
      yield* stored("Poisoned", "tool.completed")
    }).pipe(Effect.scoped, onFreshData(turnLayer("6 seconds")))
  )
})

/** What a process leaves behind that stopped, or that lost sight of a run: the run, its ticket, its place in the quota. */
const leftRunning = (
  conversationId: ConversationId | undefined,
  id: string,
  instance: string,
  message: string
) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* sql`update conversations set tickets = tickets + 1 where id = ${conversationId ?? ""}`
    yield* sql`
      insert into agent_runs (id, tenant_id, agent_id, conversation_id, ticket, instance_id, user_message_id, user_message,
        period_start, status)
      select ${id}, tenant_id, agent_id, id, tickets, ${instance}, ${`msg_${id}`}, ${message},
        period_start_of(tenant_id), 'running' from conversations where id = ${conversationId ?? ""}`
    yield* sql`update tenant_usage set turns = turns + 1`
  })

eachEngineLive("A run that was left running", (it) => {
  it.scoped("with content that the database refuses is ended, and does not prevent the end of others", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const chat = yield* ChatTurn
      const instances = yield* ProcessLeases
      const one = yield* chat.complete(scope, request({ message: "One" }))
      const other = yield* chat.complete(scope, request({ message: "Other" }))
      yield* refusing("messages", "new.content like 'Poison%'", "54000")
      yield* leftRunning(one.conversationId, "run_dead_1", "ins_dead", "Poison")
      yield* leftRunning(other.conversationId, "run_dead_2", "ins_dead", "Lost")
      expect(yield* instances.sweep).toBe(2)
      expect(yield* runs).toEqual(["complete", "complete", "failed", "failed"])
      expect((yield* transcript).filter((line) => line.includes("Lost"))).toHaveLength(1)
      for (const { conversationId } of [one, other]) {
        expect((yield* chat.complete(scope, request({ conversationId }))).reply).toBe("Hello")
      }
      const sql = yield* SqlClient.SqlClient
      expect(yield* sql`select sum(turns)::int as turns from tenant_usage`).toEqual([{ turns: 4 }])
    }).pipe(Effect.scoped, onFreshData(turnLayer()))
  )

  it.scoped("by a living process is ended after its time limit, and not before", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const chat = yield* ChatTurn
      const instances = yield* ProcessLeases
      const sql = yield* SqlClient.SqlClient
      const { conversationId } = yield* chat.complete(scope, request())
      yield* instances.renew("ins_alive", "5 minutes")
      yield* leftRunning(conversationId, "run_left", "ins_alive", "Anyone?")
      expect(yield* instances.sweep).toBe(0)
      yield* sql`update agent_runs set ends_by = now() - interval '1 second' where id = 'run_left'`
      // The next turn of the conversation ends it.
      expect((yield* chat.complete(scope, request({ conversationId, message: "Next" }))).reply).toBe("Hello")
      expect(yield* runs).toEqual(expect.arrayContaining(["failed"]))
      expect((yield* transcript).slice(2)).toEqual(["3 user: Anyone?", "4 user: Next", "5 assistant: Hello"])
    }).pipe(onFreshData(turnLayer()))
  )

  it.scoped("has the full time limit of its turn, regardless of its process's clock", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const { reply } = yield* Script
      const sql = yield* SqlClient.SqlClient
      yield* Ref.set(reply, () => Stream.never)
      yield* Effect.fork(run(scope))
      const found = sql<{ readonly left: number }>`
        select extract(epoch from ends_by - now())::float as left from agent_runs`
      yield* Effect.repeat(found, {
        until: (rows) => rows.length > 0,
        schedule: Schedule.spaced("50 millis")
      })
      const [row] = yield* found
      // The turn's time-out of the harness and half a minute to be written in.
      expect(row?.left).toBeGreaterThan(30)
      expect(row?.left).toBeLessThanOrEqual(32)
    }).pipe(onFreshData(turnLayer("2 seconds")))
  )
})
