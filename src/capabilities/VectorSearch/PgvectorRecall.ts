/** Measures the recall of approximate searches: one search in a hundred is repeated exactly. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as MetricBoundaries from "effect/MetricBoundaries"
import * as Random from "effect/Random"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import type { FoundRow } from "./PgvectorQuery.ts"

/** Share of the exact result that the approximate one contains, 0..1, for the sampled searches of this process. */
export const recallMetric = Metric.histogram(
  "spoke_retrieval_recall",
  MetricBoundaries.fromIterable([0.5, 0.8, 0.9, 0.95, 0.99, 1]),
  "Share of the exact result that an approximate search found"
)

/** The share of `exact` that is in `found`; 1 when `exact` is empty. */
const recallOf = (found: FoundRow, exact: FoundRow): number => {
  if (exact.chunks.length === 0) return 1
  const ids = new Set<string>(found.chunks.map(({ id }) => id))
  return exact.chunks.filter(({ id }) => ids.has(id)).length / exact.chunks.length
}

/**
 * Returns a function that is called with an approximate result. At `rate` (0..1) it runs `searchExactly` in the
 * background. One at a time: a sample during another is skipped, and a failing one is logged.
 */
export const makeRecall = (sql: SqlClient.SqlClient, rate: number) =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    const semaphore = yield* Effect.makeSemaphore(1)
    const record = ({ agentId, tenantId }: AgentScope, recall: number) =>
      Effect.zipRight(
        Metric.update(recallMetric, recall),
        sql`
          insert into retrieval_recall as r (agent_id, sampled, recall_sum)
          select id, 1, ${recall}::float8 from agents where tenant_id = ${tenantId} and id = ${agentId}
          on conflict (agent_id) do update
            set sampled = r.sampled + 1, recall_sum = r.recall_sum + excluded.recall_sum`
      )
    return <E>(agent: AgentScope, found: FoundRow, searchExactly: Effect.Effect<FoundRow, E>) =>
      Effect.gen(function* () {
        if ((yield* Random.next) >= rate) return
        const compare = Effect.flatMap(searchExactly, (exact) => record(agent, recallOf(found, exact))).pipe(
          Effect.timeout("30 seconds"),
          Effect.catchAllCause((cause) =>
            Effect.logWarning("A search's recall could not be measured", cause)
          ),
          Effect.withSpan("VectorSearch.recall", { root: true, attributes: { agentId: agent.agentId } })
        )
        yield* Effect.forkIn(semaphore.withPermitsIfAvailable(1)(compare), scope)
      })
  })
