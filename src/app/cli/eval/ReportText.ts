/** A report as text. */
import {
  type Comparison,
  type Measure,
  measures,
  type Report
} from "../../../domain/agents/evaluation/Report.ts"
import { shortened } from "../Output.ts"

const labels: Readonly<Record<Measure, string>> = {
  passRate: "Passed",
  sourceAt1: "Right source cited first",
  sourceAt3: "… among the first three",
  sourceCited: "… cited at all",
  facts: "All facts stated",
  refusal: "Refused when expected, and only then",
  grounding: "Citations supported"
}

const percent = (share: number): string => `${(share * 100).toFixed(1)} %`
const points = (difference: number): string =>
  `${difference < 0 ? "−" : "+"}${Math.abs(difference * 100).toFixed(1)}`

const changeLines = ({ broken, changes, compared, mended }: Comparison): ReadonlyArray<string> => [
  "",
  `Compared with the baseline, over the ${compared} questions of both (95 % interval of the difference):`,
  ...changes.map(
    ({ after, before, difference, high, low, measure, verdict }) =>
      `  ${labels[measure].padEnd(38)}${percent(before)} → ${percent(after)}, ${points(difference)} points ` +
      `(${points(low)} to ${points(high)}): ${verdict === "same" ? "no clear change" : verdict}`
  ),
  ...broken.map((question) => `  fails now:  ${shortened(question)}`),
  ...mended.map((question) => `  passes now: ${shortened(question)}`)
]

/** The report as text for the user. */
export const reportText = (report: Report, comparison: Comparison | null): string => {
  const { cases, errors, failed, figures, latencyMs, passed, results, tokens } = report
  return [
    `${cases} cases: ${passed} passed, ${failed} failed${errors === 0 ? "" : `, ${errors} of them without a reply`}`,
    ...measures.flatMap((measure) => {
      const figure = figures[measure]
      if (figure === null) return []
      const { high, low, of, value } = figure
      return [
        `  ${labels[measure].padEnd(38)}${percent(value)} of ${of} (95 %: ${percent(low)} to ${percent(high)})`
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
        `line ${line}: ${shortened(question)}`,
        ...problems.map((problem) => `  ${problem}`)
      ]),
    ...(comparison === null ? [] : changeLines(comparison))
  ].join("\n")
}
