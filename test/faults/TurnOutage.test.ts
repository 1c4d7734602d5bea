/** Turns that run while the connections to the database are lost, on a real PostgreSQL server. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Ref from "effect/Ref"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { layerSql } from "../../src/capabilities/AuditLog/Sql.ts"
import type { ReadScope } from "../../src/domain/accounts/Access.ts"
import { ConversationId, newId, RunId } from "../../src/domain/Ids.ts"
import { layerPostgres } from "../../src/store/Database.ts"
import { AgentRuns } from "../../src/usecases/chat/AgentRuns.ts"
import { ChatTurn } from "../../src/usecases/chat/ChatTurn.ts"
import { noFiles } from "../../src/usecases/chat/TurnOptions.ts"
import * as Fixtures from "../Fixtures.ts"
import { databaseProxy } from "../servers/DatabaseProxy.ts"
import { serverLive, serverUrl } from "../TestDatabase.ts"
import { chunk, request, type Reply, says, Script, turnLayer } from "../usecases/chat/TurnHarness.ts"

/** What the database has of the agent's turns, read past the proxy. */
const stored = (scope: ReadScope) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const messages = yield* sql<{ readonly role: string; readonly content: string }>`
      select role, content from messages where agent_id = ${scope.agentId} order by position`
    const runs = yield* sql<{ readonly status: string }>`
      select status from agent_runs where agent_id = ${scope.agentId} order by started_at`
    const [usage] = yield* sql<{ readonly turns: number }>`
      select coalesce(sum(turns), 0)::int as turns from agent_usage where agent_id = ${scope.agentId}`
    return { messages, runs: runs.map(({ status }) => status), turns: usage?.turns ?? 0 }
  })

/** Says `text`, once `during` has happened. */
const saysAfter =
  (during: Effect.Effect<void>, text: string): Reply =>
  (asked) =>
    Stream.concat(
      says("Well. ")(asked).pipe(Stream.filter(({ _tag }) => _tag === "TextDelta")),
      Stream.unwrap(Effect.as(during, says(text)(asked)))
    )

