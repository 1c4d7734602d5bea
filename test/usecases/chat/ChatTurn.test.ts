import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as FastCheck from "effect/FastCheck"
import * as Fiber from "effect/Fiber"
import * as Schedule from "effect/Schedule"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { Embedder } from "../../../src/capabilities/Embedder.ts"
import { ModelError, type ModelPart } from "../../../src/capabilities/ModelRuntime.ts"
import { VectorSearch } from "../../../src/capabilities/VectorSearch.ts"
import { ProcessLeases } from "../../../src/store/chat/ProcessLeases.ts"
import { ChatTurn } from "../../../src/usecases/chat/ChatTurn.ts"
import * as Fixtures from "../../Fixtures.ts"
import { makeHashing } from "../../HashingEmbedder.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { chunk, request, says, Script, turnLayer } from "./TurnHarness.ts"

/** The tables are emptied before the process starts: it signs on in one of them. */
const onFreshData =
  <P, PE, PR>(process: Layer.Layer<P, PE, PR>) =>
  <A, E, R>(test: Effect.Effect<A, E, R>) =>
    Effect.zipRight(reset, Effect.provide(test, process))

const failing = (fields: Partial<ConstructorParameters<typeof ModelError>[0]> = {}) =>
  new ModelError({ reason: "Rejected", message: "no", retryable: false, ...fields })

const count = (table: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const [row] = yield* sql<{ readonly n: number }>`select count(*)::int as n from ${sql(table)}`
    return row?.n ?? 0
  })

const transcript = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ readonly line: string }>`
    select position || ' ' || role || ': ' || content as line from messages order by conversation_id, position`
  return rows.map(({ line }) => line)
})

const usage = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ readonly tenant: number; readonly agent: number; readonly output: number }>`
    select coalesce((select sum(turns) from tenant_usage), 0)::int as tenant,
      coalesce((select sum(turns) from agent_usage), 0)::int as agent,
      coalesce((select sum(output_tokens) from agent_usage), 0)::int as output`
  return row
})

