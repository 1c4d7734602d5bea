/**
 * Makes the chunks of a document and their index rows in small batches, because a book takes seconds and requests run
 * on the same thread.
 */
import * as Effect from "effect/Effect"
import { indexRow } from "./IndexRow.ts"
import { isEnglish } from "./Language.ts"
import { chunkSteps, type PackableDocument, type PackedChunk } from "./Packer.ts"
import { yieldToEventLoop } from "../concurrency/YieldToEventLoop.ts"
import type { TermVector } from "./Tokenizer.ts"

export interface ChunkIndex extends TermVector {
  readonly english: boolean
}

/** Steps between two pauses: about five milliseconds for the most expensive text. */
const stepsPerYield = 8

/** The index row of a chunk. `english` is the language of its document, for chunks that are too short to tell. */
export const indexChunk = (
  chunk: { readonly title: string; readonly heading: string; readonly content: string },
  english: boolean
): ChunkIndex => {
  const isChunkEnglish = isEnglish(`${chunk.heading}\n${chunk.content}`) ?? english
  return { ...indexRow({ ...chunk, english: isChunkEnglish }), english: isChunkEnglish }
}

/**
 * Applies `use` to each chunk and its index row, in reading order. Interruption takes effect at the next
 * yieldToEventLoop.
 */
export const indexDocument = <A>(
  document: PackableDocument,
  use: (chunk: PackedChunk, row: ChunkIndex) => Effect.Effect<A>
): Effect.Effect<ReadonlyArray<A>> =>
  Effect.gen(function* () {
    const made: Array<A> = []
    const english = isEnglish(document.content) ?? true
    let step = 0
    for (const chunk of chunkSteps(document)) {
      if (chunk !== undefined) {
        made.push(yield* use(chunk, indexChunk({ title: document.title, ...chunk }, english)))
      }
      if (++step % stepsPerYield === 0) yield* yieldToEventLoop
    }
    return made
  })
