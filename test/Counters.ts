/** Current values of counters of `/metrics`. Other tests of the process increase them too, so compare two readings. */
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as MetricState from "effect/MetricState"

/** The sum of all series of `name`, or of those with a label that has this value. */
export const counterValue = (name: string, label?: string): Effect.Effect<number> =>
  Effect.map(Metric.snapshot, (pairs) =>
    pairs.reduce(
      (sum, { metricKey, metricState }) =>
        metricKey.name === name &&
        (label === undefined || metricKey.tags.some(({ value }) => value === label)) &&
        MetricState.isCounterState(metricState)
          ? sum + Number(metricState.count)
          : sum,
      0
    )
  )
