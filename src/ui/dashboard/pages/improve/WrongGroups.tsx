/** Turns that went wrong, grouped by question, with a button to write a correction. */
import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query"
import { Link, useLocation } from "wouter"
import { corrections, createCorrection } from "../../api/improve/Corrections.ts"
import { type FailureKind, type InsightGroup, insights } from "../../api/Insights.ts"
import { Badge, type Tone } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { Card, Empty, Loaded } from "../../components/Page.tsx"
import { Problem } from "../../components/Problem.tsx"
import { useFormat } from "../../text/Format.ts"
import { texts, useText } from "../../text/Language.tsx"
import { correctionRequestOf, type CorrectionRequest, type ReportPeriod } from "./correctionRequest.ts"
import css from "./Improve.module.css"
import { LoadMore } from "../../components/LoadMore.tsx"

const words = texts(
  {
    empty: "Nothing went wrong",
    emptyLead:
      "Questions that got no answer or a thumbs-down, were handed to a human, stopped or failed will appear here, grouped by meaning.",
    tryIt: "Ask the agent something",
    groups: "What went wrong",
    write: "Write the right answer",
    writeOf: (question: string) => `Write the right answer: ${question}`,
    drafting: "An answer is being drafted …",
    asked: (count: string, people: string) => `${count} × by ${people}`,
    person: "one person",
    people: (count: string) => `${count} people`,
    rising: "rising",
    falling: "falling",
    last: (ago: string) => `last ${ago}`,
    searched: (names: string) => `Searched in vain: ${names}`,
    examples: "Examples",
    cut: (count: string) => `Only the newest ${count} turns that went wrong are shown.`,
    unanswered: "No answer",
    thumbsDown: "Thumbs-down",
    handedOver: "Handed over",
    stopped: "Stopped",
    failed: "Failed"
  },
  {
    empty: "Nichts ging schief",
    emptyLead:
      "Hier erscheinen, nach Bedeutung gruppiert, Fragen ohne Antwort oder mit Daumen runter sowie solche, die an einen Menschen gingen, gestoppt wurden oder fehlschlugen.",
    tryIt: "Den Agenten etwas fragen",
    groups: "Was schiefging",
    write: "Richtige Antwort schreiben",
    writeOf: (question: string) => `Richtige Antwort schreiben: ${question}`,
    drafting: "Eine Antwort wird entworfen …",
    asked: (count: string, people: string) => `${count} × von ${people}`,
    person: "einer Person",
    people: (count: string) => `${count} Personen`,
    rising: "steigend",
    falling: "fallend",
    last: (ago: string) => `zuletzt ${ago}`,
    searched: (names: string) => `Vergeblich durchsucht: ${names}`,
    examples: "Beispiele",
    cut: (count: string) => `Nur die neuesten ${count} Fragen, bei denen etwas schiefging.`,
    unanswered: "Ohne Antwort",
    thumbsDown: "Daumen runter",
    handedOver: "Übergeben",
    stopped: "Gestoppt",
    failed: "Fehlgeschlagen"
  }
)

const tones: Readonly<Record<FailureKind, Tone>> = {
  failed: "bad",
  thumbsDown: "bad",
  handedOver: "warn",
  unanswered: "warn",
  stopped: "neutral"
}
const kinds = ["failed", "thumbsDown", "handedOver", "unanswered", "stopped"] as const

const WriteButton = ({
  request,
  question
}: {
  readonly request: CorrectionRequest
  readonly question: string
}) => {
  const t = useText(words)
  const queries = useQueryClient()
  const [, navigate] = useLocation()
  const create = useMutation({
    mutationFn: () => createCorrection(request.agentId, request.body),
    onSuccess: () => queries.invalidateQueries({ queryKey: corrections(request.agentId).queryKey })
  })
  const write = () =>
    create.mutate(undefined, {
      // Not called if another page was opened before.
      onSuccess: ({ id }) => navigate(`/agents/${request.agentId}/improve?part=corrections&correction=${id}`)
    })
  return (
    <>
      <Button busy={create.isPending} aria-label={t.writeOf(question)} onClick={write}>
        {t.write}
      </Button>
      {create.isPending ? (
        <span role="status" className={css["soft"]}>
          {t.drafting}
        </span>
      ) : null}
      {create.error === null ? null : <Problem problem={create.error} />}
    </>
  )
}

