/**
 * Patterns for an agent's own kinds of personal data: characters, sets of characters and counts. Nothing in them can
 * backtrack, and a match has at most {@link maxMatchLength} characters, so time grows linearly with the text.
 */
import * as Either from "effect/Either"

/** Minimum and maximum length of a match, in UTF-16 units. */
const minMatchLength = 3
const maxMatchLength = 64

type Range = readonly [from: number, to: number]

/** One position of a match. */
interface PatternPosition {
  readonly ranges: ReadonlyArray<Range>
  readonly isNegated: boolean
  readonly isOptional: boolean
}

export interface Span {
  readonly start: number
  readonly end: number
}

const codeOf = (character: string) => character.charCodeAt(0)
const one = (character: string): ReadonlyArray<Range> => [[codeOf(character), codeOf(character)]]

const classes: Readonly<Record<string, ReadonlyArray<Range>>> = {
  d: [[48, 57]],
  w: [
    [48, 57],
    [65, 90],
    [95, 95],
    [97, 122]
  ],
  s: [
    [9, 9],
    [32, 32],
    [160, 160]
  ]
}

/**
 * Characters that are special in regular expressions have to be escaped, so that no pattern means less than it seems
 * to.
 */
const reserved = new Set(".*+|()^$?{}]/")

const count = /^\{(\d{1,3})(?:,(\d{1,3}))?\}/

class Parser {
  private at = 0
  private readonly pattern: string
  readonly places: Array<PatternPosition> = []

  constructor(pattern: string) {
    this.pattern = pattern
  }

  /** The error; null for a valid pattern. */
  run(): string | null {
    while (this.at < this.pattern.length) {
      const isSet = this.pattern.charAt(this.at) === "["
      const isNegated = isSet && this.pattern.charAt(this.at + 1) === "^"
      const ranges = isSet ? this.set(isNegated) : this.single(reserved)
      if (typeof ranges === "string") return ranges
      const times = this.times()
      if (typeof times === "string") return times
      for (let place = 0; place < times[1]; place++) {
        this.places.push({ ranges, isNegated, isOptional: place >= times[0] })
        if (this.places.length > maxMatchLength)
          return `Expected a pattern that matches at most ${maxMatchLength} characters`
      }
    }
    return this.places.filter(({ isOptional }) => !isOptional).length < minMatchLength
      ? `Expected a pattern that matches at least ${minMatchLength} characters`
      : null
  }

  private single(refused: ReadonlySet<string>): ReadonlyArray<Range> | string {
    const character = this.pattern.charAt(this.at++)
    if (refused.has(character))
      return `${character} has no meaning here; write \\${character} for the character itself`
    if (character !== "\\") return one(character)
    const escaped = this.pattern.charAt(this.at++)
    if (escaped === "") return "Expected a character after \\"
    return /[A-Za-z0-9]/.test(escaped)
      ? (classes[escaped] ?? `\\${escaped} is not known; there are \\d, \\w and \\s`)
      : one(escaped)
  }

  private set(isNegated: boolean): ReadonlyArray<Range> | string {
    this.at += isNegated ? 2 : 1
    const ranges: Array<Range> = []
    while (this.pattern.charAt(this.at) !== "]") {
      if (this.at >= this.pattern.length) return "Expected ] at the end of a set"
      const first = this.single(new Set("["))
      if (typeof first === "string") return first
      const [from] = first
      const isRange = this.pattern.charAt(this.at) === "-" && this.pattern.charAt(this.at + 1) !== "]"
      if (!isRange) {
        ranges.push(...first)
        continue
      }
      this.at++
      const second = this.single(new Set("[]"))
      if (typeof second === "string") return second
      const [to] = second
      const isPlain = first.length === 1 && second.length === 1 && from !== undefined && to !== undefined
      if (!isPlain || from[0] !== from[1] || to[0] !== to[1] || from[0] > to[0])
        return "Expected a range such as a-z"
      ranges.push([from[0], to[0]])
    }
    this.at++
    return ranges.length === 0 ? "Expected characters in a set" : ranges
  }

