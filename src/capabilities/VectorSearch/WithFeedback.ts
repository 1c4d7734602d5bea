/**
 * Search with relevance feedback for long queries: the backend searches twice, the second time with terms of the first
 * results. See search/Feedback.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { feedbackResults, feedbackTerms, feedbackForm } from "../../search/Feedback.ts"
import { VectorSearch } from "../VectorSearch.ts"

/** Decorates the provided `VectorSearch`. Short queries are searched once, without any work here. */
export const layerWithFeedback: Layer.Layer<VectorSearch, never, VectorSearch> = Layer.effect(
  VectorSearch,
  Effect.map(VectorSearch, (inner) => {
    const search: typeof inner.search = (scope, query) => {
      const form = feedbackForm(query.text)
      if (form === undefined) return inner.search(scope, query)
      return Effect.gen(function* () {
        // Without the filter, because a filter changes no score. The scope of the key applies.
        const topK = Math.max(query.topK, feedbackResults)
        const first = yield* inner.search(scope, { ...query, filter: undefined, topK })
        const further = feedbackTerms(form, first.chunks)
        return further.size === 0 && query.filter === undefined
          ? { ...first, chunks: first.chunks.slice(0, query.topK) }
          : yield* inner.search(scope, { ...query, further })
      })
    }
    return VectorSearch.of({ ...inner, search })
  })
)
