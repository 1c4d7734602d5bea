/** Questions without an answer, as webhooks are told of them. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import { Embedder } from "../../../src/capabilities/Embedder.ts"
import { InsightStore } from "../../../src/store/conversations/Insights.ts"
import { ReportedGapStore } from "../../../src/store/conversations/ReportedGaps.ts"
import { ChatTurn } from "../../../src/usecases/chat/ChatTurn.ts"
import { GapSearch } from "../../../src/usecases/conversations/GapSearch.ts"
import { Insights } from "../../../src/usecases/conversations/Insights.ts"
import * as Fixtures from "../../Fixtures.ts"
import { makeHashing } from "../../HashingEmbedder.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { request, says, Script, turnLayer } from "../chat/TurnHarness.ts"

const layer = GapSearch.Default.pipe(
  Layer.provide(Insights.Default),
  Layer.provide([Layer.succeed(Embedder, makeHashing()), InsightStore.Default, ReportedGapStore.Default]),
  Layer.provideMerge(turnLayer())
)

const onFreshData = <A, E, R>(test: Effect.Effect<A, E, R>) =>
  Effect.zipRight(reset, Effect.provide(test, layer))

type Asking = Effect.Effect.Success<ReturnType<typeof Fixtures.agent>>

/** An agent with a source, of which nothing is found. */
const agent = Effect.gen(function* () {
  const scope = yield* Fixtures.agent()
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    insert into sources (tenant_id, id, agent_id, type, name, config)
    values (${scope.tenantId}, ${`src_${scope.tenantId}`}, ${scope.agentId}, 'FILE', 'Handbook', '{}')`
  const { chunks, reply } = yield* Script
  yield* Ref.set(chunks, [])
  yield* Ref.set(reply, says("I found nothing on that."))
  return scope
})

const webhook = ({ tenantId }: Asking, events: string) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`
      insert into webhook_endpoints (tenant_id, id, url, events, payload, secret)
      values (${tenantId}, ${`whk_${tenantId}`}, 'https://receiver.example/', ${events}::text[], 'thin', 's')`
  )

const ask = (scope: Asking, message: string, times: number) =>
  Effect.forEach(Array.from({ length: times }), (_, place) =>
    Effect.flatMap(ChatTurn, (chat) =>
      chat.complete(scope, request({ message, externalEndUserId: `person ${place % 3}` }))
    )
  )

const told = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql<{ readonly agentId: string; readonly ids: Readonly<Record<string, unknown>> }>`
    select agent_id as "agentId", ids from webhook_deliveries where type = 'gap.found' order by seq`
)

const due = Effect.flatMap(SqlClient.SqlClient, (sql) => sql`update gap_searches set due_at = now()`)

eachEngineLive("The search for questions without an answer", (it) => {
  it.scoped("reports a group once for each threshold that it passes, with its newest turns", () =>
    Effect.gen(function* () {
      const scope = yield* agent
      yield* webhook(scope, "{gap.found}")
      const { search } = yield* GapSearch
      yield* ask(scope, "Where can I download my invoice?", 4)
      yield* ask(scope, "Do you sell gift cards?", 2)
      expect(yield* search(scope)).toBe(0)
      yield* ask(scope, "Where can I download my invoice?", 1)
      expect([yield* search(scope), yield* search(scope)]).toEqual([1, 0])
      const [first] = yield* told
      expect(first).toMatchObject({ agentId: scope.agentId, ids: { count: 5, people: 3 } })
      expect(first?.ids["runIds"]).toHaveLength(5)
      yield* ask(scope, "where can i download MY invoice", 4)
      expect(yield* search(scope)).toBe(0)
      yield* ask(scope, "Where can I download my invoice?", 1)
      yield* ask(scope, "Do you sell gift cards?", 3)
      expect([yield* search(scope), yield* search(scope)]).toEqual([2, 0])
      const events = yield* told
      expect(events.map(({ ids }) => ids["count"])).toEqual([5, 10, 5])
      expect(events[1]?.ids["gapId"]).toBe(first?.ids["gapId"])
    }).pipe(onFreshData)
  )

  it.scoped("forgets a group that has disappeared, and reports it when it reappears", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const scope = yield* agent
      yield* webhook(scope, "{gap.found}")
      const { search } = yield* GapSearch
      yield* ask(scope, "Do you sell gift cards?", 5)
      expect(yield* search(scope)).toBe(1)
      yield* sql`update agent_runs set unanswered = false`
      expect(yield* search(scope)).toBe(0)
      yield* ask(scope, "Do you sell gift cards?", 5)
      expect(yield* search(scope)).toBe(1)
    }).pipe(onFreshData)
  )

  it.scoped("runs only for tenants that subscribe to it, once an hour, in one process", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const scope = yield* agent
      const other = yield* agent
      const { sweep } = yield* GapSearch
      yield* ask(scope, "Do you sell gift cards?", 5)
      yield* ask(other, "Do you sell gift cards?", 5)
      yield* webhook(other, "{turn.settled}")
      yield* sweep
      expect(yield* sql`select * from gap_searches`).toEqual([])
      yield* webhook(scope, "{turn.settled,gap.found}")
      yield* Effect.all([sweep, sweep, sweep], { concurrency: "unbounded" })
      expect(yield* told).toHaveLength(1)
      yield* sql`delete from reported_gaps`
      yield* sweep
      expect(yield* told).toHaveLength(1)
      yield* due
      yield* sweep
      expect(yield* told).toHaveLength(2)
    }).pipe(onFreshData)
  )
})
