/**
 * Metrics in Prometheus' text format, and in OpenMetrics, which also has exemplars. Prometheus requests OpenMetrics by
 * the header `accept`.
 */
import type * as MetricLabel from "effect/MetricLabel"
import type * as MetricPair from "effect/MetricPair"
import * as MetricState from "effect/MetricState"
import { type Exemplar, exemplarsOf } from "../../concurrency/DurationHistogram.ts"

type Format = "text" | "openmetrics"

export const contentTypes: Readonly<Record<Format, string>> = {
  text: "text/plain; version=0.0.4; charset=utf-8",
  openmetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8"
}

/** OpenMetrics if the client accepts it, whatever its preference. */
export const formatFor = (accept: string | undefined): Format =>
  accept?.toLowerCase().includes("application/openmetrics-text") === true ? "openmetrics" : "text"

const nameOf = (text: string) => text.replace(/[^a-zA-Z0-9_:]/g, "_").replace(/^(?=\d)/, "_")

const escapedLabel = (text: string) =>
  text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")

const escapedHelp = (text: string) => text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")

type Labels = ReadonlyArray<readonly [key: string, value: string]>

const number = (value: number | bigint) => (value === Number.POSITIVE_INFINITY ? "+Inf" : String(value))

/** OpenMetrics writes whole bounds with a decimal point. */
const bound = (value: number, format: Format) =>
  format === "openmetrics" && Number.isInteger(value) ? `${value}.0` : number(value)

const labelList = (labels: Labels) =>
  labels.map(([key, text]) => `${nameOf(key)}="${escapedLabel(text)}"`).join(",")

const sample = (name: string, labels: Labels, value: number | bigint) => {
  const inner = labelList(labels)
  return `${name}${inner === "" ? "" : `{${inner}}`} ${number(value)}`
}

const exemplar = ({ at, seconds, traceId }: Exemplar) =>
  ` # {${labelList([["trace_id", traceId]])}} ${seconds} ${(at / 1_000).toFixed(3)}`

const labelsOf = (tags: ReadonlyArray<MetricLabel.MetricLabel>): Labels =>
  tags.map(({ key, value }) => [key, value] as const)

/** Type and samples of one metric with one set of labels. */
const render = (
  name: string,
  { metricKey, metricState: state }: MetricPair.MetricPair.Untyped,
  format: Format
): readonly [type: string, samples: ReadonlyArray<string>] => {
  const labels = labelsOf(metricKey.tags)
  if (MetricState.isCounterState(state)) return ["counter", [sample(name, labels, state.count)]]
  if (MetricState.isGaugeState(state)) return ["gauge", [sample(name, labels, state.value)]]
  if (MetricState.isFrequencyState(state)) {
    const samples = Array.from(state.occurrences, ([value, count]) =>
      sample(name, [...labels, ["value", value]], count)
    )
    return ["counter", samples]
  }
  if (MetricState.isHistogramState(state)) {
    const exemplars = format === "openmetrics" ? exemplarsOf(metricKey) : []
    const buckets = state.buckets.map(([upper, count], index) => {
      const bucketExemplar = exemplars[index]
      const line = sample(`${name}_bucket`, [...labels, ["le", bound(upper, format)]], count)
      return bucketExemplar === undefined ? line : `${line}${exemplar(bucketExemplar)}`
    })
    const totals = [sample(`${name}_sum`, labels, state.sum), sample(`${name}_count`, labels, state.count)]
    return ["histogram", [...buckets, ...totals]]
  }
  return [format === "openmetrics" ? "unknown" : "untyped", []]
}

/** Metrics of the library's fibers. Their names do not fit the format, and operators do not need them. */
const isFiberMetric = (name: string) => name.startsWith("effect_fiber_")

/** Metrics of one name are grouped under one `TYPE`, as both formats require. */
export const exposition = (pairs: ReadonlyArray<MetricPair.MetricPair.Untyped>, format: Format): string => {
  const families = new Map<
    string,
    { readonly head: ReadonlyArray<string>; readonly samples: Array<string> }
  >()
  for (const pair of pairs) {
    const name = nameOf(pair.metricKey.name)
    if (isFiberMetric(name)) continue
    const [type, samples] = render(name, pair, format)
    // In OpenMetrics, only the samples of a counter have the suffix.
    const familyName = format === "openmetrics" && type === "counter" ? name.replace(/_total$/u, "") : name
    const { description } = pair.metricKey
    const help = description._tag === "Some" ? [`# HELP ${familyName} ${escapedHelp(description.value)}`] : []
    const family = families.get(name) ?? { head: [...help, `# TYPE ${familyName} ${type}`], samples: [] }
    family.samples.push(...samples)
    families.set(name, family)
  }
  const lines = Array.from(families.values(), ({ head, samples }) => [...head, ...samples]).flat()
  return `${[...lines, ...(format === "openmetrics" ? ["# EOF"] : [])].join("\n")}\n`
}
