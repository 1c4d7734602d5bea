/**
 * The default: compares each statement with the sentences that it cites, by words. A number, a name or a quotation that they
 * do not have speaks against it, and so does a denial that they do not share. No model, no network; linear in the texts.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { isEnglish } from "../../search/Language.ts"
import {
  type Checked,
  type CitedPassage,
  type Claim,
  GroundingChecker,
  type Verdict
} from "../GroundingChecker.ts"
import { Evidence, folded, type Found, scriptOf } from "./Evidence.ts"
import { clausesOf, denies, lackedIn, namesOf, normal, numbersOf, quotationsOf, wordsOf } from "./Facts.ts"

/** UTF-16 units of a statement that are looked at. */
const maxClaimLength = 2_000
/** Share of a statement's words, by what they tell, from which the sentences say it, and say some of it. */
const shares = { whole: 0.58, part: 0.32 } as const
/** Scripts without spaces are compared by pairs of characters, of which a sentence put otherwise keeps fewer. */
const unspacedShares = { whole: 0.36, part: 0.18 } as const
/** From this share on, a denial on one side alone contradicts. */
const sameSubjectShare = 0.45

/** Nothing can be told. */
export const unknown: Verdict = { supported: null, spans: [], reasons: [] }

/** How grave it is that passages lack something: 0 has it near, 1 has it elsewhere, 2 does not have it. */
const lack = (
  found: ReadonlyArray<Found>,
  near: (one: Found) => boolean,
  anywhere: (one: Found) => boolean
): 0 | 1 | 2 => {
  if (found.some(near)) return 0
  return found.some(anywhere) ? 1 : 2
}

const has = (words: ReadonlySet<string>, name: string): boolean =>
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

/** What a part of a sentence has to add to better ones, as a share of the best, to count. */
const addedShare = 0.35

/** The parts of the sentences that the statement is made of: the best, and those that add what better ones do not have. */
const clausesAbout = ({ evidence, matched, sentences }: Found): ReadonlyArray<Clause> => {
  const clauses = sentences
    .flatMap((sentence) => clausesOf(sentence.text).map((text) => ({ sentence: sentence.text, text })))
    .map((clause) => {
      const own = new Set(evidence.termsOf(clause.text))
      return { ...clause, terms: [...matched].filter((term) => own.has(term)) }
    })
  const weightOf = (terms: ReadonlyArray<string>) =>
    terms.reduce((sum, term) => sum + evidence.weightOf(term), 0)
  const ranked = clauses.toSorted((one, other) => weightOf(other.terms) - weightOf(one.terms))
  const least = weightOf(ranked[0]?.terms ?? []) * addedShare
  const covered = new Set<string>()
  const chosen: Array<Clause> = []
  for (const { sentence, terms, text } of ranked) {
    const added = terms.filter((term) => !covered.has(term))
    if (added.length === 0 || weightOf(added) < least) continue
    for (const term of added) covered.add(term)
    chosen.push({ sentence, text })
  }
  return chosen
}

/** Whether one text is said to be without what the other has. */
const lacks = (evidence: Evidence, lacking: string, having: string): boolean => {
  const missing = lackedIn(lacking)
  if (missing.length === 0 || denies(having) || lackedIn(having).length > 0) return false
  return missing.some((word) => sharesTerm(evidence, word, having))
}

/** A denial has to be in the same sentences, and nothing of what is affirmed may be denied, or missing. */
const contradict = (claim: string, clauses: ReadonlyArray<Clause>, evidence: Evidence): boolean => {
  if (clauses.some(({ text }) => lacks(evidence, text, claim))) return true
  const sentences = clauses.map(({ sentence }) => sentence).join(" ")
  if (lacks(evidence, claim, sentences)) return true
  if (!denies(claim)) return clauses.some(({ text }) => denies(text))
  const isShared = clauses.some(
    ({ sentence }) => denies(sentence) || lackedIn(sentence).some((word) => sharesTerm(evidence, word, claim))
  )
  return clauses.length > 0 && !isShared
}

