/**
 * Findings: passages that contradict or repeat each other, or are stale and not helpful. Also the value of each source.
 */
import * as Schema from "effect/Schema"
import { AgentId, DocumentId, SourceId } from "../Ids.ts"
import { Text } from "../Text.ts"
import { Count } from "../Count.ts"

/** Derived from the passages: the same passages within an agent have the same id. */
export const FindingId = Text.pipe(Schema.minLength(1))
export type FindingId = typeof FindingId.Type

export const FindingKind = Schema.Literal("contradiction", "duplicate", "stale")
export type FindingKind = typeof FindingKind.Type

/**
 * The reason: the differences of two statements, the share of text that two passages have in common, or how long a page
 * did not change.
 */
export const FindingReason = Schema.Union(
  Schema.Struct({
    kind: Schema.Literal("number", "date", "negation"),
    /** The words of each statement that the other does not have. */
    one: Schema.Array(Schema.String),
    other: Schema.Array(Schema.String)
  }),
  Schema.Struct({ kind: Schema.Literal("same"), share: Schema.Number }),
  Schema.Struct({
    kind: Schema.Literal("unchanged"),
    days: Count,
    /** Ratings, in the last 90 days, of replies that cite it. */
    thumbsUp: Count,
    thumbsDown: Count
  })
)
export type FindingReason = typeof FindingReason.Type

const FoundPassage = Schema.Struct({
  sourceId: SourceId,
  sourceName: Schema.String,
  documentId: DocumentId,
  title: Schema.String,
  heading: Schema.String,
  url: Schema.String,
  /** Its first characters. */
  text: Schema.String,
  /** The contradicting statement; null for other kinds. */
  said: Schema.NullOr(Schema.String)
})

export const Finding = Schema.Struct({
  id: FindingId,
  agentId: AgentId,
  kind: FindingKind,
  reasons: Schema.Array(FindingReason),
  /** Two passages; one if it is stale. */
  passages: Schema.Array(FoundPassage),
  foundAt: Schema.DateTimeUtc,
  dismissedAt: Schema.NullOr(Schema.DateTimeUtc)
})
export type Finding = typeof Finding.Type

export const FindingCounts = Schema.Struct({ contradiction: Count, duplicate: Count, stale: Count })

export const FindingPage = Schema.Struct({
  findings: Schema.Array(Finding),
  /** Counts of each kind, regardless of the filter. */
  counts: FindingCounts,
  /** False while some passages have not been compared yet. */
  isComplete: Schema.Boolean,
  nextCursor: Schema.NullOr(Schema.String)
})

/** The value and the cost of one source in a month. */
export const SourceValue = Schema.Struct({
  sourceId: SourceId,
  name: Schema.String,
  /** Turns that were shown a passage of it, and those whose replies cite it. */
  shown: Count,
  cited: Count,
  /** Ratings of the turns that cite it: positive and negative. */
  helpful: Count,
  notHelpful: Count,
  /** Approximate number of its tokens that the model read. */
  tokens: Count,
  /** Current number. */
  documents: Count,
  chunks: Count,
  storedBytes: Count
})
export type SourceValue = typeof SourceValue.Type

/** A month in UTC. */
export const Month = Schema.String.pipe(
  Schema.pattern(/^20\d{2}-(?:0[1-9]|1[0-2])$/u, { message: () => "Expected a month like 2026-03" })
)
