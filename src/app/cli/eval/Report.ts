/** The figures of a run, how they differ from those of an earlier one, and both in words. */
import * as Schema from "effect/Schema"
import { CaseResult } from "./Judge.ts"
import { bootstrap, mean, percentile, wilson } from "./Statistics.ts"

/** A share or a mean over the `of` cases that have it, with its 95 % interval; null when none has. */
const Figure = Schema.NullOr(
  Schema.Struct({ value: Schema.Number, low: Schema.Number, high: Schema.Number, of: Schema.Number })
)
type Figure = typeof Figure.Type

const Figures = Schema.Struct({
  passRate: Figure,
  sourceAt1: Figure,
  sourceAt3: Figure,
  sourceCited: Figure,
  facts: Figure,
  refusal: Figure,
  grounding: Figure
})
type Measure = keyof typeof Figures.Type

const Percentiles = Schema.Struct({ p50: Schema.NullOr(Schema.Number), p95: Schema.NullOr(Schema.Number) })

/** What `--json` prints and `--record` keeps. Latencies are in milliseconds; tokens are sums, null where no key may see them. */
export const Report = Schema.Struct({
  cases: Schema.Number,
  passed: Schema.Number,
  failed: Schema.Number,
  /** Cases without a reply; they are among the failed. */
  errors: Schema.Number,
  figures: Figures,
  latencyMs: Percentiles,
  tokens: Schema.NullOr(Schema.Struct({ input: Schema.Number, output: Schema.Number })),
  results: Schema.Array(CaseResult)
})
export type Report = typeof Report.Type

const names: Readonly<Record<Measure, string>> = {
  passRate: "Passed",
  sourceAt1: "Right source cited first",
  sourceAt3: "… among the first three",
  sourceCited: "… cited at all",
  facts: "All facts stated",
  refusal: "Refused when expected, and only then",
  grounding: "Citations supported"
}

const measures = [
  "passRate",
  "sourceAt1",
  "sourceAt3",
  "sourceCited",
  "facts",
  "refusal",
  "grounding"
] as const

/** A case's part in a figure, from 0 to 1; null when it has none. */
const valueOf = (measure: Measure, result: CaseResult): number | null => {
  const value = measure === "passRate" ? result.passed : result[measure]
  return typeof value === "boolean" ? Number(value) : value
}

const isThere = (value: number | null): value is number => value !== null

const rounded = (value: number): number => Math.round(value * 10_000) / 10_000

/** Every case is right or wrong, so that their share has Wilson's interval; grounding is a share in each case. */
const figureOf = (measure: Measure, results: ReadonlyArray<CaseResult>): Figure => {
  const values = results.map((result) => valueOf(measure, result)).filter(isThere)
  if (values.length === 0) return null
  const value = mean(values)
  const { high, low } =
    measure === "grounding" ? bootstrap(values) : wilson(Math.round(value * values.length), values.length)
  return { value: rounded(value), low: rounded(low), high: rounded(high), of: values.length }
}

export const summarize = (results: ReadonlyArray<CaseResult>): Report => {
  const passed = results.filter((result) => result.passed).length
  const latencies = results.map(({ latencyMs }) => latencyMs).filter(isThere)
  const counted = results.filter(({ inputTokens }) => inputTokens !== null)
  const sum = (of: "inputTokens" | "outputTokens") =>
    counted.reduce((total, result) => total + (result[of] ?? 0), 0)
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
    tokens: counted.length === 0 ? null : { input: sum("inputTokens"), output: sum("outputTokens") },
    results
  }
}

/** A figure over the cases that both runs have. `low` and `high` are the 95 % interval of the difference. */
export interface Change {
  readonly measure: Measure
  readonly before: number
  readonly after: number
  readonly difference: number
  readonly low: number
  readonly high: number
  readonly of: number
  /** Better or worse only where the interval leaves 0 out. */
  readonly verdict: "better" | "worse" | "same"
}

export interface Comparison {
  /** Cases that both runs have: those with the same question. */
  readonly compared: number
  readonly regression: boolean
  readonly changes: ReadonlyArray<Change>
  /** Questions of cases that passed and do not any more, and the other way round. */
  readonly broken: ReadonlyArray<string>
  readonly mended: ReadonlyArray<string>
}

type Pair = readonly [before: CaseResult, after: CaseResult]

/** The cases of both runs, each with the one that asks the same; the n-th of equal questions goes with the n-th. */
const pairs = (before: ReadonlyArray<CaseResult>, after: ReadonlyArray<CaseResult>): ReadonlyArray<Pair> => {
  const waiting = new Map<string, Array<CaseResult>>()
  for (const result of before.toReversed()) {
    const same = waiting.get(result.question)
    if (same === undefined) waiting.set(result.question, [result])
    else same.push(result)
  }
  return after.flatMap((result) => {
    const found = waiting.get(result.question)?.pop()
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

export const compare = (before: Report, after: Report): Comparison => {
  const paired = pairs(before.results, after.results)
  const changes = measures.flatMap((measure) => changeOf(measure, paired))
  const turned = (to: boolean) =>
    paired
      .filter(([one, other]) => one.passed !== to && other.passed === to)
      .map(([, { question }]) => question)
  return {
    compared: paired.length,
    regression: changes.some(({ verdict }) => verdict === "worse"),
    changes,
    broken: turned(false),
    mended: turned(true)
  }
}

const percent = (share: number): string => `${(share * 100).toFixed(1)} %`
const points = (difference: number): string =>
  `${difference < 0 ? "−" : "+"}${Math.abs(difference * 100).toFixed(1)}`

const short = (text: string): string => (text.length > 100 ? `${text.slice(0, 99)}…` : text)

const changeLines = ({ broken, changes, compared, mended }: Comparison): ReadonlyArray<string> => [
  "",
  `Compared with the baseline, over the ${compared} questions of both (95 % interval of the difference):`,
  ...changes.map(
    ({ after, before, difference, high, low, measure, verdict }) =>
      `  ${names[measure].padEnd(38)}${percent(before)} → ${percent(after)}, ${points(difference)} points ` +
      `(${points(low)} to ${points(high)}): ${verdict === "same" ? "no clear change" : verdict}`
  ),
  ...broken.map((question) => `  fails now:  ${short(question)}`),
  ...mended.map((question) => `  passes now: ${short(question)}`)
]

/** The report for a person. */
export const words = (report: Report, comparison: Comparison | null): string => {
  const { cases, errors, failed, figures, latencyMs, passed, results, tokens } = report
  return [
    `${cases} cases: ${passed} passed, ${failed} failed${errors === 0 ? "" : `, ${errors} of them without a reply`}`,
    ...measures.flatMap((measure) => {
      const figure = figures[measure]
      if (figure === null) return []
      const { high, low, of, value } = figure
      return [
        `  ${names[measure].padEnd(38)}${percent(value)} of ${of} (95 %: ${percent(low)} to ${percent(high)})`
      ]
    }),
    ...(latencyMs.p50 === null
      ? []
      : [`  ${"Latency".padEnd(38)}p50 ${latencyMs.p50} ms, p95 ${latencyMs.p95 ?? latencyMs.p50} ms`]),
    ...(tokens === null ? [] : [`  ${"Tokens".padEnd(38)}${tokens.input} in, ${tokens.output} out`]),
    ...results
      .filter((result) => !result.passed)
      .flatMap(({ line, problems, question }) => [
        "",
        `line ${line}: ${short(question)}`,
        ...problems.map((problem) => `  ${problem}`)
      ]),
    ...(comparison === null ? [] : changeLines(comparison))
  ].join("\n")
}
