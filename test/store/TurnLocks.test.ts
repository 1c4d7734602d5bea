/** Locks of a turn's statements: turns never wait for each other. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as DateTime from "effect/DateTime"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import { RunEvent } from "../../src/domain/chat/AgentRun.ts"
import { newId } from "../../src/domain/Ids.ts"
import { AgentRunStore } from "../../src/store/chat/AgentRuns.ts"
import { Turns, type TurnStart } from "../../src/store/chat/Turns.ts"
import { retryDeadlocks } from "../../src/store/Deadlock.ts"
import * as Fixtures from "../Fixtures.ts"
import { eachEngineLive, reset } from "../TestDatabase.ts"

const decode = Schema.decodeUnknownSync(RunEvent)

/** What a turn of the agent needs to begin. */
const opening = Effect.gen(function* () {
  return {
    target: { _tag: "Anonymous" },
    persist: true,
    channel: "api",
    instanceId: "test",
    runId: yield* newId.run,
    endUserId: yield* newId.endUser,
    conversationId: yield* newId.conversation,
    userMessageId: yield* newId.message,
    message: "Hello?",
    startedAt: yield* DateTime.now,
    startedLabel: "Started",
    timeout: "1 minute"
  } satisfies TurnStart
})

/** Waits until this many statements that contain the text wait for a lock. */
const waiting = (count: number, text = "agent_runs") =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql<{ readonly n: number }>`
      select count(*)::int as n from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query like ${`%${text}%`}`
  ).pipe(Effect.repeat({ until: ([row]) => row?.n === count }), Effect.timeout("20 seconds"))

eachEngineLive("The statements of a turn", (it, engine) => {
  // The embedded database has one connection: nothing waits there.
  it.effect.skipIf(engine === "embedded")(
    "store events of a running turn while it settles, without a deadlock",
    () =>
      Effect.gen(function* () {
        yield* reset
        const sql = yield* SqlClient.SqlClient
        const turns = yield* Turns
        const scope = yield* Fixtures.agent({ turns: 10 })
        const begun = yield* opening
        const { runId } = begun
        yield* turns.begin(scope, begun)
        const event = decode({
          id: `${runId}:2`,
          runId,
          sequence: 2,
          type: "tool.started",
          status: "running",
          label: "Asking",
          timestamp: "2026-01-01T00:00:00.000Z"
        })
        const free = yield* Deferred.make<void>()
        const locked = yield* Deferred.make<void>()
        const holder = yield* sql`select id from agent_runs where id = ${runId} for update`.pipe(
          Effect.zipRight(Deferred.succeed(locked, undefined)),
          Effect.zipRight(Deferred.await(free)),
          sql.withTransaction,
          Effect.fork
        )
        yield* Deferred.await(locked)
        const reply = { id: yield* newId.message, content: "Hello.", citations: [] }
        const settling = yield* turns
          .settle(scope, { runId, counted: true, inputTokens: 1, outputTokens: 1, reply, events: [event] })
          .pipe(Effect.fork)
        yield* waiting(1)
        const storing = yield* (yield* AgentRunStore)
          .flush([{ scope, runId, events: [event] }])
          .pipe(Effect.either, Effect.fork)
        yield* waiting(2)
        yield* Deferred.succeed(free, undefined)
        yield* Fiber.join(holder)
        expect((yield* Fiber.join(storing))._tag).toBe("Right")
        expect((yield* Fiber.join(settling))._tag).toBe("Written")
        const rows =
          yield* sql`select sequence from agent_run_events where run_id = ${runId} order by sequence`
        expect(rows).toEqual([{ sequence: 1 }, { sequence: 2 }])
      }).pipe(Effect.provide([Turns.Default, AgentRunStore.Default]))
  )

  it.effect.skipIf(engine === "embedded")(
    "begin a turn in a larger transaction, which is repeated after a deadlock",
    () =>
      Effect.gen(function* () {
        yield* reset
        const sql = yield* SqlClient.SqlClient
        const turns = yield* Turns
        const scope = yield* Fixtures.agent({ turns: 10 })
        const first = yield* opening
        yield* turns.begin(scope, first)
        const next = {
          ...(yield* opening),
          target: { _tag: "Conversation", id: first.conversationId }
        } satisfies TurnStart
        const ready = yield* Deferred.make<void>()
        const crossing = yield* Deferred.make<void>()
        // Locks the conversation, and then the quota, which the turn has locked. Only the turn detects deadlocks.
        const other = yield* Effect.gen(function* () {
          yield* sql`set local deadlock_timeout = '1min'`
          yield* sql`select id from conversations where id = ${first.conversationId} for update`
          yield* Deferred.succeed(ready, undefined)
          yield* Deferred.await(crossing)
          yield* sql`select from tenant_usage where tenant_id = ${scope.tenantId} for update`
        }).pipe(sql.withTransaction, Effect.fork)
        yield* Deferred.await(ready)
        let tries = 0
        const beginning = yield* Effect.suspend(() => {
          tries += 1
          return turns.begin(scope, next)
        }).pipe(
          sql.withTransaction,
          Effect.catchTag("SqlError", Effect.die),
          (whole) => retryDeadlocks(whole),
          Effect.fork
        )
        yield* waiting(1, "period_start_of")
        yield* Deferred.succeed(crossing, undefined)
        yield* Fiber.join(other)
        expect((yield* Fiber.join(beginning)).reserved).toBe(true)
        expect(tries).toBe(2)
        const [used] = yield* sql`select turns::int from tenant_usage where tenant_id = ${scope.tenantId}`
        expect(used).toEqual({ turns: 2 })
      }).pipe(Effect.provide(Turns.Default))
  )
})
