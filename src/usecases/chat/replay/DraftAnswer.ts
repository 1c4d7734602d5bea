/**
 * Lets a replay find a curated answer that is not live yet. Its question is compared by the same rule as those of live
 * answers.
 */
import type { FoundChunk, SearchQuery, VectorSearch } from "../../../capabilities/VectorSearch.ts"
import * as Effect from "effect/Effect"
import type { Context } from "effect"
import { ChunkId, DocumentId, SourceId } from "../../../domain/Ids.ts"
import type { QaPair } from "../../../domain/knowledge/CuratedSource.ts"
import { terms } from "../../../search/Tokenizer.ts"

type Search = Context.Tag.Service<typeof VectorSearch>

/** Share of the search terms of `asked` that the answer contains: an estimate of its search score. */
const shareOfTerms = (asked: string, { answer, question }: QaPair): number => {
  const wanted = new Set(terms(asked))
  if (wanted.size === 0) return 0
  const answerTerms = new Set(terms(`${question}\n${answer}`))
  return [...wanted].filter((term) => answerTerms.has(term)).length / wanted.size
}

const chunkOf = ({ answer, question }: QaPair, score: number): FoundChunk => ({
  id: ChunkId.make("chk_draft"),
  documentId: DocumentId.make("doc_draft"),
  sourceId: SourceId.make("src_draft"),
  sourceName: question,
  title: question,
  heading: "",
  ordinal: 0,
  text: answer,
  url: "qa:draft",
  score,
  lexical: score,
  semantic: 0
})

/** True when the search includes curated answers and its filter can match a draft. */
const mayFindDraft = ({ filter = {} }: SearchQuery): boolean => {
  const { sourceTypes, ...others } = filter
  return Object.keys(others).length === 0 && (sourceTypes === undefined || sourceTypes.includes("QA"))
}

export const withDraft = (search: Search, draft: QaPair): Search => ({
  ...search,
  search: (scope, query) =>
    Effect.map(search.search(scope, query), (found) => {
      const score = shareOfTerms(query.text, draft)
      if (!mayFindDraft(query) || scope.sourceScope !== null || score === 0 || score < query.minScore)
        return found
      const chunks = [...found.chunks, chunkOf(draft, score)].toSorted(
        (one, other) => other.score - one.score
      )
      return { ...found, chunks: chunks.slice(0, query.topK) }
    })
})
