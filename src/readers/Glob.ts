/**
 * Globs on a whole URL: `*` (and `**`) matches any characters including slashes, `?` exactly one, and everything else
 * itself, case-sensitively, however it is percent-encoded. A pattern that begins with `/` is matched against path and
 * query. The matcher is our own, and linear in the text: libraries such as picomatch compile to regular expressions,
 * whose backtracking lets a short pattern take minutes.
 */
import { WorkBudget } from "../concurrency/WorkBudget.ts"

/**
 * The automaton of a pattern, with 32 states per word. State `n` means that the first `n` characters of the pattern
 * have matched. All possible states are tracked together, so one pass over the text is enough.
 */
export interface Pattern {
  readonly words: number
  /** For each character of the pattern: the index in `transitions` of the states from which it advances. */
  readonly offsets: ReadonlyMap<string, number>
  /** First for any other character, then for each of those. */
  readonly transitions: Uint32Array
  /** The states that any character may stay in, because a star comes next. */
  readonly stars: Uint32Array
  /** The last state, and whether a star follows it. */
  readonly last: number
  readonly endsInStar: boolean
}

const set = (words: Uint32Array, from: number, state: number): void => {
  const word = from + (state >>> 5)
  words[word] = (words[word] ?? 0) | (1 << (state & 31))
}

const has = (words: Uint32Array, state: number): boolean =>
  (((words[state >>> 5] ?? 0) >>> (state & 31)) & 1) === 1

/** `wildcard` matches any single character; null for none. */
export const compilePattern = (pattern: string, wildcard: string | null): Pattern => {
  const plain = pattern.replaceAll("*", "")
  const words = (plain.length >>> 5) + 1
  const offsets = new Map(
    [...new Set(plain.split(""))].map((character, place) => [character, (place + 1) * words])
  )
  const transitions = new Uint32Array((offsets.size + 1) * words)
  const stars = new Uint32Array(words)
  let state = 0
  for (const character of pattern.split("")) {
    if (character === "*") {
      set(stars, 0, state)
      continue
    }
    if (character === wildcard)
      for (let from = 0; from < transitions.length; from += words) set(transitions, from, state)
    else set(transitions, offsets.get(character) ?? 0, state)
    state++
  }
  return { words, offsets, transitions, stars, last: state, endsInStar: has(stars, state) }
}

/** Whether the pattern matches all of `text`. It takes one step per character and word. */
export const matchesPattern = (
  { endsInStar, last, transitions, offsets, stars, words }: Pattern,
  text: string,
  budget: WorkBudget
): boolean => {
  if (last > text.length) return false
  const states = new Uint32Array(words)
  states[0] = 1
  let at = 0
  for (let anyState = 1; at < text.length && anyState !== 0; at++) {
    if (endsInStar && has(states, last)) break
    const from = offsets.get(text.charAt(at)) ?? 0
    let carry = 0
    anyState = 0
    for (let word = 0; word < words; word++) {
      const before = states[word] ?? 0
      const moved = before & (transitions[from + word] ?? 0)
      const after = (moved << 1) | carry | (before & (stars[word] ?? 0))
      carry = moved >>> 31
      states[word] = after
      anyState |= after
    }
  }
  budget.spend(at * words)
  return has(states, last)
}

/**
 * The spelling in which addresses and patterns are compared: non-ASCII characters are escaped, letters and digits are
 * not, hexadecimal digits are upper-case.
 */
export const normalized = (text: string): string =>
  text
    .toWellFormed()
    .replace(/[^\u0021-\u007e]+/gu, (characters) => encodeURIComponent(characters))
    .replace(/%([0-9a-f]{2})/gi, (escape, hexadecimal) => {
      const character = String.fromCharCode(Number.parseInt(String(hexadecimal), 16))
      return /[A-Za-z0-9._~-]/.test(character) ? character : escape.toUpperCase()
    })

interface Glob {
  readonly text: string
  /** Length of the compared spelling. */
  readonly length: number
  /** Whether it is matched against path and query. */
  readonly isPathOnly: boolean
  readonly pattern: Pattern
}

const globOf = (text: string): Glob => {
  const spelling = normalized(text)
  return {
    text,
    length: spelling.length,
    isPathOnly: text.startsWith("/"),
    pattern: compilePattern(spelling, "?")
  }
}

interface Address {
  readonly whole: string
  readonly path: string
}

const addressOf = (href: string): Address => {
  const url = new URL(href)
  return { whole: normalized(url.href), path: normalized(url.pathname + url.search) }
}

const matches = ({ path, whole }: Address, { isPathOnly, pattern }: Glob, budget: WorkBudget): boolean =>
  matchesPattern(pattern, isPathOnly ? path : whole, budget)

export interface Patterns {
  readonly includePatterns?: ReadonlyArray<string>
  readonly excludePatterns?: ReadonlyArray<string>
}

/** Whether a URL belongs to a source, and the deciding pattern; null if none did. */
export interface Verdict {
  readonly included: boolean
  /** `match_limit`: the patterns need too many steps and were not evaluated. */
  readonly reason: "excluded" | "not_included" | "match_limit" | null
  readonly pattern: string | null
}

/** Steps per character of patterns and URLs. A hundred patterns of 150 characters need fewer. */
const stepsPerCharacter = 512
/** Fixed steps per URL. */
const stepsPerUrl = 1_000

/**
 * Makes a function that decides for a URL. Exclude patterns take precedence; without include patterns everything else
 * is included. All URLs of a request or a crawl share one `budget`.
 */
export const makeUrlFilter = (
  { includePatterns = [], excludePatterns = [] }: Patterns,
  budget: WorkBudget = new WorkBudget()
) => {
  const include = includePatterns.map(globOf)
  const exclude = excludePatterns.map(globOf)
  for (const { length } of [...include, ...exclude]) budget.allow(length * stepsPerCharacter)
  /** Verdicts of included addresses. Each is asked for again when its page arrives. */
  const included = new Map<string, Verdict>()
  const decide = (href: string): Verdict => {
    budget.allow(href.length * stepsPerCharacter + stepsPerUrl)
    budget.spend(stepsPerUrl)
    if (budget.isSpent) return { included: false, reason: "match_limit", pattern: null }
    const address = addressOf(href)
    const refused = exclude.find((glob) => matches(address, glob, budget))
    if (refused !== undefined) return { included: false, reason: "excluded", pattern: refused.text }
    const matching = include.find((glob) => matches(address, glob, budget))
    if (matching === undefined && include.length > 0)
      return { included: false, reason: "not_included", pattern: null }
    return { included: true, reason: null, pattern: matching?.text ?? null }
  }
  return (href: string): Verdict => {
    const verdict = included.get(href) ?? decide(href)
    if (verdict.included) included.set(href, verdict)
    return verdict
  }
}
