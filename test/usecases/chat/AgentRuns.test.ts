import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import * as Stream from "effect/Stream"
import { AuditLog, AuditUnavailable } from "../../../src/capabilities/AuditLog.ts"
import { layerSql } from "../../../src/capabilities/AuditLog/Sql.ts"
import { ModelError, type ModelPart } from "../../../src/capabilities/ModelRuntime.ts"
import type { AgentKey } from "../../../src/domain/accounts/Access.ts"
import type { TurnPart } from "../../../src/domain/chat/ChatTurn.ts"
import { AgentId, RunId, TenantId } from "../../../src/domain/Ids.ts"
import { AgentRunStore } from "../../../src/store/chat/AgentRuns.ts"
import { AgentRuns } from "../../../src/usecases/chat/AgentRuns.ts"
import { ChatTurn, type RunningTurn } from "../../../src/usecases/chat/ChatTurn.ts"
import { maxUnreadParts } from "../../../src/usecases/chat/TurnParts.ts"
import * as Fixtures from "../../Fixtures.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { chunk, request, says, Script, turnLayer } from "./TurnHarness.ts"

/** One process that runs turns and answers for them. */
const processLayer = AgentRuns.Default.pipe(Layer.provideMerge(turnLayer()), Layer.provideMerge(layerSql))

/** The tables are emptied before the process starts: it signs on in one of them. */
const onFreshData = <A, E, R>(test: Effect.Effect<A, E, R>) =>
  Effect.zipRight(reset, Effect.provide(test, processLayer))

const start = Effect.gen(function* () {
  const scope = yield* Fixtures.agent()
  const key = yield* Fixtures.key(scope)
  return { key, chat: yield* ChatTurn, runs: yield* AgentRuns, script: yield* Script }
})

const idOf = ({ runId }: RunningTurn) => runId ?? RunId.make("none")

const page = { limit: 20, after: 0 }

const audited = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ readonly line: string }>`
    select actor_type || ' ' || actor_id || ' ' || action || ' ' || target || ' ' || request_id as line
    from audit_entries order by id`
  return rows.map(({ line }) => line)
})

/** Says `text`, tells that it did, and goes on when `gate` opens; `aborted` tells that it was let go. */
const held = (text: string) =>
  Effect.gen(function* () {
    const gate = yield* Deferred.make<void>()
    const aborted = yield* Deferred.make<void>()
    const first = text === "" ? [] : [{ _tag: "TextDelta", delta: text } satisfies ModelPart]
    const reply = (sent: Parameters<ReturnType<typeof says>>[0]) =>
      Stream.concat(
        Stream.fromIterable<ModelPart>(first),
        Stream.unwrap(Effect.as(Deferred.await(gate), says("the rest")(sent)))
      ).pipe(Stream.ensuring(Deferred.succeed(aborted, undefined)))
    return { gate, aborted, reply }
  })

const collected = (turn: RunningTurn) => Effect.map(Stream.runCollect(turn.parts), Chunk.toReadonlyArray)

/** Reads until the model has said something. */
const untilText = (turn: RunningTurn) =>
  turn.parts.pipe(
    Stream.takeUntil(({ _tag }) => _tag === "TextDelta"),
    Stream.runDrain
  )

const merged = (parts: ReadonlyArray<TurnPart>) =>
  parts.reduce<ReadonlyArray<TurnPart>>((all, part) => {
    const last = all.at(-1)
    return last?._tag === "TextDelta" && part._tag === "TextDelta"
      ? [...all.slice(0, -1), { _tag: "TextDelta", delta: last.delta + part.delta }]
      : [...all, part]
  }, [])

const wire = (parts: ReadonlyArray<TurnPart>): unknown => JSON.parse(JSON.stringify(merged(parts)))

