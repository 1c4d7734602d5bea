/** Cards with the cost and the tokens of each day. */
import type { ReactNode } from "react"
import { useFormat } from "../../text/Format.ts"
import { texts, useText } from "../../text/Language.tsx"
import { Card } from "../Page.tsx"
import { Chart } from "./Chart.tsx"

const words = texts(
  {
    costByDay: "Model cost by day",
    costInUsd: "Cost in US dollars",
    tokensByDay: "Tokens by day",
    tokensRead: "Read",
    tokensWritten: "Written"
  },
  {
    costByDay: "Modellkosten je Tag",
    costInUsd: "Kosten in US-Dollar",
    tokensByDay: "Tokens je Tag",
    tokensRead: "Gelesen",
    tokensWritten: "Geschrieben"
  }
)

const nanoPerUsd = 1e9

interface Day {
  readonly tokens: { readonly input: number; readonly output: number }
  /** Null if a call's price is unknown. */
  readonly cost: { readonly nanoUsd: number | null }
}

interface Props {
  /** All days of the period, as YYYY-MM-DD. */
  readonly dates: ReadonlyArray<string>
  /** The usage by date. Days without turns are missing. */
  readonly days: ReadonlyMap<string, Day>
  /** Controls beside the title of the cost chart. */
  readonly actions?: ReactNode
}

export const UsageByDay = ({ actions, dates, days }: Props) => {
  const t = useText(words)
  const { money, number } = useFormat()
  const daysOf = (values: (day: Day | undefined) => Readonly<Record<string, number | null>>) =>
    dates.map((date) => ({ date, values: values(days.get(date)) }))
  return (
    <>
      <Card title={t.costByDay} actions={actions}>
        <Chart
          title={t.costByDay}
          name="cost-by-day"
          kind="bar"
          series={[{ key: "usd", title: t.costInUsd }]}
          days={daysOf((day) => {
            const nanoUsd = day === undefined ? 0 : day.cost.nanoUsd
            return { usd: nanoUsd === null ? null : nanoUsd / nanoPerUsd }
          })}
          format={(usd) => money(usd * nanoPerUsd)}
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
          format={number}
        />
      </Card>
    </>
  )
}
