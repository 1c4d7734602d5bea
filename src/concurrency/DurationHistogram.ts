/**
 * Histograms of durations, all with the same buckets, so that different metrics can be compared and alert rules can use
 * the same bounds. Exported at `/metrics` and to a collector. The last traced observation of each bucket is kept as its
 * exemplar, which leads from a slow bucket to a trace.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { globalValue } from "effect/GlobalValue"
import * as Metric from "effect/Metric"
import * as MetricBoundaries from "effect/MetricBoundaries"
import * as MetricKey from "effect/MetricKey"
import * as MetricLabel from "effect/MetricLabel"
import * as MutableHashMap from "effect/MutableHashMap"
import * as Option from "effect/Option"

/** In seconds. */
const bounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300]
const boundaries = MetricBoundaries.fromIterable(bounds)

/** Labels of a metric. Each has few values, because every combination of values is a series of its own. */
export type Labels = Readonly<Record<string, string>>

/** The trace of an observation, and when it was made, in milliseconds since 1970. */
export interface Trace {
  readonly traceId: string
  readonly at: number
}

/** One observation of a bucket, made within a trace. */
export interface Exemplar extends Trace {
  readonly seconds: number
}

/** The exemplars of a series, by the index of the bucket. The last bucket is for observations above all bounds. */
type Exemplars = Array<Exemplar | undefined>

const exemplarsByKey = globalValue("spoke/concurrency/DurationHistogram", () =>
  MutableHashMap.empty<MetricKey.MetricKey.Untyped, Exemplars>()
)

/** The exemplars of a series, by the index of the bucket; empty if the series has none. */
export const exemplarsOf = (key: MetricKey.MetricKey.Untyped): ReadonlyArray<Exemplar | undefined> =>
  Option.getOrElse(MutableHashMap.get(exemplarsByKey, key), () => [])

/** The trace that the fiber is in; undefined if there is none, or it is not sampled. */
export const currentTrace: Effect.Effect<Trace | undefined> = Effect.withFiberRuntime(({ currentSpan }) =>
  currentSpan?.sampled === true
    ? Effect.map(Clock.currentTimeMillis, (at) => ({ traceId: currentSpan.traceId, at }))
    : Effect.succeed(undefined)
)

interface Series {
  readonly add: (seconds: number) => void
  readonly exemplars: Exemplars
}

/** Records durations in one series per label set. A series is looked up once. */
export class DurationHistogram<L extends Labels> {
  private readonly key: MetricKey.MetricKey.Histogram
  private readonly series = new Map<string, Series>()

  constructor(name: string, description: string) {
    this.key = MetricKey.histogram(name, boundaries, description)
  }

  private seriesOf(labels: L): Series {
    const name = Object.values(labels).join("\n")
    const known = this.series.get(name)
    if (known !== undefined) return known
    const tags = Object.entries(labels).map(([label, value]) => MetricLabel.make(label, value))
    const key = MetricKey.taggedWithLabels(this.key, tags)
    const metric = Metric.fromMetricKey(key)
    // Reading the metric registers it, without an observation.
    metric.unsafeValue([])
    const exemplars: Exemplars = []
    MutableHashMap.set(exemplarsByKey, key, exemplars)
    const series = { add: (seconds: number) => metric.unsafeUpdate(seconds, []), exemplars }
    this.series.set(name, series)
    return series
  }

  /** Registers a series before its first observation. The order of the labels must always be the same. */
  register(labels: L): void {
    this.seriesOf(labels)
  }

  /** `trace` is {@link currentTrace}. */
  observe(millis: number, labels: L, trace?: Trace): void {
    const seconds = Math.max(0, millis) / 1_000
    const { add, exemplars } = this.seriesOf(labels)
    add(seconds)
    if (trace === undefined) return
    const bucket = bounds.findIndex((bound) => seconds <= bound)
    exemplars[bucket === -1 ? bounds.length : bucket] = { ...trace, seconds }
  }
}
