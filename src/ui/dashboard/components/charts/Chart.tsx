/** A chart of series over days, with the same data as a table for screen readers and as a CSV file. */
import { useFormat } from "../../text/Format.ts"
import { texts, useText } from "../../text/Language.tsx"
import { Table } from "../Table.tsx"
import css from "./Chart.module.css"
import { CsvDownload } from "./CsvDownload.tsx"
import { Plot } from "./Plot.tsx"
import type { ChartProps, Day } from "./series.ts"

const words = texts({ asTable: "As a table", day: "Day" }, { asTable: "Als Tabelle", day: "Tag" })

export const Chart = (props: ChartProps) => {
  const t = useText(words)
  const { day } = useFormat()
  const { days, name, series, format, title } = props
  return (
    <>
      <div aria-hidden>
        <Plot {...props} />
      </div>
      <div className={css["foot"]}>
        <details>
          <summary>{t.asTable}</summary>
          <Table
            label={title}
            rows={days.toReversed()}
            keyOf={({ date }) => date}
            columns={[
              { title: t.day, noWrap: true, cell: ({ date }) => day(date) },
              ...series.map((one) => ({
                title: one.title,
                alignEnd: true,
                cell: ({ values }: Day) => {
                  const value = values[one.key] ?? null
                  return value === null ? "–" : format(value)
                }
              }))
            ]}
          />
        </details>
        <CsvDownload
          title={title}
          name={name}
          header={[t.day, ...series.map((one) => one.title)]}
          rows={days.map(({ date, values }) => [date, ...series.map(({ key }) => values[key] ?? null)])}
        />
      </div>
    </>
  )
}