eachEngineLive("A run's trace", (it) => {
  it.scoped("has the documented fields, and pages by the last sequence received", () =>
    Effect.gen(function* () {
      const { chat, key, runs } = yield* start
      const turn = yield* chat.start(key, request())
      const parts = yield* collected(turn)
      const done = parts.flatMap((part) => (part._tag === "Done" ? [part.result] : []))
      const runId = idOf(turn)
      const whole = yield* runs.read(key, runId, page, "req_1")
      expect(Object.keys(whole).sort()).toEqual([
        "agentVersion",
        "completedAt",
        "conversationId",
        "cost",
        "events",
        "hasMore",
        "id",
        "messageId",
        "nextCursor",
        "passages",
        "startedAt",
        "status"
      ])
      expect(whole).toMatchObject({ id: runId, status: "complete", hasMore: false, nextCursor: null })
      expect(whole.conversationId).toBe(done[0]?.conversationId)
      expect(whole.messageId).toMatch(/^msg_/)
      expect(whole.completedAt).not.toBeNull()
      expect(whole.events.map(({ id, sequence, type }) => [id, sequence, type])).toEqual([
        [`${runId}:1`, 1, "run.started"],
        [`${runId}:2`, 2, "retrieval.completed"],
        [`${runId}:3`, 3, "model.completed"],
        [`${runId}:4`, 4, "run.completed"]
      ])
      expect(whole.events[1]?.payload).toMatchObject({ query: "Hello?" })
      const first = yield* runs.read(key, runId, { limit: 3, after: 0 }, "req_2")
      expect([first.events.length, first.hasMore, first.nextCursor]).toEqual([3, true, "3"])
      const rest = yield* runs.read(key, runId, { limit: 3, after: 3 }, "req_3")
      expect([...first.events, ...rest.events]).toEqual(whole.events)
      expect([rest.hasMore, rest.nextCursor]).toEqual([false, null])
      const beyond = yield* runs.read(key, runId, { limit: 3, after: 999_999_999_999_999 }, "req_4")
      expect([beyond.events, beyond.hasMore]).toEqual([[], false])
    }).pipe(onFreshData)
  )

  it.scoped("is audited at every successful read only", () =>
    Effect.gen(function* () {
      const { chat, key, runs } = yield* start
      const turn = yield* chat.start(key, request())
      yield* collected(turn)
      const runId = idOf(turn)
      yield* runs.read(key, runId, page, "req_1")
      yield* runs.read(key, runId, page, "req_2")
      const elsewhere: ReadonlyArray<AgentKey> = [
        { ...key, agentId: AgentId.make("agt_other") },
        { ...key, tenantId: TenantId.make("ten_other") }
      ]
      for (const other of elsewhere) {
        expect((yield* Effect.flip(runs.read(other, runId, page, "req_3")))._tag).toBe("NOT_FOUND")
      }
      const unknown = yield* Effect.flip(runs.read(key, RunId.make("run_unknown"), page, "req_4"))
      expect(unknown._tag).toBe("NOT_FOUND")
      const line = `key ${key.keyId} agent_run.read ${runId}`
      expect(yield* audited).toEqual([`${line} req_1`, `${line} req_2`])
      const log = yield* AuditLog
      const newest = yield* log.list(key.tenantId, { limit: 1 })
      expect(newest.rows).toMatchObject([
        {
          actor: { type: "key", id: key.keyId },
          action: "agent_run.read",
          target: runId,
          requestId: "req_2"
        }
      ])
      const older = yield* log.list(key.tenantId, { limit: 1, after: newest.next ?? "" })
      expect([older.rows[0]?.requestId, older.next]).toEqual(["req_1", null])
      expect((yield* log.list(TenantId.make("ten_other"), { limit: 1 })).rows).toEqual([])
    }).pipe(onFreshData)
  )

  it.scoped("is not returned when the read cannot be audited", () =>
    Effect.gen(function* () {
      const { chat, key } = yield* start
      const turn = yield* chat.start(key, request())
      yield* collected(turn)
      const silent = Layer.succeed(AuditLog, {
        record: () => Effect.fail(new AuditUnavailable({ cause: "disk full" })),
        list: () => Effect.succeed({ rows: [], next: null })
      })
      const runs = yield* Effect.provide(
        AgentRuns,
        Layer.fresh(AgentRuns.Default).pipe(Layer.provide(silent))
      )
      const refused = yield* Effect.flip(runs.read(key, idOf(turn), page, "req_1"))
      expect([refused._tag, refused.message.includes("disk")]).toEqual(["SERVICE_UNAVAILABLE", false])
    }).pipe(onFreshData)
  )

  it.scoped("of a long turn is readable while it runs, and has each event once at the end", () =>
    Effect.gen(function* () {
      const { chat, key, runs, script } = yield* start
      const { gate, reply } = yield* held("Half")
      yield* Ref.set(script.reply, reply)
      const turn = yield* chat.start(key, request())
      const reading = yield* Effect.fork(collected(turn))
      const running = yield* runs
        .read(key, idOf(turn), page, "req_1")
        .pipe(Effect.delay("20 millis"), Effect.repeat({ until: ({ events }) => events.length > 1 }))
      expect(running).toMatchObject({ status: "running", completedAt: null, messageId: null })
      expect(running.events.map(({ type }) => type)).toEqual(["run.started", "retrieval.completed"])
      yield* Deferred.succeed(gate, undefined)
      const streamed = (yield* Fiber.join(reading)).flatMap((part) =>
        part._tag === "RunEvent" ? [part.event] : []
      )
      const settled = yield* runs.read(key, idOf(turn), page, "req_2")
      expect(settled.status).toBe("complete")
      expect(JSON.parse(JSON.stringify(settled.events))).toEqual(JSON.parse(JSON.stringify(streamed)))
    }).pipe(onFreshData)
  )

  it.scoped("of a failed run names the user's message", () =>
    Effect.gen(function* () {
      const { chat, key, runs, script } = yield* start
      const failure = new ModelError({ reason: "Rejected", message: "no", retryable: false })
      yield* Ref.set(script.reply, () => Stream.fail(failure))
      const turn = yield* chat.start(key, request())
      yield* Effect.flip(collected(turn))
      const trace = yield* runs.read(key, idOf(turn), page, "req_1")
      expect(trace.status).toBe("failed")
      const sql = yield* SqlClient.SqlClient
      const [message] = yield* sql<{ readonly id: string }>`select id from messages where role = 'user'`
      expect(trace.messageId).toBe(message?.id)
    }).pipe(onFreshData)
  )
})

