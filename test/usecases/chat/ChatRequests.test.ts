import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as Stream from "effect/Stream"
import { layerSql } from "../../../src/capabilities/AuditLog/Sql.ts"
import { ModelError } from "../../../src/capabilities/ModelRuntime.ts"
import type { TurnPart } from "../../../src/domain/chat/ChatTurn.ts"
import { AgentRuns } from "../../../src/usecases/chat/AgentRuns.ts"
import { ChatRequests } from "../../../src/usecases/chat/ChatRequests.ts"
import * as Fixtures from "../../Fixtures.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { chunk, request, says, Script, turnLayer } from "./TurnHarness.ts"

const processLayer = ChatRequests.Default.pipe(
  Layer.provideMerge(AgentRuns.Default),
  Layer.provideMerge(turnLayer()),
  Layer.provideMerge(layerSql)
)

/** The tables are emptied before the process starts: it signs on in one of them. */
const onFreshData = <A, E, R>(test: Effect.Effect<A, E, R>) =>
  Effect.zipRight(reset, Effect.provide(test, processLayer))

const start = Effect.gen(function* () {
  const scope = yield* Fixtures.agent()
  const script = yield* Script
  return {
    scope,
    key: yield* Fixtures.key(scope),
    chat: yield* ChatRequests,
    script,
    asked: Effect.map(Ref.get(script.requests), (all) => all.length)
  }
})

/** Records whether each run that ends has a claim then. Returns them in the order of the runs' tickets. */
const claimedRunsAtTheirEnds = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const all = sql<{ readonly claimed: boolean }>`select claimed from ends order by ticket`
  yield* Effect.acquireRelease(
    sql.unsafe(`
      create table ends (ticket bigint not null, claimed boolean not null);
      create function record_end() returns trigger language plpgsql as $$ begin
        insert into ends select new.ticket, exists (select from turn_claims where run_id = new.id);
        return new;
      end $$;
      create trigger record_end after update of status on agent_runs for each row
        when (old.status = 'running' and new.status <> 'running') execute function record_end()`),
    () => Effect.orDie(sql.unsafe("drop function record_end cascade; drop table ends"))
  )
  return Effect.map(all, (rows) => rows.map(({ claimed }) => claimed))
})

const textOf = (parts: Iterable<TurnPart>) =>
  [...parts].map((part) => (part._tag === "TextDelta" ? part.delta : "")).join("")

const withoutToken = <A extends { realtimeToken?: string | undefined }>({ realtimeToken: _, ...rest }: A) =>
  rest

