/** The minimum scores of the passages that a chat turn reads. */

/**
 * Upper bound of the minimum score by words alone. It is low: few passages have a third of a question's words, and the
 * language model judges what it reads.
 */
const maxMinWordScore = 0.08

/** Minimums that a runtime recommends; else those of the embedder are used. */
interface RecommendedScores {
  readonly minScore?: number
  readonly minWordScore?: number
}

/** The minimums of a chat turn: the agent's own, or the recommended ones. */
export const minScores = (
  own: number | null,
  runtime: RecommendedScores,
  embedder: { readonly minScore: number }
) => {
  const minScore = own ?? runtime.minScore ?? embedder.minScore
  return { minScore, minWordScore: own ?? runtime.minWordScore ?? Math.min(minScore, maxMinWordScore) }
}
