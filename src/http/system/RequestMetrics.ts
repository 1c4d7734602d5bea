/**
 * How long requests take, by method, route and status. Labels are patterns of routes and never addresses, so that their
 * number is bounded by the program; a request costs one look at a map.
 */
import { DurationHistogram } from "../../concurrency/DurationHistogram.ts"

const durations = new DurationHistogram<{
  readonly method: string
  readonly route: string
  readonly status: string
}>(
  "spoke_http_request_duration_seconds",
  "From a request to the beginning of its answer, by method, route and status"
)

const methods: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"])

/** `route` is a pattern, null where no route has the address; `millis` is how long the answer took to begin. */
export const observe = (method: string, route: string | null, status: number, millis: number): void =>
  durations.observe(millis, {
    method: methods.has(method) ? method : "other",
    route: route ?? "none",
    status: String(status)
  })
