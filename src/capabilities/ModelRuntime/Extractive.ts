/**
 * The runtime without a model, for a service that has just been started: replies are sentences of the passages that were
 * found, each with its mark, and say that they are extracts.
 */
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { queryTerms } from "../../search/Bm25.ts"
import { terms } from "../../search/Tokenizer.ts"
import { type ModelPart, type ModelRequest, ModelRuntime, type Passage } from "../ModelRuntime.ts"
import { type Excerpt, excerpts } from "./Excerpts.ts"
import { estimatePrompt, estimateTokens } from "./Tokens.ts"

const name = "extractive"
const contextWindow = 128_000

const mostExcerpts = 4
/** UTF-16 units after which no further excerpt is added. */
const enough = 900
/** Share of the question's weight that an excerpt must carry to answer at all, when the search was not sure either. */
const least = 0.25
/** Score of a passage from which the search was sure. */
const sure = 0.35
/** Further excerpts must be this good beside the best. */
const besides = 0.6
/** Share of common words from which two excerpts say the same. */
const same = 0.7
/** What a word of the question counts when only the passage's title or what stands beside the excerpt has it. */
const asideWeight = 0.5
const firstOfPassage = 0.05
/** The search has judged each passage as a whole: excerpts of a worse one lose by its distance to the best, raised to this. */
const distance = 3
const commandWeight = 0.15
/** Most that length takes away: a long excerpt has many words by chance. */
const longest = 0.2

const notice =
  "_No language model is configured, so replies are extracts from the sources. Set OPENAI_API_KEY for written answers._"
const nothing = "I found nothing on that in the sources."

interface Candidate {
  readonly passage: Passage
  /** Place within the passage. */
  readonly place: number
  readonly excerpt: Excerpt
  readonly words: ReadonlySet<string>
  /** Words that count less. */
  readonly aside: ReadonlySet<string>
}

interface Scored extends Candidate {
  /** Share of the question that it carries, 0..1. */
  readonly relevance: number
  readonly score: number
}

const candidatesOf = (passages: ReadonlyArray<Passage>): ReadonlyArray<Candidate> =>
  passages.flatMap((passage) =>
    excerpts(passage.text).map((excerpt, place) => ({
      passage,
      place,
      excerpt,
      words: new Set(terms(excerpt.text.replace(excerpt.aside, ""))),
      aside: new Set(terms(`${passage.title}\n${excerpt.aside}`))
    }))
  )

/** How much each word of the question tells: rare ones more, yet what all passages share is what the search found them by. */
const weightsOf = (question: string, candidates: ReadonlyArray<Candidate>): ReadonlyMap<string, number> => {
  const count = candidates.length
  return new Map(
    Array.from(queryTerms(question).keys(), (word) => {
      const having = candidates.filter(({ words, aside }) => words.has(word) || aside.has(word)).length
      return [word, 1 + Math.log(1 + (count - having + 0.5) / (having + 0.5)) / 2]
    })
  )
}

const asksForCommand = /\b(?:how|command|example|code|install|run|configure|set ?up)\b/i

const scored = (question: string, passages: ReadonlyArray<Passage>): ReadonlyArray<Scored> => {
  const candidates = candidatesOf(passages)
  const weights = weightsOf(question, candidates)
  const total = [...weights.values()].reduce((sum, weight) => sum + weight, 0)
  const wantsCommand = asksForCommand.test(question)
  const bestScore = Math.max(Number.EPSILON, ...passages.map(({ score }) => score))
  return candidates.map((candidate) => {
    let carried = 0
    for (const [word, weight] of weights) {
      if (candidate.words.has(word)) carried += weight
      else if (candidate.aside.has(word)) carried += weight * asideWeight
    }
    const relevance = total === 0 ? 0 : carried / total
    const extra =
      (candidate.place === 0 ? firstOfPassage : 0) +
      (wantsCommand && candidate.excerpt.kind === "block" ? commandWeight : 0) -
      Math.min(longest, candidate.words.size / 400)
    const founded = (candidate.passage.score / bestScore) ** distance
    return { ...candidate, relevance, score: (relevance + extra) * founded }
  })
}

