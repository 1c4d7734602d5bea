/** Curated answers. A question that equals theirs, or nearly does, gets them before other passages. */
import type { Context } from "effect"
import type { FoundChunk, VectorSearch } from "../../../capabilities/VectorSearch.ts"
import type { ReadScope } from "../../../domain/accounts/Access.ts"
import type { RetrieveFilter } from "../../../domain/knowledge/Chunk.ts"
import * as CheapSpans from "../../../concurrency/CheapSpans.ts"
import { hasOnlyFunctionWords, similarity } from "../../../search/QuestionSimilarity.ts"
import type { PassageStore } from "../../../store/knowledge/Passages.ts"

/** Maximum chunks that are compared: enough for the longest answer among others with similar questions. */
const maxComparedChunks = 20

/** The passages of a curated answer in reading order, and the similarity of its question to the asked one. */
export interface CuratedAnswer {
  readonly question: string
  readonly likeness: number
  readonly chunks: ReadonlyArray<FoundChunk>
}

/** The answer whose question is most similar to `asked`; null when none is similar enough. Chunks come best first. */
const mostSimilar = (asked: string, chunks: ReadonlyArray<FoundChunk>): CuratedAnswer | null => {
  let best: FoundChunk | undefined
  let bestLikeness = 0
  for (const chunk of chunks) {
    const likeness = similarity(asked, chunk.title)
    if (likeness > bestLikeness) [best, bestLikeness] = [chunk, likeness]
  }
  if (best === undefined) return null
  const { documentId, title } = best
  return {
    question: title,
    likeness: bestLikeness,
    chunks: chunks
      .filter((chunk) => chunk.documentId === documentId)
      .toSorted((one, other) => one.ordinal - other.ordinal)
      .map((chunk) => ({ ...chunk, score: bestLikeness }))
  }
}

export interface CuratedServices {
  readonly search: Context.Tag.Service<typeof VectorSearch>
  readonly texts: Pick<PassageStore, "questions" | "chunksOf">
}

/** Maximum number of further characters, such as punctuation, in a question with the same words. */
const maxOtherCharacters = 16

/** The answer whose question has the same words as `asked`. */
const sameWords = CheapSpans.fn("Curated.sameWords")(function* (
  { texts }: CuratedServices,
  scope: ReadScope,
  asked: string,
  filter: RetrieveFilter
) {
  const { length } = asked.match(/[\p{L}\p{N}\p{M}]/gu) ?? []
  // Each character of a word may be followed by a space.
  const maxLength = 2 * length + maxOtherCharacters
  const questions = yield* texts.questions(scope, filter, { min: length, max: maxLength })
  const same = questions.find(({ question }) => similarity(asked, question) === 1)
  return same === undefined ? null : mostSimilar(asked, yield* texts.chunksOf(scope, same.id))
})

/** Looks for a curated answer among the sources that the scope and the filter allow. */
export const find = CheapSpans.fn("Curated.find")(function* (
  services: CuratedServices,
  scope: ReadScope,
  asked: string,
  filter: RetrieveFilter = {}
) {
  const sourceTypes = (filter.sourceTypes ?? ["QA"]).filter((type) => type === "QA")
  if (sourceTypes.length === 0) return null
  const { chunks } = yield* services.search.search(scope, {
    text: asked,
    topK: maxComparedChunks,
    minScore: 0,
    filter: { ...filter, sourceTypes },
    // A reranker could leave out an exact question. Its order would not be used.
    rerank: false
  })
  const found = mostSimilar(asked, chunks)
  return found === null && hasOnlyFunctionWords(asked)
    ? yield* sameWords(services, scope, asked, { ...filter, sourceTypes })
    : found
})

/** `curated` first, then other passages. At most `topK`, unless the answer itself has more. */
export const prependCurated = (
  curated: CuratedAnswer | null,
  found: ReadonlyArray<FoundChunk>,
  topK: number
): ReadonlyArray<FoundChunk> => {
  if (curated === null) return found
  const ids = new Set(curated.chunks.map(({ id }) => id))
  const others = found.filter(({ id }) => !ids.has(id))
  return [...curated.chunks, ...others.slice(0, Math.max(0, topK - ids.size))]
}