  private times(): readonly [number, number] | string {
    const next = this.pattern.charAt(this.at)
    if (next === "?") {
      this.at++
      return [0, 1]
    }
    if (next !== "{") return [1, 1]
    const [written, min, max] = count.exec(this.pattern.slice(this.at, this.at + 9)) ?? []
    if (written === undefined || min === undefined) return "Expected a count such as {6} or {6,8}"
    this.at += written.length
    const times = [Number(min), Number(max ?? min)] as const
    return times[1] < times[0] || times[1] === 0 ? "Expected a count such as {6} or {6,8}" : times
  }
}

const wordLike = /[\p{L}\p{N}]/u
const isWordAt = (text: string, at: number) => at >= 0 && at < text.length && wordLike.test(text.charAt(at))
/** A match must be delimited: no word may continue across its start or end. */
const isBorder = (text: string, at: number) => !(isWordAt(text, at - 1) && isWordAt(text, at))

const tableSize = 128
const noMatch = -1

const holds = ({ isNegated, ranges }: PatternPosition, code: number): boolean => {
  const character = String.fromCharCode(code)
  const codes = [code, codeOf(character.toLowerCase()), codeOf(character.toUpperCase())]
  return ranges.some(([from, to]) => codes.some((each) => each >= from && each <= to)) !== isNegated
}

/** A compiled pattern. Its state is the number of places that have been read. */
export class Matcher {
  private readonly places: ReadonlyArray<PatternPosition>
  private readonly tables: ReadonlyArray<Uint8Array>
  /** Number of places examined, for tests. */
  steps = 0

  constructor(places: ReadonlyArray<PatternPosition>) {
    this.places = places
    this.tables = places.map((place) =>
      Uint8Array.from({ length: tableSize }, (_, code) => (holds(place, code) ? 1 : 0))
    )
  }

  /** The next index at which a match may begin: where a character matches one of the first places. */
  private next(text: string, from: number): number {
    const firsts = this.places.findIndex(({ isOptional }) => !isOptional) + 1
    for (let at = from; at < text.length; at++) {
      const code = text.charCodeAt(at)
      for (let place = 0; place < firsts; place++) if (this.reads(place, code)) return at
    }
    return text.length
  }

  private reads(place: number, code: number): boolean {
    this.steps++
    if (code < tableSize) return this.tables[place]?.[code] === 1
    const at = this.places[place]
    return at !== undefined && holds(at, code)
  }

  /** The longest of the earliest matches from `from` on; null when there is none. */
  find(text: string, from: number): Span | null {
    const length = this.places.length
    // By state: the start of the earliest match that has reached it.
    let starts = new Int32Array(length + 1).fill(noMatch)
    let next = new Int32Array(length + 1).fill(noMatch)
    let best: Span | null = null
    let isIdle = true
    for (let at = from; at <= text.length; at++) {
      if (isIdle && best === null) at = this.next(text, at)
      if (best === null && isBorder(text, at) && starts[0] === noMatch) starts[0] = at
      let isAlive = false
      for (let state = 0; state < length; state++) {
        const start = starts[state] ?? noMatch
        if (start === noMatch) continue
        if (best !== null && start > best.start) continue
        isAlive = true
        if (this.places[state]?.isOptional !== true) continue
        const later = starts[state + 1] ?? noMatch
        if (later === noMatch || start < later) starts[state + 1] = start
      }
      const begun = starts[length] ?? noMatch
      if (begun !== noMatch && (best === null || begun <= best.start) && isBorder(text, at))
        best = { start: begun, end: at }
      if (at === text.length || (best !== null && !isAlive)) break
      const code = text.charCodeAt(at)
      next.fill(noMatch)
      isIdle = true
      for (let state = 0; state < length; state++) {
        const start = starts[state] ?? noMatch
        if (start === noMatch || (best !== null && start > best.start)) continue
        if (!this.reads(state, code)) continue
        next[state + 1] = start
        isIdle = false
      }
      const read = starts
      starts = next
      next = read
    }
    return best
  }
}

/** The matcher of `pattern`, or what is wrong with it. */
export const parse = (pattern: string): Either.Either<Matcher, string> => {
  const parser = new Parser(pattern)
  const problem = parser.run()
  return problem === null ? Either.right(new Matcher(parser.places)) : Either.left(problem)
}
