/** What a model thinks, in a turn: told to programs where the agent says so, and kept nowhere. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect, layer } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import * as Stream from "effect/Stream"
import type { ModelPart } from "../../../../src/capabilities/ModelRuntime.ts"
import type { ReadScope } from "../../../../src/domain/accounts/Access.ts"
import type { ConversationChannel } from "../../../../src/domain/conversations/Conversation.ts"
import { ChatTurn } from "../../../../src/usecases/chat/ChatTurn.ts"
import * as Fixtures from "../../../Fixtures.ts"
import { reset, TestDatabase } from "../../../TestDatabase.ts"
import { chunk, request, Script, turnLayer } from "../TurnHarness.ts"

const secret = "crm-4711-correct-horse"
const mail = "canary.person@mail.example"
const options = { anthropic: { signature: "c2ln" } }

const finish = (reason: "stop" | "tool-calls"): ModelPart => ({
  _tag: "Finish",
  reason,
  inputTokens: 5,
  outputTokens: 9,
  reasoningTokens: 4
})

const think = (delta: string): ModelPart => ({ _tag: "ReasoningDelta", delta })

const rounds: ReadonlyArray<ReadonlyArray<ModelPart>> = [
  [
    think("PONDERING [1] crm-4711-"),
    think("correct-horse of [ema"),
    think("il 1]."),
    { _tag: "Reasoning", text: "as it came", options },
    { _tag: "TextDelta", delta: "Let me look." },
    { _tag: "ToolCall", id: "call_1", name: "nothing", input: {}, rawInput: "", options },
    finish("tool-calls")
  ],
  [think("MUSING"), { _tag: "TextDelta", delta: "Done." }, finish("stop")]
]

/** All parts of a turn, one by one from the model. */
const turn = (scope: ReadScope, channel: ConversationChannel = "api") =>
  Effect.gen(function* () {
    const { reply } = yield* Script
    let round = 0
    yield* Ref.set(reply, () => Stream.rechunk(Stream.fromIterable(rounds[round++] ?? []), 1))
    const chat = yield* ChatTurn
    const asked = request({ message: `I am ${mail}`, toolCredentials: { crm: secret } })
    const { parts } = yield* chat.start(scope, asked, channel)
    return Chunk.toReadonlyArray(yield* Stream.runCollect(parts))
  })

const agent = (settings: Readonly<Record<string, unknown>>) =>
  Effect.gen(function* () {
    yield* reset
    const scope = yield* Fixtures.agent()
    const sql = yield* SqlClient.SqlClient
    if (Object.keys(settings).length > 0)
      yield* sql`update agents set ${sql.update(settings)} where id = ${scope.agentId}`
    return scope
  })

const thoughtOf = (parts: Effect.Effect.Success<ReturnType<typeof turn>>) =>
  parts.map((part) => (part._tag === "ReasoningDelta" ? part.delta : "")).join("")

const masking = JSON.stringify({ kinds: ["email"], patterns: [], sources: false, tools: [] })

layer(TestDatabase, { excludeTestServices: true })("A model's reasoning", (it) => {
  it.scoped("is not streamed by default, and is sent back to its provider with the following calls", () =>
    Effect.gen(function* () {
      const scope = yield* agent({})
      const parts = yield* turn(scope)
      expect(thoughtOf(parts)).toBe("")
      expect(parts.at(-1)).toMatchObject({ result: { reply: "Let me look.\n\nDone." } })
      const { requests } = yield* Script
      const [, second] = yield* Ref.get(requests)
      const assistant = second?.prompt.content.find(({ role }) => role === "assistant")
      expect(assistant?.content).toMatchObject([
        { type: "reasoning", text: "as it came", options },
        { type: "text", text: "Let me look." },
        { type: "tool-call", options }
      ])
    }).pipe(Effect.provide(turnLayer()))
  )

  it.scoped(
    "is streamed if the agent enables it, scrubbed and restored, and is neither cited nor stored",
    () =>
      Effect.gen(function* () {
        const scope = yield* agent({ stream_reasoning: true, masking })
        const { chunks } = yield* Script
        yield* Ref.set(chunks, [chunk(0)])
        const parts = yield* turn(scope)
        expect(thoughtOf(parts)).toBe(`PONDERING [1] [redacted] of ${mail}.MUSING`)
        expect(parts.at(-1)).toMatchObject({ result: { reply: "Let me look.\n\nDone.", citations: [] } })
        const order = parts.flatMap(({ _tag }) =>
          _tag === "ReasoningDelta" || _tag === "TextDelta" || _tag === "ToolCall" ? [_tag] : []
        )
        expect(order.filter((tag, place) => tag !== order[place - 1])).toEqual([
          "ReasoningDelta",
          "TextDelta",
          "ToolCall",
          "ReasoningDelta",
          "TextDelta"
        ])
        const completed = parts.flatMap((part) =>
          part._tag === "RunEvent" && part.event.type === "model.completed" ? [part.event.payload] : []
        )
        expect(completed).toMatchObject([{ reasoningTokens: 4 }, { reasoningTokens: 8 }])
        const sql = yield* SqlClient.SqlClient
        const tables = yield* sql<{ readonly name: string }>`
        select table_name as name from information_schema.tables where table_schema = 'public'`
        const dump = JSON.stringify(
          yield* Effect.forEach(tables, ({ name }) => sql`select * from ${sql(name)}`)
        )
        expect(["PONDERING", "MUSING", "as it came"].filter((word) => dump.includes(word))).toEqual([])
      }).pipe(Effect.provide(turnLayer()))
  )

  it.scoped("is never streamed to visitors, the team's trials and customers of channels", () =>
    Effect.gen(function* () {
      const scope = yield* agent({ stream_reasoning: true })
      for (const channel of ["widget", "test", "whatsapp"]) {
        expect([channel, thoughtOf(yield* turn(scope, channel))]).toEqual([channel, ""])
      }
    }).pipe(Effect.provide(turnLayer()))
  )

  it.scoped("is delayed until the reply if that may be withheld", () =>
    Effect.gen(function* () {
      const scope = yield* agent({ stream_reasoning: true, unsupported: "withhold" })
      const { chunks } = yield* Script
      yield* Ref.set(chunks, [chunk(0)])
      const parts = yield* turn(scope)
      const texts = parts.flatMap((part) => (part._tag === "TextDelta" ? [part.delta] : [])).join("")
      const isWithheld = !texts.includes("Let me look.")
      expect(thoughtOf(parts) === "").toBe(isWithheld)
      const first = parts.findIndex(({ _tag }) => _tag === "ReasoningDelta")
      const called = parts.findIndex(({ _tag }) => _tag === "ToolCall")
      expect(first === -1 || first > called).toBe(true)
    }).pipe(Effect.provide(turnLayer()))
  )
})
