/** Failed turns, grouped by their question, and measures of all turns. */
import * as Schema from "effect/Schema"
import { Cost } from "../billing/Cost.ts"
import { AgentId, ConversationId, RunId, SourceId } from "../Ids.ts"
import { Count } from "../Count.ts"

/** How a turn went wrong. A turn may have several kinds. */
export const FailureKind = Schema.Literal("failed", "thumbsDown", "handedOver", "unanswered", "stopped")
export type FailureKind = typeof FailureKind.Type

/** A turn that went wrong. `kind` is its first kind in the order of {@link FailureKind}. */
export const FailedTurn = Schema.Struct({
  runId: RunId,
  agentId: AgentId,
  conversationId: ConversationId,
  /** Its first characters. */
  question: Schema.String,
  at: Schema.DateTimeUtc,
  kind: FailureKind
})
export type FailedTurn = typeof FailedTurn.Type

/** Turns that went wrong with the same question. */
export const InsightGroup = Schema.Struct({
  id: Schema.String,
  /** The question that is most similar to all others of the group. */
  title: Schema.String,
  /** The subject, named by the language model; null without a model, for one turn, or if it is not known yet. */
  name: Schema.NullOr(Schema.String),
  /** Number of turns. */
  count: Count,
  /** A turn counts once for each of its kinds. */
  kinds: Schema.Struct({
    unanswered: Count,
    thumbsDown: Count,
    handedOver: Count,
    stopped: Count,
    failed: Count
  }),
  people: Count,
  /** Number of turns in the first and in the second half of the period. */
  trend: Schema.Struct({ earlier: Count, later: Count }),
  lastAt: Schema.DateTimeUtc,
  /** Sources that were searched without a result, the most frequent first. */
  sources: Schema.Array(Schema.Struct({ id: SourceId, name: Schema.String, times: Count })),
  /** The newest turns. */
  examples: Schema.Array(FailedTurn)
})
export type InsightGroup = typeof InsightGroup.Type

/** `data` of `GET /api/insights`. */
export const InsightPage = Schema.Struct({
  from: Schema.DateTimeUtc,
  to: Schema.DateTimeUtc,
  /** Number of turns that were grouped: the newest that went wrong. */
  turns: Count,
  /** True when more turns went wrong than a report includes. */
  isCut: Schema.Boolean,
  /** Number of questions without a vector yet. They are grouped by their words alone. */
  withoutVector: Count,
  groups: Schema.Array(InsightGroup),
  nextCursor: Schema.NullOr(Schema.String)
})

/** Dimension by which measures are grouped. */
export const MeasuredBy = Schema.Literal("day", "agent", "channel", "version", "language")
export type MeasuredBy = typeof MeasuredBy.Type

const Share = Schema.Number.pipe(Schema.between(0, 1))
const Times = Schema.Struct({ median: Count, p95: Count })

export const Measures = Schema.Struct({
  turns: Count,
  people: Count,
  answered: Count,
  /** Turns in which the agent found nothing, or its sources do not support the reply. */
  refused: Count,
  handedOver: Count,
  stopped: Count,
  failed: Count,
  /** Turns whose question the same person asked again within a day. */
  repeated: Count,
  rated: Schema.Struct({ up: Count, down: Count }),
  /**
   * Share of turns that were answered, not handed over, not rated down and not asked again within a day; null without
   * turns.
   */
  resolutionRate: Schema.NullOr(Share),
  /** Share of positive ratings; null without ratings. */
  satisfaction: Schema.NullOr(Share),
  /** Milliseconds to the first text of the reply. */
  timeToFirstText: Schema.NullOr(Times),
  /** Milliseconds until the turn was stored. */
  timeToSettle: Schema.NullOr(Times),
  tokens: Schema.Struct({ input: Count, output: Count }),
  /** Cost of the models that the turns called. */
  cost: Cost,
  /** Checked citations of the replies, by result, and the share that is supported (`yes`); null without any. */
  grounding: Schema.Struct({ yes: Count, partly: Count, no: Count, share: Schema.NullOr(Share) })
})
export type Measures = typeof Measures.Type

/**
 * `key` is a day in UTC (YYYY-MM-DD), an agent's id, a channel, a version of the requested agent, or a language (ISO
 * 639-1, `unknown` if it could not be detected). `name` is the agent's.
 */
export const MeasuresRow = Schema.Struct({
  key: Schema.String,
  name: Schema.NullOr(Schema.String),
  ...Measures.fields
})
export type MeasuresRow = typeof MeasuresRow.Type

/** `data` of `GET /api/measures`. */
export const MeasuresReport = Schema.Struct({
  from: Schema.DateTimeUtc,
  to: Schema.DateTimeUtc,
  by: MeasuredBy,
  total: Measures,
  /** True when there are more rows than a report includes. */
  isCut: Schema.Boolean,
  rows: Schema.Array(MeasuresRow)
})
export type MeasuresReport = typeof MeasuresReport.Type
