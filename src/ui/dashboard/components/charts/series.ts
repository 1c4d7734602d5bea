/** The data of a chart. */

export interface Series {
  readonly key: string
  readonly title: string
}

export interface Day {
  /** YYYY-MM-DD, in UTC. */
  readonly date: string
  /** By the key of the series; null without data. */
  readonly values: Readonly<Record<string, number | null>>
}

export interface ChartProps {
  readonly title: string
  /** Of its file, without its ending. */
  readonly name: string
  readonly kind: "bar" | "line"
  /** At most two. */
  readonly series: ReadonlyArray<Series>
  /** All days of the period, including those without data. */
  readonly days: ReadonlyArray<Day>
  /** Formats a value. */
  readonly shown: (value: number) => string
  /** Maximum of the axis; by default computed from the data. */
  readonly max?: number
}