eachEngineLive("A turn with an Idempotency-Key", (it) => {
  it.effect("runs once: a repeat gets the same answer without another model call", () =>
    onFreshData(
      Effect.gen(function* () {
        const { asked, chat, key, script } = yield* start
        yield* Ref.set(script.chunks, [chunk(1)])
        yield* Ref.set(script.reply, says("A fact ", "[1]."))
        const ask = chat.complete(key, request({ externalEndUserId: "customer" }), "order-1")
        const first = yield* ask
        yield* Ref.set(script.reply, says("Something else"))
        const second = yield* ask
        expect(first.runId).toMatch(/^run_/)
        expect(first.citations).toHaveLength(1)
        expect(withoutToken(second)).toEqual(withoutToken(first))
        expect(second.realtimeToken).toBeDefined()
        expect(yield* asked).toBe(1)
        const sql = yield* SqlClient.SqlClient
        expect(yield* sql`select count(*)::int as runs from agent_runs`).toEqual([{ runs: 1 }])
        const another = yield* chat.complete(key, request({ externalEndUserId: "customer" }), "order-2")
        expect(another.reply).toBe("Something else")
      })
    )
  )

  it.effect(
    "shows its end user to repeats only if it showed it, also as the first of an imported conversation",
    () =>
      onFreshData(
        Effect.gen(function* () {
          const { chat, key, scope } = yield* start
          const sql = yield* SqlClient.SqlClient
          yield* sql`insert into end_users (id, tenant_id) values ('usr_1', ${scope.tenantId})`
          yield* sql`
          insert into conversations (id, tenant_id, agent_id, end_user_id, channel, import_key)
          values ('cnv_imported', ${scope.tenantId}, ${scope.agentId}, 'usr_1', 'api', 'id:1')`
          for (const asked of [request(), request({ conversationId: "cnv_imported" })]) {
            const idempotencyKey = asked.conversationId ?? "new"
            const first = yield* chat.complete(key, asked, idempotencyKey)
            expect("endUserId" in first).toBe(asked.conversationId === undefined)
            expect(withoutToken(yield* chat.complete(key, asked, idempotencyKey))).toEqual(
              withoutToken(first)
            )
            expect((yield* chat.start(key, asked, idempotencyKey)).endUserId).toBe(first.endUserId ?? null)
          }
        })
      )
  )

  it.effect("is followed by repeats while it runs, complete and streamed", () =>
    onFreshData(
      Effect.gen(function* () {
        const { asked, chat, key, script } = yield* start
        const gate = yield* Deferred.make<void>()
        const begun = yield* Deferred.make<void>()
        yield* Ref.set(script.reply, (sent) =>
          Stream.unwrap(
            Deferred.succeed(begun, undefined).pipe(
              Effect.zipRight(Deferred.await(gate)),
              Effect.as(says("One ", "reply.")(sent))
            )
          )
        )
        const ask = chat.complete(key, request(), "same")
        const first = yield* Effect.fork(ask)
        yield* Deferred.await(begun)
        const repeats = yield* Effect.fork(Effect.all([ask, ask, ask], { concurrency: "unbounded" }))
        const turn = yield* chat.start(key, request(), "same")
        const streamed = yield* Effect.fork(Stream.runCollect(turn.parts))
        yield* Deferred.succeed(gate, undefined)
        const { reply, runId } = yield* Fiber.join(first)
        expect(reply).toBe("One reply.")
        expect((yield* Fiber.join(repeats)).map((one) => [one.reply, one.runId])).toEqual([
          [reply, runId],
          [reply, runId],
          [reply, runId]
        ])
        expect(turn.runId).toBe(runId)
        expect(textOf(yield* Fiber.join(streamed))).toBe(reply)
        expect(yield* asked).toBe(1)
      })
    )
  )

  it.effect("begins once for ten concurrent requests", () =>
    onFreshData(
      Effect.gen(function* () {
        const { asked, chat, key } = yield* start
        const answers = yield* Effect.all(
          Array.from({ length: 10 }, () => chat.complete(key, request(), "together")),
          { concurrency: "unbounded" }
        )
        expect(new Set(answers.map(({ runId }) => runId)).size).toBe(1)
        expect(yield* asked).toBe(1)
      })
    )
  )

  it.effect("is a conflict for a different request, and not for new formatting or credentials", () =>
    onFreshData(
      Effect.gen(function* () {
        const { asked, chat, key } = yield* start
        const fields = { context: { a: 1, b: [{ c: 2, d: 3 }] }, toolCredentials: { shop: "old" } }
        const { runId } = yield* chat.complete(key, request(fields), "k")
        const same = { toolCredentials: { shop: "new" }, context: { b: [{ d: 3, c: 2 }], a: 1 } }
        expect((yield* chat.complete(key, request(same), "k")).runId).toBe(runId)
        const other = yield* Effect.flip(chat.complete(key, request({ message: "Another" }), "k"))
        expect(other._tag).toBe("CONFLICT")
        const changed = request({ ...fields, context: { a: 2 } })
        expect((yield* Effect.flip(chat.start(key, changed, "k")))._tag).toBe("CONFLICT")
        expect(yield* asked).toBe(1)
      })
    )
  )

  it.effect("belongs to its API key, for 24 hours", () =>
    onFreshData(
      Effect.gen(function* () {
        const { asked, chat, key, scope } = yield* start
        const { runId } = yield* chat.complete(key, request(), "k")
        const other = yield* Fixtures.key(scope)
        expect((yield* chat.complete(other, request(), "k")).runId).not.toBe(runId)
        const sql = yield* SqlClient.SqlClient
        yield* sql`update turn_claims set created_at = now() - interval '25 hours'`
        expect((yield* chat.complete(key, request(), "k")).runId).not.toBe(runId)
        expect(yield* asked).toBe(3)
      })
    )
  )

  it.effect("leaves the key unused when it is refused", () =>
    onFreshData(
      Effect.gen(function* () {
        const { chat, key } = yield* start
        const unknown = request({ conversationId: "cnv_unknown" })
        expect((yield* Effect.flip(chat.complete(key, unknown, "k")))._tag).toBe("CONVERSATION_NOT_FOUND")
        expect((yield* chat.complete(key, request(), "k")).reply).toBe("Hello")
        const unstored = yield* Effect.flip(chat.complete(key, request({ persist: false }), "other"))
        expect(unstored._tag).toBe("VALIDATION_ERROR")
      })
    )
  )

  it.effect("fails for repeats with the same error, also after its process has died", () =>
    onFreshData(
      Effect.gen(function* () {
        const { asked, chat, key, script } = yield* start
        const refused = new ModelError({ reason: "Rejected", message: "No.", retryable: false })
        yield* Ref.set(script.reply, () => Stream.fail(refused))
        const ask = chat.complete(key, request(), "fails")
        expect((yield* Effect.flip(ask))._tag).toBe("TURN_FAILED")
        yield* Ref.set(script.reply, says("Late"))
        expect((yield* Effect.flip(ask))._tag).toBe("TURN_FAILED")
        expect(yield* asked).toBe(1)

        const { runId } = yield* chat.complete(key, request(), "dies")
        const sql = yield* SqlClient.SqlClient
        yield* sql`update agent_runs set status = 'failed' where id = ${runId}`
        yield* sql`
          update agent_run_events set type = 'run.failed', payload = '{"code":"PROCESS_STOPPED"}'
          where run_id = ${runId} and type = 'run.completed'`
        const lost = yield* Effect.flip(chat.complete(key, request(), "dies"))
        expect([lost._tag, lost.message]).toEqual([
          "TURN_FAILED",
          "The process that ran the turn stopped before the turn ended. Send it again with a new Idempotency-Key."
        ])
      })
    )
  )

  it.scoped("that is refused while it waits is refused for concurrent repeats, in every process", () =>
    onFreshData(
      Effect.gen(function* () {
        const { chat, key, script } = yield* start
        const there = yield* Layer.build(Layer.fresh(processLayer))
        const elsewhere = Context.get(there, ChatRequests)
        const sql = yield* SqlClient.SqlClient
        const { conversationId } = yield* chat.complete(key, request())
        const begun = yield* Deferred.make<void>()
        yield* Ref.set(script.reply, () =>
          Stream.unwrap(Effect.as(Deferred.succeed(begun, undefined), Stream.never))
        )
        const answering = yield* Effect.fork(
          Effect.flip(chat.complete(key, request({ conversationId }), "answering"))
        )
        const running = (count: number) =>
          sql`select id from agent_runs where status = 'running'`.pipe(
            Effect.repeat({ until: (rows) => rows.length === count })
          )
        yield* Deferred.await(begun)
        const ask = request({ conversationId })
        const first = yield* Effect.fork(Effect.flip(chat.complete(key, ask, "waiting")))
        yield* running(2)
        const repeats = yield* Effect.fork(
          Effect.all(
            [chat, elsewhere].flatMap((process) => [
              Effect.either(Effect.asVoid(process.complete(key, ask, "waiting"))),
              Effect.either(Effect.asVoid(process.start(key, ask, "waiting"))),
              Effect.either(Effect.asVoid(process.complete(key, ask, "answering")))
            ]),
            { concurrency: "unbounded" }
          )
        )
        // The repeats follow the turn.
        yield* Effect.sleep("400 millis")
        const claimsAtEnds = yield* claimedRunsAtTheirEnds
        yield* sql`update conversations set state = 'HUMAN_ACTIVE', epoch = epoch + 1`
        yield* sql`update agent_runs set stop_requested = true where status = 'running'`
        expect((yield* Fiber.join(answering))._tag).toBe("TURN_FAILED")
        expect((yield* Fiber.join(first))._tag).toBe("CONVERSATION_NOT_ACTIVE")
        const codes = (yield* Fiber.join(repeats)).map(Either.flip).map(Either.map(({ _tag }) => _tag))
        const refused = Either.right("CONVERSATION_NOT_ACTIVE")
        const failed = Either.right("TURN_FAILED")
        expect(codes).toEqual([refused, refused, failed, refused, refused, failed])
        // A process that is killed after the end of the refused turn leaves no key behind.
        expect(yield* claimsAtEnds).toEqual([true, false])
        yield* sql`update conversations set state = 'AI_ACTIVE'`
        yield* Ref.set(script.reply, says("Later"))
        expect((yield* chat.complete(key, ask, "waiting")).reply).toBe("Later")
      })
    )
  )

  it.scoped("that begins during a takeover is refused, with its repeats, and leaves the key unused", () =>
    onFreshData(
      Effect.gen(function* () {
        const { chat, key } = yield* start
        const sql = yield* SqlClient.SqlClient
        const { conversationId } = yield* chat.complete(key, request())
        const changed = yield* Deferred.make<void>()
        const gate = yield* Deferred.make<void>()
        const takeover = yield* sql`update conversations set state = 'HUMAN_ACTIVE', epoch = epoch + 1`.pipe(
          Effect.zipRight(Deferred.succeed(changed, undefined)),
          Effect.zipRight(Deferred.await(gate)),
          sql.withTransaction,
          Effect.fork
        )
        yield* Deferred.await(changed)
        const ask = Effect.flip(chat.complete(key, request({ conversationId }), "k"))
        const asked = yield* Effect.fork(Effect.all([ask, ask, ask, ask], { concurrency: "unbounded" }))
        yield* Effect.sleep("300 millis")
        yield* Deferred.succeed(gate, undefined)
        yield* Fiber.join(takeover)
        const codes = (yield* Fiber.join(asked)).map(({ _tag }) => _tag)
        expect(new Set(codes)).toEqual(new Set(["CONVERSATION_NOT_ACTIVE"]))
        yield* sql`update conversations set state = 'AI_ACTIVE'`
        expect((yield* chat.complete(key, request({ conversationId }), "k")).reply).toBe("Hello")
      })
    )
  )

  it.effect("is a conflict once the turn has been deleted with its conversation", () =>
    onFreshData(
      Effect.gen(function* () {
        const { chat, key } = yield* start
        yield* chat.complete(key, request(), "k")
        const sql = yield* SqlClient.SqlClient
        yield* sql`delete from conversations`
        expect((yield* Effect.flip(chat.complete(key, request(), "k")))._tag).toBe("CONFLICT")
      })
    )
  )
})
