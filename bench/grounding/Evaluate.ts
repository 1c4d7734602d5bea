/** Precision and recall of the default grounding checker, beside plain word overlap, on labelled pairs. */
import * as fs from "node:fs"
import { WordChecker } from "../../src/capabilities/GroundingChecker/Words.ts"
import { resultOf } from "../../test/ResultOf.ts"

/** A passage, a sentence that it supports, and replacements that make the sentence wrong. */
interface Item {
  readonly title: string
  readonly passage: string
  readonly claim: string
  readonly number: readonly [right: string, wrong: string]
  readonly name: readonly [right: string, wrong: string]
  readonly negated: string
}

export const kinds = ["supported", "number changed", "name changed", "negated", "unrelated"] as const

export interface Pair {
  readonly kind: (typeof kinds)[number]
  readonly title: string
  readonly passage: string
  readonly claim: string
}

const replaceFact = (text: string, [right, wrong]: Item["number"]): string => text.replace(right, () => wrong)

/** Five pairs for each item; the unrelated claim is that of another item. */
export const pairsOf = (items: ReadonlyArray<Item>): ReadonlyArray<Pair> =>
  items.flatMap(({ claim, name, negated, number, passage, title }, place) => {
    const other = items[(place + 17) % items.length]?.claim ?? ""
    const claims = [claim, replaceFact(claim, number), replaceFact(claim, name), negated, other]
    return kinds.map((kind, at) => ({ kind, title, passage, claim: claims[at] ?? "" }))
  })

export const read = (file: string): ReadonlyArray<Pair> =>
  pairsOf(
    fs
      .readFileSync(file, "utf8")
      .trim()
      .split("\n")
      .map((line): Item => JSON.parse(line))
  )

/** True when the pair is judged unsupported. */
export type Judge = (pair: Pair) => boolean

/** Judges by the checker: a claim that is not fully supported is flagged. */
export const words: Judge = ({ claim, passage: text, title }) => {
  const { supported } = resultOf(
    new WordChecker().check({ text: claim, passages: [{ index: 1, title, text }] })
  )
  return supported !== "yes"
}

const tokens = (text: string): ReadonlyArray<string> =>
  text.toLowerCase().match(/\p{Script=Han}|[\p{L}\p{N}]+/gu) ?? []

/** Judges by the share of the claim's words that occur in the passage. */
export const overlap =
  (minShare: number): Judge =>
  ({ claim, passage, title }) => {
    const known = new Set(tokens(`${title} ${passage}`))
    const claimWords = tokens(claim)
    return claimWords.filter((word) => known.has(word)).length < claimWords.length * minShare
  }

export interface Figures {
  /** Precision: the share of flagged pairs that are unsupported. */
  readonly precision: number
  /** Recall: the share of unsupported pairs that are flagged; also for each kind. */
  readonly recall: number
  readonly byKind: Readonly<Record<string, number>>
}

const rounded = (share: number) => Math.round(share * 1_000) / 1_000

export const measure = (pairs: ReadonlyArray<Pair>, judge: Judge): Figures => {
  const flagged = pairs.filter(judge)
  const wrong = pairs.filter(({ kind }) => kind !== "supported")
  const trulyFlagged = flagged.filter(({ kind }) => kind !== "supported")
  const shareOf = (kind: string) =>
    flagged.filter((pair) => pair.kind === kind).length / pairs.filter((pair) => pair.kind === kind).length
  return {
    precision: rounded(trulyFlagged.length / Math.max(1, flagged.length)),
    recall: rounded(trulyFlagged.length / wrong.length),
    byKind: Object.fromEntries(kinds.map((kind) => [kind, rounded(shareOf(kind))]))
  }
}

/** The same pairs, with each passage surrounded by its neighbours, as in a long page. */
const inLongPassages = (pairs: ReadonlyArray<Pair>): ReadonlyArray<Pair> => {
  const passages = [...new Set(pairs.map(({ passage }) => passage))]
  return pairs.map((pair) => {
    const place = passages.indexOf(pair.passage)
    const neighbours = passages.slice(Math.max(0, place - 4), place + 5)
    return { ...pair, passage: neighbours.join("\n\n") }
  })
}

/** Milliseconds of CPU for each statement, when its passage has not been read before. */
export const cpuOf = (pairs: ReadonlyArray<Pair>, rounds: number): number => {
  const long = inLongPassages(pairs)
  for (const pair of long) words(pair)
  const before = process.cpuUsage()
  for (let round = 0; round < rounds; round++) for (const pair of long) words(pair)
  const { system, user } = process.cpuUsage(before)
  return rounded((system + user) / 1_000 / (rounds * long.length))
}

export const run = (file: string) => {
  const pairs = read(file)
  return {
    pairs: pairs.length,
    words: measure(pairs, words),
    overlap60: measure(pairs, overlap(0.6)),
    overlap80: measure(pairs, overlap(0.8)),
    wordsInLong: measure(inLongPassages(pairs), words),
    overlap80InLong: measure(inLongPassages(pairs), overlap(0.8)),
    missed: [...pairs, ...inLongPassages(pairs)].filter((pair) => words(pair) !== (pair.kind !== "supported"))
  }
}
