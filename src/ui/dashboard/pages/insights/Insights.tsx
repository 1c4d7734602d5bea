/** Measures of the agents, and failed turns grouped by question. */
import { useInfiniteQuery, useQuery } from "@tanstack/react-query"
import { Link, useSearchParams } from "wouter"
import { agents } from "../../api/Agents.ts"
import { type InsightGroup, insights, type Measures, measures, type WrongKind } from "../../api/Insights.ts"
import { Badge, type Tone } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { Select } from "../../components/Field.tsx"
import { Card, Empty, Loaded, Page } from "../../components/Page.tsx"
import { everywhere } from "../../text/everywhere.ts"
import { useFormat } from "../../text/Format.ts"
import { useText } from "../../text/Language.tsx"
import css from "./Insights.module.css"
import { words } from "./words.ts"

/** The filter that leaves nothing out. */
const every = "all"

const tones: Readonly<Record<WrongKind, Tone>> = {
  failed: "bad",
  thumbsDown: "bad",
  handedOver: "warn",
  unanswered: "warn",
  stopped: "neutral"
}
const kinds = ["failed", "thumbsDown", "handedOver", "unanswered", "stopped"] as const

interface FigureProps {
  readonly title: string
  readonly value: string
  readonly note: string
}

const Figure = ({ title, value, note }: FigureProps) => (
  <Card>
    <div className={css["figures"]}>
      <span className={css["soft"]}>{title}</span>
      <span className={css["figure"]}>{value}</span>
      <span className={css["soft"]}>{note}</span>
    </div>
  </Card>
)

const Totals = ({ total }: { readonly total: Measures }) => {
  const t = useText(words)
  const { number, percent } = useFormat()
  const share = (value: number | null) => (value === null ? "–" : percent(value))
  const seconds = (milliseconds: number) => t.seconds(number(Math.round(milliseconds / 100) / 10))
  const { answered, rated, refused, resolutionRate, satisfaction, timeToFirstText, turns } = total
  return (
    <div className={css["totals"]}>
      <Figure title={t.resolved} value={share(resolutionRate)} note={t.resolvedNote} />
      <Figure
        title={t.satisfaction}
        value={share(satisfaction)}
        note={t.ratings(number(rated.up), number(rated.down))}
      />
      <Figure title={t.turns} value={number(turns)} note={t.outcomes(number(answered), number(refused))} />
      <Figure
        title={t.speed}
        value={timeToFirstText === null ? "–" : seconds(timeToFirstText.median)}
        note={timeToFirstText === null ? "" : t.speedNote(seconds(timeToFirstText.p95))}
      />
    </div>
  )
}

const Group = ({ group }: { readonly group: InsightGroup }) => {
  const t = useText(words)
  const { ago, moment, number } = useFormat()
  const { count, examples, lastAt, people, sources, title, trend } = group
  const direction = trend.later > trend.earlier ? t.rising : trend.later < trend.earlier ? t.falling : null
  const asked = t.asked(number(count), people === 1 ? t.person : t.people(number(people)))
  return (
    <li>
      <Card title={title}>
        <span className={css["soft"]}>
          {[asked, direction, t.last(ago(lastAt))].filter((part) => part !== null).join(" · ")}
        </span>
        <div className={css["kinds"]}>
          {kinds
            .filter((kind) => group.kinds[kind] > 0)
            .map((kind) => (
              <Badge key={kind} tone={tones[kind]}>{`${t[kind]} ${number(group.kinds[kind])}`}</Badge>
            ))}
        </div>
        {sources.length === 0 ? null : (
          <p className={css["soft"]}>{t.searched(sources.map(({ name }) => name).join(", "))}</p>
        )}
        <details className={css["examples"]}>
          <summary>{t.examples}</summary>
          <ul>
            {examples.map(({ at, conversationId, kind, question, runId }) => (
              <li key={runId}>
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

const Groups = ({ agentId }: { readonly agentId: string | undefined }) => {
  const t = useText(words)
  const common = useText(everywhere)
  const { number } = useFormat()
  const query = useInfiniteQuery(insights(agentId))
  return (
    <>
      <Loaded query={query}>
        {({ pages }) => {
          const groups = pages.flatMap((page) => page.groups)
          const [first] = pages
          return groups.length === 0 ? (
            <Empty title={t.empty}>{t.emptyLead}</Empty>
          ) : (
            <section aria-label={t.groups}>
              <h2>{t.groups}</h2>
              {first?.isCut === true ? <p className={css["soft"]}>{t.cut(number(first.turns))}</p> : null}
              <ul className={css["groups"]}>
                {groups.map((group) => (
                  <Group key={group.id} group={group} />
                ))}
              </ul>
            </section>
          )
        }}
      </Loaded>
      {query.hasNextPage ? (
        <Button busy={query.isFetchingNextPage} onPress={() => void query.fetchNextPage()}>
          {common.loadMore}
        </Button>
      ) : null}
    </>
  )
}

const Insights = () => {
  const t = useText(words)
  const [parameters, setParameters] = useSearchParams()
  const known = useInfiniteQuery(agents).data?.pages.flatMap((page) => page.agents) ?? []
  const agentId = known.find(({ id }) => id === parameters.get("agent"))?.id
  const query = useQuery(measures(agentId))
  return (
    <Page title={t.title} lead={t.lead}>
      <div className={css["filters"]}>
        <Select
          label={t.agent}
          options={[[every, t.everyAgent], ...known.map(({ id, name }) => [id, name] as const)]}
          value={agentId ?? every}
          onChange={(value) => setParameters(new URLSearchParams(value === every ? "" : { agent: value }))}
        />
      </div>
      <Loaded query={query}>{({ total }) => <Totals total={total} />}</Loaded>
      <Groups agentId={agentId} />
    </Page>
  )
}

export default Insights
