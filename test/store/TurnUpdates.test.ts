/** Updates of a turn stay within the page of the row: they write no entry into the indexes of the table. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import type { ReadScope } from "../../src/domain/accounts/Access.ts"
import { type ConversationId, newId } from "../../src/domain/Ids.ts"
import { type Target, Turns } from "../../src/store/chat/Turns.ts"
import * as Fixtures from "../Fixtures.ts"
import { eachEngineLive, reset } from "../TestDatabase.ts"

/** Begins a turn, and returns the settlement of its reply. */
const begin = (scope: ReadScope, target: Target, conversationId: ConversationId) =>
  Effect.gen(function* () {
    const turns = yield* Turns
    const runId = yield* newId.run
    yield* turns.begin(scope, {
      target,
      persist: true,
      channel: "api",
      instanceId: "test",
      runId,
      endUserId: yield* newId.endUser,
      conversationId,
      userMessageId: yield* newId.message,
      message: "Hello?",
      startedAt: yield* DateTime.now,
      startedLabel: "Started",
      timeout: "1 minute"
    })
    const reply = { id: yield* newId.message, content: "Hello.", citations: [] }
    return { runId, counted: true, inputTokens: 1, outputTokens: 1, reply, events: [] }
  })

const turn = (scope: ReadScope, target: Target, conversationId: ConversationId) =>
  Effect.gen(function* () {
    const turns = yield* Turns
    yield* turns.settle(scope, yield* begin(scope, target, conversationId))
  })

interface Updates {
  readonly name: string
  readonly updates: number
  readonly hot: number
}

/** Updates by table that the session has not reported yet: those of the open transaction, and some earlier ones. */
const updated = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql<Updates>`
    select relname as name, n_tup_upd::int as updates, n_tup_hot_upd::int as hot
    from pg_stat_xact_user_tables where n_tup_upd > 0 order by 1`
)

eachEngineLive("The updates of a turn", (it) => {
  it.effect("write no indexes except those of its run", () =>
    Effect.gen(function* () {
      yield* reset
      const sql = yield* SqlClient.SqlClient
      const scope = yield* Fixtures.agent({ turns: 10 })
      const id = yield* newId.conversation
      yield* turn(scope, { _tag: "Anonymous" }, id)
      const found = yield* sql.withTransaction(
        Effect.gen(function* () {
          const before = new Map((yield* updated).map((each) => [each.name, each]))
          yield* turn(scope, { _tag: "Conversation", id }, id)
          yield* turn(scope, { _tag: "Conversation", id }, id)
          return (yield* updated)
            .map(({ hot, name, updates }) => ({
              name,
              updates: updates - (before.get(name)?.updates ?? 0),
              hot: hot - (before.get(name)?.hot ?? 0)
            }))
            .filter(({ updates }) => updates > 0)
        })
      )
      expect(found).toEqual([
        { name: "agent_runs", updates: 2, hot: 0 },
        { name: "agent_usage", updates: 2, hot: 2 },
        { name: "conversations", updates: 4, hot: 4 },
        { name: "tenant_usage", updates: 2, hot: 2 }
      ])
    }).pipe(Effect.provide(Turns.Default))
  )

  it.effect("change the indexed time every few minutes, and the exact time every time", () =>
    Effect.gen(function* () {
      yield* reset
      const sql = yield* SqlClient.SqlClient
      const scope = yield* Fixtures.agent({ turns: 10 })
      const id = yield* newId.conversation
      yield* turn(scope, { _tag: "Anonymous" }, id)
      const ages = sql<{ readonly indexed: number; readonly exact: number }>`
        select floor(extract(epoch from now() - updated_at) / 60)::int as indexed,
          floor(extract(epoch from now() - changed_at) / 60)::int as exact
        from conversations where id = ${id}`
      for (const [minutes, indexed] of [
        [4, 4],
        [6, 0]
      ] as const) {
        yield* sql`
          update conversations set updated_at = now() - make_interval(mins => ${minutes}, secs => 5), changed_at = null
          where id = ${id}`
        yield* turn(scope, { _tag: "Conversation", id }, id)
        expect(yield* ages).toEqual([{ indexed, exact: 0 }])
      }
    }).pipe(Effect.provide(Turns.Default))
  )

  it.effect("are written once when it is settled again, and only its own reply is reported as written", () =>
    Effect.gen(function* () {
      yield* reset
      const sql = yield* SqlClient.SqlClient
      const turns = yield* Turns
      const posted = yield* Ref.make(0)
      const post = () => Ref.update(posted, (count) => count + 1)
      const scope = yield* Fixtures.agent({ turns: 10 })
      const settlement = yield* begin(scope, { _tag: "Anonymous" }, yield* newId.conversation)
      const written = yield* turns.settle(scope, settlement, post)
      expect(written._tag).toBe("Written")
      expect(yield* turns.settle(scope, settlement, post)).toEqual(written)
      const other = { ...settlement, reply: { ...settlement.reply, id: yield* newId.message } }
      expect(yield* turns.settle(scope, other, post)).toEqual({ _tag: "Gone" })
      expect(yield* turns.settle(scope, { ...settlement, reply: null })).toEqual({ _tag: "Gone" })
      expect(yield* Ref.get(posted)).toBe(1)
      const [counted] = yield* sql`
        select (select count(*)::int from messages) as messages, (select sum(turns)::int from agent_usage) as turns`
      expect(counted).toEqual({ messages: 2, turns: 1 })
    }).pipe(Effect.provide(Turns.Default))
  )
})