/** Two turns of one conversation: `first` runs until `gate` opens, `second` waits for it. */
const startTwoTurns = Effect.gen(function* () {
  const { chat, key, runs, script } = yield* start
  const { conversationId } = yield* chat.complete(key, request())
  const { gate, reply } = yield* held("Half ")
  yield* Ref.set(script.reply, reply)
  const first = yield* chat.start(key, request({ conversationId }))
  const waiting = yield* Effect.fork(Effect.flip(chat.start(key, request({ conversationId }))))
  const sql = yield* SqlClient.SqlClient
  const [second] = yield* sql<{ readonly id: RunId }>`select id from agent_runs where ticket = 3`.pipe(
    Effect.delay("10 millis"),
    Effect.repeat({ until: (rows) => rows.length === 1 })
  )
  const id = second?.id ?? RunId.make("none")
  return { chat, conversationId, first, gate, key, runs, script, second: id, sql, waiting }
})

eachEngineLive("A turn that waits until somebody else answers its conversation", (it) => {
  it.scoped("fails as taken over, like the turn before it, and says that it was refused", () =>
    Effect.gen(function* () {
      const { first, gate, key, runs, second, sql, waiting } = yield* startTwoTurns
      // As when the first turn itself requests a human: no turn is stopped.
      yield* sql`update conversations set state = 'HUMAN_REQUESTED', epoch = epoch + 1`
      yield* Deferred.succeed(gate, undefined)
      expect((yield* Effect.flip(collected(first)))._tag).toBe("TURN_FAILED")
      expect((yield* Fiber.join(waiting))._tag).toBe("CONVERSATION_NOT_ACTIVE")
      const failureOf = (id: RunId) =>
        Effect.map(runs.read(key, id, page, "req_1"), ({ events }) => events.at(-1)?.payload)
      expect(yield* failureOf(idOf(first))).toEqual({ code: "TAKEN_OVER" })
      expect(yield* failureOf(second)).toEqual({
        code: "TAKEN_OVER",
        refused: true
      })
    }).pipe(onFreshData)
  )
})

