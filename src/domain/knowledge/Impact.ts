/** Answers that rested on passages which have changed or gone since they were given. */
import * as Schema from "effect/Schema"
import { RunId, SourceId } from "../Ids.ts"
import { TimestampInput } from "../TimestampInput.ts"
import { Version } from "../Version.ts"

const Count = Schema.Int.pipe(Schema.nonNegative())
const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

/** Answers that one call replays, where it does not say how many, and at most. */
export const defaultReplayed = 50
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
  /** `gone`: the document or its source is no longer there. */
  state: Schema.Literal("changed", "gone")
})
export type ImpactPassage = typeof ImpactPassage.Type

/** What was answered to one question, however often. */
export const ImpactAnswer = Schema.Struct({
  id: Schema.String,
  /** As it was asked last. */
  question: Schema.String,
  /** As it was given last: its first characters. */
  reply: Schema.String,
  /** How often it was given while it rested on such a passage. */
  times: Count,
  lastAt: Schema.DateTimeUtc,
  /** The newest. */
  runIds: Schema.Array(RunId),
  passages: Schema.Array(ImpactPassage)
})
export type ImpactAnswer = typeof ImpactAnswer.Type

/** `data` of `GET /api/agents/:id/impact`. */
export const ImpactPage = Schema.Struct({
  from: Schema.DateTimeUtc,
  to: Schema.DateTimeUtc,
  /** Turns that were looked at: the newest ones that cite something. */
  turns: Count,
  /** True when there are more than a report takes. */
  isCut: Schema.Boolean,
  answers: Schema.Array(ImpactAnswer),
  nextCursor: Schema.NullOr(Schema.String)
})

/** Body of `POST /api/agents/:id/impact/replay`. */
export const ReplayImpact = Schema.Struct({
  from: optional(TimestampInput),
  to: optional(TimestampInput),
  sourceId: optional(SourceId),
  /** Those that were given most often; one turn of each. */
  answers: optional(Schema.Int.pipe(Schema.between(1, maxReplayed))),
  /** Whose settings answer: the published version's where it is left out. */
  version: optional(Version)
})
export type ReplayImpact = typeof ReplayImpact.Type