eachEngineLive("A chat turn", (it) => {
  it.scoped("without an identity field creates an anonymous end user and a conversation", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const chat = yield* ChatTurn
      const { reply: scripted, chunks } = yield* Script
      yield* Ref.set(chunks, [chunk(1), chunk(2), chunk(3)])
      yield* Ref.set(scripted, says("See ", "[2]."))
      const result = yield* chat.complete(scope, request())
      expect(result.reply).toBe("See [2].")
      expect(result.citations.map(({ index, chunkId }) => [index, chunkId])).toEqual([[2, "chk_2"]])
      expect(result.media).toEqual([])
      expect(result.conversationId).toMatch(/^cnv_/)
      expect(result.endUserId).toMatch(/^usr_/)
      expect(result.realtimeToken).toMatch(/^[\w.-]{40,}$/)
      expect(result.realtimeUrl).toBe("ws://127.0.0.1/api/realtime")
      expect(yield* transcript).toEqual(["1 user: Hello?", "2 assistant: See [2]."])
      expect(yield* usage).toEqual({ tenant: 1, agent: 1, output: 2 })
    }).pipe(onFreshData(turnLayer()))
  )

  it.scoped("of a conversation appends to it, reads its history and does not name the end user", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const chat = yield* ChatTurn
      const { conversationId } = yield* chat.complete(scope, request())
      const second = yield* chat.complete(
        scope,
        request({ message: "And then?", conversationId, includeRealtimeToken: false })
      )
      expect(second).toEqual({
        reply: "Hello",
        conversationId,
        citations: [],
        media: [],
        runId: expect.stringMatching(/^run_/)
      })
      const { requests } = yield* Script
      const last = (yield* Ref.get(requests)).at(-1)
      expect(last?.prompt.content.map(({ role }) => role)).toEqual(["system", "user", "assistant", "user"])
      const sql = yield* SqlClient.SqlClient
      const searched = yield* sql<{ readonly query: string }>`
        select payload->>'query' as query from agent_run_events where type = 'retrieval.completed' order by at`
      expect(searched.map(({ query }) => query)).toEqual(["Hello?", "And then?\nHello?"])
      expect(yield* transcript).toEqual([
        "1 user: Hello?",
        "2 assistant: Hello",
        "3 user: And then?",
        "4 assistant: Hello"
      ])
    }).pipe(onFreshData(turnLayer()))
  )

  it.scoped("that repeats a credential in its message keeps it out of the trace of its search", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const chat = yield* ChatTurn
      const toolCredentials = { shop: "passphrase-1" }
      yield* chat.complete(scope, request({ message: "Is passphrase-1 right?", toolCredentials }))
      const sql = yield* SqlClient.SqlClient
      const searched = yield* sql<{ readonly query: string }>`
        select payload->>'query' as query from agent_run_events where type = 'retrieval.completed'`
      expect(searched).toEqual([{ query: "Is [redacted] right?" }])
    }).pipe(onFreshData(turnLayer()))
  )

  it.scoped("with persist false stores only that it happened", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const chat = yield* ChatTurn
      const anonymous = yield* chat.complete(scope, request({ persist: false }))
      expect(anonymous).toEqual({ reply: "Hello", citations: [], media: [], runId: null })
      expect(yield* count("end_users")).toBe(0)
      const known = yield* chat.complete(scope, request({ persist: false, externalEndUserId: " ada " }))
      expect(known.endUserId).toMatch(/^usr_/)
      expect(known.conversationId).toBeUndefined()
      const { conversationId } = yield* chat.complete(scope, request())
      const read = yield* chat.complete(scope, request({ persist: false, conversationId }))
      expect(read.conversationId).toBe(conversationId)
      expect(yield* count("messages")).toBe(2)
      expect(yield* count("agent_runs")).toBe(1)
      // Tokens are those of the agent's messages, of which there is one.
      expect(yield* usage).toEqual({ tenant: 4, agent: 4, output: 1 })
    }).pipe(onFreshData(turnLayer()))
  )

  it.scoped("resolves one externalEndUserId to one end user, also for fifty concurrent first turns", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const chat = yield* ChatTurn
      const results = yield* Effect.all(
        Array.from({ length: 50 }, () => chat.complete(scope, request({ externalEndUserId: "customer-1" }))),
        { concurrency: "unbounded" }
      )
      expect(new Set(results.map(({ endUserId }) => endUserId)).size).toBe(1)
      expect(new Set(results.map(({ conversationId }) => conversationId)).size).toBe(50)
      expect(yield* count("end_users")).toBe(1)
      expect(yield* usage).toMatchObject({ tenant: 50, agent: 50 })
    }).pipe(onFreshData(turnLayer()))
  )

  it.scoped("is refused with the documented codes, and then changes nothing", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent({ turns: 1 })
      const other = yield* Fixtures.agent()
      const chat = yield* ChatTurn
      const sql = yield* SqlClient.SqlClient
      const code = (fields: Readonly<Record<string, unknown>>, of = scope) =>
        Effect.map(Effect.either(chat.complete(of, request(fields))), (outcome) =>
          Either.isLeft(outcome) ? outcome.left._tag : "answered"
        )
      const foreign = yield* chat.complete(other, request())
      expect(yield* code({ conversationId: "cnv_nothing" })).toBe("CONVERSATION_NOT_FOUND")
      expect(yield* code({ conversationId: foreign.conversationId })).toBe("CONVERSATION_NOT_FOUND")
      expect(yield* code({ endUserId: foreign.endUserId })).toBe("END_USER_NOT_FOUND")
      const { conversationId, endUserId } = yield* chat.complete(scope, request())
      expect(yield* code({ endUserId })).toBe("TURN_LIMIT_EXCEEDED")
      expect(yield* code({ externalEndUserId: "new" })).toBe("TURN_LIMIT_EXCEEDED")
      expect(yield* code({ conversationId, persist: false })).toBe("TURN_LIMIT_EXCEEDED")
      yield* sql`update conversations set state = 'HUMAN_ACTIVE' where id = ${conversationId ?? ""}`
      expect(yield* code({ conversationId })).toBe("CONVERSATION_NOT_ACTIVE")
      expect(yield* count("end_users")).toBe(2)
      expect(yield* count("conversations")).toBe(2)
      expect(yield* count("agent_runs")).toBe(2)
    }).pipe(onFreshData(turnLayer()))
  )

  it.scoped("for the last place of the quota succeeds once", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent({ turns: 3 })
      const chat = yield* ChatTurn
      const outcomes = yield* Effect.all(
        Array.from({ length: 12 }, () => Effect.either(chat.complete(scope, request()))),
        { concurrency: "unbounded" }
      )
      expect(outcomes.filter(Either.isRight).length).toBe(3)
      expect(yield* count("conversations")).toBe(3)
    }).pipe(onFreshData(turnLayer()))
  )

  it.scoped("exceeds the limit, and is counted, when overage is enabled", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent({ turns: 0, overage: true })
      const chat = yield* ChatTurn
      yield* chat.complete(scope, request())
      expect(yield* usage).toMatchObject({ tenant: 1, agent: 1 })
    }).pipe(onFreshData(turnLayer()))
  )

  it.scoped("with runtime data, even an empty object, is refused while forwarding is off", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const chat = yield* ChatTurn
      const refused = yield* Effect.flip(chat.complete(scope, request({ context: {} })))
      expect(refused._tag).toBe("RUNTIME_DATA_UNAVAILABLE")
      expect((yield* chat.complete(scope, request())).reply).toBe("Hello")
    }).pipe(onFreshData(turnLayer("10 seconds", false)))
  )

  it.scoped("that fails at the model appends the user's message and a failed trace only", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const chat = yield* ChatTurn
      const { reply } = yield* Script
      yield* Ref.set(reply, () =>
        Stream.concat(Stream.make<[ModelPart]>({ _tag: "TextDelta", delta: "Half" }), Stream.fail(failing()))
      )
      expect((yield* Effect.flip(chat.complete(scope, request())))._tag).toBe("TURN_FAILED")
      expect(yield* transcript).toEqual(["1 user: Hello?"])
      const sql = yield* SqlClient.SqlClient
      const events = yield* sql<{
        readonly type: string
      }>`select type from agent_run_events order by sequence`
      expect(events.map(({ type }) => type)).toEqual(["run.started", "retrieval.completed", "run.failed"])
      const runs = yield* sql<{ readonly ok: boolean }>`
        select status = 'failed' and message_id = user_message_id as ok from agent_runs`
      expect(runs).toEqual([{ ok: true }])
      expect(yield* usage).toEqual({ tenant: 1, agent: 1, output: 0 })
    }).pipe(onFreshData(turnLayer()))
  )

  it.scoped("that its provider refused shows the reason only to operators", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const chat = yield* ChatTurn
      const { reply } = yield* Script
      const sql = yield* SqlClient.SqlClient
      const failures = [
        [{ message: "sk-secret was refused", problem: "key_refused" }, "TURN_FAILED", "key_refused"],
        [{ reason: "TimedOut" }, "RUNTIME_TIMEOUT", "timed_out"],
        [{ reason: "Unreachable" }, "TURN_FAILED", "unreachable"]
      ] as const
      for (const [fields, code, provider] of failures) {
        yield* Ref.set(reply, () => Stream.fail(failing(fields)))
        const refused = yield* Effect.flip(chat.complete(scope, request()))
        expect(refused._tag).toBe(code)
        expect(JSON.stringify(refused)).not.toMatch(/key_refused|sk-secret|timed_out|unreachable/)
        const told = yield* sql`
          select payload from agent_run_events where type = 'run.failed' order by run_id desc limit 1`
        expect(told).toEqual([{ payload: { code, provider } }])
      }
    }).pipe(onFreshData(turnLayer()))
  )

  it.scoped("without a finish from the model has failed", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const chat = yield* ChatTurn
      const { reply } = yield* Script
      yield* Ref.set(reply, () => Stream.make<[ModelPart]>({ _tag: "TextDelta", delta: "Half" }))
      expect((yield* Effect.flip(chat.complete(scope, request())))._tag).toBe("TURN_FAILED")
    }).pipe(onFreshData(turnLayer()))
  )

  it.scoped(
    "whose whole reply the provider has withheld says so, and what came of a reply stays as it is",
    () =>
      Effect.gen(function* () {
        const scope = yield* Fixtures.agent()
        const chat = yield* ChatTurn
        const { reply } = yield* Script
        const filtered = (...deltas: ReadonlyArray<string>) =>
          Stream.fromIterable<ModelPart>([
            ...deltas.map((delta) => ({ _tag: "TextDelta" as const, delta })),
            { _tag: "Finish", reason: "content-filter", inputTokens: 3, outputTokens: deltas.length }
          ])
        const said = (message: string, ...deltas: ReadonlyArray<string>) =>
          Effect.gen(function* () {
            yield* Ref.set(reply, () => filtered(...deltas))
            const { parts } = yield* chat.start(scope, request({ message }))
            return Chunk.toReadonlyArray(yield* Stream.runCollect(parts)).flatMap((part) =>
              part._tag === "TextDelta" ? [part.delta] : []
            )
          })
        expect(yield* said("How is that made?")).toEqual(["I cannot answer that here."])
        expect(yield* said("Wie kann ich das bitte machen?")).toEqual([
          "Darauf kann ich hier nicht antworten."
        ])
        expect((yield* said("How is that made?", "First take")).join("")).toBe("First take")
        expect((yield* transcript).filter((line) => line.startsWith("2 assistant"))).toEqual([
          "2 assistant: I cannot answer that here.",
          "2 assistant: Darauf kann ich hier nicht antworten.",
          "2 assistant: First take"
        ])
      }).pipe(onFreshData(turnLayer()))
  )

  it.scoped("retries the model only if nothing of the answer has arrived", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const chat = yield* ChatTurn
      const { reply, requests } = yield* Script
      yield* Ref.set(reply, (sent) => {
        const again = Ref.get(requests).pipe(Effect.map((all) => all.length > 1))
        return Stream.unwrap(
          Effect.map(again, (later) =>
            later
              ? says("Second try")(sent)
              : Stream.fail(failing({ reason: "RateLimited", retryable: true }))
          )
        )
      })
      expect((yield* chat.complete(scope, request())).reply).toBe("Second try")
      expect((yield* Ref.get(requests)).length).toBe(2)
    }).pipe(onFreshData(turnLayer()))
  )

  it.scoped("that takes longer than the limit fails with RUNTIME_TIMEOUT", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const chat = yield* ChatTurn
      const { reply } = yield* Script
      yield* Ref.set(reply, () => Stream.never)
      expect((yield* Effect.flip(chat.complete(scope, request())))._tag).toBe("RUNTIME_TIMEOUT")
      expect(yield* transcript).toEqual(["1 user: Hello?"])
    }).pipe(onFreshData(turnLayer("300 millis")))
  )

  it.scoped("whose client disconnects still settles and is stored", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const chat = yield* ChatTurn
      const { reply } = yield* Script
      const gate = yield* Deferred.make<void>()
      yield* Ref.set(reply, (sent) =>
        Stream.concat(
          Stream.make<[ModelPart]>({ _tag: "TextDelta", delta: "One " }),
          Stream.unwrap(Effect.as(Deferred.await(gate), says("two")(sent)))
        )
      )
      const turn = yield* chat.start(scope, request())
      yield* turn.parts.pipe(
        Stream.takeUntil(({ _tag }) => _tag === "TextDelta"),
        Stream.runDrain
      )
      yield* Deferred.succeed(gate, undefined)
      yield* transcript.pipe(Effect.repeat({ until: (lines) => lines.length === 2 }))
      expect(yield* transcript).toEqual(["1 user: Hello?", "2 assistant: One two"])
    }).pipe(onFreshData(turnLayer()))
  )

  for (const how of ["streamed", "complete"] as const)
    it.scoped(
      `whose client disconnects (${how}) ends its model call, and is counted, if it stores nothing`,
      () =>
        Effect.gen(function* () {
          const scope = yield* Fixtures.agent()
          const chat = yield* ChatTurn
          const { reply } = yield* Script
          const asked = yield* Deferred.make<void>()
          const ended = yield* Deferred.make<void>()
          yield* Ref.set(reply, () =>
            Stream.concat(
              Stream.make<[ModelPart]>({ _tag: "TextDelta", delta: "One " }),
              Stream.fromEffect(Effect.zipRight(Deferred.succeed(asked, undefined), Effect.never))
            ).pipe(Stream.ensuring(Deferred.succeed(ended, undefined)))
          )
          const passing = request({ persist: false })
          const reading =
            how === "complete"
              ? Effect.asVoid(chat.complete(scope, passing))
              : Effect.flatMap(chat.start(scope, passing), ({ parts }) => Stream.runDrain(parts))
          const client = yield* Effect.fork(reading)
          yield* Deferred.await(asked)
          yield* Fiber.interrupt(client)
          yield* Deferred.await(ended)
          yield* usage.pipe(Effect.repeat({ until: (counted) => counted?.agent === 1 }))
          expect(yield* transcript).toEqual([])
        }).pipe(onFreshData(turnLayer()))
    )

  it.scoped.prop(
    "settles completely when the client disconnects after any of its parts",
    { taken: FastCheck.integer({ min: 0, max: 9 }) },
    ({ taken }) =>
      Effect.gen(function* () {
        const scope = yield* Fixtures.agent()
        const chat = yield* ChatTurn
        const { reply, chunks } = yield* Script
        yield* Ref.set(chunks, [chunk(1)])
        yield* Ref.set(reply, says("A ", "B ", "[1]"))
        const turn = yield* chat.start(scope, request())
        yield* turn.parts.pipe(Stream.take(taken), Stream.runDrain)
        yield* transcript.pipe(Effect.repeat({ until: (lines) => lines.length === 2 }))
        expect(yield* transcript).toEqual(["1 user: Hello?", "2 assistant: A B [1]"])
        expect(yield* usage).toMatchObject({ tenant: 1, agent: 1 })
      }).pipe(onFreshData(turnLayer())),
    { fastCheck: { numRuns: 10 } }
  )

  it.scoped(
    "streams what it stores: the text of the parts is the stored reply, the events are the stored trace",
    () =>
      Effect.gen(function* () {
        const scope = yield* Fixtures.agent()
        const chat = yield* ChatTurn
        const { reply } = yield* Script
        yield* Ref.set(reply, says("A", "B", "C"))
        const turn = yield* chat.start(scope, request())
        const parts = Chunk.toReadonlyArray(yield* Stream.runCollect(turn.parts))
        const sql = yield* SqlClient.SqlClient
        const stored = yield* sql<{ readonly key: string }>`
        select run_id || ':' || sequence || ' ' || type || ' ' || label as key from agent_run_events order by sequence`
        const streamed = parts.flatMap((part) =>
          part._tag === "RunEvent" ? [`${part.event.id} ${part.event.type} ${part.event.label}`] : []
        )
        expect(streamed).toEqual(stored.map(({ key }) => key))
        expect(parts.at(-1)?._tag).toBe("Done")
        expect(yield* transcript).toContain("2 assistant: ABC")
      }).pipe(onFreshData(turnLayer()))
  )

  it.scoped("of one conversation runs alone, in order of arrival, across processes", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const here = yield* ChatTurn
      const { reply } = yield* Script
      const there = yield* Layer.build(Layer.fresh(turnLayer()))
      const elsewhere = yield* Effect.provide(ChatTurn, there)
      const script = yield* Effect.provide(Script, there)
      const { conversationId } = yield* here.complete(scope, request())
      const open = yield* Ref.make(0)
      const peak = yield* Ref.make(0)
      const slow = (sent: Parameters<ReturnType<typeof says>>[0]) =>
        Stream.unwrapScoped(
          Effect.acquireRelease(
            Effect.flatMap(
              Ref.updateAndGet(open, (n) => n + 1),
              (n) => Ref.update(peak, (m) => Math.max(m, n))
            ),
            () => Ref.update(open, (n) => n - 1)
          ).pipe(Effect.zipRight(Effect.sleep("20 millis")), Effect.as(says(`re: ${sent.question}`)(sent)))
        )
      yield* Ref.set(reply, slow)
      yield* Ref.set(script.reply, slow)
      const fibers: Array<Fiber.RuntimeFiber<unknown, unknown>> = []
      const sql = yield* SqlClient.SqlClient
      for (let place = 0; place < 6; place++) {
        const chat = place % 2 === 0 ? here : elsewhere
        fibers.push(
          yield* Effect.fork(chat.complete(scope, request({ message: `m${place}`, conversationId })))
        )
        // The next one arrives when this one has its ticket.
        yield* sql<{ readonly n: number }>`select tickets::int as n from conversations`.pipe(
          Effect.repeat({ until: ([row]) => row?.n === place + 2 })
        )
      }
      yield* Fiber.joinAll(fibers)
      expect(yield* Ref.get(peak)).toBe(1)
      const asked = (yield* transcript).filter((line) => line.includes("user"))
      expect(asked.map((line) => line.split(": ")[1])).toEqual(["Hello?", "m0", "m1", "m2", "m3", "m4", "m5"])
      expect((yield* transcript).length).toBe(14)
    }).pipe(onFreshData(turnLayer()))
  )

  it.scoped("that still runs at the end of a drain is ended and settled", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const sql = yield* SqlClient.SqlClient
      const process = yield* Scope.make()
      const context = yield* Layer.buildWithScope(Layer.fresh(turnLayer("1 minute")), process)
      yield* Ref.set(Context.get(context, Script).reply, () => Stream.never)
      yield* Effect.fork(Context.get(context, ChatTurn).complete(scope, request()))
      yield* sql`select 1 from agent_runs`.pipe(
        Effect.repeat({ until: (rows) => rows.length === 1, schedule: Schedule.spaced("20 millis") })
      )
      const [waited] = yield* Effect.timed(Scope.close(process, Exit.void))
      expect(Duration.toSeconds(waited)).toBeLessThan(20)
      expect(yield* sql`select status from agent_runs`).toEqual([{ status: "failed" }])
    }).pipe(onFreshData(turnLayer()))
  )

  it.scoped(
    "searches with the minimum score of its agent, or of the embedding model, which is lower for words alone",
    () => {
      const asked: Array<readonly [minScore: number, minWordScore: number | undefined]> = []
      const search: typeof VectorSearch.Service.search = (_, { minScore, minWordScore }) =>
        Effect.sync(() => {
          asked.push([minScore, minWordScore])
          return { chunks: [], degraded: false }
        })
      const knowledge = (minScore: number) =>
        Layer.mergeAll(
          Layer.succeed(VectorSearch, { search, warm: Effect.succeed(true) }),
          Layer.succeed(Embedder, { ...makeHashing(), minScore })
        )
      return Effect.gen(function* () {
        const scope = yield* Fixtures.agent()
        const sql = yield* SqlClient.SqlClient
        const ask = (minScore: number) =>
          Effect.flatMap(ChatTurn, (chat) => chat.complete(scope, request())).pipe(
            Effect.provide(Layer.fresh(turnLayer(undefined, undefined, knowledge(minScore))))
          )
        yield* ask(0.35)
        yield* ask(0.05)
        yield* sql`update agents set min_score = 0.3`
        yield* ask(0.35)
        expect(asked).toEqual([
          [0.35, 0.08],
          [0.05, 0.05],
          [0.3, 0.3]
        ])
      }).pipe((test) => Effect.zipRight(reset, test))
    }
  )

  it.scoped("of one conversation begins when the turn before it ends, without a pause", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const chat = yield* ChatTurn
      const { reply } = yield* Script
      const { conversationId } = yield* chat.complete(scope, request())
      const mayEnd = yield* Deferred.make<void>()
      yield* Ref.set(reply, (sent) =>
        Stream.unwrap(Effect.as(Deferred.await(mayEnd), says(`re: ${sent.question}`)(sent)))
      )
      const first = yield* Effect.fork(chat.complete(scope, request({ message: "first", conversationId })))
      const sql = yield* SqlClient.SqlClient
      const taken = (tickets: number) =>
        sql<{ readonly n: number }>`select tickets::int as n from conversations`.pipe(
          Effect.repeat({ until: ([row]) => row?.n === tickets })
        )
      yield* taken(2)
      // A turn whose pauses never end cannot poll.
      const second = yield* Effect.clockWith((clock) =>
        chat
          .complete(scope, request({ message: "second", conversationId }))
          .pipe(Effect.withClock(Object.create(clock, { sleep: { value: () => Effect.never } })))
      ).pipe(Effect.fork)
      yield* taken(3)
      yield* Deferred.succeed(mayEnd, undefined)
      expect((yield* Fiber.join(first)).reply).toBe("re: first")
      expect((yield* Fiber.join(second)).reply).toBe("re: second")
    }).pipe(onFreshData(turnLayer()))
  )

  it.scoped("of a dead process is ended by the next turn, which reads its message", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const chat = yield* ChatTurn
      const instances = yield* ProcessLeases
      const sql = yield* SqlClient.SqlClient
      const { conversationId } = yield* chat.complete(scope, request())
      const files = [{ artifact: `sha256:${"0".repeat(64)}`, mimeType: "image/png", name: "a.png", size: 1 }]
      // What a killed process leaves behind: a run, a ticket, and a lease that has run out.
      yield* sql`update conversations set tickets = tickets + 1`
      yield* sql`
        insert into agent_runs (id, tenant_id, agent_id, conversation_id, ticket, instance_id, user_message_id, user_message,
          attachments, period_start, status)
        select 'run_dead', tenant_id, agent_id, id, tickets, 'ins_dead', 'msg_dead', 'Anyone?', ${JSON.stringify(files)}::jsonb,
          period_start_of(tenant_id), 'running' from conversations`
      yield* sql`update tenant_usage set turns = turns + 1`
      const { reply } = yield* chat.complete(scope, request({ conversationId, message: "Next" }))
      expect(reply).toBe("Hello")
      const [run] = yield* sql<{
        readonly status: string
      }>`select status from agent_runs where id = 'run_dead'`
      expect(run?.status).toBe("failed")
      const left = yield* sql`
        select m.attachments, e.payload from messages m, agent_run_events e
        where m.id = 'msg_dead' and e.run_id = 'run_dead' and e.type = 'run.failed'`
      expect(left).toEqual([{ attachments: files, payload: { code: "PROCESS_STOPPED" } }])
      expect((yield* transcript).slice(2)).toEqual(["3 user: Anyone?", "4 user: Next", "5 assistant: Hello"])
      expect(yield* usage).toMatchObject({ tenant: 2, agent: 2 })
      expect(yield* instances.sweep).toBe(0)
    }).pipe(onFreshData(turnLayer()))
  )

  it.scoped(
    "of a process that was paused past its lease is not ended by the next turn of the same process",
    () =>
      Effect.gen(function* () {
        const scope = yield* Fixtures.agent()
        const chat = yield* ChatTurn
        const { reply } = yield* Script
        const sql = yield* SqlClient.SqlClient
        const { conversationId } = yield* chat.complete(scope, request())
        const gate = yield* Deferred.make<void>()
        const asked = yield* Deferred.make<void>()
        yield* Ref.set(reply, (sent) =>
          Stream.unwrap(
            Deferred.succeed(asked, undefined).pipe(
              Effect.zipRight(Deferred.await(gate)),
              Effect.as(says("late")(sent))
            )
          )
        )
        const ask = (message: string) =>
          Effect.fork(chat.complete(scope, request({ conversationId, message })))
        const first = yield* ask("First")
        yield* Deferred.await(asked)
        yield* sql`update instances set lease_until = now() - interval '1 minute'`
        const second = yield* ask("Second")
        // It finds no live process and takes the lease itself.
        yield* sql`select 1 from instances where lease_until > now()`.pipe(
          Effect.repeat({ until: (rows) => rows.length > 0, schedule: Schedule.spaced("10 millis") })
        )
        yield* Deferred.succeed(gate, undefined)
        expect((yield* Fiber.join(first)).reply).toBe("late")
        expect((yield* Fiber.join(second)).reply).toBe("late")
        expect((yield* transcript).slice(2).map((line) => line.slice(2))).toEqual([
          "user: First",
          "assistant: late",
          "user: Second",
          "assistant: late"
        ])
      }).pipe(onFreshData(turnLayer()))
  )

  it.scoped("that stops waiting for an earlier one does not let later turns overtake the running one", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const chat = yield* ChatTurn
      const instances = yield* ProcessLeases
      const { requests } = yield* Script
      const sql = yield* SqlClient.SqlClient
      const { conversationId } = yield* chat.complete(scope, request())
      // A turn of another process, which lives.
      yield* instances.renew("ins_other", "1 minute")
      yield* sql`update conversations set tickets = tickets + 1`
      yield* sql`
        insert into agent_runs (id, tenant_id, agent_id, conversation_id, ticket, instance_id, user_message_id, user_message,
          period_start, status)
        select 'run_other', tenant_id, agent_id, id, tickets, 'ins_other', 'msg_other', 'Still there?',
          period_start_of(tenant_id), 'running' from conversations`
      yield* sql`update tenant_usage set turns = turns + 1`
      const ask = (message: string) =>
        Effect.either(chat.complete(scope, request({ conversationId, message })))
      for (const message of ["Second", "Third"]) {
        expect(yield* ask(message)).toMatchObject({ _tag: "Left", left: { _tag: "RUNTIME_TIMEOUT" } })
      }
      // It dies: the next turn reads the question.
      yield* instances.remove("ins_other")
      expect(yield* ask("Fourth")).toMatchObject({ _tag: "Right" })
      const heard = JSON.stringify((yield* Ref.get(requests)).at(-1))
      for (const words of ["Second", "Third", "Still there?", "Fourth"]) expect(heard).toContain(words)
    }).pipe(onFreshData(turnLayer("1 second")))
  )

  it.scoped.prop(
    "follows the table of identities and persistence for every target",
    {
      target: FastCheck.constantFrom("none", "endUserId", "externalEndUserId", "conversationId"),
      persist: FastCheck.boolean()
    },
    ({ target, persist }) =>
      Effect.gen(function* () {
        const scope = yield* Fixtures.agent()
        const chat = yield* ChatTurn
        const first = yield* chat.complete(scope, request())
        const identity = {
          none: {},
          endUserId: { endUserId: first.endUserId },
          externalEndUserId: { externalEndUserId: "x" },
          conversationId: { conversationId: first.conversationId }
        }[target]
        const before = { conversations: yield* count("conversations"), messages: yield* count("messages") }
        const result = yield* chat.complete(scope, request({ ...identity, persist }))
        const created = (yield* count("conversations")) - before.conversations
        const appended = (yield* count("messages")) - before.messages
        expect(appended).toBe(persist ? 2 : 0)
        expect(created).toBe(persist && target !== "conversationId" ? 1 : 0)
        expect(result.endUserId !== undefined).toBe(
          target !== "conversationId" && (persist || target !== "none")
        )
        expect(result.conversationId !== undefined).toBe(persist || target === "conversationId")
        expect(result.realtimeToken !== undefined).toBe(result.conversationId !== undefined)
      }).pipe(onFreshData(turnLayer())),
    { fastCheck: { numRuns: 16 } }
  )
})
