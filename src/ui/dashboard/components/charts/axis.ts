/** The axis of a chart's values: from 0 to a round number that no value exceeds. */
import { ticks } from "d3-array"

/** Approximate number of labelled values of the axis. */
const targetTickCount = 4

export interface Axis {
  /** The labelled values, from 0 to `end`. */
  readonly ticks: ReadonlyArray<number>
  readonly end: number
}

/** The axis for `values`. `max` is its end, if given. Ticks of counts are whole numbers. */
export const axisOf = (values: ReadonlyArray<number>, max?: number): Axis => {
  const isCount = values.every(Number.isInteger)
  const highest = max ?? Math.max(0, ...values)
  if (highest === 0) return { ticks: [0], end: 1 }
  const [, tickStep = highest] = ticks(0, highest, targetTickCount)
  const step = isCount && max === undefined ? Math.max(1, Math.ceil(tickStep)) : tickStep
  const end = max ?? Math.ceil(highest / step - Number.EPSILON * 8) * step
  const count = Math.round(end / step)
  return { ticks: Array.from({ length: count + 1 }, (_, index) => index * step), end }
}

/** Approximate number of labelled days below a chart. */
const targetLabelCount = 5

/** Indexes of the days that are labelled, at equal distances. */
export const labelledDays = (count: number): ReadonlyArray<number> => {
  const step = Math.max(1, Math.ceil(count / targetLabelCount))
  return Array.from({ length: Math.ceil(count / step) }, (_, index) => index * step)
}
