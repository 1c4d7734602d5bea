/** Corrections: curated answers to failed turns. They are drafted, previewed, and live only after approval. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { optional } from "../Optional.ts"
import { Actor } from "../accounts/Audit.ts"
import { AgentId, RunId, SourceId, typeId } from "../Ids.ts"
import { QaPair } from "../knowledge/CuratedSource.ts"
import { Text, trimmed } from "../Text.ts"
import { TimestampInput } from "../TimestampInput.ts"
import { ExperimentId } from "./Experiment.ts"
import { TestCaseId } from "./TestCase.ts"

export const CorrectionId = Text.pipe(Schema.minLength(1), Schema.brand("CorrectionId"))
export type CorrectionId = typeof CorrectionId.Type
export const newCorrectionId = Effect.map(Clock.currentTimeMillis, (now) =>
  CorrectionId.make(typeId("cor", now))
)

/** Maximum number of turns that a correction is made from. */
export const maxCorrectedTurns = 50
/** Number of turns that a preview asks again: default and maximum. */
export const defaultPreviewedTurns = 50
const maxPreviewed = 200

/** `human`: a reply of a team member; `model`: drafted by the language model; `written`: by the creator. */
export const CorrectionOrigin = Schema.Literal("human", "model", "written")
export type CorrectionOrigin = typeof CorrectionOrigin.Type

/** Body of `POST /api/agents/:id/corrections`. */
export const CreateCorrection = Schema.Struct({
  /** A group of `GET /api/insights` for the same period, of this agent only. */
  group: optional(trimmed(100)),
  from: optional(TimestampInput),
  to: optional(TimestampInput),
  /** Turns instead of a group. The first one gives the question. */
  runIds: optional(Schema.Array(RunId).pipe(Schema.minItems(1), Schema.maxItems(maxCorrectedTurns))),
  /** Replaces the drafted text. */
  question: optional(QaPair.fields.question),
  answer: optional(QaPair.fields.answer)
}).pipe(
  Schema.filter(
    ({ group, runIds }) =>
      (group === undefined) !== (runIds === undefined) || "Expected either group or runIds"
  )
)
export type CreateCorrection = typeof CreateCorrection.Type

/** Body of `PATCH /api/corrections/:id`. */
export const PatchCorrection = Schema.Struct({
  question: optional(QaPair.fields.question),
  answer: optional(QaPair.fields.answer)
})
export type PatchCorrection = typeof PatchCorrection.Type

/** Body of `POST /api/corrections/:id/preview`. */
export const PreviewCorrection = Schema.Struct({
  turns: optional(Schema.Int.pipe(Schema.between(1, maxPreviewed)))
})

export const Correction = Schema.Struct({
  id: CorrectionId,
  agentId: AgentId,
  question: Schema.String,
  /** Empty if nothing could be drafted. */
  answer: Schema.String,
  origin: CorrectionOrigin,
  /** The turns that it was made from. */
  runIds: Schema.Array(RunId),
  status: Schema.Literal("draft", "approved"),
  /** The effect on past answers. Null before the first preview, and after a change. */
  preview: Schema.NullOr(
    Schema.Struct({
      experimentId: ExperimentId,
      isComplete: Schema.Boolean,
      turns: Schema.Int,
      asked: Schema.Int,
      /** Asked turns whose reply or citations would differ. */
      changed: Schema.Int
    })
  ),
  /** After approval: the source with the answer, and the test case. */
  sourceId: Schema.NullOr(SourceId),
  caseId: Schema.NullOr(TestCaseId),
  author: Schema.NullOr(Actor),
  createdAt: Schema.DateTimeUtc,
  updatedAt: Schema.DateTimeUtc,
  approvedAt: Schema.NullOr(Schema.DateTimeUtc)
})
export type Correction = typeof Correction.Type
