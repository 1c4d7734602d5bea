/**
 * The runtime without a model, for a service without a configured provider. A reply consists of up to three coherent
 * extracts of the found passages, each from the start of its section through its code, with citation marks. It says
 * that these are extracts.
 */
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { extractiveNoticesFor } from "../../../domain/chat/Notices.ts"
import { estimateTokens } from "../../../domain/Tokens.ts"
import { cleanHeading } from "../../../search/Heading.ts"
import { mayBeEnglish } from "../../../search/Language.ts"
import { terms } from "../../../search/Tokenizer.ts"
import { type ModelPart, type ModelRequest, ModelRuntime, type Passage } from "../../ModelRuntime.ts"
import { type Excerpt, excerpts, joinSplitBlock, narrowTable, shortenCode } from "./Excerpts.ts"
import { type AskedWord, askedWords, containsWord, termsOf, weightsOf } from "./Relevance.ts"
import { estimatePrompt } from "../Tokens.ts"

const name = "extractive"
const contextWindow = 128_000

/** Minimum score of a passage that is considered. Words are compared again here. */
const minScore = 0.16
/** The same where the search compares words alone, as for a question that is not English. */
const minWordScore = 0.12
/**
 * Below this score a passage must contain {@link minCommonWords} of the question's words, and the reply says that it is
 * not sure.
 */
const minSureScore = 0.25
const minCommonWords = 2
/** Below this score a section must contain more than half of the weight of the words of an English question. */
const minStrongScore = 0.2
/** Minimum score at which a passage needs no common word with the question. */
const minWordlessScore = 0.35

const maxSections = 3
/** Minimum score of further sections, as a share of the best. */
const minFurtherShare = 0.7
/** Share of a section's words, from which it repeats a section before it that contains them. */
const duplicateShare = 0.7
/**
 * Maximum increase of a section's score for containing all words of the question, as a share of the score. The search
 * has counted the words already.
 */
const maxWordBonus = 0.25
/** Factor of the score of a section that contains none of the words. */
const wordlessFactor = 0.5
/**
 * Maximum length of the text in a section before the best block, in UTF-16 units. With more, the extract begins at that
 * block.
 */
const maxLeadLength = 900
/** Maximum length of an extract with the text before the best block, in UTF-16 units. */
const maxLedLength = 1_500
/** Maximum number of quoted entries of a list of definitions. */
const maxEntries = 3
/** Maximum length of an extract that goes on after the best block, in UTF-16 units. Short sections are quoted whole. */
const maxExtendedLength = 1_000

const notice =
  "_No language model is configured, so replies are extracts from the sources. Set OPENAI_API_KEY for written answers._"

/** A quotable block of a passage. */
interface Quotable extends Excerpt {
  readonly index: number
  /** Index of its chunk among those of the document, and of the last one where it has been joined from several. */
  readonly ordinal: number
  readonly lastOrdinal: number
  readonly isFound: boolean
  readonly terms: ReadonlySet<string>
}

/** The passages of one section. Its words are those of the chunks that were found. */
interface FoundSection {
  readonly title: string
  readonly score: number
  /** In reading order, with the blocks around what was found. */
  readonly quotables: ReadonlyArray<Quotable>
  readonly titleTerms: ReadonlySet<string>
  readonly terms: ReadonlySet<string>
  /** Words of the title and of all blocks but code, which may only mention a word. */
  readonly proseTerms: ReadonlySet<string>
  /** Its words, each in one form, for comparison of two sections. */
  readonly words: ReadonlySet<string>
}

/** False for the blocks before and after text that is left out. */
const isAdjacent = (before: Quotable | undefined, next: Quotable | undefined): boolean =>
  before !== undefined && next !== undefined && next.ordinal - before.lastOrdinal <= 1

const quotablesOf = ({ index, isFound = true, ordinal, text }: Passage): ReadonlyArray<Quotable> =>
  excerpts(text).map((excerpt) => ({
    ...excerpt,
    index,
    ordinal,
    lastOrdinal: ordinal,
    isFound,
    terms: termsOf(excerpt.text)
  }))

