/** The figures of a run of cases, and their comparison with an earlier run. */
import * as Schema from "effect/Schema"
import { CaseResult } from "./Judge.ts"
import { bootstrap, mean, percentile, signTest, wilson } from "./Statistics.ts"

/** A share or a mean over the `of` cases that have a value, with its 95 % interval; null if none has. */
const Figure = Schema.NullOr(
  Schema.Struct({ value: Schema.Number, low: Schema.Number, high: Schema.Number, of: Schema.Number })
)
type Figure = typeof Figure.Type

export const Figures = Schema.Struct({
  passRate: Figure,
  sourceAt1: Figure,
  sourceAt3: Figure,
  sourceCited: Figure,
  facts: Figure,
  refusal: Figure,
  grounding: Figure
})
export type Measure = keyof typeof Figures.Type

export const Percentiles = Schema.Struct({
  p50: Schema.NullOr(Schema.Number),
  p95: Schema.NullOr(Schema.Number)
})

export const Tokens = Schema.NullOr(Schema.Struct({ input: Schema.Number, output: Schema.Number }))

/**
 * The output of `--json`, which `--record` stores. Latencies are in milliseconds. Tokens are sums, null where the key
 * may not read them.
 */
export const Report = Schema.Struct({
  cases: Schema.Number,
  passed: Schema.Number,
  failed: Schema.Number,
  /** Cases without a reply. They count as failed. */
  errors: Schema.Number,
  figures: Figures,
  latencyMs: Percentiles,
  tokens: Tokens,
  results: Schema.Array(CaseResult)
})
export type Report = typeof Report.Type

/** In the order of the output. */
export const measures = [
  "passRate",
  "sourceAt1",
  "sourceAt3",
  "sourceCited",
  "facts",
  "refusal",
  "grounding"
] as const

/** A case's value for a measure, from 0 to 1; null when it has none. */
const valueOf = (measure: Measure, result: CaseResult): number | null => {
  const value = measure === "passRate" ? result.passed : result[measure]
  return typeof value === "boolean" ? Number(value) : value
}

const isNumber = (value: number | null): value is number => value !== null

const rounded = (value: number): number => Math.round(value * 10_000) / 10_000

/**
 * Most measures are true or false per case, so their share has Wilson's interval. Grounding is a share within each
 * case.
 */
const figureOf = (measure: Measure, results: ReadonlyArray<CaseResult>): Figure => {
  const values = results.map((result) => valueOf(measure, result)).filter(isNumber)
  if (values.length === 0) return null
  const value = mean(values)
  const { high, low } =
    measure === "grounding" ? bootstrap(values) : wilson(Math.round(value * values.length), values.length)
  return { value: rounded(value), low: rounded(low), high: rounded(high), of: values.length }
}

export const summarize = (results: ReadonlyArray<CaseResult>): Report => {
  const passed = results.filter((result) => result.passed).length
  const latencies = results.map(({ latencyMs }) => latencyMs).filter(isNumber)
  const withTokens = results.filter(({ inputTokens }) => inputTokens !== null)
  const sum = (of: "inputTokens" | "outputTokens") =>
    withTokens.reduce((total, result) => total + (result[of] ?? 0), 0)
  return {
    cases: results.length,
    passed,
    failed: results.length - passed,
    errors: results.filter(({ error }) => error !== null).length,
    figures: {
      passRate: figureOf("passRate", results),
      sourceAt1: figureOf("sourceAt1", results),
      sourceAt3: figureOf("sourceAt3", results),
      sourceCited: figureOf("sourceCited", results),
      facts: figureOf("facts", results),
      refusal: figureOf("refusal", results),
      grounding: figureOf("grounding", results)
    },
    latencyMs: { p50: percentile(latencies, 0.5), p95: percentile(latencies, 0.95) },
    tokens: withTokens.length === 0 ? null : { input: sum("inputTokens"), output: sum("outputTokens") },
    results
  }
}

/**
 * The change of a figure over the cases that both runs have. `low` and `high` are the 95 % interval of the difference.
 */
