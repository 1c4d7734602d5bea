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
import { Turns } from "../../src/store/chat/Turns.ts"
import * as Fixtures from "../Fixtures.ts"
import { eachEngineLive, reset } from "../TestDatabase.ts"

const decode = Schema.decodeUnknownSync(RunEvent)

/** Until as many statements on runs wait for a lock. */
const waiting = (count: number) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql<{ readonly n: number }>`
      select count(*)::int as n from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query like '%agent_runs%'`
  ).pipe(Effect.repeat({ until: ([row]) => row?.n === count }), Effect.timeout("20 seconds"))

eachEngineLive("The statements of a turn", (it, engine) => {
  // The embedded database has one connection: nothing waits there.
  it.effect.skipIf(engine === "embedded")(
    "store events of a running turn while it settles, and both come through",
    () =>
      Effect.gen(function* () {
        yield* reset
        const sql = yield* SqlClient.SqlClient
        const turns = yield* Turns
        const scope = yield* Fixtures.agent({ turns: 10 })
        const runId = yield* newId.run
        yield* turns.begin(scope, {
          target: { _tag: "Anonymous" },
          persist: true,
          channel: "api",
          instanceId: "test",
          runId,
          endUserId: yield* newId.endUser,
          conversationId: yield* newId.conversation,
          userMessageId: yield* newId.message,
          message: "Hello?",
          startedAt: yield* DateTime.now,
          startedLabel: "Started",
          timeout: "1 minute"
        })
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
})
