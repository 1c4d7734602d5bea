/**
 * Durations of requests by method, route and status. Labels are route patterns, never addresses, so their number is
 * bounded. A request costs one map lookup.
 */
import { DurationHistogram, type Trace } from "../../concurrency/DurationHistogram.ts"

const durations = new DurationHistogram<{
  readonly method: string
  readonly route: string
  readonly status: string
}>(
  "spoke_http_request_duration_seconds",
  "From a request to the beginning of its answer, by method, route and status"
)

const methods: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"])

/** `route` is a pattern, null when no route matches; `millis` is the time until the response began. */
export const observe = (
  method: string,
  route: string | null,
  status: number,
  millis: number,
  trace?: Trace
): void =>
  durations.observe(
    millis,
    {
      method: methods.has(method) ? method : "other",
      route: route ?? "none",
      status: String(status)
    },
    trace
  )
