/** Draws series over days as bars or lines. It fills its container. The table below it has the same data. */
import { useFormat } from "../../text/Format.ts"
import { texts, useText } from "../../text/Language.tsx"
import { axisOf, labelledDays } from "./axis.ts"
import css from "./Plot.module.css"
import type { ChartProps, Day, Series } from "./series.ts"

const words = texts({ nothing: "Nothing yet" }, { nothing: "Noch nichts" })

/** CSS classes of the first and the second series. They differ not only in colour. */
const seriesClasses = ["first", "second"] as const

interface ShapeProps extends Pick<ChartProps, "days" | "series"> {
  /** The height of a value in percent of the chart. */
  readonly heightOf: (value: number) => number
  /** The centre of a day in percent of the width. */
  readonly centerOf: (day: number) => number
}

const Bars = ({ days, heightOf, series }: ShapeProps) => (
  <div className={css["bars"]}>
    {days.map(({ date, values }) => (
      <span key={date} className={css["day"]}>
        {series.map(({ key }, one) => (
          <span
            key={key}
            className={css[seriesClasses[one] ?? "first"]}
            style={{ height: `${heightOf(values[key] ?? 0)}%` }}
          />
        ))}
      </span>
    ))}
  </div>
)

/** Splits the days at those without data, where the line is interrupted. */
const runsOf = (days: ReadonlyArray<Day>, { key }: Series) => {
  const runs: Array<Array<readonly [day: number, value: number]>> = [[]]
  for (const [day, { values }] of days.entries()) {
    const value = values[key] ?? null
    if (value === null) runs.push([])
    else runs.at(-1)?.push([day, value])
  }
  return runs.filter((run) => run.length > 0)
}

const Lines = ({ days, heightOf, centerOf, series }: ShapeProps) => (
  <>
    <svg className={css["lines"]} viewBox="0 0 100 100" preserveAspectRatio="none">
      {series.map((one, index) => (
        <path
          key={one.key}
          className={css[seriesClasses[index] ?? "first"]}
          d={runsOf(days, one)
            .map((run) =>
              run
                .map(
                  ([day, value], runIndex) =>
                    `${runIndex === 0 ? "M" : "L"}${centerOf(day)} ${100 - heightOf(value)}`
                )
                .join("")
            )
            .join("")}
        />
      ))}
    </svg>
    {/* Dots, because a single day between days without data has no line. */}
    {series.map((one, index) =>
      runsOf(days, one)
        .flat()
        .map(([day, value]) => (
          <span
            key={`${one.key} ${day}`}
            className={`${css["dot"]} ${css[seriesClasses[index] ?? "first"]}`}
            style={{ left: `${centerOf(day)}%`, bottom: `${heightOf(value)}%` }}
          />
        ))
    )}
  </>
)

/** A tooltip for each day, shown while the pointer is over it. */
const Tooltips = ({ days, series, format }: Pick<ChartProps, "days" | "series" | "format">) => {
  const { day } = useFormat()
  return (
    <div className={css["pointed"]}>
      {days.map(({ date, values }, index) => (
        <span key={date} className={index * 2 < days.length ? css["early"] : css["late"]}>
          <span className={css["tip"]}>
            <strong>{day(date)}</strong>
            {series.map(({ key, title }) => {
              const value = values[key] ?? null
              return (
                <span key={key}>
                  {title}: {value === null ? "–" : format(value)}
                </span>
              )
            })}
          </span>
        </span>
      ))}
    </div>
  )
}

export const Plot = ({ days, kind, max, series, format }: ChartProps) => {
  const t = useText(words)
  const { dayOfMonth } = useFormat()
  const values = days.flatMap((one) => series.flatMap(({ key }) => one.values[key] ?? []))
  const { end, ticks } = axisOf(values, max)
  const heightOf = (value: number) => (100 * Math.min(value, end)) / end
  const centerOf = (index: number) => (100 * (index + 0.5)) / days.length
  const Shapes = kind === "bar" ? Bars : Lines
  return (
    <div className={css["drawing"]}>
      <div className={css["values"]}>
        {ticks.map((tick) => (
          <span key={tick} style={{ bottom: `${heightOf(tick)}%` }}>
            {format(tick)}
          </span>
        ))}
      </div>
      <div className={css["plot"]}>
        {ticks.map((tick) => (
          <span key={tick} className={css["grid"]} style={{ bottom: `${heightOf(tick)}%` }} />
        ))}
        {values.some((value) => value > 0) ? null : <span className={css["nothing"]}>{t.nothing}</span>}
        <Shapes days={days} series={series} heightOf={heightOf} centerOf={centerOf} />
        <Tooltips days={days} series={series} format={format} />
      </div>
      <div className={css["dates"]}>
        {labelledDays(days.length).map((index) => (
          <span key={index} style={{ left: `${centerOf(index)}%` }}>
            {dayOfMonth(days[index]?.date ?? "")}
          </span>
        ))}
      </div>
      {series.length === 1 ? null : (
        <ul className={css["legend"]} data-kind={kind}>
          {series.map(({ key, title }, index) => (
            <li key={key}>
              <span className={css[seriesClasses[index] ?? "first"]} />
              {title}
            </li>
          ))}
        </ul>
      )}
    </div>
  )
}
