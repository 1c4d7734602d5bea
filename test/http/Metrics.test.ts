import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as MetricBoundaries from "effect/MetricBoundaries"
import { currentTrace, DurationHistogram } from "../../src/concurrency/DurationHistogram.ts"
import { exposition, formatFor } from "../../src/http/system/MetricsFormat.ts"

it.effect("metrics are in Prometheus' text format, grouped by name, with quoted labels", () =>
  Effect.gen(function* () {
    const asked = Metric.counter("test_asked_total", { description: "Questions" })
    yield* Metric.increment(Metric.tagged(asked, "from", 'a "friend"\n'))
    yield* Metric.set(Metric.gauge("test_waiting"), 4)
    yield* Metric.incrementBy(Metric.tagged(asked, "from", "us"), 2)
    const took = Metric.histogram("test-took.seconds", MetricBoundaries.fromIterable([0.1, 1]))
    yield* Effect.forEach([0.05, 0.5, 5], (seconds) => Metric.update(took, seconds))
    const text = exposition(yield* Metric.snapshot, "text")
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

it.effect(
  "OpenMetrics has the last traced observation of each bucket, counters without suffix, and an end mark",
  () =>
    Effect.gen(function* () {
      yield* Metric.increment(Metric.counter("test_told_total", { description: "Answers" }))
      const durations = new DurationHistogram<{ readonly kind: string }>("test_slow_seconds", "How slow")
      const trace = { traceId: "4bf92f3577b34da6a3ce929d0e0e4736", at: 1_700_000_000_123 }
      durations.observe(400, { kind: "a" }, trace)
      durations.observe(450, { kind: "a" }, { ...trace, traceId: "00f067aa0ba902b700f067aa0ba902b7" })
      durations.observe(460, { kind: "a" })
      durations.observe(900_000, { kind: "a" }, trace)
      const pairs = yield* Metric.snapshot
      const text = exposition(pairs, "openmetrics")
      expect(text).toContain("# TYPE test_told counter\ntest_told_total 1\n")
      expect(text).toMatch(
        /^test_slow_seconds_bucket\{kind="a",le="0.5"\} 3 # \{trace_id="00f067aa0ba902b700f067aa0ba902b7"\} 0.45 1700000000\.123$/mu
      )
      expect(text).toMatch(/^test_slow_seconds_bucket\{kind="a",le="1\.0"\} 3$/mu)
      expect(text).toMatch(/^test_slow_seconds_bucket\{kind="a",le="\+Inf"\} 4 # \{trace_id="4bf9/mu)
      expect(text.endsWith("\n# EOF\n")).toBe(true)
      expect(exposition(pairs, "text")).not.toContain("trace_id")
    })
)

it.effect("an observation is linked to its trace if that is sampled, and to none otherwise", () =>
  Effect.gen(function* () {
    expect(yield* currentTrace).toBeUndefined()
    const [trace, span] = yield* Effect.zip(currentTrace, Effect.currentSpan).pipe(Effect.withSpan("turn"))
    expect(trace?.traceId).toBe(span.traceId)
    expect(yield* currentTrace.pipe(Effect.withSpan("turn"), Effect.withTracerEnabled(false))).toBeUndefined()
  })
)

it("Prometheus gets OpenMetrics, and clients without a preference get text", () => {
  const prometheus =
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
  expect([prometheus, "*/*", "text/plain", undefined].map(formatFor)).toEqual([
    "openmetrics",
    "text",
    "text",
    "text"
  ])
})
