/**
 * How long requests take, by method, route and status. Labels are patterns of routes and never addresses, so that their
 * number is bounded by the program; a request costs one look at a map.
 */
import * as Metric from "effect/Metric"
import * as MetricBoundaries from "effect/MetricBoundaries"
import * as MetricKey from "effect/MetricKey"
import * as MetricLabel from "effect/MetricLabel"

const key = MetricKey.histogram(
  "spoke_http_request_duration_seconds",
  MetricBoundaries.fromIterable([0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]),
  "From a request to the beginning of its answer, by method, route and status"
)

const methods: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"])

const series = new Map<string, { readonly unsafeUpdate: (seconds: number, tags: []) => void }>()

const seriesOf = (method: string, route: string, status: number) => {
  const name = `${method} ${route} ${status}`
  const known = series.get(name)
  if (known !== undefined) return known
  const labels = [
    MetricLabel.make("method", method),
    MetricLabel.make("route", route),
    MetricLabel.make("status", String(status))
  ]
  const made = Metric.fromMetricKey(MetricKey.taggedWithLabels(key, labels))
  series.set(name, made)
  return made
}

/** `route` is a pattern, null where no route has the address; `millis` is how long the answer took to begin. */
export const observe = (method: string, route: string | null, status: number, millis: number): void =>
  seriesOf(methods.has(method) ? method : "other", route ?? "none", status).unsafeUpdate(millis / 1_000, [])
