/** A plain reference implementation of retrieval: every chunk scored by the formulas of docs/retrieval.md. */
import { indexChunk } from "../../../src/search/Indexing.ts"
import { type QueryForm, queryWords } from "../../../src/search/Query.ts"
import { eachTerm } from "../../../src/search/Tokenizer.ts"

export interface ReferenceChunk {
  readonly id: string
  readonly sourceId: string
  readonly title: string
  readonly heading: string
  readonly content: string
  readonly vector: Float32Array | null
}

interface Frequencies {
  readonly length: number
  readonly found: ReadonlyMap<string, number>
}
/** Suites rank the same chunks for many queries. */
const counted = new WeakMap<ReferenceChunk, Frequencies>()

const frequencies = (chunk: ReferenceChunk): Frequencies => {
  const before = counted.get(chunk)
  if (before !== undefined) return before
  const found = new Map<string, number>()
  const { length, tsv } = indexChunk(chunk, true)
  eachTerm(tsv, (term, frequency) => found.set(term, frequency))
  const frequencies = { length, found }
  counted.set(chunk, frequencies)
  return frequencies
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
    readonly further?: QueryForm
  },
  weight: number
) => {
  const { forms: asked, termCount } = queryWords(query.text, query.further)
  const cosineOf = ({ vector }: ReferenceChunk) =>
    query.vector === null || vector === null
      ? null
      : sum(Array.from(vector, (value, place) => value * (query.vector?.[place] ?? 0)))
  const rows = chunks.map((chunk) => ({ chunk, cosine: cosineOf(chunk), ...frequencies(chunk) }))
  const average = sum(rows.map(({ length }) => length)) / rows.length
  const idf = (word: string) => {
    const containing = rows.filter(({ found }) => found.has(word)).length
    return Math.log(1 + (rows.length - containing + 0.5) / (containing + 0.5)) ** (termCount >= 7 ? 1.3 : 1)
  }
  const forms = asked.map((form) => {
    const weights = Array.from(form, ([word, times]) => [word, times * idf(word)] as const)
    return { weights, most: sum(weights.map(([, weight]) => weight * 2.2)) }
  })
  const lexicalOf = ({ found, length }: (typeof rows)[number]) =>
    Math.max(
      0,
      ...forms.map(({ most, weights }) => {
        const parts = weights.map(([word, weight]) => {
          const frequency = found.get(word) ?? 0
          return (weight * frequency * 2.2) / (frequency + 1.2 * (0.25 + (0.75 * length) / average))
        })
        return most > 0 ? sum(parts) / most : 0
      })
    )
  const cosines = rows.flatMap(({ cosine }) => cosine ?? [])
  const mean = sum(cosines) / cosines.length
  const expected = mean + Math.sqrt(sum(cosines.map((cosine) => (cosine - mean) ** 2)) / cosines.length)
  return rows
    .map((row) => {
      const { chunk, cosine } = row
      const lexical = lexicalOf(row)
      const semantic = cosine ?? (cosines.length > 0 && lexical > 0 ? expected : null)
      const score =
        semantic === null ? lexical : weight * lexical + (1 - weight) * Math.min(1, Math.max(0, semantic))
      return { id: chunk.id, sourceId: chunk.sourceId, score }
    })
    .filter(({ score }) => score > 0 && score >= query.minScore)
    .filter(({ sourceId }) => query.sourceIds?.includes(sourceId) ?? true)
    .toSorted((one, other) => other.score - one.score || (one.id < other.id ? -1 : 1))
    .slice(0, query.topK)
}
