/** The axis of a chart's values: from 0 to a round number that no value exceeds. */
import { ticks } from "d3-array"

/** About how many values are written at the axis. */
const targetMarkCount = 4

export interface Axis {
  /** The values that are written, from 0 to the end. */
  readonly marks: ReadonlyArray<number>
  readonly end: number
}

/** Of `values`; `max` ends it where that is known. Counts have no parts. */
export const axisOf = (values: ReadonlyArray<number>, max?: number): Axis => {
  const isCount = values.every(Number.isInteger)
  const highest = max ?? Math.max(0, ...values)
  if (highest === 0) return { marks: [0], end: 1 }
  const [, found = highest] = ticks(0, highest, targetMarkCount)
  const step = isCount && max === undefined ? Math.max(1, Math.ceil(found)) : found
  const end = max ?? Math.ceil(highest / step - Number.EPSILON * 8) * step
  const count = Math.round(end / step)
  return { marks: Array.from({ length: count + 1 }, (_, place) => place * step), end }
}

/** About how many days are written below a chart. */
const targetDayCount = 5

/** The places of the days that are written: evenly, and never so many that they meet. */
export const daysShown = (count: number): ReadonlyArray<number> => {
  const step = Math.max(1, Math.ceil(count / targetDayCount))
  return Array.from({ length: Math.ceil(count / step) }, (_, place) => place * step)
}
