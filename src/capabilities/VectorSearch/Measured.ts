/** Duration of searches, on each backend, for `/metrics`. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { currentTrace, DurationHistogram } from "../../concurrency/DurationHistogram.ts"
import { monotonicMillis } from "../../domain/MonotonicClock.ts"
import { VectorSearch } from "../VectorSearch.ts"

const durations = new DurationHistogram<{ readonly degraded: "true" | "false" }>(
  "spoke_retrieval_duration_seconds",
  "Searches of an agent's chunks, including the query's embedding and reranking; degraded: by words only"
)

export const measuredSearch = Layer.effect(
  VectorSearch,
  Effect.map(VectorSearch, (inner) => {
    durations.register({ degraded: "false" })
    durations.register({ degraded: "true" })
    return VectorSearch.of({
      warm: inner.warm,
      search: (scope, query) =>
        Effect.flatMap(monotonicMillis, (began) =>
          Effect.tap(inner.search(scope, query), ({ degraded }) =>
            Effect.zipWith(monotonicMillis, currentTrace, (now, trace) =>
              durations.observe(now - began, { degraded: degraded ? "true" : "false" }, trace)
            )
          )
        )
    })
  })
)
