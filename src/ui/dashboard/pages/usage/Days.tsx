/** The days of the period as bars, and as a table for whom bars say nothing. */
import { Bar, BarChart, CartesianGrid, ResponsiveContainer, Tooltip, XAxis, YAxis } from "recharts"
import type { DayUsage, Usage } from "../../api/Usage.ts"
import { Table } from "../../components/Table.tsx"
import { useFormat } from "../../text/Format.ts"
import { useText } from "../../text/Language.tsx"
import { CostText } from "./CostText.tsx"
import css from "./Usage.module.css"
import { words } from "./words.ts"

const millisPerDay = 86_400_000

/** Every day from the start of the period to today, at most its end: a day without a turn is a day without a bar. */
const everyDay = (days: ReadonlyArray<DayUsage>, { end, start }: Usage["period"]) => {
  const turns = new Map(days.map(({ date, turns: count }) => [date, count]))
  const first = Date.parse(start)
  const last = Math.min(Date.parse(end) - 1, Date.now())
  return Array.from({ length: Math.max(1, Math.floor((last - first) / millisPerDay) + 1) }, (_, place) => {
    const date = new Date(first + place * millisPerDay).toISOString().slice(0, 10)
    return { date, turns: turns.get(date) ?? 0 }
  })
}

interface Props {
  readonly days: ReadonlyArray<DayUsage>
  readonly period: Usage["period"]
}

const Days = ({ days, period }: Props) => {
  const t = useText(words)
  const { day, number } = useFormat()
  const axis = { fill: "var(--text-soft)", fontSize: 12 }
  return (
    <>
      <div className={css["chart"]} aria-hidden>
        <ResponsiveContainer>
          <BarChart data={everyDay(days, period)} accessibilityLayer={false}>
            <CartesianGrid vertical={false} stroke="var(--line)" />
            <XAxis dataKey="date" tickFormatter={day} tick={axis} stroke="var(--line-strong)" />
            <YAxis allowDecimals={false} width={44} tick={axis} stroke="var(--line-strong)" />
            <Tooltip
              cursor={{ fill: "var(--sunken)" }}
              contentStyle={{ background: "var(--raised)", border: "1px solid var(--line)" }}
              labelFormatter={(date) => day(String(date))}
            />
            <Bar
              dataKey="turns"
              name={t.turns}
              fill="var(--accent)"
              maxBarSize={42}
              radius={[4, 4, 0, 0]}
              isAnimationActive={false}
            />
          </BarChart>
        </ResponsiveContainer>
      </div>
      <details className={css["details"]}>
        <summary>{t.asTable}</summary>
        <Table
          label={t.days}
          rows={days}
          keyOf={({ date }) => date}
          columns={[
            { title: t.day, cell: ({ date }) => day(date) },
            { title: t.turns, end: true, cell: ({ turns }) => number(turns) },
            {
              title: t.tokens,
              end: true,
              cell: ({ tokens }) => number(tokens.input + tokens.output)
            },
            { title: t.cost, end: true, cell: ({ cost }) => <CostText cost={cost} /> }
          ]}
        />
      </details>
    </>
  )
}

export default Days
