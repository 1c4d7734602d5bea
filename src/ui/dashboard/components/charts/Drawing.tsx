/** Series over days as bars or lines, which fill the place that they get. The table beside it says the same. */
import { useFormat } from "../../text/Format.ts"
import { axisOf, daysShown } from "./axis.ts"
import css from "./Drawing.module.css"
import type { ChartProps, Day, Series } from "./series.ts"

/** The first and the second series: they differ in more than their colour. */
const looks = ["first", "second"] as const

interface PartProps extends Pick<ChartProps, "days" | "series"> {
  /** Percent of the height. */
  readonly heightOf: (value: number) => number
  /** Percent of the width: the middle of a day. */
  readonly placeOf: (day: number) => number
}

const Bars = ({ days, heightOf, series }: PartProps) => (
  <div className={css["bars"]}>
    {days.map(({ date, values }) => (
      <span key={date} className={css["day"]}>
        {series.map(({ key }, one) => (
          <span
            key={key}
            className={css[looks[one] ?? "first"]}
            style={{ height: `${heightOf(values[key] ?? 0)}%` }}
          />
        ))}
      </span>
    ))}
  </div>
)

/** Runs of days with data: a day without has no line. */
const runsOf = (days: ReadonlyArray<Day>, { key }: Series) => {
  const runs: Array<Array<readonly [day: number, value: number]>> = [[]]
  for (const [day, { values }] of days.entries()) {
    const value = values[key] ?? null
    if (value === null) runs.push([])
    else runs.at(-1)?.push([day, value])
  }
  return runs.filter((run) => run.length > 0)
}

const Lines = ({ days, heightOf, placeOf, series }: PartProps) => (
  <>
    <svg className={css["lines"]} viewBox="0 0 100 100" preserveAspectRatio="none">
      {series.map((one, place) => (
        <path
          key={one.key}
          className={css[looks[place] ?? "first"]}
          d={runsOf(days, one)
            .map((run) =>
              run
                .map(([day, value], at) => `${at === 0 ? "M" : "L"}${placeOf(day)} ${100 - heightOf(value)}`)
                .join("")
            )
            .join("")}
        />
      ))}
    </svg>
    {/* A day between two without data has no line that would show it. */}
    {series.map((one, place) =>
      runsOf(days, one)
        .flat()
        .map(([day, value]) => (
          <span
            key={`${one.key} ${day}`}
            className={`${css["dot"]} ${css[looks[place] ?? "first"]}`}
            style={{ left: `${placeOf(day)}%`, bottom: `${heightOf(value)}%` }}
          />
        ))
    )}
  </>
)

/** The values of the day under the pointer. */
const Pointed = ({ days, series, shown }: Pick<ChartProps, "days" | "series" | "shown">) => {
  const { day } = useFormat()
  return (
    <div className={css["pointed"]}>
      {days.map(({ date, values }, place) => (
        <span key={date} className={place * 2 < days.length ? css["early"] : css["late"]}>
          <span className={css["tip"]}>
            <strong>{day(date)}</strong>
            {series.map(({ key, title }) => {
              const value = values[key] ?? null
              return (
                <span key={key}>
                  {title}: {value === null ? "–" : shown(value)}
                </span>
              )
            })}
          </span>
        </span>
      ))}
    </div>
  )
}

export const Drawing = ({ days, kind, max, series, shown }: ChartProps) => {
  const { dayOfMonth } = useFormat()
  const values = days.flatMap((one) => series.flatMap(({ key }) => one.values[key] ?? []))
  const { end, marks } = axisOf(values, max)
  const heightOf = (value: number) => (100 * Math.min(value, end)) / end
  const placeOf = (place: number) => (100 * (place + 0.5)) / days.length
  const Parts = kind === "bar" ? Bars : Lines
  return (
    <div className={css["drawing"]}>
      <div className={css["values"]}>
        {marks.map((mark) => (
          <span key={mark} style={{ bottom: `${heightOf(mark)}%` }}>
            {shown(mark)}
          </span>
        ))}
      </div>
      <div className={css["plot"]}>
        {marks.map((mark) => (
          <span key={mark} className={css["grid"]} style={{ bottom: `${heightOf(mark)}%` }} />
        ))}
        <Parts days={days} series={series} heightOf={heightOf} placeOf={placeOf} />
        <Pointed days={days} series={series} shown={shown} />
      </div>
      <div className={css["dates"]}>
        {daysShown(days.length).map((place) => (
          <span key={place} style={{ left: `${placeOf(place)}%` }}>
            {dayOfMonth(days[place]?.date ?? "")}
          </span>
        ))}
      </div>
      {series.length === 1 ? null : (
        <ul className={css["legend"]} data-kind={kind}>
          {series.map(({ key, title }, place) => (
            <li key={key}>
              <span className={css[looks[place] ?? "first"]} />
              {title}
            </li>
          ))}
        </ul>
      )}
    </div>
  )
}