export const Change = Schema.Struct({
  measure: Schema.Literal(...measures),
  before: Schema.Number,
  after: Schema.Number,
  difference: Schema.Number,
  low: Schema.Number,
  high: Schema.Number,
  of: Schema.Number,
  /** Better or worse only if the interval does not contain 0. */
  verdict: Schema.Literal("better", "worse", "same")
})
export type Change = typeof Change.Type

/** Questions of cases that passed before and fail now, and the reverse. */
interface ChangedCases {
  readonly broken: ReadonlyArray<string>
  readonly mended: ReadonlyArray<string>
}

export interface Comparison extends ChangedCases {
  /** Number of cases that both runs have. */
  readonly compared: number
  readonly regression: boolean
  readonly changes: ReadonlyArray<Change>
}

type Pair = readonly [before: CaseResult, after: CaseResult]

/** Pairs of cases with the same key. The n-th of equal keys is paired with the n-th. */
const pairs = <Result extends CaseResult>(
  before: ReadonlyArray<Result>,
  after: ReadonlyArray<Result>,
  keyOf: (result: Result) => string
): ReadonlyArray<Pair> => {
  const unpaired = new Map<string, Array<Result>>()
  for (const result of before.toReversed()) {
    const same = unpaired.get(keyOf(result))
    if (same === undefined) unpaired.set(keyOf(result), [result])
    else same.push(result)
  }
  return after.flatMap((result) => {
    const found = unpaired.get(keyOf(result))?.pop()
    return found === undefined ? [] : [[found, result] as const]
  })
}

const changeOf = (measure: Measure, paired: ReadonlyArray<Pair>): ReadonlyArray<Change> => {
  const values = paired.flatMap(([before, after]) => {
    const one = valueOf(measure, before)
    const other = valueOf(measure, after)
    return one === null || other === null ? [] : [[one, other] as const]
  })
  if (values.length === 0) return []
  const before = mean(values.map(([one]) => one))
  const after = mean(values.map(([, other]) => other))
  const { high, low } = bootstrap(values.map(([one, other]) => other - one))
  return [
    {
      measure,
      before: rounded(before),
      after: rounded(after),
      difference: rounded(after - before),
      low: rounded(low),
      high: rounded(high),
      of: values.length,
      verdict: low > 0 ? "better" : high < 0 ? "worse" : "same"
    }
  ]
}

type KeyOf<Result> = (result: Result) => string

interface Results<Result> {
  readonly results: ReadonlyArray<Result>
}

const changedCases = (paired: ReadonlyArray<Pair>): ChangedCases => {
  const questionsNow = (passed: boolean) =>
    paired
      .filter(([one, other]) => one.passed !== passed && other.passed === passed)
      .map(([, { question }]) => question)
  return { broken: questionsNow(false), mended: questionsNow(true) }
}

/** The cases that pass in only one of two runs. `keyOf` identifies a case in both. */
export const compareCases = <Result extends CaseResult>(
  before: Results<Result>,
  after: Results<Result>,
  keyOf: KeyOf<Result>
): ChangedCases => changedCases(pairs(before.results, after.results, keyOf))

/**
 * Compares two runs, one measure after the other. `keyOf` identifies a case in both runs. The results of a file have
 * only the question.
 */
export function* compare<Result extends CaseResult>(
  before: Results<Result>,
  after: Results<Result>,
  keyOf: KeyOf<Result> = ({ question }) => question
): Generator<undefined, Comparison> {
  const paired = pairs(before.results, after.results, keyOf)
  const changes: Array<Change> = []
  for (const measure of measures) {
    changes.push(...changeOf(measure, paired))
    yield
  }
  return {
    compared: paired.length,
    regression: changes.some(({ verdict }) => verdict === "worse"),
    changes,
    ...changedCases(paired)
  }
}

/** Significance level: the share of false alarms when a version is compared with itself. */
const maxFalseAlarms = 0.05

/**
 * True if significantly fewer cases pass, by the exact sign test over the cases that changed. Publishing and plans use
 * it. An interval by resampling is too narrow for a few cases, and seven figures together give a false alarm more often
 * than once in twenty.
 */
export const isRegression = ({ broken, mended }: ChangedCases): boolean =>
  broken.length > mended.length && signTest(broken.length, mended.length) <= maxFalseAlarms
