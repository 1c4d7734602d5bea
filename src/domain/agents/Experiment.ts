/** Experiments run an agent's test cases, or stored turns, with one set of its settings. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { optional } from "../Optional.ts"
import { Actor } from "../accounts/Audit.ts"
import { AgentId, RunId, typeId } from "../Ids.ts"
import { Text, trimmed } from "../Text.ts"
import { Version } from "../Version.ts"
import { CreateAgent } from "./Agent.ts"
import { CaseResult } from "./evaluation/Judge.ts"
import { Change, Figures, Percentiles, Tokens } from "./evaluation/Report.ts"
import { maxTestCases, TestCaseFields, TestCaseId } from "./TestCase.ts"

export const ExperimentId = Text.pipe(Schema.minLength(1), Schema.brand("ExperimentId"))
export type ExperimentId = typeof ExperimentId.Type
export const newExperimentId = Effect.map(Clock.currentTimeMillis, (now) =>
  ExperimentId.make(typeId("exp", now))
)

/** Maximum number of stored turns of one experiment. */
const maxTurns = 200
/** Default token limit of one experiment. */
export const defaultMaxTokens = 2_000_000

const ExperimentStatus = Schema.Literal("queued", "running", "complete", "cancelled", "failed")

const { name: _, ...settings } = CreateAgent.fields

const atMostOne = (names: ReadonlyArray<string>) => (given: object) =>
  names.filter((name) => Object.hasOwn(given, name)).length <= 1 ||
  `Expected one of ${names.join(", ")} alone`

/** Body of `POST /api/agents/:id/experiments`. */
export const StartExperiment = Schema.Struct({
  /** The version to test. The default is the published one when `settings` is omitted too. */
  version: optional(Version),
  /** All settings of a draft that is not a version yet. Omitted ones are as in a new agent. */
  settings: optional(Schema.Struct(settings)),
  /** Replaces the model of the settings. */
  model: optional(trimmed(200)),
  /** Replaces the stored cases, except those made from turns. */
  cases: optional(Schema.Array(TestCaseFields).pipe(Schema.maxItems(maxTestCases))),
  /** Stored turns instead of cases. */
  runIds: optional(Schema.Array(RunId).pipe(Schema.minItems(1), Schema.maxItems(maxTurns))),
  /** An earlier experiment of the same agent and kind. The cases or turns that both have are compared. */
  baseline: optional(ExperimentId),
  /** A version that is asked the same questions now. */
  baselineVersion: optional(Version),
  maxTokens: optional(Schema.Int.pipe(Schema.between(1, 1_000_000_000)))
}).pipe(
  Schema.filter(atMostOne(["version", "settings"])),
  Schema.filter(atMostOne(["cases", "runIds"])),
  Schema.filter(atMostOne(["baseline", "baselineVersion"]))
)
export type StartExperiment = typeof StartExperiment.Type

export const Experiment = Schema.Struct({
  id: ExperimentId,
  agentId: AgentId,
  kind: Schema.Literal("cases", "turns"),
  /** Null if the settings are not a version. */
  version: Schema.NullOr(Version),
  model: Schema.NullOr(Schema.String),
  status: ExperimentStatus,
  /** Why it failed. */
  reason: Schema.NullOr(Schema.String),
  /** Number of questions, of questions asked, and of those that passed. */
  total: Schema.Int,
  asked: Schema.Int,
  passed: Schema.Int,
  baselineId: Schema.NullOr(ExperimentId),
  maxTokens: Schema.Number,
  inputTokens: Schema.Number,
  outputTokens: Schema.Number,
  author: Schema.NullOr(Actor),
  createdAt: Schema.DateTimeUtc,
  startedAt: Schema.NullOr(Schema.DateTimeUtc),
  endedAt: Schema.NullOr(Schema.DateTimeUtc)
})
export type Experiment = typeof Experiment.Type

/** The result of one question. */
export const ExperimentOutcome = Schema.Struct({
  ...Schema.Struct(CaseResult.fields).omit("line", "question").fields,
  /** For a stored turn; null for a case. */
  outcome: Schema.NullOr(Schema.Literal("same", "changed", "diverged")),
  /** The reply of the stored turn. */
  before: Schema.NullOr(Schema.String)
})
export type ExperimentOutcome = typeof ExperimentOutcome.Type

export const ExperimentResult = Schema.Struct({
  position: Schema.Int,
  caseId: Schema.NullOr(TestCaseId),
  runId: Schema.NullOr(RunId),
  question: Schema.String,
  /** Null until it has been asked. */
  result: Schema.NullOr(ExperimentOutcome),
  /** The result of the same question in the baseline. */
  baseline: Schema.NullOr(ExperimentOutcome)
})
export type ExperimentResult = typeof ExperimentResult.Type

/** Figures of the questions asked so far. */
export const ExperimentReport = Schema.Struct({
  failed: Schema.Int,
  errors: Schema.Int,
  figures: Figures,
  latencyMs: Percentiles,
  tokens: Tokens,
  /** The comparison with the baseline, once both have ended. */
  comparison: Schema.NullOr(
    Schema.Struct({
      compared: Schema.Int,
      /** True if significantly fewer cases pass. A publish can be refused for it. */
      regression: Schema.Boolean,
      changes: Schema.Array(Change),
      broken: Schema.Array(Schema.String),
      mended: Schema.Array(Schema.String)
    })
  )
})
export type ExperimentReport = typeof ExperimentReport.Type

/** Results that a version needs before it can be published. Nothing is required by default. */
export const PublishThreshold = Schema.Struct({
  /** Minimum share of cases that pass. */
  minPass: Schema.NullOr(Schema.Number.pipe(Schema.between(0, 1))),
  /** Refuses a version that is significantly worse than the published one. */
  noRegression: Schema.Boolean
})
export type PublishThreshold = typeof PublishThreshold.Type
