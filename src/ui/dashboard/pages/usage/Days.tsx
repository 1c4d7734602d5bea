/** Turns, tokens and cost by day of the period. */
import type { DayUsage, Usage } from "../../api/Usage.ts"
import { Chart } from "../../components/charts/Chart.tsx"
import { daysBetween } from "../../components/charts/days.ts"
import { Card } from "../../components/Page.tsx"
import { useFormat } from "../../text/Format.ts"
import { useText } from "../../text/Language.tsx"
import css from "./Usage.module.css"
import { words } from "./words.ts"

const nanoPerUsd = 1e9

const isEarlier = (one: string, other: string) => Date.parse(one) < Date.parse(other)

interface Props {
  readonly days: ReadonlyArray<DayUsage>
  readonly period: Usage["period"]
}

export const Days = ({ days, period }: Props) => {
  const t = useText(words)
  const { money, number } = useFormat()
  const now = new Date().toISOString()
  const found = new Map(days.map((day) => [day.date, day]))
  const all = daysBetween(period.start, isEarlier(now, period.end) ? now : period.end)
  const daysOf = (values: (day: DayUsage | undefined) => Readonly<Record<string, number | null>>) =>
    all.map((date) => ({ date, values: values(found.get(date)) }))
  if (days.length === 0)
    return (
      <Card title={t.days}>
        <p className={css["term"]}>{t.noDays}</p>
      </Card>
    )
  return (
    <div className={css["charts"]}>
      <Card title={t.days}>
        <Chart
          title={t.days}
          name="turns-by-day"
          kind="bar"
          series={[{ key: "turns", title: t.turns }]}
          days={daysOf((day) => ({ turns: day?.turns ?? 0 }))}
          shown={number}
        />
      </Card>
      <Card title={t.costByDay}>
        <Chart
          title={t.costByDay}
          name="cost-by-day"
          kind="bar"
          series={[{ key: "usd", title: t.costInUsd }]}
          days={daysOf((day) => {
            const nanoUsd = day === undefined ? 0 : day.cost.nanoUsd
            return { usd: nanoUsd === null ? null : nanoUsd / nanoPerUsd }
          })}
          shown={(usd) => money(usd * nanoPerUsd)}
        />
      </Card>
      <Card title={t.tokensByDay}>
        <Chart
          title={t.tokensByDay}
          name="tokens-by-day"
          kind="bar"
          series={[
            { key: "input", title: t.tokensRead },
            { key: "output", title: t.tokensWritten }
          ]}
          days={daysOf((day) => ({ input: day?.tokens.input ?? 0, output: day?.tokens.output ?? 0 }))}
          shown={number}
        />
      </Card>
    </div>
  )
}
