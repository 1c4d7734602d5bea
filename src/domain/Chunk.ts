/** What retrieval is asked and answers (specification 2.3 and 4.4). */
import * as Schema from "effect/Schema"
import { ChunkId, DocumentId } from "./Ids.ts"
import { trimmed } from "./Text.ts"

/** Body of `POST /v1/retrieve`; defaults of contract 7. */
export const RetrieveRequest = Schema.Struct({
  query: trimmed(1_000),
  topK: Schema.optionalWith(Schema.Int.pipe(Schema.between(1, 20)), { exact: true, default: () => 5 }),
  minScore: Schema.optionalWith(Schema.Number.pipe(Schema.between(0, 1)), { exact: true, default: () => 0 })
})
export type RetrieveRequest = typeof RetrieveRequest.Type

/** A piece of a document, with how well it answers the query: 0 to 1. */
export const Chunk = Schema.Struct({
  id: ChunkId,
  documentId: DocumentId,
  sourceName: Schema.String,
  text: Schema.String,
  score: Schema.Number,
  url: Schema.String
})
export type Chunk = typeof Chunk.Type
