/** Measures of the agents, over time and together, and what went wrong, grouped by question. */
import { useInfiniteQuery, usePrefetchInfiniteQuery, useQuery } from "@tanstack/react-query"
import { Link, useSearchParams } from "wouter"
import { agents } from "../../api/Agents.ts"
import { insights, type Measures, measures, measuresBy, type MeasuresReport } from "../../api/Insights.ts"
import { atLeast, type User } from "../../api/Session.ts"
import { Chart } from "../../components/charts/Chart.tsx"
import { Figure, Figures } from "../../components/charts/Figures.tsx"
import { UsageByDay } from "../../components/charts/UsageByDay.tsx"
import { daysBetween } from "../../components/charts/days.ts"
import { Select } from "../../components/Field.tsx"
import { Card, Loaded, LoadError, Page } from "../../components/Page.tsx"
import { useAllPages } from "../../components/useAllPages.ts"
import { useFormat } from "../../text/Format.ts"
import { useText } from "../../text/Language.tsx"
import { WrongGroups } from "../improve/WrongGroups.tsx"
import { Comparison, dimensionsOf } from "./Comparison.tsx"
import css from "./Insights.module.css"
import { words } from "./words.ts"

/** The option for all agents. */
const allAgents = "all"

const Totals = ({ total }: { readonly total: Measures }) => {
  const t = useText(words)
  const { money, number, percent } = useFormat()
  const share = (value: number | null) => (value === null ? "–" : percent(value))
  const seconds = (milliseconds: number) => t.seconds(number(Math.round(milliseconds / 100) / 10))
  const { answered, cost, grounding, rated, refused, resolutionRate, satisfaction, timeToFirstText, turns } =
    total
  return (
    <Figures>
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
      <Figure
        title={t.supported}
        value={share(grounding.share)}
        note={
          grounding.share === null
            ? t.unchecked
            : t.supportedNote(number(grounding.yes), number(grounding.partly), number(grounding.no))
        }
      />
      <Figure
        title={t.cost}
        value={cost.nanoUsd === null ? t.unknown : money(cost.nanoUsd)}
        note={
          cost.unpricedCalls === 0 ? t.costNote : t.unpriced(cost.unpricedCalls, number(cost.unpricedCalls))
        }
      />
    </Figures>
  )
}

const Charts = ({ report }: { readonly report: MeasuresReport }) => {
  const t = useText(words)
  const { number, percent } = useFormat()
  const measuresByDay = new Map(report.rows.map((row) => [row.key, row]))
  const dates = daysBetween(report.from, report.to)
  const daysOf = (values: (day: Measures | undefined) => Readonly<Record<string, number | null>>) =>
    dates.map((date) => ({ date, values: values(measuresByDay.get(date)) }))
  const seconds = (milliseconds: number) => Math.round(milliseconds / 10) / 100
  return (
    <section aria-label={t.charts} className={css["charts"]}>
      <Card title={t.qualityByDay}>
        <Chart
          title={t.qualityByDay}
          name="resolution-by-day"
          kind="line"
          max={1}
          series={[
            { key: "resolved", title: t.resolved },
            { key: "satisfied", title: t.satisfaction }
          ]}
          days={daysOf((day) => ({
            resolved: day?.resolutionRate ?? null,
            satisfied: day?.satisfaction ?? null
          }))}
          format={percent}
        />
      </Card>
      <Card title={t.speedByDay}>
        <Chart
          title={t.speedByDay}
          name="first-words-by-day"
          kind="line"
          series={[
            { key: "median", title: t.median },
            { key: "p95", title: t.p95 }
          ]}
          days={daysOf((day) => {
            const times = day?.timeToFirstText ?? null
            return times === null
              ? { median: null, p95: null }
              : { median: seconds(times.median), p95: seconds(times.p95) }
          })}
          format={(value) => t.seconds(number(value))}
        />
      </Card>
      <Card title={t.turnsByDay}>
        <Chart
          title={t.turnsByDay}
          name="turns-by-day"
          kind="bar"
          series={[
            { key: "answered", title: t.answeredTurns },
            { key: "refused", title: t.refusedTurns }
          ]}
          days={daysOf((day) => ({ answered: day?.answered ?? 0, refused: day?.refused ?? 0 }))}
          format={number}
        />
      </Card>
      <Card title={t.supportedByDay}>
        <Chart
          title={t.supportedByDay}
          name="supported-by-day"
          kind="line"
          max={1}
          series={[{ key: "supported", title: t.supported }]}
          days={daysOf((day) => ({ supported: day?.grounding.share ?? null }))}
          format={percent}
        />
      </Card>
      <UsageByDay dates={dates} days={measuresByDay} actions={<Link href="/usage">{t.toUsage}</Link>} />
    </section>
  )
}

const Insights = ({ user }: { readonly user: User }) => {
  const t = useText(words)
  const [parameters, setParameters] = useSearchParams()
  const loadedAgents = useAllPages(useInfiniteQuery(agents), (page) => page.agents) ?? []
  const agentId = loadedAgents.find(({ id }) => id === parameters.get("agent"))?.id
  const dimensions = dimensionsOf(agentId)
  const by = dimensions.find((one) => one === parameters.get("by")) ?? dimensions[0]
  const query = useQuery(measures(agentId))
  const compared = useQuery(measuresBy(agentId, by))
  const setFilter = (changed: Readonly<Record<string, string | undefined>>) => {
    const entries = Object.entries({ agent: agentId, by, ...changed })
    setParameters(
      new URLSearchParams(entries.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])))
    )
  }
  usePrefetchInfiniteQuery(insights(agentId))
  return (
    <Page
      title={t.title}
      lead={t.lead}
      guide="insights#measures"
      actions={
        <Select
          compact
          label={t.agent}
          options={[[allAgents, t.everyAgent], ...loadedAgents.map(({ id, name }) => [id, name] as const)]}
          value={agentId ?? allAgents}
          onChange={(value) => setFilter({ agent: value === allAgents ? undefined : value, by: undefined })}
        />
      }
    >
      <Loaded query={query}>
        {(report) => (
          <>
            <Totals total={report.total} />
            {report.total.turns === 0 ? null : <Charts report={report} />}
          </>
        )}
      </Loaded>
      {compared.isError && compared.data === undefined && !query.isError ? (
        <LoadError query={compared} />
      ) : null}
      {compared.data === undefined || query.isPending || compared.data.rows.length === 0 ? null : (
        <Comparison
          report={compared.data}
          dimensions={dimensions}
          by={by}
          onChange={(value) => setFilter({ by: value })}
        />
      )}
      {/* Shown after the measures have loaded, so that it does not move. */}
      {query.isPending || compared.isPending ? null : (
        <WrongGroups agentId={agentId} mayChange={atLeast(user.role, "admin")} showsTitle />
      )}
    </Page>
  )
}

export default Insights
