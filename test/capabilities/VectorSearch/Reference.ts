/** What retrieval means, written as plainly as it can be: every chunk scored by the formulas of docs/retrieval.md. */
import { indexRow } from "../../../src/search/IndexRow.ts"
import { eachTerm, terms } from "../../../src/search/Tokenizer.ts"

export interface ReferenceChunk {
  readonly id: string
  readonly sourceId: string
  readonly title: string
  readonly heading: string
  readonly content: string
  readonly vector: Float32Array | null
}

const frequencies = (chunk: ReferenceChunk) => {
  const found = new Map<string, number>()
  const { length, tsv } = indexRow(chunk)
  eachTerm(tsv, (term, frequency) => found.set(term, frequency))
  return { length, found }
}

const sum = (values: ReadonlyArray<number>) => values.reduce((total, value) => total + value, 0)

/** The `topK` best with a score above 0 and not below `minScore`, ties by id. */
export const reference = (
  chunks: ReadonlyArray<ReferenceChunk>,
  query: {
    readonly text: string
    readonly vector: Float32Array | null
    readonly topK: number
    readonly minScore: number
    readonly sourceIds?: ReadonlyArray<string> | undefined
  },
  weight: number
) => {
  const rows = chunks.map((chunk) => ({ chunk, ...frequencies(chunk) }))
  const average = sum(rows.map(({ length }) => length)) / rows.length
  const words = terms(query.text)
  const idf = (word: string) => {
    const containing = rows.filter(({ found }) => found.has(word)).length
    return Math.log(1 + (rows.length - containing + 0.5) / (containing + 0.5))
  }
  const weights = new Map(words.map((word) => [word, idf(word)]))
  const most = sum(words.map((word) => (weights.get(word) ?? 0) * 2.2))
  return rows
    .map(({ chunk, found, length }) => {
      const parts = words.map((word) => {
        const frequency = found.get(word) ?? 0
        return (
          ((weights.get(word) ?? 0) * frequency * 2.2) /
          (frequency + 1.2 * (0.25 + (0.75 * length) / average))
        )
      })
      const lexical = most > 0 ? sum(parts) / most : 0
      const both = query.vector !== null && chunk.vector !== null
      const cosine = both
        ? sum(Array.from(chunk.vector, (value, place) => value * (query.vector?.[place] ?? 0)))
        : 0
      const score = both ? weight * lexical + (1 - weight) * Math.max(0, cosine) : lexical
      return { id: chunk.id, sourceId: chunk.sourceId, score }
    })
    .filter(({ score }) => score > 0 && score >= query.minScore)
    .filter(({ sourceId }) => query.sourceIds?.includes(sourceId) ?? true)
    .toSorted((one, other) => other.score - one.score || (one.id < other.id ? -1 : 1))
    .slice(0, query.topK)
}
