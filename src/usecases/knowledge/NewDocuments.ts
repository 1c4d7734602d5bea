/** Converts documents to the stored form: chunks, and hashes that tell them apart. */
import { createHash } from "node:crypto"
import * as Effect from "effect/Effect"
import { yieldToEventLoop } from "../../concurrency/YieldToEventLoop.ts"
import { newId } from "../../domain/Ids.ts"
import { indexDocument } from "../../search/Indexing.ts"
import { embeddingText } from "../../search/Packer.ts"
import type { ReadDocument } from "../../readers/Reader.ts"
import type { NewDocument } from "../../store/knowledge/Knowledge.ts"

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex")

/** UTF-16 units that are hashed at a time, in a few milliseconds. */
const unitsPerHashStep = 1_048_576

/** {@link sha256} of a text of any length without lone surrogates. Yields to the event loop between pieces. */
const sha256OfLong = (text: string) =>
  Effect.gen(function* () {
    const hash = createHash("sha256")
    for (let at = 0; at < text.length;) {
      // A surrogate pair is not split.
      const half = /[\ud800-\udbff]/.test(text.charAt(at + unitsPerHashStep - 1)) ? 1 : 0
      hash.update(text.slice(at, at + unitsPerHashStep - half))
      at += unitsPerHashStep - half
      if (at < text.length) yield* yieldToEventLoop
    }
    return hash.digest("hex")
  })

export const toDocument = Effect.fn("NewDocuments.toDocument")(function* (document: ReadDocument) {
  const { title, content, format, uri } = document
  const chunks = yield* indexDocument(
    { title, content, format },
    ({ ordinal, heading, content: text }, row) =>
      Effect.map(newId.chunk, (id) => {
        const contentHash = sha256(embeddingText({ title, heading, content: text }))
        return { id, ordinal, heading, content: text, contentHash, ...row }
      })
  )
  const contentHash = yield* sha256OfLong(content)
  // Many short documents take as long as a long one.
  yield* yieldToEventLoop
  const added: NewDocument = { id: yield* newId.document, uri, title, contentHash, chunks }
  return added
})