/** The blocks of `before` and of the chunk after it. Code or a table that the end of the chunk has cut is one block. */
const joinedBlocks = (
  before: ReadonlyArray<Quotable>,
  next: ReadonlyArray<Quotable>
): ReadonlyArray<Quotable> => {
  const one = before.at(-1)
  const [other, ...others] = next
  const text = isAdjacent(one, other) && one?.index === other?.index ? joinSplitBlock(one, other) : undefined
  if (one === undefined || other === undefined || text === undefined) return [...before, ...next]
  const whole: Quotable = {
    ...one,
    lastOrdinal: other.lastOrdinal,
    text,
    isFound: one.isFound || other.isFound,
    terms: new Set([...one.terms, ...other.terms])
  }
  return [...before.slice(0, -1), whole, ...others]
}

const sectionOf = (passages: ReadonlyArray<Passage>): FoundSection => {
  const title = passages[0]?.title ?? ""
  const quotables = passages
    .toSorted((one, other) => one.ordinal - other.ordinal)
    .map(quotablesOf)
    .reduce(joinedBlocks, [])
  const titleTerms = termsOf(title)
  const found = quotables.filter(({ isFound }) => isFound)
  const prose = found.filter(({ kind }) => kind !== "code")
  return {
    title,
    score: Math.max(...passages.map(({ score }) => score)),
    quotables,
    titleTerms,
    terms: new Set(found.flatMap(({ terms }) => [...terms])),
    proseTerms: new Set([...titleTerms, ...prose.flatMap(({ terms }) => [...terms])]),
    words: new Set(found.flatMap(({ text }) => terms(text)))
  }
}

/** Sections, the best first, in the order of the search results. */
const sectionsOf = (passages: ReadonlyArray<Passage>): ReadonlyArray<FoundSection> => {
  const groups = new Map<string, Array<Passage>>()
  for (const passage of passages) {
    const key = `${passage.documentId} ${passage.title}`
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [passage])
    else group.push(passage)
  }
  return [...groups.values()].map(sectionOf).filter(({ terms }) => terms.size > 0)
}

type Weights = ReadonlyMap<AskedWord, number>

const noTerms: ReadonlySet<string> = new Set()

/** The weight of the words in `contained`; those that are only in `mentioned` count half. */
const containedWeight = (
  weights: Weights,
  contained: ReadonlySet<string>,
  mentioned: ReadonlySet<string> = noTerms
): number => {
  let sum = 0
  for (const [word, weight] of weights) {
    if (containsWord(contained, word)) sum += weight
    else if (containsWord(mentioned, word)) sum += weight / 2
  }
  return sum
}

/** The share of `words` that `others` contain. */
const shareIn = (others: ReadonlySet<string>, words: ReadonlySet<string>): number =>
  [...words].filter((word) => others.has(word)).length / Math.max(1, words.size)

/** `isWordSearch`: the question is not English, so the search has compared words alone. */
const chooseSections = (
  sections: ReadonlyArray<FoundSection>,
  weights: Weights,
  isWordSearch: boolean
): ReadonlyArray<FoundSection> => {
  const total = [...weights.values()].reduce((sum, weight) => sum + weight, 0)
  const wordsIn = ({ terms, titleTerms }: FoundSection): number =>
    [...weights.keys()]
      .filter((word) => containsWord(terms, word) || containsWord(titleTerms, word))
      .reduce((sum, { count }) => sum + count, 0)
  const isRelevant = (section: FoundSection): boolean => {
    const { score } = section
    const words = wordsIn(section)
    if (
      score < minStrongScore &&
      !isWordSearch &&
      containedWeight(weights, section.terms, section.titleTerms) * 2 <= total
    )
      return false
    if (score < minSureScore) return words >= minCommonWords
    return words > 0 || score >= minWordlessScore
  }
  const chosen: Array<FoundSection> = []
  const weightOf = (section: FoundSection) => {
    const words = containedWeight(weights, section.proseTerms, section.terms)
    return section.score * (words === 0 ? wordlessFactor : 1 + (maxWordBonus * words) / Math.max(1, total))
  }
  const ranked = sections.filter(isRelevant).toSorted((one, other) => weightOf(other) - weightOf(one))
  const [best] = ranked
  for (const section of ranked) {
    if (chosen.length === maxSections || best === undefined) break
    if (weightOf(section) < weightOf(best) * minFurtherShare) break
    if (section !== best && wordsIn(section) === 0) continue
    if (!chosen.some((other) => shareIn(other.words, section.words) >= duplicateShare)) chosen.push(section)
  }
  return chosen
}

