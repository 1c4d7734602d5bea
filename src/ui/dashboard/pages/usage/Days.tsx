/** Turns, tokens and cost by day of the period. */
import type { DayUsage, Usage } from "../../api/Usage.ts"
import { Chart } from "../../components/charts/Chart.tsx"
import { daysBetween } from "../../components/charts/days.ts"
import { UsageByDay } from "../../components/charts/UsageByDay.tsx"
import { Card } from "../../components/Page.tsx"
import { useFormat } from "../../text/Format.ts"
import { useText } from "../../text/Language.tsx"
import css from "./Usage.module.css"
import { words } from "./words.ts"

const isEarlier = (one: string, other: string) => Date.parse(one) < Date.parse(other)

interface Props {
  readonly days: ReadonlyArray<DayUsage>
  readonly period: Usage["period"]
}

export const Days = ({ days, period }: Props) => {
  const t = useText(words)
  const { number } = useFormat()
  const now = new Date().toISOString()
  const usageByDate = new Map(days.map((day) => [day.date, day]))
  const dates = daysBetween(period.start, isEarlier(now, period.end) ? now : period.end)
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
          days={dates.map((date) => ({ date, values: { turns: usageByDate.get(date)?.turns ?? 0 } }))}
          format={number}
        />
      </Card>
      <UsageByDay dates={dates} days={usageByDate} />
    </div>
  )
}
