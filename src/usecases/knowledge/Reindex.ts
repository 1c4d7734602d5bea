/**
 * Rebuilds the index of documents that an earlier version indexed differently. Uses their stored chunks, a few
 * documents at a time, each in one transaction. Until then a document is found by its old index.
 */
import * as Effect from "effect/Effect"
import { Embedder } from "../../capabilities/Embedder.ts"
import { yieldToEventLoop } from "../../concurrency/YieldToEventLoop.ts"
import { indexChunk } from "../../search/Indexing.ts"
import { isEnglish } from "../../search/Language.ts"
import { type IndexedChunk, type OutdatedDocument, ReindexStore } from "../../store/knowledge/Reindex.ts"

/** Documents of one sweep. */
const batchSize = 100
/** Chunks processed before yielding to the event loop, as in ingestion. */
const chunksBetweenPauses = 8
/** Chunks from which the language of a document is detected. */
const languageSample = 20

export class Reindex extends Effect.Service<Reindex>()("usecases/knowledge/Reindex", {
  effect: Effect.gen(function* () {
    const store = yield* ReindexStore
    const embedder = yield* Embedder

    const reindex = (document: OutdatedDocument) =>
      Effect.gen(function* () {
        const chunks = yield* store.chunks(document)
        const sample = chunks.slice(0, languageSample).map(({ content }) => content)
        const english = isEnglish(sample.join("\n\n")) ?? true
        const rows: Array<IndexedChunk> = []
        for (const [index, chunk] of chunks.entries()) {
          const row = indexChunk({ title: document.title, ...chunk }, english)
          rows.push({ id: chunk.id, ...row })
          if (index % chunksBetweenPauses === 0) yield* yieldToEventLoop
        }
        yield* store.replace(document, rows, embedder.englishOnly === true ? embedder.profile : null)
      })

    /** Returns true when there may be more to do. */
    const sweep = Effect.gen(function* () {
      const documents = yield* store.outdatedDocuments(batchSize)
      yield* Effect.forEach(documents, reindex, { discard: true })
      return documents.length === batchSize
    }).pipe(Effect.withSpan("Reindex.sweep"))

    return { sweep } as const
  })
}) {}