const overlap = (one: ReadonlySet<string>, other: ReadonlySet<string>): number => {
  const common = [...one].filter((word) => other.has(word)).length
  return common / Math.max(1, Math.min(one.size, other.size))
}

const inOrder = (one: Scored, other: Scored): number =>
  one.passage.index - other.passage.index || one.place - other.place

/** A sentence that begins so leans on the one before it. */
const leaning =
  /^(?:it|its|this|that|these|those|they|he|she|also|however|therefore|otherwise|then|so|but|instead)\b/i

const supportOf = (chosen: Scored, before: ReadonlyMap<Scored, Scored | undefined>): Scored | undefined => {
  if (chosen.excerpt.kind === "block" || !leaning.test(chosen.excerpt.text)) return undefined
  const support = before.get(chosen)
  return support?.passage === chosen.passage && support.excerpt.group === chosen.excerpt.group
    ? support
    : undefined
}

/** The best excerpts, none saying what another says, in the order in which they stand in the passages. */
const choose = (all: ReadonlyArray<Scored>): ReadonlyArray<Scored> => {
  const ranked = all
    .filter(({ passage, relevance }) => relevance >= (passage.score >= sure ? Number.EPSILON : least))
    .toSorted((one, other) => other.score - one.score || inOrder(one, other))
  const [best] = ranked
  // The passage that the search put first always has its say.
  const first = ranked.filter(({ passage }) => passage.index === 1 && passage.score >= sure).slice(0, 1)
  const before = new Map(all.map((each, at) => [each, all[at - 1]]))
  const chosen: Array<Scored> = []
  let length = 0
  for (const candidate of new Set([...first, ...ranked])) {
    if (best === undefined || (candidate.score < best.score * besides && !first.includes(candidate))) break
    if (chosen.length >= mostExcerpts || length >= enough) break
    if (chosen.some(({ words }) => overlap(words, candidate.words) >= same)) continue
    const support = supportOf(candidate, before)
    const added = [support, candidate].filter((excerpt) => excerpt !== undefined)
    const fresh = added.filter((excerpt) => !chosen.includes(excerpt))
    if (chosen.length + fresh.length > mostExcerpts) continue
    chosen.push(...fresh)
    length += fresh.reduce((sum, { excerpt }) => sum + excerpt.text.length, 0)
  }
  return chosen.toSorted(inOrder)
}

const endsInBlock = (text: string): boolean => /(?:`{3}|~{3}|\|)$/.test(text)

const marked = ({ excerpt, passage }: Scored): string =>
  `${excerpt.text}${endsInBlock(excerpt.text) ? "\n\n" : " "}[${passage.index}]`

/** Sentences of one passage run on; items are lines; all else stands apart. */
const separator = (before: Scored, after: Scored): string => {
  if (before.passage !== after.passage) return "\n\n"
  if (before.excerpt.kind === "sentence" && after.excerpt.kind === "sentence") return " "
  return before.excerpt.kind === "item" && after.excerpt.kind === "item" ? "\n" : "\n\n"
}

const compose = (chosen: ReadonlyArray<Scored>): string =>
  chosen
    .map((excerpt, place) => {
      const before = chosen[place - 1]
      return `${before === undefined ? "" : separator(before, excerpt)}${marked(excerpt)}`
    })
    .join("")

/** The reply to a question from what was found for it; the same for the same input. */
export const extract = (question: string, passages: ReadonlyArray<Passage>): string => {
  const chosen = choose(scored(question, passages))
  return `${chosen.length === 0 ? nothing : compose(chosen)}\n\n${notice}`
}

/** Words with the white space before them. */
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

/** Works without network or model; never fails, never calls a tool. */
export const layerExtractive = Layer.succeed(ModelRuntime, {
  defaultModel: name,
  contextWindow,
  alwaysCites: true,
  acceptsImages: false,
  readable: () => [],
  reply: (request) => Stream.suspend(() => Stream.fromIterable(partsOf(request)))
})
