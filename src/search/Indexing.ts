/**
 * Makes the chunks of a document and their index rows, a few at a time: a book takes seconds, and requests are served on
 * the same thread.
 */
import * as Effect from "effect/Effect"
import { indexRow } from "./IndexRow.ts"
import { packing, type PackableDocument, type PackedChunk } from "./Packer.ts"
import { pause } from "../domain/Pause.ts"
import type { TermVector } from "./Tokenizer.ts"

/** Steps between two pauses: some five milliseconds of the dearest text. */
const steps = 8

/** What `use` makes of each chunk and its index row, in reading order; interruption ends it at the next pause. */
export const indexDocument = <A>(
  document: PackableDocument,
  use: (chunk: PackedChunk, row: TermVector) => Effect.Effect<A>
): Effect.Effect<ReadonlyArray<A>> =>
  Effect.gen(function* () {
    const made: Array<A> = []
    let step = 0
    for (const chunk of packing(document)) {
      if (chunk !== undefined) {
        made.push(yield* use(chunk, indexRow({ title: document.title, ...chunk })))
      }
      if (++step % steps === 0) yield* pause
    }
    return made
  })
