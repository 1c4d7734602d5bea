/**
 * The default: compares each statement with the cited sentences, by words. Numbers, names and quotations that the
 * sentences lack count against it, and so does a different negation. It needs no model and no network, and takes linear
 * time.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { inSlices } from "../../concurrency/InSlices.ts"
import { isEnglish } from "../../search/Language.ts"
import {
  type Checked,
  type CitedPassage,
  type Claim,
  GroundingChecker,
  type Verdict
} from "../GroundingChecker.ts"
import { Evidence, folded, type BestMatch } from "./Evidence.ts"
import {
  clausesOf,
  hasNegation,
  missingWordsIn,
  namesOf,
  normalize,
  numbersOf,
  quotationsOf,
  wordsOf
} from "./Facts.ts"
import { scriptOf } from "./Scripts.ts"

/** Maximum number of UTF-16 units of a statement that are examined. */
const maxClaimLength = 2_000
/** Minimum weighted share of a statement's words in the sentences, for full and for partial support. */
const minShares = { whole: 0.58, part: 0.32 } as const
/** For scripts without spaces, which are compared by pairs of characters. A paraphrase keeps fewer of them. */
const minUnspacedShares = { whole: 0.36, part: 0.18 } as const
/** Minimum share from which a negation on one side only is a contradiction. */
const minSubjectShare = 0.45

/** The check is not possible. */
export const unknown: Verdict = { supported: null, spans: [], reasons: [] }

/** A match, with the words and numbers of its best sentences. */
interface ReadMatch {
  readonly match: BestMatch
  readonly words: ReadonlySet<string>
  readonly numbers: ReadonlySet<string>
}

const readMatch = (match: BestMatch): ReadMatch => {
  const text = match.sentences.map((sentence) => sentence.text).join(" ")
  return { match, words: wordsOf(text), numbers: new Set(numbersOf(text).flat()) }
}

/** How severe it is if an item is not in the best sentences: 1 if it is elsewhere in a passage, 2 if it is missing. */
const severityOf = (
  matches: ReadonlyArray<ReadMatch>,
  isInSentences: (match: ReadMatch) => boolean,
  isInPassage: (match: ReadMatch) => boolean
): 0 | 1 | 2 => {
  if (matches.some(isInSentences)) return 0
  return matches.some(isInPassage) ? 1 : 2
}

const containsName = (words: ReadonlySet<string>, name: string): boolean =>
  words.has(name) ||
  (name.length > 4 && name.endsWith("s") && words.has(name.slice(0, -1))) ||
  words.has(`${name}s`)

const sharesTerm = (evidence: Evidence, one: string, other: string): boolean => {
  const terms = new Set(evidence.termsOf(other))
  return evidence.termsOf(one).some((term) => terms.has(term))
}

interface Clause {
  readonly text: string
  readonly sentence: string
}

/** Minimum share of the best clause's weight that a further clause has to add. */
const minAddedShare = 0.35

/** The clauses that support the statement: the best, and those that add terms the better ones do not have. */
const clausesAbout = ({ evidence, matched, sentences }: BestMatch): ReadonlyArray<Clause> => {
  const clauses = sentences
    .flatMap((sentence) => clausesOf(sentence.text).map((text) => ({ sentence: sentence.text, text })))
    .map((clause) => {
      const own = new Set(evidence.termsOf(clause.text))
      return { ...clause, terms: [...matched].filter((term) => own.has(term)) }
    })
  const weightOf = (terms: ReadonlyArray<string>) =>
    terms.reduce((sum, term) => sum + evidence.weightOf(term), 0)
  const ranked = clauses.toSorted((one, other) => weightOf(other.terms) - weightOf(one.terms))
  const minAddedWeight = weightOf(ranked[0]?.terms ?? []) * minAddedShare
  const covered = new Set<string>()
  const chosen: Array<Clause> = []
  for (const { sentence, terms, text } of ranked) {
    const added = terms.filter((term) => !covered.has(term))
    if (added.length === 0 || weightOf(added) < minAddedWeight) continue
    for (const term of added) covered.add(term)
    chosen.push({ sentence, text })
  }
  return chosen
}

/** Whether one text says that something is missing, and the other affirms it. */
const saysMissing = (evidence: Evidence, denying: string, affirming: string): boolean => {
  const missing = missingWordsIn(denying)
  if (missing.length === 0 || hasNegation(affirming) || missingWordsIn(affirming).length > 0) return false
  return missing.some((word) => sharesTerm(evidence, word, affirming))
}

/** True if the claim has a negation that the sentences lack, or if they negate or lack what the claim affirms. */
const isContradicted = (claim: string, clauses: ReadonlyArray<Clause>, evidence: Evidence): boolean => {
  if (clauses.some(({ text }) => saysMissing(evidence, text, claim))) return true
  const sentences = clauses.map(({ sentence }) => sentence).join(" ")
  if (saysMissing(evidence, claim, sentences)) return true
  if (!hasNegation(claim)) return clauses.some(({ text }) => hasNegation(text))
  const isShared = clauses.some(
    ({ sentence }) =>
      hasNegation(sentence) || missingWordsIn(sentence).some((word) => sharesTerm(evidence, word, claim))
  )
  return clauses.length > 0 && !isShared
}

