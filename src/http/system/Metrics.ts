/** `/metrics`: the metrics of the process in Prometheus' text format, without envelope. */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import type * as MetricLabel from "effect/MetricLabel"
import type * as MetricPair from "effect/MetricPair"
import * as MetricState from "effect/MetricState"

const contentType = "text/plain; version=0.0.4; charset=utf-8"

const nameOf = (text: string) => text.replace(/[^a-zA-Z0-9_:]/g, "_").replace(/^(?=\d)/, "_")

const quoted = (text: string) => text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")

const explained = (text: string) => text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")

type Labels = ReadonlyArray<readonly [key: string, value: string]>

const number = (value: number | bigint) => (value === Number.POSITIVE_INFINITY ? "+Inf" : String(value))

const sample = (name: string, labels: Labels, value: number | bigint) => {
  const inner = labels.map(([key, text]) => `${nameOf(key)}="${quoted(text)}"`).join(",")
  return `${name}${inner === "" ? "" : `{${inner}}`} ${number(value)}`
}

const labelsOf = (tags: ReadonlyArray<MetricLabel.MetricLabel>): Labels =>
  tags.map(({ key, value }) => [key, value] as const)

/** Type and samples of one metric with one set of labels. */
const render = (
  name: string,
  labels: Labels,
  state: MetricState.MetricState<unknown>
): readonly [type: string, samples: ReadonlyArray<string>] => {
  if (MetricState.isCounterState(state)) return ["counter", [sample(name, labels, state.count)]]
  if (MetricState.isGaugeState(state)) return ["gauge", [sample(name, labels, state.value)]]
  if (MetricState.isFrequencyState(state)) {
    const samples = Array.from(state.occurrences, ([value, count]) =>
      sample(name, [...labels, ["value", value]], count)
    )
    return ["counter", samples]
  }
  if (MetricState.isHistogramState(state)) {
    const buckets = state.buckets.map(([bound, count]) =>
      sample(`${name}_bucket`, [...labels, ["le", number(bound)]], count)
    )
    const totals = [sample(`${name}_sum`, labels, state.sum), sample(`${name}_count`, labels, state.count)]
    return ["histogram", [...buckets, ...totals]]
  }
  return ["untyped", []]
}

/** Metrics of the library's fibers. Their names do not fit the format, and operators do not need them. */
const isOfFibers = (name: string) => name.startsWith("effect_fiber_")

/** Metrics of one name are grouped under one `TYPE`, as the format requires. */
export const exposition = (pairs: ReadonlyArray<MetricPair.MetricPair.Untyped>): string => {
  const families = new Map<
    string,
    { readonly head: ReadonlyArray<string>; readonly samples: Array<string> }
  >()
  for (const { metricKey, metricState } of pairs) {
    const name = nameOf(metricKey.name)
    if (isOfFibers(name)) continue
    const [type, samples] = render(name, labelsOf(metricKey.tags), metricState)
    const { description } = metricKey
    const help = description._tag === "Some" ? [`# HELP ${name} ${explained(description.value)}`] : []
    const family = families.get(name) ?? { head: [...help, `# TYPE ${name} ${type}`], samples: [] }
    family.samples.push(...samples)
    families.set(name, family)
  }
  const lines = Array.from(families.values(), ({ head, samples }) => [...head, ...samples])
  return `${lines.flat().join("\n")}\n`
}

const memory = Metric.gauge("process_resident_memory_bytes", {
  description: "Resident memory of the process"
})
const cpu = Metric.counter("process_cpu_seconds_total", {
  description: "User and system time of the process",
  incremental: true
})
/** The part that is already counted. */
let countedCpu = 0

const measured = Effect.sync(() => {
  const { system, user } = process.cpuUsage()
  return { memory: process.memoryUsage.rss(), cpu: (system + user) / 1e6 }
}).pipe(
  Effect.tap((now) => Metric.set(memory, now.memory)),
  Effect.tap((now) =>
    Effect.sync(() => {
      cpu.unsafeUpdate(Math.max(0, now.cpu - countedCpu), [])
      countedCpu = now.cpu
    })
  )
)

/** Adds the route. */
export const layer: Layer.Layer<never> = HttpApiBuilder.Router.use((router) =>
  router.get(
    "/metrics",
    Effect.zipRight(measured, Metric.snapshot).pipe(
      Effect.map((pairs) => HttpServerResponse.text(exposition(pairs), { contentType }))
    )
  )
)
