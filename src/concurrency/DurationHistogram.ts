/**
 * Histograms of durations, all with the same buckets, so that different metrics can be compared and alert rules can use
 * the same bounds. Exported at `/metrics` and to a collector.
 */
import * as Metric from "effect/Metric"
import * as MetricBoundaries from "effect/MetricBoundaries"
import * as MetricKey from "effect/MetricKey"
import * as MetricLabel from "effect/MetricLabel"

/** In seconds. */
const boundaries = MetricBoundaries.fromIterable([
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300
])

/** The labels of a metric with all their values, which bound the number of its series. */
export type Labels = Readonly<Record<string, string>>

/** Records durations in one series per label set. A series is looked up once. */
export class DurationHistogram<L extends Labels> {
  private readonly key: MetricKey.MetricKey.Histogram
  private readonly series = new Map<string, (seconds: number) => void>()

  constructor(name: string, description: string) {
    this.key = MetricKey.histogram(name, boundaries, description)
  }

  private of(labels: L): (seconds: number) => void {
    const name = Object.values(labels).join("\n")
    const known = this.series.get(name)
    if (known !== undefined) return known
    const tags = Object.entries(labels).map(([label, value]) => MetricLabel.make(label, value))
    const metric = Metric.fromMetricKey(MetricKey.taggedWithLabels(this.key, tags))
    // Reading the metric registers it, without an observation.
    metric.unsafeValue([])
    const add = (seconds: number) => metric.unsafeUpdate(seconds, [])
    this.series.set(name, add)
    return add
  }

  /** Registers a series before its first observation. The order of the labels must always be the same. */
  begin(labels: L): void {
    this.of(labels)
  }

  observe(millis: number, labels: L): void {
    this.of(labels)(Math.max(0, millis) / 1_000)
  }
}
