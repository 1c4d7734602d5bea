/** Past answers that used passages that have since changed or been removed, and the answers of a replay. */
import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query"
import { Link } from "wouter"
import { headingPath } from "../../../headingPath.ts"
import { experiments } from "../../api/Experiments.ts"
import { impact, type ImpactAnswer, replayImpact } from "../../api/improve/Impact.ts"
import { Badge } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { Card, Empty, Loaded } from "../../components/Page.tsx"
import { Problem } from "../../components/Problem.tsx"
import { Prose } from "../../components/replies/Prose.tsx"
import { useFormat } from "../../text/Format.ts"
import { texts, useText } from "../../text/Language.tsx"
import css from "./Improve.module.css"
import { ReplayResults } from "./ReplayResults.tsx"
import { LoadMore } from "../../components/LoadMore.tsx"

const words = texts(
  {
    title: "Answers that rested on what has changed",
    lead: "Given in the last 30 days and cited passages that have changed or gone since. Those given most often come first.",
    replay: "Ask these again",
    replayLead:
      "The questions of the 50 answers that were given most often are asked again with today's sources. No customer sees it, and no tool is called.",
    result: "Before and after the change",
    all: "All answers",
    empty: "No answer is affected",
    emptyLead: "Nothing that answers of the last 30 days cite has changed or gone since.",
    toSources: "Open the sources",
    once: (ago: string) => `given once, ${ago}`,
    times: (count: string, ago: string) => `given ${count} times, last ${ago}`,
    changed: "Changed",
    gone: "Gone",
    passages: "What it rested on",
    cut: (count: string) => `Only the newest ${count} turns were looked at.`
  },
  {
    title: "Antworten, die auf Geändertem beruhten",
    lead: "In den letzten 30 Tagen gegeben; die zitierten Abschnitte sind seither geändert oder fort. Die häufigsten zuerst.",
    replay: "Diese erneut fragen",
    replayLead:
      "Die Fragen der 50 häufigsten Antworten werden mit den Quellen von heute erneut gestellt. Kunden sehen nichts davon, und kein Werkzeug wird aufgerufen.",
    result: "Vor und nach der Änderung",
    all: "Alle Antworten",
    empty: "Keine Antwort ist betroffen",
    emptyLead:
      "Nichts, was Antworten der letzten 30 Tage zitieren, hat sich seither geändert oder ist verschwunden.",
    toSources: "Quellen öffnen",
    once: (ago: string) => `einmal gegeben, ${ago}`,
    times: (count: string, ago: string) => `${count}-mal gegeben, zuletzt ${ago}`,
    changed: "Geändert",
    gone: "Entfernt",
    passages: "Worauf sie beruhte",
    cut: (count: string) => `Nur die neuesten ${count} Fragen wurden betrachtet.`
  }
)

const Answer = ({ answer }: { readonly answer: ImpactAnswer }) => {
  const t = useText(words)
  const { ago, number } = useFormat()
  const { lastAt, passages, question, reply, times } = answer
  const states = (["changed", "gone"] as const).filter((state) => passages.some((one) => one.state === state))
  return (
    <li>
      <Card>
        <div className={css["head"]}>
          <div>
            <h3 lang="" className={css["said"]}>
              {question}
            </h3>
            <span className={css["soft"]}>
              {times === 1 ? t.once(ago(lastAt)) : t.times(number(times), ago(lastAt))}
            </span>
          </div>
          <div className={css["row"]}>
            {states.map((state) => (
              <Badge key={state} tone={state === "gone" ? "bad" : "warn"}>
                {t[state]}
              </Badge>
            ))}
          </div>
        </div>
        <div lang="">
          <Prose text={reply} />
        </div>
        <details className={css["more"]}>
          <summary>{t.passages}</summary>
          <div className={css["beside"]}>
            {passages.map(({ heading, sourceId, sourceName, state, text, title }, index) => (
              <div key={index} className={css["passage"]}>
                <div className={css["row"]}>
                  <span lang="" className={css["title"]}>
                    {title}
                    {heading === "" ? null : ` › ${headingPath(heading)}`}
                  </span>
                  <Badge tone={state === "gone" ? "bad" : "warn"}>{t[state]}</Badge>
                </div>
                <blockquote lang="" className={css["quote"]}>
                  {text}
                </blockquote>
                <div className={css["links"]}>
                  <Link href={`/sources/${sourceId}`} lang="">
                    {sourceName}
                  </Link>
                </div>
              </div>
            ))}
          </div>
        </details>
      </Card>
    </li>
  )
}

interface Props {
  readonly agentId: string
  readonly mayChange: boolean
  /** The replay that is shown; null for the list. */
  readonly replayId: string | null
  readonly onReplay: (id: string | null) => void
}

export const Impact = ({ agentId, mayChange, onReplay, replayId }: Props) => {
  const t = useText(words)
  const { number } = useFormat()
  const queries = useQueryClient()
  const query = useInfiniteQuery(impact(agentId))
  const replay = useMutation({
    mutationFn: () => replayImpact(agentId),
    onSuccess: async ({ id }) => {
      onReplay(id)
      await queries.invalidateQueries({ queryKey: experiments(agentId).queryKey })
    }
  })
  if (replayId !== null)
    return (
      <>
        <Link className={css["back"] ?? ""} href={`/agents/${agentId}/improve?part=impact`}>
          {`← ${t.all}`}
        </Link>
        <h2>{t.result}</h2>
        <ReplayResults key={replayId} experimentId={replayId} />
      </>
    )
  return (
    <>
      <Loaded query={query}>
        {({ pages }) => {
          const answers = pages.flatMap((page) => page.answers)
          const [first] = pages
          if (first === undefined || answers.length === 0)
            return (
              <Empty
                title={t.empty}
                lead={t.emptyLead}
                action={<Link href={`/agents/${agentId}/sources`}>{t.toSources}</Link>}
              />
            )
          return (
            <>
              <div className={css["bar"]}>
                <div>
                  <h2>{t.title}</h2>
                  <p className={css["lead"]}>{t.lead}</p>
                </div>
                {mayChange ? (
                  <Button kind="primary" busy={replay.isPending} onClick={() => replay.mutate()}>
                    {t.replay}
                  </Button>
                ) : null}
              </div>
              {mayChange ? <p className={css["soft"]}>{t.replayLead}</p> : null}
              {replay.error === null ? null : <Problem problem={replay.error} />}
              {first.isCut ? <p className={css["soft"]}>{t.cut(number(first.turns))}</p> : null}
              <ul className={css["list"]}>
                {answers.map((answer) => (
                  <Answer key={answer.id} answer={answer} />
                ))}
              </ul>
            </>
          )
        }}
      </Loaded>
      <LoadMore query={query} />
    </>
  )
}
