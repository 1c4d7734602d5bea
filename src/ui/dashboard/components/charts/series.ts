/** The data of a chart. */

export interface Series {
  readonly key: string
  readonly title: string
}

export interface Day {
  /** YYYY-MM-DD, in UTC. */
  readonly date: string
  /** The values by the key of their series; null without data. */
  readonly values: Readonly<Record<string, number | null>>
}

export interface ChartProps {
  readonly title: string
  /** Name of the CSV file, without its extension. */
  readonly name: string
  readonly kind: "bar" | "line"
  /** At most two series. */
  readonly series: ReadonlyArray<Series>
  /** All days of the period, including those without data. */
  readonly days: ReadonlyArray<Day>
  /** Formats a value. */
  readonly format: (value: number) => string
  /** Maximum of the axis; by default computed from the data. */
  readonly max?: number
}
