/** Inputs that are random in what they repeat, and can be made twice as long by repeating it twice as often. */
import { type Random } from "../faults/Random.ts"

/** Makes the input with whatever it repeats so many times as often. */
export type Grown<A> = (factor: number) => A

/** Characters of what is repeated, once and twice. */
const least = 400
const maxCount = 1_600

const timesFor = (random: Random, length: number): number =>
  Math.max(2, Math.ceil((least + random.below(maxCount - least)) / Math.max(1, length)))

const some = (random: Random, tokens: ReadonlyArray<string>, count: number): string =>
  Array.from({ length: random.below(count + 1) }, () => random.pick(tokens)).join("")

const oneOrMore = (random: Random, tokens: ReadonlyArray<string>, count: number): string =>
  random.pick(tokens) + some(random, tokens, count - 1)

/** One or two runs of a few tokens each, with other tokens around them. */
export const textOf = (random: Random, tokens: ReadonlyArray<string>): Grown<string> => {
  const runs = Array.from({ length: 1 + random.below(2) }, () => {
    const unit = oneOrMore(random, tokens, 5)
    return { before: some(random, tokens, 2), unit, times: timesFor(random, unit.length) }
  })
  const after = some(random, tokens, 2)
  return (factor) =>
    runs.map(({ before, times, unit }) => before + unit.repeat(times * factor)).join("") + after
}

export const bytesOf = (text: Grown<string>): Grown<Uint8Array> => {
  const utf8 = new TextEncoder()
  return (factor) => utf8.encode(text(factor))
}

/** `bytes` cut as a network cuts them. */
export const piecesOf = (random: Random, bytes: Grown<Uint8Array>): Grown<ReadonlyArray<Uint8Array>> => {
  const length = random.pick([1, 3, 17, 64, 1_000])
  return (factor) => {
    const whole = bytes(factor)
    return Array.from({ length: Math.ceil(whole.length / length) }, (_, place) =>
      whole.subarray(place * length, (place + 1) * length)
    )
  }
}

type Path = ReadonlyArray<string | number>

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Where there is something that can grow. */
const placesIn = (value: unknown, path: Path = []): ReadonlyArray<readonly [Path, unknown]> => {
  if (Array.isArray(value))
    return [[path, value], ...value.flatMap((each: unknown, place) => placesIn(each, [...path, place]))]
  if (isRecord(value))
    return [
      [path, value],
      ...Object.entries(value).flatMap(([name, each]) => placesIn(each, [...path, name]))
    ]
  return [[path, value]]
}

const replaced = (value: unknown, [first, ...rest]: Path, by: unknown): unknown => {
  if (first === undefined) return by
  if (Array.isArray(value))
    return value.map((each: unknown, place) => (place === first ? replaced(each, rest, by) : each))
  return isRecord(value) ? { ...value, [first]: replaced(value[first], rest, by) } : value
}

const letters = [
  "a",
  "b1",
  " ",
  "-",
  "/",
  "é",
  "\u0000",
  "\ud800",
  '"',
  "\\",
  "https://a.example/",
  "漢",
  "{",
  "[",
  "\n"
]

/** `value` with more of itself. */
const more = (random: Random, value: unknown): Grown<unknown> => {
  if (Array.isArray(value) && value.length > 0) {
    const times = Math.max(1, Math.ceil(timesFor(random, JSON.stringify(value).length) / 2))
    const isNumbered = random.below(2) === 0
    return (factor) =>
      Array.from({ length: times * factor }, (_, turn) =>
        value.map((item: unknown) => (isNumbered ? numbered(item, turn) : item))
      ).flat()
  }
  if (isRecord(value)) {
    const members = Object.entries(value)
    const times = timesFor(random, JSON.stringify(value).length)
    return (factor) =>
      Object.fromEntries(
        Array.from({ length: times * factor + 1 }, (_, turn) =>
          members.map(([name, item]) => [turn === 0 ? name : `${name}${turn}`, item] as const)
        ).flat()
      )
  }
  return textOf(
    random,
    typeof value === "string" && value.length > 2 ? [value.slice(0, 60), ...letters] : letters
  )
}

/** Ids and names are others in each copy. */
const numbered = (value: unknown, turn: number): unknown => {
  if (typeof value === "string") return /^[\w.+-]{1,80}$/.test(value) ? `${value}${turn}` : value
  if (!isRecord(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, numbered(each, turn)]))
}

/** `template` with one or two of its parts grown. */
export const jsonOf = (random: Random, template: unknown): Grown<unknown> => {
  const places = placesIn(template)
  const grown = Array.from({ length: 1 + random.below(2) }, () => {
    const [path, value] = random.pick(places)
    return { path, make: more(random, value) }
  })
  return (factor) => grown.reduce((whole, { make, path }) => replaced(whole, path, make(factor)), template)
}