eachEngineLive("A turn that is stopped", (it) => {
  it.scoped("aborts the model's request and stores the text so far as the reply", () =>
    Effect.gen(function* () {
      const { chat, key, runs, script } = yield* start
      const { aborted, reply } = yield* held("Half of")
      yield* Ref.set(script.reply, reply)
      yield* Ref.set(script.chunks, [chunk(1)])
      const turn = yield* chat.start(key, request())
      const reading = yield* Effect.fork(collected(turn))
      yield* untilText(yield* runs.follow(key, idOf(turn)))
      expect(yield* runs.stop(key, idOf(turn))).toEqual({ id: idOf(turn), status: "complete" })
      yield* Deferred.await(aborted)
      const parts = yield* Fiber.join(reading)
      expect(parts.at(-1)).toMatchObject({ _tag: "Done", result: { reply: "Half of" } })
      const trace = yield* runs.read(key, idOf(turn), page, "req_1")
      expect(trace.events.at(-1)).toMatchObject({
        type: "run.completed",
        status: "complete",
        label: "Stopped"
      })
      const sql = yield* SqlClient.SqlClient
      const stored = yield* sql<{ readonly content: string }>`select content from messages order by position`
      expect(stored.map(({ content }) => content)).toEqual(["Hello?", "Half of"])
      const again = yield* runs.stop(key, idOf(turn))
      expect(again.status).toBe("complete")
    }).pipe(onFreshData)
  )

  it.scoped("ends although its client is connected and does not read", () =>
    Effect.gen(function* () {
      const { chat, key, runs, script } = yield* start
      const delta: ModelPart = { _tag: "TextDelta", delta: "word [" }
      yield* Ref.set(script.reply, () => Stream.repeatEffect(Effect.succeed(delta)))
      const turn = yield* chat.start(key, request())
      const late = yield* runs.follow(key, idOf(turn))
      let text = 0
      yield* late.parts.pipe(
        Stream.takeUntil((part) => {
          if (part._tag === "TextDelta") text += part.delta.length
          return text > (maxUnreadParts - 64) * delta.delta.length
        }),
        Stream.runDrain
      )
      // The text waits for the reader now.
      yield* Effect.sleep("200 millis")
      expect((yield* runs.stop(key, idOf(turn))).status).toBe("complete")
      expect((yield* collected(turn)).at(-1)).toMatchObject({ _tag: "Done" })
    }).pipe(onFreshData)
  )

  it.scoped("before any text is a failed run", () =>
    Effect.gen(function* () {
      const { chat, key, runs, script } = yield* start
      const { aborted, reply } = yield* held("")
      yield* Ref.set(script.reply, reply)
      const turn = yield* chat.start(key, request())
      const reading = yield* Effect.fork(Effect.flip(collected(turn)))
      yield* Stream.runHead(
        Stream.filter((yield* runs.follow(key, idOf(turn))).parts, ({ _tag }) => _tag === "StepStart")
      )
      yield* Ref.get(script.requests).pipe(
        Effect.delay("5 millis"),
        Effect.repeat({ until: (sent) => sent.length === 1 })
      )
      expect((yield* runs.stop(key, idOf(turn))).status).toBe("failed")
      yield* Deferred.await(aborted)
      expect((yield* Fiber.join(reading))._tag).toBe("TURN_FAILED")
      expect((yield* runs.stop(key, idOf(turn))).status).toBe("failed")
    }).pipe(onFreshData)
  )

  it.scoped("while it waits for the turn before leaves the queue", () =>
    Effect.gen(function* () {
      const { chat, conversationId, first, gate, key, runs, script, second, waiting } = yield* startTwoTurns
      expect((yield* runs.stop(key, second)).status).toBe("failed")
      expect((yield* Fiber.join(waiting))._tag).toBe("TURN_FAILED")
      yield* Deferred.succeed(gate, undefined)
      expect((yield* collected(first)).at(-1)).toMatchObject({ result: { reply: "Half the rest" } })
      yield* Ref.set(script.reply, says("Still here"))
      expect((yield* chat.complete(key, request({ conversationId }))).reply).toBe("Still here")
    }).pipe(onFreshData)
  )

  it.scoped("on another process is stopped too", () =>
    Effect.gen(function* () {
      const { chat, key, script } = yield* start
      const { reply } = yield* held("Half")
      yield* Ref.set(script.reply, reply)
      const turn = yield* chat.start(key, request())
      const reading = yield* Effect.fork(collected(turn))
      const there = yield* Layer.build(Layer.fresh(processLayer))
      const elsewhere = Context.get(there, AgentRuns)
      yield* untilText(yield* Effect.flatMap(AgentRuns, (runs) => runs.follow(key, idOf(turn))))
      expect((yield* elsewhere.stop(key, idOf(turn))).status).toBe("complete")
      expect((yield* Fiber.join(reading)).at(-1)).toMatchObject({ result: { reply: "Half" } })
    }).pipe(onFreshData)
  )

  it.scoped("is found only for the key's agent: another one is not found and continues", () =>
    Effect.gen(function* () {
      const { chat, key, runs, script } = yield* start
      const { gate, reply } = yield* held("Half ")
      yield* Ref.set(script.reply, reply)
      const turn = yield* chat.start(key, request())
      const other = { ...key, agentId: AgentId.make("agt_other") }
      expect((yield* Effect.flip(runs.stop(other, idOf(turn))))._tag).toBe("NOT_FOUND")
      expect((yield* Effect.flip(runs.follow(other, idOf(turn))))._tag).toBe("NOT_FOUND")
      expect((yield* Effect.flip(runs.stop(key, RunId.make("run_unknown"))))._tag).toBe("NOT_FOUND")
      yield* Deferred.succeed(gate, undefined)
      expect((yield* collected(turn)).at(-1)).toMatchObject({ result: { reply: "Half the rest" } })
    }).pipe(onFreshData)
  )
})

