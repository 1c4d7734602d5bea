/** What was read from a source: its documents, their passages, and what cited them. */
import * as Schema from "effect/Schema"
import { ChunkId, ConversationId, DocumentId, RunId, SourceId } from "../Ids.ts"
import { RetrieveRequest } from "./Chunk.ts"

const Count = Schema.Int.pipe(Schema.nonNegative())

/** The newest turns of customers among which citations are looked for. */
export const maxCitingTurns = 2_000
/** Turns that are named of those that cite a passage. */
export const maxShownCitations = 20

/** A document as it answers now. */
export const SourceDocument = Schema.Struct({
  id: DocumentId,
  /** Its address; of an upload, the name of its file. */
  uri: Schema.String,
  title: Schema.String,
  passages: Count,
  /** Those of its passages that are excluded from search. */
  excluded: Count,
  /** When its current version was read. */
  readAt: Schema.DateTimeUtc
})
export type SourceDocument = typeof SourceDocument.Type

/** A passage in its document: what search finds and replies cite. */
export const Passage = Schema.Struct({
  id: ChunkId,
  /** Place among the passages of its document, from 0. */
  ordinal: Count,
  /** The headings above it; empty without any. */
  heading: Schema.String,
  text: Schema.String,
  /** True when no search finds it. */
  excluded: Schema.Boolean,
  /** Turns that cite it, of the agent's newest {@link maxCitingTurns}. */
  citations: Count
})
export type Passage = typeof Passage.Type

/** A turn whose reply cites a passage. */
export const Citing = Schema.Struct({
  runId: RunId,
  conversationId: ConversationId,
  question: Schema.String,
  at: Schema.DateTimeUtc
})
export type Citing = typeof Citing.Type

/** Body of a search that shows how the passages were found. */
export const PassageSearch = Schema.Struct({
  query: RetrieveRequest.fields.query,
  topK: RetrieveRequest.fields.topK,
  /** Only passages of this source. */
  sourceId: Schema.optionalWith(SourceId, { exact: true })
})
export type PassageSearch = typeof PassageSearch.Type

/** A passage that was found, with the parts of its score: each 0 to 1. */
export const FoundPassage = Schema.Struct({
  id: ChunkId,
  documentId: DocumentId,
  sourceId: SourceId,
  sourceName: Schema.String,
  title: Schema.String,
  heading: Schema.String,
  url: Schema.String,
  text: Schema.String,
  score: Schema.Number,
  /** By its words. */
  lexical: Schema.Number,
  /** By its meaning; 0 without a vector. */
  semantic: Schema.Number
})
export type FoundPassage = typeof FoundPassage.Type