/**
 * Whether a block belongs to the one before it, such as code, a list or a table to the paragraph that introduces it.
 */
const isContinuation = (before: Quotable | undefined, next: Quotable | undefined): boolean =>
  isAdjacent(before, next) && (next?.kind === "code" || /:(?:\*\*)?$/.test(before?.text ?? ""))

const lengthOf = (blocks: ReadonlyArray<Quotable>): number =>
  blocks.reduce((sum, { text }) => sum + text.length, 0)

const blockWeight = ({ isFound, kind, terms }: Quotable, weights: Weights): number => {
  if (!isFound) return -1
  return kind === "code" ? containedWeight(weights, noTerms, terms) : containedWeight(weights, terms)
}

/**
 * The best block, what follows it in its chunk, and code that belongs to it; also the blocks before it, if they are not
 * too long. A few blocks are quoted to their end.
 */
const extractAround = (quotables: ReadonlyArray<Quotable>, best: number): ReadonlyArray<Quotable> => {
  const chunk = quotables[best]?.lastOrdinal ?? 0
  let start = best
  let end = best
  const extendWhile = (isWanted: (next: Quotable) => boolean) => {
    let next = quotables[end + 1]
    while (next !== undefined && isAdjacent(quotables[end], next) && isWanted(next)) {
      end++
      next = quotables[end + 1]
    }
  }
  const isShortWith = (next: Quotable) =>
    lengthOf([...quotables.slice(start, end + 1), next]) <= maxExtendedLength
  const continues = (next: Quotable) => isContinuation(quotables[end], next)
  extendWhile((next) => next.ordinal <= chunk && isShortWith(next))
  extendWhile(continues)
  for (let at = best - 1; at >= 0 && isAdjacent(quotables[at], quotables[at + 1]); at--) {
    const isTooLong =
      lengthOf(quotables.slice(at, best)) > maxLeadLength ||
      lengthOf(quotables.slice(at, end + 1)) > maxLedLength
    if (isTooLong && !isContinuation(quotables[at], quotables[at + 1])) break
    start = at
  }
  extendWhile(isShortWith)
  extendWhile(continues)
  return quotables.slice(start, end + 1)
}

const indexOfBest = (quotables: ReadonlyArray<Quotable>, weights: Weights): number => {
  const blockWeights = quotables.map((block) => blockWeight(block, weights))
  return blockWeights.indexOf(Math.max(...blockWeights))
}

/** The entries of a list of definitions. The first one may be what is before them. */
const entriesOf = (quotables: ReadonlyArray<Quotable>): ReadonlyArray<ReadonlyArray<Quotable>> => {
  const entries: Array<Array<Quotable>> = []
  for (const block of quotables) {
    const entry = entries.at(-1)
    if (entry === undefined || block.isEntry) entries.push([block])
    else entry.push(block)
  }
  return entries
}

const entryWeight = (entry: ReadonlyArray<Quotable>, weights: Weights): number => {
  const found = entry.filter(({ isFound }) => isFound)
  const termsOfKind = (isCode: boolean) =>
    new Set(found.filter(({ kind }) => (kind === "code") === isCode).flatMap(({ terms }) => [...terms]))
  return found.length === 0 ? -1 : containedWeight(weights, termsOfKind(false), termsOfKind(true))
}

