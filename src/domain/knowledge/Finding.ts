/** Passages that contradict or repeat each other, or are old and do not help; and what each source is worth. */
import * as Schema from "effect/Schema"
import { AgentId, DocumentId, SourceId } from "../Ids.ts"
import { Text } from "../Text.ts"

const Count = Schema.Int.pipe(Schema.nonNegative())

/** Of what was found within an agent: the same passages have the same. */
export const FindingId = Text.pipe(Schema.minLength(1))
export type FindingId = typeof FindingId.Type

export const FindingKind = Schema.Literal("contradiction", "duplicate", "stale")
export type FindingKind = typeof FindingKind.Type

/** Why: what each of two statements says, the share that two passages have in common, or for how long a page did not change. */
export const FindingReason = Schema.Union(
  Schema.Struct({
    kind: Schema.Literal("number", "date", "negation"),
    /** What the first and the second statement say that the other does not. */
    one: Schema.Array(Schema.String),
    other: Schema.Array(Schema.String)
  }),
  Schema.Struct({ kind: Schema.Literal("same"), share: Schema.Number }),
  Schema.Struct({
    kind: Schema.Literal("unchanged"),
    days: Count,
    /** Ratings of the replies that cite it, of the last 90 days. */
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
  /** The statement that contradicts; null for other kinds. */
  said: Schema.NullOr(Schema.String)
})

export const Finding = Schema.Struct({
  id: FindingId,
  agentId: AgentId,
  kind: FindingKind,
  reasons: Schema.Array(FindingReason),
  /** Two; one where it is stale. */
  passages: Schema.Array(FoundPassage),
  foundAt: Schema.DateTimeUtc,
  dismissedAt: Schema.NullOr(Schema.DateTimeUtc)
})
export type Finding = typeof Finding.Type

export const FindingCounts = Schema.Struct({ contradiction: Count, duplicate: Count, stale: Count })

export const FindingPage = Schema.Struct({
  findings: Schema.Array(Finding),
  /** Of each kind, whichever is asked for. */
  counts: FindingCounts,
  /** False while passages are still to be compared. */
  isComplete: Schema.Boolean,
  nextCursor: Schema.NullOr(Schema.String)
})

/** What one source did in a month, and what it takes. */
export const SourceValue = Schema.Struct({
  sourceId: SourceId,
  name: Schema.String,
  /** Turns that were shown something of it, and those whose replies cite it. */
  shown: Count,
  cited: Count,
  /** Of those that cite it: rated up, and rated down. */
  helpful: Count,
  notHelpful: Count,
  /** About so many tokens of it were read by the model. */
  tokens: Count,
  /** Of today. */
  documents: Count,
  chunks: Count,
  storedBytes: Count
})
export type SourceValue = typeof SourceValue.Type

/** A month in UTC. */
export const Month = Schema.String.pipe(
  Schema.pattern(/^20\d{2}-(?:0[1-9]|1[0-2])$/u, { message: () => "Expected a month like 2026-03" })
)