interface GroupProps {
  readonly group: InsightGroup
  /** Creates a correction of the group; null if none is possible, or this person may not create one. */
  readonly request: CorrectionRequest | null
}

const Group = ({ request, group }: GroupProps) => {
  const t = useText(words)
  const { ago, moment, number } = useFormat()
  const { count, examples, lastAt, name, people, sources, title, trend } = group
  const direction = trend.later > trend.earlier ? t.rising : trend.later < trend.earlier ? t.falling : null
  const asked = t.asked(number(count), people === 1 ? t.person : t.people(number(people)))
  return (
    <li>
      <Card>
        <div className={css["head"]}>
          <div>
            <h3 lang="" className={css["said"]}>
              {name ?? title}
            </h3>
            {name === null ? null : (
              <p lang="" className={css["said"]}>
                {title}
              </p>
            )}
            <span className={css["soft"]}>
              {[asked, direction, t.last(ago(lastAt))].filter((part) => part !== null).join(" · ")}
            </span>
          </div>
          {request === null ? null : (
            <div className={css["row"]}>
              <WriteButton request={request} question={title} />
            </div>
          )}
        </div>
        <div className={css["row"]}>
          {kinds
            .filter((kind) => group.kinds[kind] > 0)
            .map((kind) => (
              <Badge key={kind} tone={tones[kind]}>{`${t[kind]} ${number(group.kinds[kind])}`}</Badge>
            ))}
        </div>
        {sources.length === 0 ? null : (
          <p className={css["soft"]} lang="">
            {t.searched(sources.map(({ name }) => name).join(", "))}
          </p>
        )}
        <details className={css["more"]}>
          <summary>{t.examples}</summary>
          <ul>
            {examples.map(({ at, conversationId, kind, question, runId }) => (
              <li key={runId} className={css["said"]}>
                <Link href={`/conversations/${conversationId}`}>{question}</Link>{" "}
                <span className={css["soft"]}>{`${t[kind]} · ${moment(at)}`}</span>
              </li>
            ))}
          </ul>
        </details>
      </Card>
    </li>
  )
}

interface Props {
  readonly agentId: string | undefined
  readonly mayChange: boolean
  /** False if a heading above already names it: then the title is for screen readers only. */
  readonly showsTitle: boolean
}

export const WrongGroups = ({ agentId, mayChange, showsTitle }: Props) => {
  const t = useText(words)
  const { number } = useFormat()
  const query = useInfiniteQuery(insights(agentId))
  const requestOf = (group: InsightGroup, period: ReportPeriod) =>
    mayChange ? correctionRequestOf(group, agentId, period) : null
  return (
    <>
      <Loaded query={query}>
        {({ pages }) => {
          const [first] = pages
          return first === undefined || first.groups.length === 0 ? (
            <Empty
              title={t.empty}
              lead={t.emptyLead}
              action={
                mayChange && agentId !== undefined ? (
                  <Link href={`/agents/${agentId}/try`}>{t.tryIt}</Link>
                ) : null
              }
            />
          ) : (
            <section aria-label={t.groups} className={css["groups"]}>
              {showsTitle ? <h2>{t.groups}</h2> : <h2 className="visually-hidden">{t.groups}</h2>}
              {first.isCut ? <p className={css["soft"]}>{t.cut(number(first.turns))}</p> : null}
              <ul className={css["list"]}>
                {pages.flatMap((page) =>
                  page.groups.map((group) => (
                    <Group key={group.id} group={group} request={requestOf(group, page)} />
                  ))
                )}
              </ul>
            </section>
          )
        }}
      </Loaded>
      <LoadMore query={query} />
    </>
  )
}
