/** Questions that an agent is measured by, with what is expected of its replies. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { AgentId, RunId, typeId } from "../Ids.ts"
import { Text, trimmed } from "../Text.ts"

export const TestCaseId = Text.pipe(Schema.minLength(1), Schema.brand("TestCaseId"))
export type TestCaseId = typeof TestCaseId.Type
export const newTestCaseId = Effect.map(Clock.currentTimeMillis, (now) => TestCaseId.make(typeId("tcs", now)))

/** Cases of one agent at most. */
export const maxTestCases = 2_000
/** Characters of an expected source or fact, of a criterion and of a note. */
export const maxExpectationLength = 2_000
/** Sources, and facts, of one case at most. */
const maxExpectations = 100

const list = Schema.Array(trimmed(maxExpectationLength)).pipe(Schema.maxItems(maxExpectations))
const emptyList = Schema.optionalWith(list, { exact: true, default: () => [] })
const note = trimmed(maxExpectationLength)
const question = trimmed(32_000)

const fitsTogether = ({
  expectRefusal,
  expectSources
}: {
  readonly expectRefusal?: boolean | null
  readonly expectSources: ReadonlyArray<string>
}) =>
  expectRefusal !== true ||
  expectSources.length === 0 ||
  "a refusal cites nothing: expectRefusal and expectSources exclude each other"

/** One case as files and requests have it. */
export const TestCaseFields = Schema.Struct({
  question,
  expectSources: emptyList,
  expectFacts: emptyList,
  /** Absent: the reply may be either. */
  expectRefusal: Schema.optionalWith(Schema.Boolean, { exact: true }),
  /** What a language model judges the reply by; without one the case does not pass. */
  criterion: Schema.optionalWith(note, { exact: true }),
  /** For people: nothing checks it. */
  note: Schema.optionalWith(note, { exact: true })
}).pipe(Schema.filter(fitsTogether))
export type TestCaseFields = typeof TestCaseFields.Type

/** Where a case came from: `human` is an answer of a team member, `feedback` a rating of the customer. */
export const TestCaseOrigin = Schema.Literal("written", "run", "feedback", "human", "file")
export type TestCaseOrigin = typeof TestCaseOrigin.Type

export const TestCase = Schema.Struct({
  id: TestCaseId,
  agentId: AgentId,
  question: Schema.String,
  expectSources: Schema.Array(Schema.String),
  expectFacts: Schema.Array(Schema.String),
  expectRefusal: Schema.NullOr(Schema.Boolean),
  criterion: Schema.NullOr(Schema.String),
  note: Schema.NullOr(Schema.String),
  origin: TestCaseOrigin,
  /** Null unless it was made from a run. */
  runId: Schema.NullOr(RunId),
  createdAt: Schema.DateTimeUtc,
  updatedAt: Schema.DateTimeUtc
})
export type TestCase = typeof TestCase.Type

/** A file of cases, as `spoke eval` reads it. */
export const ImportTestCases = Schema.Struct({
  format: Schema.Literal("csv", "jsonl"),
  text: Schema.String
})

export const TestCaseFromRun = Schema.Struct({ runId: RunId })
