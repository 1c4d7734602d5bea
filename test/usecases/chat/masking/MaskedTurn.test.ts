/** Personal data in a turn: no outside service gets a value, and the customer gets the complete reply. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as HashMap from "effect/HashMap"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Tracer from "effect/Tracer"
import { type ModelPart, ModelError } from "../../../../src/capabilities/ModelRuntime.ts"
import { MaskingInput } from "../../../../src/domain/agents/Masking.ts"
import { newToolId, ToolDefinition } from "../../../../src/domain/agents/Tool.ts"
import type { TurnPart } from "../../../../src/domain/chat/ChatTurn.ts"
import { RunId } from "../../../../src/domain/Ids.ts"
import { AgentStore } from "../../../../src/store/agents/Agents.ts"
import { ToolStore } from "../../../../src/store/agents/Tools.ts"
import { RecordedRunStore } from "../../../../src/store/chat/RecordedRuns.ts"
import { ChatTurn } from "../../../../src/usecases/chat/ChatTurn.ts"
import { Replays } from "../../../../src/usecases/chat/replay/Replays.ts"
import * as Fixtures from "../../../Fixtures.ts"
import { eachEngineLive, reset } from "../../../TestDatabase.ts"
import { chunk, type Reply, request, says, Script, turnLayer } from "../TurnHarness.ts"
import { toolServer } from "../ToolServer.ts"

const canaries = {
  email: "canary.person@mail.example",
  phone: "+49 30 5550123",
  card: "4111 1111 1111 1111",
  member: "MB-998877"
}
const all = Object.values(canaries)
const sentence = `I am ${canaries.email}, ${canaries.phone}, ${canaries.card}, ${canaries.member}.`
const pattern = { name: "member", pattern: "MB-\\d{6}" }

type Scope = Effect.Effect.Success<ReturnType<typeof Fixtures.agent>>

const masked = (given: Readonly<Record<string, unknown>> = {}) =>
  Effect.gen(function* () {
    const scope = yield* Fixtures.agent()
    const agents = yield* AgentStore
    const settings = Schema.decodeUnknownSync(MaskingInput)({ patterns: [pattern], ...given })
    const change = { changes: { masking: settings }, from: null, publish: true, note: null, author: null }
    yield* agents.update(scope, scope.agentId, change)
    return scope
  })

const ask = (scope: Scope, message: string, fields: Readonly<Record<string, unknown>> = {}) =>
  Effect.gen(function* () {
    const chat = yield* ChatTurn
    const turn = yield* chat.start(scope, request({ message, ...fields }), "widget")
    const parts: Array<TurnPart> = []
    const ended = yield* Effect.either(
      Stream.runForEach(turn.parts, (part) => Effect.sync(() => void parts.push(part)))
    )
    const result = parts.flatMap((part) => (part._tag === "Done" ? [part.result] : []))[0]
    const streamed = parts.map((part) => (part._tag === "TextDelta" ? part.delta : "")).join("")
    return { runId: turn.runId, result, streamed, parts, ended }
  })

/** The number of the placeholder that stands for `kind` in what the model was last sent. */
const placeholders = (text: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    [...text.matchAll(/\[(email|phone|card|member)-\d+\]/g)].map(([whole, kind]) => [kind, whole])
  )

/** Answers with what the model was sent in the place of the canaries, character by character. */
const echo: Reply = ({ prompt }) => {
  const sent = placeholders(JSON.stringify(prompt.content.slice(1)))
  const text = `You are ${sent["email"]}, ${sent["phone"]}, ${sent["card"]}, ${sent["member"]}.`
  return says(...text)({ prompt } as never)
}

const calls = (name: string, input: Readonly<Record<string, string>>): Reply => {
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

const expectNone = (text: string, of: ReadonlyArray<string> = all) => {
  for (const canary of of) {
    expect(text).not.toContain(canary)
    expect(text.replaceAll(/[^0-9a-z@]/gi, "")).not.toContain(canary.replaceAll(/[^0-9a-z@]/gi, ""))
  }
}

const requestsText = Effect.flatMap(Script, ({ requests }) =>
  Effect.map(Ref.get(requests), (sent) => JSON.stringify(sent))
)

const traces = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ readonly text: string }>`
    select to_jsonb(t)::text as text from agent_run_events t order by run_id, sequence`
  return rows.map(({ text }) => text).join("\n")
})

const process = Replays.Default.pipe(
  Layer.provideMerge(turnLayer()),
  Layer.provideMerge(Layer.merge(AgentStore.Default, RecordedRunStore.Default))
)

const onFreshData = <A, E, R>(test: Effect.Effect<A, E, R>) =>
  Effect.zipRight(reset, Effect.provide(test, process))

const addTool = (scope: Scope, url: string) =>
  Effect.gen(function* () {
    const definition = yield* Schema.decodeUnknown(ToolDefinition)({
      parameters: { type: "object", properties: { who: { type: "string" } } },
      http: { method: "POST", url }
    })
    yield* (yield* ToolStore).insert(scope, {
      id: yield* newToolId,
      name: "lookup",
      definition,
      secret: null
    })
  })

