/** Request and answer of retrieval. */
import * as Schema from "effect/Schema"
import { ChunkId, DocumentId, SourceId } from "../Ids.ts"
import { optional } from "../Optional.ts"
import { SourceType } from "./Source.ts"
import { SourceMetadata } from "./SourceMetadata.ts"
import { SourceLabels } from "./SourceScope.ts"
import { described, trimmed } from "../Text.ts"

/**
 * Sources to search: those that meet every condition. Unknown ids and an empty list match nothing. `metadata` matches a
 * source whose metadata has all these keys with these values. `labels` matches a source with at least one of them or
 * without labels.
 */
export const RetrieveFilter = Schema.Struct({
  sourceIds: optional(Schema.Array(SourceId).pipe(Schema.maxItems(100))),
  sourceTypes: optional(Schema.Array(SourceType).pipe(Schema.maxItems(20))),
  metadata: optional(SourceMetadata),
  labels: optional(SourceLabels)
})
export type RetrieveFilter = typeof RetrieveFilter.Type

/** Body of `POST /v1/retrieve`, with its defaults. */
export const RetrieveRequest = Schema.Struct({
  query: trimmed(1_000, "What to look for."),
  topK: Schema.optionalWith(
    described(Schema.Int.pipe(Schema.between(1, 20)), "Maximum number of chunks; 5 by default."),
    { exact: true, default: () => 5 }
  ),
  minScore: Schema.optionalWith(
    described(Schema.Number.pipe(Schema.between(0, 1)), "Minimum score; 0 by default."),
    { exact: true, default: () => 0 }
  ),
  filter: optional(RetrieveFilter)
})
export type RetrieveRequest = typeof RetrieveRequest.Type

/** A piece of a document with its score, 0 to 1. */
export const Chunk = Schema.Struct({
  id: ChunkId,
  documentId: DocumentId,
  sourceName: Schema.String,
  text: Schema.String,
  score: Schema.Number,
  url: Schema.String
})
export type Chunk = typeof Chunk.Type
