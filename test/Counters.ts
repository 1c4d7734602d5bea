/** Counters of `/metrics`, as they are now. Other tests of the process add to them, so compare two readings. */
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as MetricState from "effect/MetricState"

/** The count of the series of `name`, of the one with a label of this value if it is given. */
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