/** The blocks of a section that are quoted: those around the best one, or the best entries of a list of definitions. */
const extractBlocks = ({ quotables }: FoundSection, weights: Weights): ReadonlyArray<Quotable> => {
  const best = indexOfBest(quotables, weights)
  if (!quotables.slice(0, best + 1).some(({ isEntry }) => isEntry)) return extractAround(quotables, best)
  const entries = entriesOf(quotables).map((blocks) => ({ blocks, weight: entryWeight(blocks, weights) }))
  const highest = Math.max(...entries.map(({ weight }) => weight))
  return entries
    .filter(({ weight }) => weight === highest)
    .slice(0, maxEntries)
    .flatMap(({ blocks }) => extractAround(blocks, indexOfBest(blocks, weights)))
}

const displayedBlock = ({ kind, text }: Quotable, weights: Weights): string => {
  // A curated answer, which has no words of the question, is quoted as it is.
  if (weights.size === 0 || kind === "prose") return text
  if (kind === "code") return shortenCode(text)
  return narrowTable(text, (row) => [...weights.keys()].some((word) => containsWord(termsOf(row), word)))
}

/** Blocks with citation marks, which stand after code and after the last of adjacent blocks. */
const quotedBlocks = (blocks: ReadonlyArray<Quotable>, weights: Weights): string =>
  blocks
    .map((block, position) => {
      const next = blocks[position + 1]
      const text = displayedBlock(block, weights)
      if (block.kind !== "prose") return `${text}\n\n[${block.index}]`
      return next?.index === block.index && next.kind === "prose" ? text : `${text} [${block.index}]`
    })
    .join("\n\n")

/** A document without a title has the name of its file. */
const fileExtension = /(?<=\S)\.(?:mdx?|markdown|txt|html?|pdf|docx|pptx|xlsx|csv|epub|rst)$/i

const withHeading = (section: FoundSection, weights: Weights): string => {
  const heading = section.title
    .split(" > ")
    .map((part, position) => cleanHeading(position === 0 ? part.replace(fileExtension, "") : part))
    .filter((part) => part !== "")
    .join(" › ")
  const text = quotedBlocks(extractBlocks(section, weights), weights)
  return heading === "" ? text : `**${heading}**\n\n${text}`
}

/** The complete curated answer. */
const curatedReply = (passages: ReadonlyArray<Passage>): string =>
  [...sectionsOf(passages).map(({ quotables }) => quotedBlocks(quotables, new Map())), notice].join("\n\n")

/** The reply to a question from the found passages. Deterministic. */
export const extract = (question: string, passages: ReadonlyArray<Passage>): string => {
  const curated = passages.filter((passage) => passage.curated === true)
  if (curated.length > 0) return curatedReply(curated)
  const sections = sectionsOf(passages)
  const weights = weightsOf(
    askedWords(question),
    sections.map(({ terms, titleTerms }) => new Set([...terms, ...titleTerms]))
  )
  const chosen = chooseSections(sections, weights, !mayBeEnglish(question))
  const { closest, nothingFound } = extractiveNoticesFor(question)
  if (chosen.length === 0) return `${nothingFound}\n\n${notice}`
  const isUnsure = Math.max(...chosen.map(({ score }) => score)) < minSureScore
  const parts = [
    ...(isUnsure ? [closest] : []),
    ...chosen.map((section) => withHeading(section, weights)),
    notice
  ]
  return parts.join("\n\n")
}

/** Words with preceding white space. */
const wordsOf = (text: string): ReadonlyArray<string> => text.split(/(?<=\S)(?=\s)/)

const partsOf = (request: ModelRequest): ReadonlyArray<ModelPart> => {
  const text = extract(request.question, request.passages)
  return [
    ...wordsOf(text).map((delta): ModelPart => ({ _tag: "TextDelta", delta })),
    {
      _tag: "Finish",
      reason: "stop",
      inputTokens: estimatePrompt(request),
      outputTokens: estimateTokens(text)
    }
  ]
}

/** Needs no network and no model. It never fails and never calls a tool. */
export const layerExtractive = Layer.succeed(ModelRuntime, {
  defaultModel: name,
  contextWindow,
  readsPassages: true,
  acceptsImages: false,
  minScore,
  minWordScore,
  readable: () => [],
  reply: (request) => Stream.suspend(() => Stream.fromIterable(partsOf(request)))
})
