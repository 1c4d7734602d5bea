/** A replay of past questions: progress, the number of changed answers, and each answer before and after. */
import { useInfiniteQuery, useQuery } from "@tanstack/react-query"
import { useEffect } from "react"
import { experimentReport, type ExperimentResult, experimentResults } from "../../api/Experiments.ts"
import { Badge } from "../../components/Badge.tsx"
import { Card, Loaded } from "../../components/Page.tsx"
import { Progress } from "../../components/Progress.tsx"
import { useFormat } from "../../text/Format.ts"
import { texts, useText } from "../../text/Language.tsx"
import { ResultText } from "../../text/ResultText.tsx"
import { ComparedReply } from "../agents/ExperimentResults.tsx"
import css from "./Improve.module.css"
import { LoadMore } from "../../components/LoadMore.tsx"

const words = texts(
  {
    progress: "Past questions asked again",
    waits: "Waits for its turn …",
    stopped: "This was ended before all questions were asked.",
    none: (turns: string) => `None of ${turns} past answers would change.`,
    one: (turns: string) => `One of ${turns} past answers would change.`,
    some: (changed: string, turns: string) => `These ${changed} of ${turns} past answers would change:`,
    diverged: "Could not be replayed",
    before: "Before",
    after: "After",
    citations: "The same words; what the answer cites is another.",
    same: (count: string) => `Unchanged: ${count}`
  },
  {
    progress: "Frühere Fragen erneut gestellt",
    waits: "Wartet, bis es an der Reihe ist …",
    stopped: "Das endete, bevor alle Fragen gestellt waren.",
    none: (turns: string) => `Keine von ${turns} früheren Antworten würde sich ändern.`,
    one: (turns: string) => `Eine von ${turns} früheren Antworten würde sich ändern.`,
    some: (changed: string, turns: string) =>
      `Diese ${changed} von ${turns} früheren Antworten würden sich ändern:`,
    diverged: "Nicht nachspielbar",
    before: "Vorher",
    after: "Nachher",
    citations: "Derselbe Wortlaut; die Antwort zitiert etwas anderes.",
    same: (count: string) => `Unverändert: ${count}`
  }
)

const ChangedAnswer = ({ row: { question, result } }: { readonly row: ExperimentResult }) => {
  const t = useText(words)
  if (result === null) return null
  const { before, outcome, reply } = result
  const isDiverged = outcome === "diverged"
  return (
    <li>
      <Card>
        <div className={css["row"]}>
          <h4 lang="" className={css["said"]}>
            {question}
          </h4>
          {isDiverged ? <Badge tone="neutral">{t.diverged}</Badge> : null}
        </div>
        {before !== null && before === reply ? <p className={css["soft"]}>{t.citations}</p> : null}
        <div className={css["beside"]}>
          <ComparedReply
            name={t.before}
            outcome={{ reply: before, error: null }}
            comparedWith={reply ?? ""}
          />
          {isDiverged ? null : <ComparedReply name={t.after} outcome={result} comparedWith={before ?? ""} />}
        </div>
      </Card>
    </li>
  )
}

export const ReplayResults = ({ experimentId }: { readonly experimentId: string }) => {
  const t = useText(words)
  const { number } = useFormat()
  const report = useQuery(experimentReport(experimentId))
  const results = useInfiniteQuery(experimentResults(experimentId))
  const status = report.data?.experiment.status
  const { refetch } = results
  // Results that were read before the replay ended are incomplete.
  useEffect(() => void refetch(), [refetch, status])
  return (
    <Loaded query={report}>
      {({ experiment: { asked, passed, reason, status, total } }) => {
        if (status === "queued" || status === "running")
          return (
            <div role="status">
              {total === 0 || asked === 0 ? <span className={css["soft"]}>{t.waits}</span> : null}
              <Progress label={t.progress} value={total === 0 ? 0 : Math.round((100 * asked) / total)} />
            </div>
          )
        const changed = asked - passed
        const turns = number(asked)
        const headline =
          changed === 0 ? t.none(turns) : changed === 1 ? t.one(turns) : t.some(number(changed), turns)
        return (
          <>
            {status === "complete" ? null : (
              <p role="alert">
                {t.stopped} {reason === null ? null : <ResultText message={reason} />}
              </p>
            )}
            <div role="status">
              <h3>{headline}</h3>
            </div>
            <Loaded query={results}>
              {({ pages }) => {
                const all = pages.flatMap((page) => page.results).filter(({ result }) => result !== null)
                const unchanged = all.filter(({ result }) => result?.outcome === "same")
                return (
                  <>
                    <ul className={css["list"]}>
                      {all
                        .filter((row) => !unchanged.includes(row))
                        .map((row) => (
                          <ChangedAnswer key={row.position} row={row} />
                        ))}
                    </ul>
                    {unchanged.length === 0 ? null : (
                      <details className={css["more"]}>
                        <summary>{t.same(number(passed))}</summary>
                        <ul>
                          {unchanged.map(({ position, question }) => (
                            <li key={position} lang="" className={css["said"]}>
                              {question}
                            </li>
                          ))}
                        </ul>
                      </details>
                    )}
                  </>
                )
              }}
            </Loaded>
            <LoadMore query={results} />
          </>
        )
      }}
    </Loaded>
  )
}
