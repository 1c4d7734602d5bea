/** The content of a source: its documents, their passages, and the turns that cited them. */
import * as Schema from "effect/Schema"
import { ChunkId, ConversationId, DocumentId, RunId, SourceId } from "../Ids.ts"
import { RetrieveRequest } from "./Chunk.ts"
import { Count } from "../Count.ts"

/** Maximum number of the newest customer turns that are searched for citations. */
export const maxCitingTurns = 2_000
/** Maximum number of citing turns that are returned. */
export const maxShownCitations = 20

/** A document of the source's live generation. */
export const SourceDocument = Schema.Struct({
  id: DocumentId,
  /** The address, or the file name of an upload. */
  uri: Schema.String,
  title: Schema.String,
  passages: Count,
  /** Number of passages that are excluded from search. */
  excluded: Count,
  /** When its current version was read. */
  readAt: Schema.DateTimeUtc
})
export type SourceDocument = typeof SourceDocument.Type

/** A passage of a document: the unit that search finds and replies cite. */
export const Passage = Schema.Struct({
  id: ChunkId,
  /** Position among the passages of the document, from 0. */
  ordinal: Count,
  /** The headings above the passage; empty when there are none. */
  heading: Schema.String,
  text: Schema.String,
  /** True when the passage is excluded from search. */
  excluded: Schema.Boolean,
  /** Number of turns that cite the passage, among the agent's newest {@link maxCitingTurns}. */
  citations: Count
})
export type Passage = typeof Passage.Type

/** A turn whose reply cites a passage. */
export const CitingTurn = Schema.Struct({
  runId: RunId,
  conversationId: ConversationId,
  question: Schema.String,
  at: Schema.DateTimeUtc
})
export type CitingTurn = typeof CitingTurn.Type

/** Request body of a search that returns the parts of each score. */
export const PassageSearch = Schema.Struct({
  query: RetrieveRequest.fields.query,
  topK: RetrieveRequest.fields.topK,
  /** Only passages of this source. */
  sourceId: Schema.optionalWith(SourceId, { exact: true })
})
export type PassageSearch = typeof PassageSearch.Type

/** A passage that was found, with the parts of its score, each from 0 to 1. */
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
  /** Score of the words. */
  lexical: Schema.Number,
  /** Score of the meaning; 0 without a vector. */
  semantic: Schema.Number
})
export type FoundPassage = typeof FoundPassage.Type
