/**
 * The hybrid score `w · lexical + (1 − w) · max(0, cosine)`: an absolute sum, so that `minScore` means the same in
 * every query. Ranks are not fused, because a weak ranking would spoil the strong one
 * (docs/design/decisions/0008-absolute-scores.md).
 */

export interface Score {
  /** 0..1; results are sorted by it. */
  readonly score: number
  readonly lexical: number
  readonly semantic: number
}

const clamp = (value: number): number => Math.min(1, Math.max(0, value))

/**
 * Substitute for the cosine of a chunk that has no vector: one standard deviation above the mean of the chunks that
 * have one. A lower value would rank chunks that are not embedded yet too low, a higher one too high.
 */
export const expectedCosine = (mean: number, deviation: number): number => mean + deviation

/**
 * The score of one chunk. Without a cosine, because the query or all chunks have no vector, the score is the lexical
 * part with weight 1.
 */
export const fuse = (lexicalWeight: number, lexical: number, cosine: number | undefined): Score => {
  const words = clamp(lexical)
  if (cosine === undefined) return { score: words, lexical: words, semantic: 0 }
  const semantic = clamp(cosine)
  return { score: clamp(lexicalWeight * words + (1 - lexicalWeight) * semantic), lexical: words, semantic }
}

export interface Ranked extends Score {
  readonly id: string
}

const ranksBefore = (one: Ranked, other: Ranked): boolean =>
  one.score > other.score || (one.score === other.score && one.id < other.id)

/** Keeps the best `size` candidates by score, ties by id. A score of 0 or below `minScore` is not a hit. */
export class TopRanked {
  readonly #kept: Array<Ranked> = []
  readonly #size: number
  readonly #minScore: number

  constructor(size: number, minScore: number) {
    this.#size = size
    this.#minScore = minScore
  }

  /** The score that a new candidate has to exceed. */
  get threshold(): number {
    return this.#kept.length < this.#size ? this.#minScore : (this.#kept.at(-1)?.score ?? this.#minScore)
  }

  offer(id: string, score: Score): void {
    if (score.score <= 0 || score.score < this.threshold) return
    const ranked = { id, ...score }
    let place = this.#kept.length
    for (; place > 0; place--) {
      const other = this.#kept[place - 1]
      if (other === undefined || ranksBefore(other, ranked)) break
    }
    this.#kept.splice(place, 0, ranked)
    if (this.#kept.length > this.#size) this.#kept.pop()
  }

  /** Best first. */
  get all(): ReadonlyArray<Ranked> {
    return this.#kept
  }
}
