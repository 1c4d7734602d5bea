/**
 * Patterns for an agent's own kinds of personal data: characters, sets of characters and counts. Nothing in them can
 * backtrack, and a match has at most {@link maxMatchLength} characters, so time grows linearly with the text.
 */
import * as Either from "effect/Either"
import type { Span } from "../Sentences.ts"

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

const codeOf = (character: string) => character.charCodeAt(0)
const rangeOf = (character: string): ReadonlyArray<Range> => [[codeOf(character), codeOf(character)]]

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
 * Characters that are special in regular expressions have to be escaped, so that a pattern means what a reader of regular
 * expressions expects.
 */
const reserved = new Set(".*+|()^$?{}]/")

const count = /^\{(\d{1,3})(?:,(\d{1,3}))?\}/

class Parser {
  private at = 0
  private readonly pattern: string
  readonly positions: Array<PatternPosition> = []

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
      for (let repeat = 0; repeat < times[1]; repeat++) {
        this.positions.push({ ranges, isNegated, isOptional: repeat >= times[0] })
        if (this.positions.length > maxMatchLength)
          return `Expected a pattern that matches at most ${maxMatchLength} characters`
      }
    }
    return this.positions.filter(({ isOptional }) => !isOptional).length < minMatchLength
      ? `Expected a pattern that matches at least ${minMatchLength} characters`
      : null
  }

  private single(refused: ReadonlySet<string>): ReadonlyArray<Range> | string {
    const character = this.pattern.charAt(this.at++)
    if (refused.has(character))
      return `${character} has no meaning here; write \\${character} for the character itself`
    if (character !== "\\") return rangeOf(character)
    const escaped = this.pattern.charAt(this.at++)
    if (escaped === "") return "Expected a character after \\"
    return /[A-Za-z0-9]/.test(escaped)
      ? (classes[escaped] ?? `\\${escaped} is not known; there are \\d, \\w and \\s`)
      : rangeOf(escaped)
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
/** Whether a match may start or end here: no word continues across this index. */
const isWordBoundary = (text: string, at: number) => !(isWordAt(text, at - 1) && isWordAt(text, at))

const tableSize = 128
const noMatch = -1

/** Whether the position matches the character with this code. Case is ignored. */
const matchesCode = ({ isNegated, ranges }: PatternPosition, code: number): boolean => {
  const character = String.fromCharCode(code)
  const codes = [code, codeOf(character.toLowerCase()), codeOf(character.toUpperCase())]
  return ranges.some(([from, to]) => codes.some((each) => each >= from && each <= to)) !== isNegated
}

/** A compiled pattern. The state of a match is the number of positions that have been matched. */
export class Matcher {
  private readonly positions: ReadonlyArray<PatternPosition>
  private readonly tables: ReadonlyArray<Uint8Array>
  /** Number of positions examined, for tests. */
  steps = 0

  constructor(positions: ReadonlyArray<PatternPosition>) {
    this.positions = positions
    this.tables = positions.map((position) =>
      Uint8Array.from({ length: tableSize }, (_, code) => (matchesCode(position, code) ? 1 : 0))
    )
  }

  /** The next index at which a match may begin: where a character matches one of the first positions. */
  private nextStart(text: string, from: number): number {
    const firstPositions = this.positions.findIndex(({ isOptional }) => !isOptional) + 1
    for (let at = from; at < text.length; at++) {
      const code = text.charCodeAt(at)
      for (let index = 0; index < firstPositions; index++) if (this.matchesAt(index, code)) return at
    }
    return text.length
  }

  private matchesAt(index: number, code: number): boolean {
    this.steps++
    if (code < tableSize) return this.tables[index]?.[code] === 1
    const position = this.positions[index]
    return position !== undefined && matchesCode(position, code)
  }

  /** The longest of the earliest matches from `from` on; null when there is none. */
  find(text: string, from: number): Span | null {
    const length = this.positions.length
    // By state: the start of the earliest match that has reached it.
    let starts = new Int32Array(length + 1).fill(noMatch)
    let next = new Int32Array(length + 1).fill(noMatch)
    let best: Span | null = null
    let isIdle = true
    for (let at = from; at <= text.length; at++) {
      if (isIdle && best === null) at = this.nextStart(text, at)
      if (best === null && isWordBoundary(text, at) && starts[0] === noMatch) starts[0] = at
      let isAlive = false
      for (let state = 0; state < length; state++) {
        const start = starts[state] ?? noMatch
        if (start === noMatch) continue
        if (best !== null && start > best.start) continue
        isAlive = true
        if (this.positions[state]?.isOptional !== true) continue
        const later = starts[state + 1] ?? noMatch
        if (later === noMatch || start < later) starts[state + 1] = start
      }
      const complete = starts[length] ?? noMatch
      if (complete !== noMatch && (best === null || complete <= best.start) && isWordBoundary(text, at))
        best = { start: complete, end: at }
      if (at === text.length || (best !== null && !isAlive)) break
      const code = text.charCodeAt(at)
      next.fill(noMatch)
      isIdle = true
      for (let state = 0; state < length; state++) {
        const start = starts[state] ?? noMatch
        if (start === noMatch || (best !== null && start > best.start)) continue
        if (!this.matchesAt(state, code)) continue
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
  return problem === null ? Either.right(new Matcher(parser.positions)) : Either.left(problem)
}
