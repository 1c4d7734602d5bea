/**
 * An index of a passage, which finds the sentences that support a statement. It is built once per passage, in linear
 * time and in steps, and used for all statements.
 */
import { sentencesOf, type Span } from "../../domain/Sentences.ts"
import { isEnglish } from "../../search/Language.ts"
import { pieces, terms } from "../../search/Tokenizer.ts"
import type { CitedPassage } from "../GroundingChecker.ts"
import { namesHaveCapitals, normalize, numbersOf, wordsOf } from "./Facts.ts"
import { scriptOf, unspacedScripts } from "./Scripts.ts"

/** Maximum number of UTF-16 units of a passage that are examined. */
const maxLength = 64_000
/** Maximum number of UTF-16 units of a sentence. A longer one, such as a text without full stops, is cut. */
const maxSentenceLength = 4_000
/** Number of UTF-16 units of sentences that one step splits into terms. */
const lengthPerStep = 2_000
/** Number of adjacent sentences that are evaluated together. */
const windowSize = 3

interface Sentence extends Span {
  readonly index: number
  readonly text: string
}

/** The parts of a passage that are computed in steps. */
interface Parts {
  readonly plain: string
  readonly numbers: ReadonlySet<string>
  readonly words: ReadonlySet<string>
  readonly sentences: ReadonlyArray<Sentence>
}

/** The best match of a statement in a passage. */
export interface BestMatch {
  readonly evidence: Evidence
  /** Weight of the statement's terms in the best sentences. */
  readonly weight: number
  readonly matched: ReadonlySet<string>
  /** The best sentences, in order. */
  readonly sentences: ReadonlyArray<Sentence>
}

const prefixOf = (word: string): string => word.slice(0, 4)

const flatSet = (values: ReadonlyArray<ReadonlyArray<string>>): ReadonlySet<string> => new Set(values.flat())

/** The parts of a sentence, cut at blanks where there are any. */
const partsOf = (text: string, { end, start }: Span): ReadonlyArray<Span> => {
  const parts: Array<Span> = []
  let from = start
  while (end - from > maxSentenceLength) {
    const last = from + maxSentenceLength
    const blank = text.lastIndexOf(" ", last)
    // Without a blank, no surrogate pair is cut.
    const at = blank > from ? blank : last - (/[\udc00-\udfff]/.test(text.charAt(last)) ? 1 : 0)
    parts.push({ start: from, end: at })
    from = at
  }
  return [...parts, { start: from, end }]
}

export class Evidence {
  readonly passage: CitedPassage
  readonly script: string | undefined
  readonly isEnglish: boolean | undefined
  /** Whether its script has no spaces between words. */
  readonly isUnspaced: boolean
  /** Whether capital letters indicate names in this text. */
  readonly capitalsAreNames: boolean
  /** The numbers of the passage and its title. */
  readonly numbers: ReadonlySet<string>
  readonly words: ReadonlySet<string>
  readonly titleTerms: ReadonlySet<string>
  readonly titleNumbers: ReadonlySet<string>
  readonly titleWords: ReadonlySet<string>
  readonly folded: string
  /** Prefixes of its words. */
  private readonly prefixes: ReadonlySet<string>
  private readonly sentences: ReadonlyArray<Sentence>
  /** By term: the indexes of the sentences that contain it, ascending. */
  private readonly sentencesByTerm = new Map<string, Set<number>>()

  private constructor(passage: CitedPassage, { numbers, plain, sentences, words }: Parts) {
    this.passage = passage
    const title = normalize(passage.title.slice(0, 1_000))
    const sample = plain.slice(0, 4_000)
    this.script = scriptOf(sample)
    this.isEnglish = isEnglish(sample)
    this.capitalsAreNames = this.isEnglish !== false || namesHaveCapitals(sample)
    this.isUnspaced = unspacedScripts.has(this.script)
    this.numbers = numbers
    this.words = words
    this.titleTerms = new Set(this.termsOf(title))
    this.titleNumbers = flatSet(numbersOf(title))
    this.titleWords = wordsOf(title)
    this.prefixes = new Set([...this.words, ...this.titleWords].map(prefixOf))
    this.folded = folded(plain)
    this.sentences = sentences
  }

  /** Reads the passage. */
  static *of(passage: CitedPassage): Generator<void, Evidence> {
    const text = passage.text.slice(0, maxLength)
    const plain = normalize(text)
    yield
    const numbers = flatSet(numbersOf(plain))
    yield
    const words = wordsOf(plain)
    yield
    const sentences = sentencesOf(text)
      .flatMap((span) => partsOf(text, span))
      .map((span, index) => ({ ...span, index, text: normalize(text.slice(span.start, span.end)) }))
    yield
    const evidence = new Evidence(passage, { plain, numbers, words, sentences })
    yield* evidence.indexSentences()
    return evidence
  }

  private *indexSentences(): Generator<void, void> {
    let length = 0
    for (const { index, text } of this.sentences) {
      length += text.length
      if (length > lengthPerStep) {
        yield
        length = 0
      }
      for (const term of this.termsOf(text)) {
        const known = this.sentencesByTerm.get(term)
        if (known === undefined) this.sentencesByTerm.set(term, new Set([index]))
        else known.add(index)
      }
    }
  }

  /** The terms of a text, in the language of this passage. */
  termsOf(text: string): ReadonlyArray<string> {
    return this.isEnglish === false ? pieces(text, { english: false }) : terms(text)
  }

  /** Whether a word of the passage or its title has the same prefix. */
  hasSimilarWord(word: string): boolean {
    return this.prefixes.has(prefixOf(word))
  }

  /** Weight of a term: higher if fewer sentences contain it. */
  weightOf(term: string): number {
    const sentenceCount = this.sentencesByTerm.get(term)?.size ?? 0.5
    return Math.log(1 + this.sentences.length / sentenceCount)
  }

  /** The few sentences that contain most of `claim`. */
  find(claim: ReadonlySet<string>): BestMatch {
    const weights = new Float64Array(this.sentences.length)
    for (const term of claim) {
      const weight = this.weightOf(term)
      let lastCounted = -1
      for (const index of this.sentencesByTerm.get(term) ?? []) {
        for (let at = Math.max(lastCounted + 1, index - windowSize + 1); at <= index; at++)
          weights[at] = (weights[at] ?? 0) + weight
        lastCounted = index
      }
    }
    let best = 0
    for (let at = 1; at < weights.length; at++) if ((weights[at] ?? 0) > (weights[best] ?? 0)) best = at
    const matched = new Set<string>()
    const matchedSentences: Array<Sentence> = []
    const window = this.sentences.slice(best, best + windowSize)
    for (const sentence of window) {
      const common = [...claim].filter((term) => this.sentencesByTerm.get(term)?.has(sentence.index) === true)
      if (common.length === 0) continue
      for (const term of common) matched.add(term)
      matchedSentences.push(sentence)
    }
    return { evidence: this, weight: weights[best] ?? 0, matched, sentences: matchedSentences }
  }

  /** The text of the passage from the first of these sentences to the last. */
  span(sentences: ReadonlyArray<Sentence>): string | null {
    const first = sentences[0]
    const last = sentences.at(-1)
    return first === undefined || last === undefined ? null : this.passage.text.slice(first.start, last.end)
  }
}

/** Reduces a text to its letters and digits. */
export const folded = (text: string): string =>
  ` ${Array.from(text.toLowerCase().matchAll(/[\p{L}\p{N}\p{M}]+/gu), ([found]) => found).join(" ")} `