eachEngineLive("A turn of an agent that masks personal data", (it) => {
  it.scoped("shows the model placeholders and the customer the values, both streamed and stored", () =>
    Effect.gen(function* () {
      const scope = yield* masked()
      const { reply } = yield* Script
      yield* Ref.set(reply, echo)
      const first = yield* ask(scope, sentence, {
        context: { profile: { mail: "other.canary@mail.example", phone: "5550199222" } }
      })
      const whole = sentence.replace("I am", "You are")
      expect([first.streamed, first.result?.reply]).toEqual([whole, whole])
      const conversationId = first.result?.conversationId
      const second = yield* ask(scope, "And again?", { conversationId })
      expect(second.result?.reply).toBe(whole)
      const sql = yield* SqlClient.SqlClient
      const rows = yield* sql<{ readonly content: string }>`
        select content from messages where role = 'assistant' order by position`
      expect(rows.map(({ content }) => content)).toEqual([whole, whole])
      const sent = yield* requestsText
      expectNone(sent, [...all, "other.canary@mail.example", "5550199222"])
      const trace = yield* traces
      expectNone(trace)
      expect(trace).toContain('"masking": {"card": 1, "email": 2, "phone": 2, "member": 1}')
    }).pipe(onFreshData)
  )

  it.scoped("reveals no value to a customer who writes a placeholder, in any turn", () =>
    Effect.gen(function* () {
      const scope = yield* masked()
      const { reply } = yield* Script
      yield* Ref.set(reply, ((asked) => {
        const last = JSON.stringify(asked.prompt.content.at(-1))
        return says(`Said: ${/\[text-\d+\]/.exec(last)?.[0]}`)(asked)
      }) satisfies Reply)
      const first = yield* ask(scope, canaries.email)
      const { conversationId } = first.result ?? {}
      const second = yield* ask(scope, "What is [email-1]?", { conversationId })
      expect(second.result?.reply).toBe("Said: [email-1]")
    }).pipe(onFreshData)
  )

  it.scoped(
    "calls a tool with placeholders and masks its answer and its failure; a trusted tool gets the values",
    () =>
      Effect.gen(function* () {
        const server = yield* toolServer
        for (const trusted of [false, true]) {
          const scope = yield* masked(trusted ? { tools: ["lookup"] } : {})
          yield* addTool(scope, `${server.url}/${trusted ? "trusted" : "who"}`)
          server.answers.set(
            "/trusted",
            JSON.stringify({ [canaries.email]: canaries.card, n: canaries.phone })
          )
          const { reply, requests } = yield* Script
          yield* Ref.set(requests, [])
          const last: Reply = (asked) => {
            const told = JSON.stringify(asked.prompt.content.at(-1))
            return says(`Found ${placeholders(told)["email"]}.`)(asked)
          }
          yield* Ref.set(reply, inTurn(calls("lookup", { who: "[email-1]" }), last))
          const told = yield* ask(scope, `Who is ${canaries.email}?`)
          const body = server.received.at(-1)?.body ?? ""
          expect(body).toContain(trusted ? canaries.email : "[email-1]")
          if (!trusted) expectNone(JSON.stringify(server.received))
          expect(told.result?.reply).toBe(`Found ${canaries.email}.`)
          expectNone(yield* requestsText)
          expectNone(
            JSON.stringify(told.parts.filter(({ _tag }) => _tag === "RunEvent" || _tag === "ToolResult"))
          )
        }
        expectNone(yield* traces)
      }).pipe(onFreshData)
  )

  it.scoped("searches without the values, in the first and in later searches", () =>
    Effect.gen(function* () {
      const scope = yield* masked()
      const sql = yield* SqlClient.SqlClient
      yield* sql`update agents set max_searches = 2 where id = ${scope.agentId}`
      const { chunks, reply } = yield* Script
      yield* sql`insert into sources (id, tenant_id, agent_id, type, name, config, live_generation)
        values ('src_1', ${scope.tenantId}, ${scope.agentId}, 'FILE', 'Handbook', '{}', 1)`
      yield* Ref.set(chunks, [{ ...chunk(1), text: "Write to help@acme.example. [email-1]" }])
      yield* Ref.set(reply, inTurn(calls("search_sources", { query: "about [email-1]" }), echo))
      const told = yield* ask(scope, sentence)
      expect(told.result?.reply).toBe(sentence.replace("I am", "You are"))
      const sent = yield* requestsText
      expectNone(sent)
      expect(sent).toContain("help@acme.example. [text-1]")
      const trace = yield* traces
      expectNone(trace)
      expect(trace).toContain('"query": "about"')
    }).pipe(onFreshData)
  )

  it.scoped(
    "restores the values of an object, and shows neither model nor trace an object that does not match",
    () =>
      Effect.gen(function* () {
        const scope = yield* masked({ patterns: [{ name: "quoted", pattern: '"\\w{3,20}"' }] })
        const { reply } = yield* Script
        const fits: Reply = (asked) => says('{"mail": "[email-1]", "said": "[quoted-1]"}')(asked)
        yield* Ref.set(reply, inTurn(says('{"[email-1]": 1}'), fits))
        const responseSchema = {
          type: "object",
          properties: { mail: { type: "string", minLength: 20 }, said: { type: "string" } },
          required: ["mail"],
          additionalProperties: false
        }
        const told = yield* ask(scope, `${canaries.email} says "hello"`, { responseSchema })
        expect(JSON.parse(told.result?.reply ?? "null")).toEqual({ mail: canaries.email, said: '"hello"' })
        expect(told.streamed).toBe(told.result?.reply)
        expectNone(yield* requestsText)
        expectNone(yield* traces)
      }).pipe(onFreshData)
  )

  it.scoped("that fails has only the numbers of values, not the values, in logs, spans and the trace", () =>
    Effect.gen(function* () {
      const scope = yield* masked()
      const { reply } = yield* Script
      const logged: Array<string> = []
      const logger = Logger.make(({ annotations, cause, message }) => {
        logged.push(JSON.stringify([message, cause, [...HashMap.entries(annotations)]]))
      })
      const spans: Array<string> = []
      const tracer = Tracer.make({
        span: (name, parent, context, links, startTime, kind) => {
          const attributes = new Map<string, unknown>()
          return {
            _tag: "Span",
            name,
            spanId: "1",
            traceId: "1",
            parent,
            context,
            status: { _tag: "Started", startTime },
            attributes,
            links,
            sampled: true,
            kind,
            attribute: (key, value) => void spans.push(`${key} ${String(value)}`),
            event: (event, _, given) => void spans.push(`${event} ${JSON.stringify(given)}`),
            addLinks: () => undefined,
            // Of what a span ends with only a failure is exported.
            end: (_, exit) => void spans.push(`${name} ${Exit.isFailure(exit) ? JSON.stringify(exit) : ""}`)
          }
        },
        context: (run) => run()
      })
      const refusal = new ModelError({
        reason: "Rejected",
        message: "The provider answered with status 400",
        retryable: false
      })
      yield* Ref.set(reply, () => Stream.fail(refusal))
      const told = yield* ask(scope, sentence).pipe(
        Effect.provide(Logger.add(logger)),
        Effect.withTracer(tracer),
        Effect.withTracerEnabled(true)
      )
      expect(told.ended._tag).toBe("Left")
      expectNone(JSON.stringify([logged, told.parts]))
      expectNone(spans.join("\n"))
      const trace = yield* traces
      expectNone(trace)
      expect(trace).toContain('"masking": {"card": 1, "email": 1, "phone": 1, "member": 1}')
    }).pipe(onFreshData)
  )

  it.scoped("shows the team the values when it hands over", () =>
    Effect.gen(function* () {
      const scope = yield* masked()
      const { reply } = yield* Script
      yield* Ref.set(
        reply,
        inTurn(calls("hand_off_to_human", { reason: "Write to [email-1]" }), says("A person will."))
      )
      yield* ask(scope, `Call me: ${canaries.email}`)
      expectNone(yield* traces)
      const sql = yield* SqlClient.SqlClient
      const [row] = yield* sql<{
        readonly text: string
      }>`select to_jsonb(c)::text as text from conversations c`
      expect(row?.text).toContain(`Write to ${canaries.email}`)
    }).pipe(onFreshData)
  )

  it.scoped("is replayed with the original placeholders, with the same result", () =>
    Effect.gen(function* () {
      const server = yield* toolServer
      const scope = yield* masked()
      yield* addTool(scope, `${server.url}/who`)
      const { reply, requests } = yield* Script
      const last: Reply = (asked) => {
        const told = JSON.stringify(asked.prompt.content.at(-1))
        return says(`Found ${placeholders(told)["email"]}, and ${placeholders(told)["phone"]}.`)(asked)
      }
      const script = () => inTurn(calls("lookup", { who: "[email-1]" }), last)
      server.answers.set("/who", JSON.stringify({ mail: "[email-1]", phone: canaries.phone }))
      yield* Ref.set(reply, script())
      const told = yield* ask(scope, `Who is ${canaries.email}?`)
      expect(told.result?.reply).toBe(`Found ${canaries.email}, and ${canaries.phone}.`)
      const before = (yield* Ref.get(requests)).at(-1)?.prompt
      yield* Ref.set(requests, [])
      yield* Ref.set(reply, script())
      const replays = yield* Replays
      const runs = yield* replays.run(scope, { runIds: [RunId.make(String(told.runId))] }, () => Effect.void)
      expect(runs).toMatchObject([{ outcome: "same" }])
      expect((yield* Ref.get(requests)).at(-1)?.prompt).toEqual(before)
      expectNone(yield* requestsText)
    }).pipe(onFreshData)
  )

  it.scoped("is not changed if the agent masks nothing", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const { reply, requests } = yield* Script
      yield* Ref.set(reply, says("[email-1] stays"))
      const told = yield* ask(scope, sentence)
      expect(told.streamed).toBe("[email-1] stays")
      const [sent] = yield* Ref.get(requests)
      expect(JSON.stringify(sent)).toContain(sentence)
      expect(JSON.stringify(sent?.prompt)).not.toContain("placeholder")
      expect(yield* traces).not.toContain("masking")
    }).pipe(onFreshData)
  )
})
