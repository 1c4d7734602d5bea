/** Answers based on passages that have changed or were deleted since. */
import * as Schema from "effect/Schema"
import { RunId, SourceId } from "../Ids.ts"
import { optional } from "../Optional.ts"
import { TimestampInput } from "../TimestampInput.ts"
import { Version } from "../Version.ts"
import { Count } from "../Count.ts"

/** Number of answers that one call replays: default and maximum. */
export const defaultReplayedTurns = 50
const maxReplayed = 200

/** A passage as it was cited. */
export const ImpactPassage = Schema.Struct({
  sourceId: SourceId,
  sourceName: Schema.String,
  title: Schema.String,
  heading: Schema.String,
  url: Schema.String,
  /** Its first characters. */
  text: Schema.String,
  /** `gone`: the document or its source no longer exists. */
  state: Schema.Literal("changed", "gone")
})
export type ImpactPassage = typeof ImpactPassage.Type

/** A question with its answer, however often it was given. */
export const ImpactAnswer = Schema.Struct({
  id: Schema.String,
  /** The latest wording. */
  question: Schema.String,
  /** The first characters of the latest reply. */
  reply: Schema.String,
  /** How often it was given while based on such a passage. */
  times: Count,
  lastAt: Schema.DateTimeUtc,
  /** The newest runs. */
  runIds: Schema.Array(RunId),
  passages: Schema.Array(ImpactPassage)
})
export type ImpactAnswer = typeof ImpactAnswer.Type

/** `data` of `GET /api/agents/:id/impact`. */
export const ImpactPage = Schema.Struct({
  from: Schema.DateTimeUtc,
  to: Schema.DateTimeUtc,
  /** Number of turns examined: the newest that cite something. */
  turns: Count,
  /** True if there are more than a report includes. */
  isCut: Schema.Boolean,
  answers: Schema.Array(ImpactAnswer),
  nextCursor: Schema.NullOr(Schema.String)
})

/** Body of `POST /api/agents/:id/impact/replay`. */
export const ReplayImpact = Schema.Struct({
  from: optional(TimestampInput),
  to: optional(TimestampInput),
  sourceId: optional(SourceId),
  /** Number of answers to replay, the most frequent first, with one turn of each. */
  answers: optional(Schema.Int.pipe(Schema.between(1, maxReplayed))),
  /** The version whose settings answer; default: the published one. */
  version: optional(Version)
})
export type ReplayImpact = typeof ReplayImpact.Type
