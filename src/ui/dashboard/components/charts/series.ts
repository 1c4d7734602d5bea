/** What a chart draws. */

export interface Series {
  readonly key: string
  readonly title: string
}

export interface Day {
  /** YYYY-MM-DD, in UTC. */
  readonly date: string
  /** By the key of the series; null where there is nothing to tell. */
  readonly values: Readonly<Record<string, number | null>>
}

export interface ChartProps {
  readonly title: string
  /** Of its file, without its ending. */
  readonly name: string
  readonly kind: "bar" | "line"
  /** At most two. */
  readonly series: ReadonlyArray<Series>
  /** Those without data, too. */
  readonly days: ReadonlyArray<Day>
  /** A value as it is read. */
  readonly shown: (value: number) => string
  /** Where the axis ends; by the data where it is left out. */
  readonly max?: number
}
