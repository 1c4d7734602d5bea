/** A strict parser of Prometheus' text format. It also checks the rules of Prometheus' linter and some of this project. */

export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export interface Family {
  readonly name: string
  readonly type: string
  readonly help: string
  readonly samples: ReadonlyArray<Sample>
}

interface ParsedMetrics {
  readonly families: ReadonlyMap<string, Family>
  /** Empty for a correct text. */
  readonly problems: ReadonlyArray<string>
}

const types: ReadonlyArray<string> = ["counter", "gauge", "histogram"]
const sampleLine = /^([a-z_:][a-z0-9_:]*)(?:\{(.*)\})? (\S+)$/u
const label = /^([a-z_][a-z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/u
/** Suffixes of units that are not base units, or not units. */
const wrongUnits = /_(?:ms|millis|milliseconds|minutes|hours|kb|mb|kilobytes|megabytes|percent)(?:_|$)/u

const labelsOf = (text: string): Readonly<Record<string, string>> | null => {
  const labels: Record<string, string> = {}
  for (let rest = text; rest !== "";) {
    const [whole, name = "", value = ""] = label.exec(rest) ?? []
    if (whole === undefined || name in labels || name.startsWith("__")) return null
    labels[name] = value
    rest = rest.slice(whole.length)
  }
  return labels
}

const keyOf = ({ labels, name }: Sample, without = "") =>
  `${name} ${Object.entries(labels)
    .filter(([one]) => one !== without)
    .map(([one, value]) => `${one}=${value}`)
    .toSorted()
    .join(",")}`

const histogramProblems = ({ name, samples }: Family): ReadonlyArray<string> => {
  const series = new Map<string, Array<Sample>>()
  for (const sample of samples.filter((one) => one.name === `${name}_bucket`)) {
    const key = keyOf(sample, "le").replace("_bucket ", "_count ")
    series.set(key, [...(series.get(key) ?? []), sample])
  }
  const counts = new Map(samples.map((sample) => [keyOf(sample), sample.value]))
  return [...series].flatMap(([key, buckets]) => {
    const bounds = buckets.map(({ labels }) => Number(labels["le"]?.replace("+Inf", "Infinity")))
    const values = buckets.map(({ value }) => value)
    const isOrdered = (all: ReadonlyArray<number>) =>
      all.every((one, at) => at === 0 || one >= (all[at - 1] ?? 0))
    return [
      ...(bounds.some(Number.isNaN) || !isOrdered(bounds) || new Set(bounds).size < bounds.length
        ? [`${key}: its buckets are not in order`]
        : []),
      ...(bounds.at(-1) === Infinity ? [] : [`${key}: no bucket +Inf`]),
      ...(isOrdered(values) ? [] : [`${key}: its buckets do not add up`]),
      ...(counts.get(key) === values.at(-1) ? [] : [`${key}: its count differs from its last bucket`]),
      ...(counts.has(key.replace("_count ", "_sum ")) ? [] : [`${key}: no sum`])
    ]
  })
}

const familyProblems = (family: Family): ReadonlyArray<string> => {
  const { help, name, samples, type } = family
  const problemIf = (isWrong: boolean, problem: string) => (isWrong ? [`${name}: ${problem}`] : [])
  const suffixes = type === "histogram" ? ["_bucket", "_sum", "_count"] : [""]
  const keys = samples.map((sample) => keyOf(sample))
  return [
    ...problemIf(!types.includes(type), `type ${type}`),
    ...problemIf(help.trim() === "", "no help"),
    ...problemIf(samples.length === 0, "no sample"),
    ...problemIf(type === "counter" && !name.endsWith("_total"), "a counter has to end in _total"),
    ...problemIf(type !== "counter" && /_(?:total|count|sum|bucket)$/u.test(name), "the name of a counter"),
    ...problemIf(
      type === "histogram" && !/_(?:seconds|bytes|recall)$/u.test(name),
      "a histogram without a unit"
    ),
    ...problemIf(wrongUnits.test(name), "a unit other than seconds and bytes"),
    ...problemIf(
      samples.some((one) => !suffixes.some((end) => one.name === name + end)),
      "samples of another name"
    ),
    ...problemIf(new Set(keys).size < keys.length, "the same sample twice"),
    ...problemIf(type !== "histogram" && samples.some(({ labels }) => "le" in labels), "a label le"),
    ...problemIf(
      samples.some(({ labels }) => "quantile" in labels),
      "a label quantile, which is for summaries"
    ),
    ...problemIf(
      samples.some(({ value }) => Number.isNaN(value)),
      "a value that is no number"
    ),
    ...problemIf(type === "counter" && samples.some(({ value }) => value < 0), "a counter below 0"),
    ...problemIf(
      new Set(
        samples.map(({ labels }) =>
          Object.keys(labels)
            .filter((one) => one !== "le")
            .toSorted()
            .join()
        )
      ).size > 1,
      "series with different labels"
    ),
    ...(type === "histogram" ? histogramProblems(family) : [])
  ]
}

export const read = (text: string): ParsedMetrics => {
  const problems: Array<string> = text.endsWith("\n") ? [] : ["the last line does not end"]
  const families = new Map<string, { name: string; type: string; help: string; samples: Array<Sample> }>()
  let current: { name: string; type: string; help: string; samples: Array<Sample> } | null = null
  for (const line of text.slice(0, -1).split("\n")) {
    const [, kind, name = "", words = ""] = /^# (HELP|TYPE) (\S+) (.*)$/u.exec(line) ?? []
    if (kind === "HELP") {
      if (families.has(name)) problems.push(`${name}: described twice`)
      current = { name, type: "", help: words, samples: [] }
      families.set(name, current)
      continue
    }
    if (kind === "TYPE") {
      if (current?.name !== name || current.type !== "" || current.samples.length > 0)
        problems.push(`${name}: its type does not follow its help`)
      else current.type = words
      continue
    }
    const [, sample, inner = "", value] = sampleLine.exec(line) ?? []
    const labels = labelsOf(inner)
    if (sample === undefined || labels === null || current === null || current.type === "")
      problems.push(`cannot be read: ${line}`)
    else current.samples.push({ name: sample, labels, value: Number(value?.replace("+Inf", "Infinity")) })
  }
  return { families, problems: [...problems, ...[...families.values()].flatMap(familyProblems)] }
}