eachEngineLive("A turn that is followed", (it) => {
  it.scoped("is streamed from its start to its end, and again after it is settled", () =>
    Effect.gen(function* () {
      const { chat, key, runs, script } = yield* start
      const { gate, reply } = yield* held("Half, ")
      yield* Ref.set(script.reply, reply)
      yield* Ref.set(script.chunks, [chunk(1), chunk(2)])
      const turn = yield* chat.start(key, request({ externalEndUserId: "ada" }))
      const reading = yield* Effect.fork(collected(turn))
      const late = yield* runs.follow(key, idOf(turn))
      const following = yield* Effect.fork(collected(late))
      yield* untilText(yield* runs.follow(key, idOf(turn)))
      yield* Deferred.succeed(gate, undefined)
      const original = wire(yield* Fiber.join(reading))
      expect(wire(yield* Fiber.join(following))).toEqual(original)
      const retold = yield* runs.follow(key, idOf(turn))
      expect(wire(yield* collected(retold))).toEqual(original)
      expect([late, retold].map(({ endUserId, runId }) => [endUserId, runId])).toEqual([
        [turn.endUserId, turn.runId],
        [turn.endUserId, turn.runId]
      ])
    }).pipe(onFreshData)
  )

  it.scoped("with more text than the buffer holds is still streamed to its end", () =>
    Effect.gen(function* () {
      const { chat, key, runs, script } = yield* start
      const { gate, reply } = yield* held("Half ".repeat(1_000))
      yield* Ref.set(script.reply, (sent) =>
        Stream.concat(
          Stream.takeWhile(reply(sent), ({ _tag }) => _tag !== "Finish"),
          says("x".repeat(1_048_576), " end")(sent)
        )
      )
      const turn = yield* chat.start(key, request())
      const reading = yield* Effect.fork(collected(turn))
      const late = yield* runs.follow(key, idOf(turn))
      const had = yield* Deferred.make<void>()
      const following = yield* Effect.fork(
        collected({
          ...late,
          parts: Stream.tap(late.parts, ({ _tag }) =>
            _tag === "TextDelta" ? Deferred.succeed(had, undefined) : Effect.void
          )
        })
      )
      yield* Deferred.await(had)
      yield* Deferred.succeed(gate, undefined)
      expect(wire(yield* Fiber.join(following))).toEqual(wire(yield* Fiber.join(reading)))
    }).pipe(onFreshData)
  )

  it.scoped("in another process is streamed as soon as it is settled", () =>
    Effect.gen(function* () {
      const { chat, key, script } = yield* start
      const { gate, reply } = yield* held("Half, ")
      yield* Ref.set(script.reply, reply)
      const turn = yield* chat.start(key, request())
      const reading = yield* Effect.fork(collected(turn))
      const there = yield* Layer.build(Layer.fresh(processLayer))
      const late = yield* Context.get(there, AgentRuns).follow(key, idOf(turn))
      const following = yield* Effect.fork(collected(late))
      yield* Deferred.succeed(gate, undefined)
      expect(wire(yield* Fiber.join(following))).toEqual(wire(yield* Fiber.join(reading)))
    }).pipe(onFreshData)
  )

  it.scoped("in another process is read about four times a second, by however many it is followed", () =>
    Effect.gen(function* () {
      const { chat, key, script } = yield* start
      const { gate, reply } = yield* held("Half, ")
      yield* Ref.set(script.reply, reply)
      const turn = yield* chat.start(key, request())
      const reading = yield* Effect.fork(collected(turn))
      let reads = 0
      const counted = <A, E>(read: Effect.Effect<A, E>) =>
        Effect.suspend(() => {
          reads += 1
          return read
        })
      const countingStore = Layer.effect(
        AgentRunStore,
        Effect.map(AgentRunStore, (store) =>
          AgentRunStore.make({
            ...store,
            outcome: (...asked) => counted(store.outcome(...asked)),
            status: (...asked) => counted(store.status(...asked))
          })
        )
      )
      const process = AgentRuns.Default.pipe(
        Layer.provide(countingStore),
        Layer.provideMerge(turnLayer()),
        Layer.provideMerge(layerSql)
      )
      const elsewhere = Context.get(yield* Layer.build(Layer.fresh(process)), AgentRuns)
      const followers = yield* Effect.replicateEffect(
        Effect.flatMap(elsewhere.follow(key, idOf(turn)), (late) => Effect.fork(collected(late))),
        10
      )
      yield* Effect.sleep("300 millis")
      // Those who leave do not end the reading for the others.
      for (const left of followers.slice(0, 3)) yield* Fiber.interrupt(left)
      reads = 0
      yield* Effect.sleep("1 second")
      expect(reads).toBeGreaterThan(0)
      expect(reads).toBeLessThanOrEqual(5)
      yield* Deferred.succeed(gate, undefined)
      const expected = wire(yield* Fiber.join(reading))
      for (const left of followers.slice(3)) expect(wire(yield* Fiber.join(left))).toEqual(expected)
    }).pipe(onFreshData)
  )

  it.scoped("and has failed ends with the failure; one that stored nothing is not found", () =>
    Effect.gen(function* () {
      const { chat, key, runs, script } = yield* start
      yield* Ref.set(script.reply, () =>
        Stream.fail(new ModelError({ reason: "TimedOut", message: "no", retryable: false }))
      )
      const turn = yield* chat.start(key, request())
      expect((yield* Effect.flip(collected(turn)))._tag).toBe("RUNTIME_TIMEOUT")
      const again = yield* runs.follow(key, idOf(turn))
      expect((yield* Effect.flip(collected(again)))._tag).toBe("RUNTIME_TIMEOUT")
      yield* Ref.set(script.reply, says("Hello"))
      const quiet = yield* chat.start(key, request({ persist: false }))
      expect(quiet.runId).toBeNull()
      const started = Option.getOrThrow(yield* Stream.runHead(quiet.parts))
      const runId = started._tag === "RunEvent" ? started.event.runId : RunId.make("none")
      expect((yield* Effect.flip(runs.follow(key, runId)))._tag).toBe("NOT_FOUND")
    }).pipe(onFreshData)
  )
})