const verdictOf = function* (
  claim: string,
  found: ReadonlyArray<BestMatch>,
  best: BestMatch
): Generator<void, Verdict> {
  const { evidence } = best
  const claimTerms = new Set(evidence.termsOf(claim))
  const names = namesOf(claim, evidence)
  const numbers = numbersOf(claim)
  if (claimTerms.size === 0 && numbers.length === 0) return unknown
  let total = 0
  let matchedWeight = 0
  for (const term of claimTerms) {
    const weight = evidence.weightOf(term)
    total += weight
    if (found.some((one) => one.matched.has(term) || one.evidence.titleTerms.has(term)))
      matchedWeight += weight
  }
  const { part, whole } = evidence.isUnspaced ? minUnspacedShares : minShares
  const share = total === 0 ? 1 : matchedWeight / total
  const matches = found.map(readMatch)
  yield
  const numberSeverities = numbers.map((forms) =>
    severityOf(
      matches,
      (read) => forms.some((form) => read.numbers.has(form) || read.match.evidence.titleNumbers.has(form)),
      ({ match }) => forms.some((form) => match.evidence.numbers.has(form))
    )
  )
  const nameSeverities = names.map((name) =>
    severityOf(
      matches,
      ({ match, words }) => containsName(words, name) || containsName(match.evidence.titleWords, name),
      ({ match }) => containsName(match.evidence.words, name)
    )
  )
  // Where every noun is capitalised, an unknown noun may be a synonym instead of a name.
  const hasUnknownNoun =
    !evidence.capitalsAreNames &&
    namesOf(claim, { capitalsAreNames: true }).some(
      (noun) => !found.some((one) => one.evidence.hasSimilarWord(noun))
    )
  yield
  // A verbatim clause may still lack the negation around it.
  const isVerbatim = found.some(({ sentences }) =>
    sentences.some(
      ({ text }) => folded(text).includes(folded(claim)) && hasNegation(text) === hasNegation(claim)
    )
  )
  yield
  const missesQuotation = quotationsOf(claim).some(
    (quoted) => !found.some((one) => one.evidence.folded.includes(folded(quoted)))
  )
  yield
  const contradicts = share >= minSubjectShare && isContradicted(claim, clausesAbout(best), evidence)
  const spans = found.flatMap(({ evidence: own, sentences }) => {
    const text = own.span(sentences)
    return text === null ? [] : [{ index: own.passage.index, text }]
  })
  if (isVerbatim) return { supported: "yes", spans, reasons: [] }
  const worst = Math.max(0, ...numberSeverities, ...nameSeverities)
  const reasons = [
    ...(Math.max(0, ...numberSeverities) > 0 ? ["number"] : []),
    ...(hasUnknownNoun || Math.max(0, ...nameSeverities) > 0 ? ["name"] : []),
    ...(missesQuotation ? ["quotation"] : []),
    ...(contradicts ? ["negation"] : []),
    ...(share < whole ? ["words"] : [])
  ]
  const isUnsupported = worst === 2 || missesQuotation || contradicts || share < part
  const isFullySupported = worst === 0 && !hasUnknownNoun && share >= whole
  return { supported: isUnsupported ? "no" : isFullySupported ? "yes" : "partly", spans, reasons }
}

/** Checks claims, and shares the analysis of their passages. */
export class WordChecker {
  private readonly evidenceByPassage = new Map<CitedPassage, Evidence>()

  private *evidenceOf(passage: CitedPassage): Generator<void, Evidence> {
    const known = this.evidenceByPassage.get(passage)
    if (known !== undefined) return known
    const evidence = yield* Evidence.of(passage)
    this.evidenceByPassage.set(passage, evidence)
    return evidence
  }

  /** Checks a claim in steps. */
  *check({ passages, text }: Claim): Generator<void, Verdict> {
    const claim = normalize(text.slice(0, maxClaimLength)).replaceAll(
      /^[\s>#*+-]+|^\s*\d{1,3}[.)](?:\s+|$)|\*\*|__/gu,
      ""
    )
    const english = isEnglish(claim)
    const script = scriptOf(claim)
    const comparable: Array<Evidence> = []
    for (const passage of passages) {
      const evidence = yield* this.evidenceOf(passage)
      if (
        // Numbers are the same in every script.
        (script === undefined || evidence.script === script) &&
        (english === undefined || evidence.isEnglish === undefined || evidence.isEnglish === english)
      )
        comparable.push(evidence)
    }
    // Words of different languages cannot be compared.
    if (comparable.length === 0) return unknown
    const found: Array<BestMatch> = []
    for (const evidence of comparable) {
      yield
      found.push(evidence.find(new Set(evidence.termsOf(claim))))
    }
    const best = found.reduce((one, other) => (other.weight > one.weight ? other : one))
    return yield* verdictOf(claim, found, best)
  }

  /** Checks claims in steps. */
  *checkAll(claims: ReadonlyArray<Claim>): Generator<void, ReadonlyArray<Verdict>> {
    const verdicts: Array<Verdict> = []
    for (const claim of claims) {
      verdicts.push(yield* this.check(claim))
      yield
    }
    return verdicts
  }
}

/** Checks claims by word overlap, and lets requests be served meanwhile. */
export const check = Effect.fn("GroundingChecker.words")(function* (claims: ReadonlyArray<Claim>) {
  const verdicts = yield* inSlices(new WordChecker().checkAll(claims))
  const checked: Checked = { verdicts, inputTokens: 0, outputTokens: 0 }
  return checked
})

export const layerWords = Layer.succeed(GroundingChecker, { name: "words", check })
