/** Metrics of shared limits, tagged with the limit's name. */
import * as Metric from "effect/Metric"

interface Updatable {
  readonly unsafeUpdate: (value: number, tags: []) => void
}

const gauge = (name: string, description: string) => Metric.gauge(name, { description })
const counter = (name: string, description: string) =>
  Metric.counter(name, { description, incremental: true })

const metrics = {
  permits: gauge("spoke_limit_permits", "Permits of a shared limit"),
  held: gauge("spoke_limit_held", "Permits of a shared limit that are in use"),
  owners: gauge("spoke_limit_owners", "Owners that hold permits of a shared limit"),
  waiting: gauge("spoke_limit_waiting", "Requests that wait for a permit of a shared limit"),
  refused: counter("spoke_limit_refused_total", "Requests for a permit of a shared limit that were refused"),
  revoked: counter("spoke_limit_revoked_total", "Permits of a shared limit that were revoked")
} as const

export type LimitMetrics = { readonly [K in keyof typeof metrics]: Updatable }

const unmeasured: Updatable = { unsafeUpdate: () => {} }

/** The metrics of `limit`; without a name, updates are discarded. */
export const metricsOf = (limit: string | null): LimitMetrics => {
  const forLimit = <Type, Out>(metric: Metric.Metric<Type, number, Out>): Updatable =>
    limit === null ? unmeasured : Metric.tagged(metric, "limit", limit)
  return {
    permits: forLimit(metrics.permits),
    held: forLimit(metrics.held),
    owners: forLimit(metrics.owners),
    waiting: forLimit(metrics.waiting),
    refused: forLimit(metrics.refused),
    revoked: forLimit(metrics.revoked)
  }
}
