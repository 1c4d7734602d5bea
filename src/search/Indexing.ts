/**
 * Makes the chunks of a document and their index rows, a few at a time: a book takes seconds, and requests are served on
 * the same thread.
 */
import * as Effect from "effect/Effect"
import { indexRow } from "./IndexRow.ts"
import { isEnglish } from "./Language.ts"
import { packing, type PackableDocument, type PackedChunk } from "./Packer.ts"
import { yieldToEventLoop } from "../concurrency/YieldToEventLoop.ts"
import type { TermVector } from "./Tokenizer.ts"

export interface ChunkIndex extends TermVector {
  readonly english: boolean
}

/** Steps between two pauses: some five milliseconds of the dearest text. */
const steps = 8

/** The index row of a chunk; `english` says what its document is, for chunks too short to tell. */
export const indexChunk = (
  chunk: { readonly title: string; readonly heading: string; readonly content: string },
  english: boolean
): ChunkIndex => {
  const own = isEnglish(`${chunk.heading}\n${chunk.content}`) ?? english
  return { ...indexRow({ ...chunk, english: own }), english: own }
}

/** What `use` makes of each chunk and its index row, in reading order; interruption ends it at the next yieldToEventLoop. */
export const indexDocument = <A>(
  document: PackableDocument,
  use: (chunk: PackedChunk, row: ChunkIndex) => Effect.Effect<A>
): Effect.Effect<ReadonlyArray<A>> =>
  Effect.gen(function* () {
    const made: Array<A> = []
    const english = isEnglish(document.content) ?? true
    let step = 0
    for (const chunk of packing(document)) {
      if (chunk !== undefined) {
        made.push(yield* use(chunk, indexChunk({ title: document.title, ...chunk }, english)))
      }
      if (++step % steps === 0) yield* yieldToEventLoop
    }
    return made
  })
