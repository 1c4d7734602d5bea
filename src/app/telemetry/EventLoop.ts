/** Delay of the event loop, for `/metrics`. */
import { monitorEventLoopDelay } from "node:perf_hooks"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"

/** Interval of each measurement. */
const measureInterval = Duration.seconds(5)
/** Resolution of the probe in milliseconds. The probe itself adds this delay, so it is subtracted. */
const resolutionMs = 10

const gauge = Metric.gauge("spoke_event_loop_delay_seconds", {
  description: "How late the event loop was in the last five seconds; percentile 100 is the longest delay"
})

const percentiles = [50, 99, 100] as const

/** Measures until the scope closes. */
export const watch = Effect.gen(function* () {
  const delays = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const histogram = monitorEventLoopDelay({ resolution: resolutionMs })
      histogram.enable()
      return histogram
    }),
    (histogram) => Effect.sync(() => void histogram.disable())
  )
  const updateGauge = Effect.forEach(
    percentiles,
    (percentile) => {
      const nanoseconds = percentile === 100 ? delays.max : delays.percentile(percentile)
      const seconds = delays.count === 0 ? 0 : Math.max(0, nanoseconds / 1e6 - resolutionMs) / 1_000
      return Metric.set(Metric.tagged(gauge, "percentile", String(percentile)), seconds)
    },
    { discard: true }
  )
  yield* updateGauge
  yield* Effect.forkScoped(
    Effect.forever(
      Effect.zipRight(
        Effect.sleep(measureInterval),
        Effect.zipRight(
          updateGauge,
          Effect.sync(() => delays.reset())
        )
      )
    )
  )
}).pipe(Effect.withSpan("EventLoop.watch"))