const verdictOf = (claim: string, found: ReadonlyArray<Found>, best: Found): Verdict => {
  const { evidence } = best
  const claimed = new Set(evidence.termsOf(claim))
  const names = namesOf(claim, evidence)
  const numbers = numbersOf(claim)
  if (claimed.size === 0 && numbers.length === 0) return unknown
  let total = 0
  let carried = 0
  for (const term of claimed) {
    const weight = evidence.weightOf(term)
    total += weight
    if (found.some((one) => one.matched.has(term) || one.evidence.titleTerms.has(term))) carried += weight
  }
  const { part, whole } = evidence.isUnspaced ? unspacedShares : shares
  const share = total === 0 ? 1 : carried / total
  const near = found.map((one) => {
    const text = one.sentences.map((sentence) => sentence.text).join(" ")
    return { one, words: wordsOf(text), numbers: new Set(numbersOf(text).flat()) }
  })
  const nearOf = (one: Found) => near.find((each) => each.one === one)
  const graveNumbers = numbers.map((forms) =>
    lack(
      found,
      (one) =>
        forms.some((form) => nearOf(one)?.numbers.has(form) === true || one.evidence.titleNumbers.has(form)),
      (one) => forms.some((form) => one.evidence.numbers.has(form))
    )
  )
  const graveNames = names.map((name) =>
    lack(
      found,
      (one) => has(nearOf(one)?.words ?? new Set(), name) || has(one.evidence.titleWords, name),
      (one) => has(one.evidence.words, name)
    )
  )
  // Where every noun has a capital, one that the passages do not have may be another word for the same.
  const strangeNoun =
    !evidence.capitals &&
    namesOf(claim, { capitals: true }).some((noun) => !found.some((one) => one.evidence.resembles(noun)))
  // A part of a sentence may lack what denies it.
  const isVerbatim = found.some(({ sentences }) =>
    sentences.some(({ text }) => folded(text).includes(folded(claim)) && denies(text) === denies(claim))
  )
  const missesQuotation = quotationsOf(claim).some(
    (quoted) => !found.some((one) => one.evidence.folded.includes(folded(quoted)))
  )
  const contradicts = share >= sameSubjectShare && contradict(claim, clausesAbout(best), evidence)
  const spans = found.flatMap(({ evidence: own, sentences }) => {
    const text = own.span(sentences)
    return text === null ? [] : [{ index: own.passage.index, text }]
  })
  if (isVerbatim) return { supported: "yes", spans, reasons: [] }
  const worst = Math.max(0, ...graveNumbers, ...graveNames)
  const reasons = [
    ...(Math.max(0, ...graveNumbers) > 0 ? ["number"] : []),
    ...(strangeNoun || Math.max(0, ...graveNames) > 0 ? ["name"] : []),
    ...(missesQuotation ? ["quotation"] : []),
    ...(contradicts ? ["negation"] : []),
    ...(share < whole ? ["words"] : [])
  ]
  const isDenied = worst === 2 || missesQuotation || contradicts || share < part
  const isWhole = worst === 0 && !strangeNoun && share >= whole
  return { supported: isDenied ? "no" : isWhole ? "yes" : "partly", spans, reasons }
}

/** The verdicts on claims, which share what was found out about their passages. */
export class WordChecker {
  private readonly known = new Map<CitedPassage, Evidence>()

  private evidenceOf(passage: CitedPassage): Evidence {
    const known = this.known.get(passage)
    if (known !== undefined) return known
    const made = new Evidence(passage)
    this.known.set(passage, made)
    return made
  }

  check({ passages, text }: Claim): Verdict {
    const claim = normal(text.slice(0, maxClaimLength)).replaceAll(
      /^[\s>#*+-]+|^\s*\d{1,3}[.)]\s+|\*\*|__/gu,
      ""
    )
    const english = isEnglish(claim)
    const script = scriptOf(claim)
    const all = passages.map((passage) => this.evidenceOf(passage))
    const alike = all.filter(
      (evidence) =>
        evidence.script === script &&
        (english === undefined || evidence.isEnglish === undefined || evidence.isEnglish === english)
    )
    // Words of two languages cannot be compared.
    if (alike.length === 0) return unknown
    const found = alike.map((evidence) => evidence.find(new Set(evidence.termsOf(claim))))
    const best = found.reduce((one, other) => (other.weight > one.weight ? other : one))
    return verdictOf(claim, found, best)
  }
}

/** Statements that are checked at one go before others get a turn. */
const together = 4

/** What words tell of claims. */
export const check = Effect.fn("GroundingChecker.words")(function* (claims: ReadonlyArray<Claim>) {
  const checker = new WordChecker()
  const verdicts: Array<Verdict> = []
  for (const [place, claim] of claims.entries()) {
    if (place > 0 && place % together === 0) yield* Effect.yieldNow()
    verdicts.push(checker.check(claim))
  }
  const checked: Checked = { verdicts, inputTokens: 0, outputTokens: 0 }
  return checked
})

export const layerWords = Layer.succeed(GroundingChecker, { name: "words", check })
