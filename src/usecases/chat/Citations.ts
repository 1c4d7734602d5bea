/** From retrieved chunks to the passages the model reads, and from its reply to the citations that ground it. */
import type { Passage } from "../../capabilities/ModelRuntime.ts"
import type { FoundChunk } from "../../capabilities/VectorSearch.ts"
import type { Citation } from "../../domain/ChatTurn.ts"

const titleOf = ({ title, heading }: FoundChunk): string => (heading === "" ? title : `${title} > ${heading}`)

/** Passages are numbered from 1 in the order of the chunks. */
export const toPassages = (chunks: ReadonlyArray<FoundChunk>): ReadonlyArray<Passage> =>
  chunks.map((chunk, place) => ({
    index: place + 1,
    title: titleOf(chunk),
    text: chunk.text,
    score: chunk.score
  }))

const marks = /\[(\d{1,3})\]/gu

/**
 * The chunks that the reply marks `[1]`, `[2]`, each once, by number. A model may forget to mark: then all that it was given,
 * for the reply rests on them as a whole; of a runtime that always marks, a reply without marks rests on none.
 */
export const citationsOf = (
  reply: string,
  chunks: ReadonlyArray<FoundChunk>,
  { alwaysCites }: { readonly alwaysCites: boolean }
): ReadonlyArray<Citation> => {
  const all = chunks.map((chunk, place): Citation => ({
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
  const marked = new Set(Array.from(reply.matchAll(marks), ([, number]) => Number(number)))
  const cited = all.filter(({ index }) => marked.has(index))
  return cited.length === 0 && !alwaysCites ? all : cited
}
