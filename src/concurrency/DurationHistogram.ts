/**
 * Histograms of durations, all with the same buckets, so that figures of different metrics can be compared and rules may ask
 * for the same bounds everywhere. Told at `/metrics` and to a collector.
 */
import * as Metric from "effect/Metric"
import * as MetricBoundaries from "effect/MetricBoundaries"
import * as MetricKey from "effect/MetricKey"
import * as MetricLabel from "effect/MetricLabel"

/** In seconds. */
const boundaries = MetricBoundaries.fromIterable([
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300
])

/** The labels of a metric and all values of each: they bound the number of its series. */
export type Labels = Readonly<Record<string, string>>

/** Adds durations to one series each; a series is looked up once. */
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
    // Reading it is what lists it, with no observation yet.
    metric.unsafeValue([])
    const add = (seconds: number) => metric.unsafeUpdate(seconds, [])
    this.series.set(name, add)
    return add
  }

  /** Lists a series before there is anything to tell of it. The order of the labels is always the same. */
  begin(labels: L): void {
    this.of(labels)
  }

  observe(millis: number, labels: L): void {
    this.of(labels)(Math.max(0, millis) / 1_000)
  }
}
