/** Series over days: a chart, the same data as a table for screen readers, and as a file. */
import { useFormat } from "../../text/Format.ts"
import { texts, useText } from "../../text/Language.tsx"
import { Table } from "../Table.tsx"
import css from "./Chart.module.css"
import { Download } from "./Download.tsx"
import { Drawing } from "./Drawing.tsx"
import type { ChartProps, Day } from "./series.ts"

const words = texts({ asTable: "As a table", day: "Day" }, { asTable: "Als Tabelle", day: "Tag" })

export const Chart = (props: ChartProps) => {
  const t = useText(words)
  const { day } = useFormat()
  const { days, name, series, shown, title } = props
  return (
    <>
      <div aria-hidden>
        <Drawing {...props} />
      </div>
      <div className={css["foot"]}>
        <details>
          <summary>{t.asTable}</summary>
          <Table
            label={title}
            rows={days.toReversed()}
            keyOf={({ date }) => date}
            columns={[
              { title: t.day, whole: true, cell: ({ date }) => day(date) },
              ...series.map((one) => ({
                title: one.title,
                end: true,
                cell: ({ values }: Day) => {
                  const value = values[one.key] ?? null
                  return value === null ? "–" : shown(value)
                }
              }))
            ]}
          />
        </details>
        <Download
          title={title}
          name={name}
          header={[t.day, ...series.map((one) => one.title)]}
          rows={days.map(({ date, values }) => [date, ...series.map(({ key }) => values[key] ?? null)])}
        />
      </div>
    </>
  )
}
