/** Test cases of an agent: questions with the expected replies. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { ResponseSchema } from "../chat/ResponseSchema.ts"
import { AgentId, RunId, typeId } from "../Ids.ts"
import { JsonObject, Text, trimmed } from "../Text.ts"

export const TestCaseId = Text.pipe(Schema.minLength(1), Schema.brand("TestCaseId"))
export type TestCaseId = typeof TestCaseId.Type
export const newTestCaseId = Effect.map(Clock.currentTimeMillis, (now) => TestCaseId.make(typeId("tcs", now)))

/** Maximum number of cases of one agent. */
export const maxTestCases = 2_000
/** Maximum length of an expected source or fact, of a criterion and of a note, in characters. */
export const maxExpectationLength = 2_000
/** Maximum number of sources, and of facts, of one case. */
const maxExpectations = 100

const list = Schema.Array(trimmed(maxExpectationLength)).pipe(Schema.maxItems(maxExpectations))
const emptyList = Schema.optionalWith(list, { exact: true, nullable: true, default: () => [] })
const note = trimmed(maxExpectationLength)
/** A field that may be missing or null, as in answers. */
const omissible = <A, I>(schema: Schema.Schema<A, I>) =>
  Schema.optionalWith(schema, { exact: true, nullable: true })
const question = trimmed(32_000)

const fitsTogether = ({
  expectGrounding,
  expectRefusal,
  expectSources
}: {
  readonly expectGrounding?: boolean
  readonly expectRefusal?: boolean
  readonly expectSources: ReadonlyArray<string>
}) => {
  if (expectRefusal !== true) return true
  const excluded =
    expectSources.length > 0 ? "expectSources" : expectGrounding === true ? "expectGrounding" : null
  return excluded === null || `a refusal cites nothing: expectRefusal and ${excluded} exclude each other`
}

/** One case, as in files and requests. */
export const TestCaseFields = Schema.Struct({
  question,
  expectSources: emptyList,
  expectFacts: emptyList,
  /** If omitted, both kinds of reply are accepted. */
  expectRefusal: omissible(Schema.Boolean),
  /** True: the reply cites something, and no citation of it is unsupported. False expects nothing. */
  expectGrounding: omissible(Schema.Boolean),
  /** The question is asked with it, as in a turn: the reply is an object that fits it. */
  responseSchema: omissible(ResponseSchema),
  /** A language model judges the reply by it. Without a model the case does not pass. */
  criterion: omissible(note),
  /** For people only; it is not checked. */
  note: omissible(note)
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
  expectGrounding: Schema.NullOr(Schema.Boolean),
  responseSchema: Schema.NullOr(JsonObject),
  criterion: Schema.NullOr(Schema.String),
  note: Schema.NullOr(Schema.String),
  origin: TestCaseOrigin,
  /** Null unless it was made from a run. */
  runId: Schema.NullOr(RunId),
  createdAt: Schema.DateTimeUtc,
  updatedAt: Schema.DateTimeUtc
})
export type TestCase = typeof TestCase.Type

/** A file of cases, in the form of `spoke eval`. */
export const ImportTestCases = Schema.Struct({
  format: Schema.Literal("csv", "jsonl"),
  text: Schema.String
})

export const TestCaseFromRun = Schema.Struct({ runId: RunId })
