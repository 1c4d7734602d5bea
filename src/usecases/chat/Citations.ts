/** From retrieved chunks to the passages the model reads, and from its reply to the citations that ground it. */
import type { Passage } from "../../capabilities/ModelRuntime.ts"
import type { FoundChunk } from "../../capabilities/VectorSearch.ts"
import type { Citation, TurnPart } from "../../domain/ChatTurn.ts"

const titleOf = ({ title, heading }: FoundChunk): string => (heading === "" ? title : `${title} > ${heading}`)

/** Passages are numbered from 1 in the order of the chunks; the first `curated` of them are a written answer. */
export const toPassages = (chunks: ReadonlyArray<FoundChunk>, curated = 0): ReadonlyArray<Passage> =>
  chunks.map((chunk, place) => ({
    index: place + 1,
    title: titleOf(chunk),
    text: chunk.text,
    score: chunk.score,
    documentId: chunk.documentId,
    ordinal: chunk.ordinal,
    curated: place < curated
  }))

const marks = /\[(\d{1,3})\]/gu

/** What each chunk is as a citation, in order. */
export const candidatesOf = (chunks: ReadonlyArray<FoundChunk>): ReadonlyArray<Citation> =>
  chunks.map((chunk, place) => ({
    index: place + 1,
    sourceId: chunk.sourceId,
    sourceName: chunk.sourceName,
    documentId: chunk.documentId,
    chunkId: chunk.id,
    title: titleOf(chunk),
    url: chunk.url,
    text: chunk.text,
    score: chunk.score
  }))

/**
 * The chunks that the reply marks `[1]`, `[2]`, each once, by number. A model may forget to mark: then all that it was given,
 * for the reply rests on them as a whole; of a runtime that always marks, a reply without marks rests on none.
 */
export const citationsOf = (
  reply: string,
  candidates: ReadonlyArray<Citation>,
  { alwaysCites }: { readonly alwaysCites: boolean }
): ReadonlyArray<Citation> => {
  const marked = new Set(Array.from(reply.matchAll(marks), ([, number]) => Number(number)))
  const cited = candidates.filter(({ index }) => marked.has(index))
  return cited.length === 0 && !alwaysCites ? candidates : cited
}

/**
 * Tells each citation in the middle of the text, right before the bracket that ends its first mark: whoever shows the
 * text as it comes knows by then what the mark stands for. Where that is does not depend on the pieces of the text.
 */
export class Telling {
  private readonly candidates: ReadonlyMap<number, Citation>
  private readonly told = new Set<number>()
  /** The beginning of a mark at the end of what was said. */
  private begun = ""

  constructor(candidates: ReadonlyArray<Citation>) {
    this.candidates = new Map(candidates.map((citation) => [citation.index, citation]))
  }

  /** What is told for the next piece of the text. */
  say(delta: string): ReadonlyArray<TurnPart> {
    const text = this.begun + delta
    const before = this.begun.length
    this.begun = /\[\d{0,3}$/u.exec(text.slice(-4))?.[0] ?? ""
    const parts: Array<TurnPart> = []
    let from = 0
    for (const mark of delta.includes("]") ? text.matchAll(marks) : []) {
      const citation = this.candidates.get(Number(mark[1]))
      if (citation === undefined || this.told.has(citation.index)) continue
      this.told.add(citation.index)
      const bracket = mark.index + mark[0].length - 1 - before
      if (bracket > from) parts.push({ _tag: "TextDelta", delta: delta.slice(from, bracket) })
      parts.push({ _tag: "Citation", citation })
      from = bracket
    }
    parts.push({ _tag: "TextDelta", delta: delta.slice(from) })
    return parts
  }

  /** Those of `citations` that were not told with the text. */
  rest(citations: ReadonlyArray<Citation>): ReadonlyArray<TurnPart> {
    return citations
      .filter(({ index }) => !this.told.has(index))
      .map((citation) => ({ _tag: "Citation", citation }))
  }
}