serverLive("Turns during an outage of the database", (it) => {
  const withProxy = <A, E>(
    use: (
      proxy: Effect.Effect.Success<ReturnType<typeof databaseProxy>>,
      scope: Effect.Effect.Success<ReturnType<typeof Fixtures.key>>
    ) => Effect.Effect<A, E, AgentRuns | ChatTurn | Script | Scope.Scope | SqlClient.SqlClient>
  ) =>
    Effect.gen(function* () {
      const proxy = yield* databaseProxy(Redacted.value(yield* serverUrl))
      const scope = yield* Fixtures.key(yield* Fixtures.agent())
      const direct = yield* SqlClient.SqlClient
      const behindProxy = Layer.build(
        Layer.fresh(
          AgentRuns.Default.pipe(Layer.provideMerge(turnLayer()), Layer.provideMerge(layerSql))
        ).pipe(
          Layer.provide(layerPostgres({ url: Redacted.make(proxy.url), maxConnections: 5, tenantRole: null }))
        )
      )
      const services = yield* behindProxy
      return yield* use(proxy, scope).pipe(
        Effect.provide(services),
        Effect.provideService(SqlClient.SqlClient, direct)
      )
    })

  it.scoped("A reply that is complete while the database is away is stored when it is back", () =>
    withProxy((proxy, scope) =>
      Effect.gen(function* () {
        const { reply } = yield* Script
        const away = Effect.zipRight(proxy.close, Effect.forkDaemon(Effect.delay(proxy.open, "1500 millis")))
        yield* Ref.set(reply, saysAfter(Effect.asVoid(away), "It is forty-two."))
        const answered = yield* Effect.flatMap(ChatTurn, ({ complete }) =>
          complete(scope, { ...request(), includeRealtimeToken: false })
        )
        expect(answered.reply).toBe("Well. It is forty-two.")
        expect(yield* stored(scope)).toEqual({
          messages: [
            { role: "user", content: "Hello?" },
            { role: "assistant", content: "Well. It is forty-two." }
          ],
          runs: ["complete"],
          turns: 1
        })
      })
    )
  )

  it.scoped("A reply whose storage was not confirmed is stored once, and is the reply", () =>
    withProxy((proxy, scope) =>
      Effect.gen(function* () {
        const { reply } = yield* Script
        yield* Ref.set(reply, saysAfter(proxy.loseAnswerTo("It is forty-three."), "It is forty-three."))
        const answered = yield* Effect.flatMap(ChatTurn, ({ complete }) =>
          complete(scope, { ...request(), includeRealtimeToken: false })
        )
        expect(answered.reply).toBe("Well. It is forty-three.")
        expect(yield* stored(scope)).toEqual({
          messages: [
            { role: "user", content: "Hello?" },
            { role: "assistant", content: "Well. It is forty-three." }
          ],
          runs: ["complete"],
          turns: 1
        })
      })
    )
  )

  it.scoped("A turn that stores nothing is answered and counted once the database is back", () =>
    withProxy((proxy, scope) =>
      Effect.gen(function* () {
        const { reply } = yield* Script
        const away = Effect.zipRight(proxy.close, Effect.forkDaemon(Effect.delay(proxy.open, "1500 millis")))
        yield* Ref.set(reply, saysAfter(Effect.asVoid(away), "It is forty-four."))
        const answered = yield* Effect.flatMap(ChatTurn, ({ complete }) =>
          complete(scope, { ...request({ persist: false }), includeRealtimeToken: false })
        )
        expect(answered.reply).toBe("Well. It is forty-four.")
        expect(yield* stored(scope)).toEqual({ messages: [], runs: [], turns: 1 })
      })
    )
  )

  it.scoped("The passages of a found chunk are read once the database is back", () =>
    withProxy((proxy, scope) =>
      Effect.gen(function* () {
        const { chunks } = yield* Script
        yield* Ref.set(chunks, [chunk(1)])
        yield* proxy.loseAnswerTo("chk_1")
        const answered = yield* Effect.flatMap(ChatTurn, ({ complete }) =>
          complete(scope, { ...request(), includeRealtimeToken: false })
        )
        expect(answered.reply).toBe("Hello")
      })
    )
  )

  it.scoped("A turn whose beginning was not confirmed keeps no place in its conversation", () =>
    withProxy((proxy, scope) =>
      Effect.gen(function* () {
        const turns = yield* ChatTurn
        const first = yield* turns.complete(scope, { ...request(), includeRealtimeToken: false })
        const next = (message: string) => ({
          ...request({ message, conversationId: first.conversationId }),
          includeRealtimeToken: false
        })
        yield* proxy.loseAnswerTo("Are you lost?")
        expect(Exit.isFailure(yield* Effect.exit(turns.complete(scope, next("Are you lost?"))))).toBe(true)
        const following = yield* Effect.fork(turns.complete(scope, next("Are you there?")))
        expect((yield* Fiber.join(following).pipe(Effect.timeout("8 seconds"))).reply).toBe("Hello")
        expect((yield* stored(scope)).runs).toEqual(["complete", "failed", "complete"])
      })
    )
  )

  it.scoped("A turn whose beginning was not confirmed is begun again with the same Idempotency-Key", () =>
    withProxy((proxy, scope) =>
      Effect.gen(function* () {
        const turns = yield* ChatTurn
        const claim = { keyId: scope.keyId, idempotencyKey: "once", requestHash: "hash" }
        const complete = turns.completeOnce(
          scope,
          { ...request({ message: "Are you lost?" }), includeRealtimeToken: false },
          claim
        )
        yield* proxy.loseAnswerTo("COMMIT")
        expect(Exit.isFailure(yield* Effect.exit(complete))).toBe(true)
        const repeated = yield* Effect.retry(complete, { schedule: Schedule.spaced("200 millis"), times: 40 })
        expect(repeated.reply).toBe("Hello")
        expect((yield* stored(scope)).runs).toEqual(["failed", "complete"])
      })
    )
  )

  it.scoped("A client that follows a turn of another process gets its reply once the database is back", () =>
    withProxy((proxy, scope) =>
      Effect.gen(function* () {
        const elsewhere = yield* Layer.build(Layer.fresh(turnLayer()))
        const gate = yield* Deferred.make<void>()
        yield* Ref.set(
          Context.get(elsewhere, Script).reply,
          saysAfter(Deferred.await(gate), "It is forty-five.")
        )
        const turn = yield* Context.get(elsewhere, ChatTurn).start(scope, request())
        const { follow } = yield* AgentRuns
        const following = yield* follow(scope, turn.runId ?? RunId.make("none"))
        const parts = yield* Effect.fork(Stream.runCollect(following.parts))
        yield* Effect.sleep("300 millis")
        yield* proxy.close
        yield* Deferred.succeed(gate, undefined)
        yield* Stream.runDrain(turn.parts)
        yield* Effect.delay(proxy.open, "1 second")
        const done = Chunk.findFirst(yield* Fiber.join(parts), ({ _tag }) => _tag === "Done")
        expect(Option.getOrNull(done)).toMatchObject({ result: { reply: "Well. It is forty-five." } })
      })
    )
  )

  it.scoped(
    "Messages of a channel are answered soon, although the beginning of a turn was not confirmed",
    () =>
      withProxy((proxy, scope) =>
        Effect.gen(function* () {
          const turns = yield* ChatTurn
          const sql = yield* SqlClient.SqlClient
          const first = yield* turns.complete(scope, { ...request(), includeRealtimeToken: false })
          const conversationId = first.conversationId ?? ConversationId.make("none")
          yield* sql`
          with conversation as (
            update conversations set message_count = message_count + 1 where id = ${conversationId} returning *
          )
          insert into messages (id, tenant_id, conversation_id, agent_id, position, role, content, channel_message_id)
          select ${yield* newId.message}, tenant_id, id, agent_id, message_count, 'user', 'Are you lost?', 'm1'
          from conversation`
          const answer = Effect.flatMap(DateTime.now, (now) =>
            turns.answer(scope, {
              conversationId,
              channel: "api",
              now,
              queueTimeout: Duration.minutes(1),
              files: () => noFiles,
              post: () => Effect.void
            })
          )
          yield* proxy.loseAnswerTo("COMMIT")
          expect(Exit.isFailure(yield* Effect.exit(answer))).toBe(true)
          yield* answer.pipe(
            Effect.repeat({
              until: ({ _tag }) => _tag === "Answered",
              schedule: Schedule.spaced("100 millis")
            }),
            Effect.timeout("8 seconds")
          )
          expect((yield* stored(scope)).runs).toEqual(["complete", "failed", "complete"])
        })
      )
  )
})
