/** Results of an experiment: each reply beside the baseline's, with the differences marked. */
import { useInfiniteQuery, useQuery } from "@tanstack/react-query"
import { useEffect } from "react"
import { experimentReport, type ExperimentResult, experimentResults } from "../../api/Experiments.ts"
import { Badge } from "../../components/Badge.tsx"
import { Loaded } from "../../components/Page.tsx"
import { useFormat } from "../../text/Format.ts"
import { texts, useText } from "../../text/Language.tsx"
import { ResultText } from "../../text/ResultText.tsx"
import { highlightRanges, withoutHighlights } from "../../components/replies/highlight.ts"
import { Prose } from "../../components/replies/Prose.tsx"
import { diffWords } from "./wordDiff.ts"
import css from "./Experiments.module.css"
import { LoadMore } from "../../components/LoadMore.tsx"

const words = texts(
  {
    passed: "Passes",
    failed: "Fails",
    open: "Not asked yet",
    before: "Baseline",
    after: "Now",
    none: "No reply",
    same: "The same reply",
    worse: "Clearly fewer test cases pass than in the baseline.",
    notWorse: "Not clearly worse than the baseline.",
    rate: (share: string, low: string, high: string) => `${share} pass (95% confidence: ${low} to ${high})`,
    tokens: (input: string, output: string) => `${input} tokens read, ${output} written`
  },
  {
    passed: "Bestanden",
    failed: "Nicht bestanden",
    open: "Noch nicht gefragt",
    before: "Vergleich",
    after: "Jetzt",
    none: "Keine Antwort",
    same: "Dieselbe Antwort",
    worse: "Deutlich weniger Testfälle werden bestanden als im Vergleich.",
    notWorse: "Nicht deutlich schlechter als der Vergleich.",
    rate: (share: string, low: string, high: string) =>
      `${share} bestanden (mit 95 % Sicherheit: ${low} bis ${high})`,
    tokens: (input: string, output: string) => `${input} Tokens gelesen, ${output} geschrieben`
  }
)

type Outcome = NonNullable<ExperimentResult["result"]>

const Verdict = ({ passed }: Pick<Outcome, "passed">) => {
  const t = useText(words)
  return <Badge tone={passed ? "good" : "bad"}>{passed ? t.passed : t.failed}</Badge>
}

/** `reply`, with the words highlighted that `comparedWith` does not have. */
const highlightDifferences = (reply: string, comparedWith: string): string => {
  const text = withoutHighlights(reply)
  let position = 0
  const places = diffWords(text, comparedWith).flatMap((part) => {
    const from = position
    position += part.text.length
    return part.isNew ? [{ from, to: position }] : []
  })
  return highlightRanges(text, places)
}

export const ComparedReply = ({
  name,
  comparedWith,
  outcome
}: {
  readonly name: string
  readonly outcome: Pick<Outcome, "reply" | "error">
  readonly comparedWith: string
}) => {
  const t = useText(words)
  return (
    <div className={css["reply"]}>
      <span className={css["name"]}>{name}</span>
      {outcome.reply === null ? (
        <span className={css["soft"]}>
          {t.none}
          {outcome.error === null ? null : (
            <>
              : <ResultText message={outcome.error} />
            </>
          )}
        </span>
      ) : (
        <div lang="">
          <Prose text={highlightDifferences(outcome.reply, comparedWith)} highlights />
        </div>
      )}
    </div>
  )
}

const Result = ({ row: { baseline, question, result } }: { readonly row: ExperimentResult }) => {
  const t = useText(words)
  if (result === null)
    return (
      <li className={css["result"]}>
        <strong lang="">{question}</strong> <Badge tone="neutral">{t.open}</Badge>
      </li>
    )
  // In a replay, the stored reply of the turn is the baseline.
  const before =
    baseline ?? (result.before === null ? null : { reply: result.before, error: null, passed: true })
  return (
    <li className={css["result"]}>
      <span>
        <strong lang="">{question}</strong> <Verdict passed={result.passed} />
      </span>
      {result.problems.map((problem, index) => (
        <span key={index} className={css["soft"]}>
          <ResultText message={problem} />
        </span>
      ))}
      {before !== null && before.reply === result.reply ? (
        <span className={css["soft"]}>{t.same}</span>
      ) : null}
      <div className={css["beside"]}>
        {before === null || before.reply === result.reply ? null : (
          <ComparedReply name={t.before} outcome={before} comparedWith={result.reply ?? ""} />
        )}
        <ComparedReply name={t.after} outcome={result} comparedWith={before?.reply ?? result.reply ?? ""} />
      </div>
    </li>
  )
}

export const ExperimentResults = ({ id }: { readonly id: string }) => {
  const t = useText(words)
  const { number, percent } = useFormat()
  const report = useQuery(experimentReport(id))
  const results = useInfiniteQuery(experimentResults(id))
  const { asked, status } = report.data?.experiment ?? {}
  const { refetch } = results
  useEffect(() => void refetch(), [refetch, asked, status])
  return (
    <>
      <Loaded query={report}>
        {({ experiment, report: { comparison, figures } }) => (
          <div className={css["figures"]}>
            {comparison === null ? null : (
              <p>
                <strong>{comparison.regression ? t.worse : t.notWorse}</strong>
              </p>
            )}
            {figures.passRate === null ? null : (
              <p>
                {t.rate(
                  percent(figures.passRate.value),
                  percent(figures.passRate.low),
                  percent(figures.passRate.high)
                )}
              </p>
            )}
            <p className={css["soft"]}>
              {t.tokens(number(experiment.inputTokens), number(experiment.outputTokens))}
            </p>
          </div>
        )}
      </Loaded>
      <Loaded query={results}>
        {({ pages }) => (
          <ul className={css["results"]}>
            {pages
              .flatMap((page) => page.results)
              .map((row) => (
                <Result key={row.position} row={row} />
              ))}
          </ul>
        )}
      </Loaded>
      <LoadMore query={results} />
    </>
  )
}
