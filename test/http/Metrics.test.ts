import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as MetricBoundaries from "effect/MetricBoundaries"
import { exposition } from "../../src/http/system/Metrics.ts"

it.effect("metrics are told in Prometheus' text format, those of one name together, labels quoted", () =>
  Effect.gen(function* () {
    const asked = Metric.counter("test_asked_total", { description: "Questions" })
    yield* Metric.increment(Metric.tagged(asked, "from", 'a "friend"\n'))
    yield* Metric.set(Metric.gauge("test_waiting"), 4)
    yield* Metric.incrementBy(Metric.tagged(asked, "from", "us"), 2)
    const took = Metric.histogram("test-took.seconds", MetricBoundaries.fromIterable([0.1, 1]))
    yield* Effect.forEach([0.05, 0.5, 5], (seconds) => Metric.update(took, seconds))
    const text = exposition(yield* Metric.snapshot)
    const lines = text.split("\n").filter((line) => line.includes("test_"))
    expect(lines.toSorted()).toEqual(
      [
        "# HELP test_asked_total Questions",
        "# TYPE test_asked_total counter",
        'test_asked_total{from="a \\"friend\\"\\n"} 1',
        'test_asked_total{from="us"} 2',
        "# TYPE test_waiting gauge",
        "test_waiting 4",
        "# TYPE test_took_seconds histogram",
        'test_took_seconds_bucket{le="0.1"} 1',
        'test_took_seconds_bucket{le="1"} 2',
        'test_took_seconds_bucket{le="+Inf"} 3',
        "test_took_seconds_sum 5.55",
        "test_took_seconds_count 3"
      ].toSorted()
    )
    expect(text.match(/# TYPE test_asked_total/g)).toHaveLength(1)
  })
)
