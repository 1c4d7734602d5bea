/**
 * Suggested questions that an agent's content answers. They are made from its headings without a model, so the same
 * content always gives the same ones. For English and German content they are sentences; for other languages, the
 * headings themselves.
 */
import type { Heading } from "../../store/agents/Starts.ts"

/** Number of suggestions. */
const maxQuestions = 3
const minCharacters = 4
const maxCharacters = 100

type Language = "en" | "de" | "other"

const germanWords =
  /(?:^|\s)(?:der|die|das|und|ist|nicht|sie|wir|ein|eine|mit|für|von|auf|werden)(?=[\s,.])/giu

const languageOf = ({ beginning, english, heading }: Heading): Language => {
  // The index treats short texts of other languages as English.
  const text = `${heading} ${beginning}`
  if ((text.match(germanWords)?.length ?? 0) >= 3) return "de"
  return english ? "en" : "other"
}

/** The innermost heading without numbering, marks and final punctuation. */
const displayedHeading = (heading: string): string =>
  (heading.split(" > ").at(-1) ?? "")
    .replace(/[*_`#[\]]/gu, "")
    .replace(/^(?:\d+(?:\.\d+)*[.)]?|[-–•])\s+/u, "")
    .replace(/\s+/gu, " ")
    .replace(/(?<![\s:.!])[\s:.!]+$/u, "")
    .trim()

/** Headings that most sites have ("Home", "Contact"). They say nothing about this site. */
const commonHeadings =
  /^(?:home|start|menu|navigation|contents?|table of contents|overview|introduction|summary|imprint|legal notice|terms.*|privacy.*|cookies?.*|footer|links?|more|see also|search|untitled|index|readme|impressum|datenschutz.*|agb|inhalt|inhaltsverzeichnis|übersicht|einleitung|startseite|suche|mehr|welcome.*|willkommen.*)$/iu

const isUsable = (text: string) =>
  text.length >= minCharacters &&
  text.length <= maxCharacters &&
  !commonHeadings.test(text) &&
  !/https?:|\/\/|[{}<>=|\\]|\.\w{2,4}$/u.test(text) &&
  /\p{L}{3}/u.test(text)

/** Verbs at the start of an instruction's heading that are hardly ever nouns. */
const instructionVerbs =
  /^(?:add|apply|ask|buy|cancel|choose|configure|connect|create|delete|deploy|embed|find|follow|get|install|invite|make|manage|remove|renew|replace|send|set up|write)\s/iu

/** Verbs that are also nouns ("Order status", "Return policy"), where the next word shows that they are verbs. */
const nounVerbs =
  /^(?:book|build|change|contact|exchange|open|order|pay|register|request|reset|return|run|sign|start|test|track|try|update|upgrade|upload|use)\s(?:an?|the|your|our|my|this|these|that|those|it|us|all|any|several|multiple|another|in|on|off|out|up|for|to|with|without|from|by|via|again|online|now)(?=\s|$)/iu

/** Documents that are named like instructions: "Install guide". */
const documentWords =
  /\s(?:commands?|examples?|form|guides?|instructions|limits?|notes|options|page|policy|scripts?|settings|steps)$/iu

/** Words that address the reader or name the site. {@link fromVisitorsView} cannot replace them. */
const readerOrSite = /(?<!\p{L})(?:you|yours|yourself|we|ours|ourselves)(?!\p{L})/iu

/** The site's words for itself and for the visitor, as the visitor says them. */
const fromVisitorsView = (text: string) =>
  text.replace(/(?<!\p{L})(?:your|our|us)(?!\p{L})/giu, (word) =>
    word.toLowerCase() === "your" ? "my" : word.toLowerCase() === "our" ? "your" : "you"
  )

const uncapitalized = (text: string) => text.charAt(0).toLowerCase() + text.slice(1)

/** A question and the rank of its heading; 0 is best. */
interface Candidate {
  readonly rank: 0 | 1 | 2
  readonly question: string
}

/** A question that fits any heading, whatever its grammar. */
const englishTopic = (text: string): Candidate => ({
  rank: 2,
  question: `What should I know about “${text}”?`
})

const englishCandidate = (text: string): Candidate => {
  if (/^how (?:do|does|can|is|are)\s/iu.test(text)) return { rank: 1, question: `${text}?` }
  if (readerOrSite.test(text)) return englishTopic(text)
  const [, instruction] = /^how to (.+)$/iu.exec(text) ?? []
  if (instruction !== undefined) return { rank: 1, question: `How do I ${fromVisitorsView(instruction)}?` }
  const isInstruction = instructionVerbs.test(text) || nounVerbs.test(text)
  // An instruction of two words may be a noun: "Install guide".
  if (!isInstruction || (/^\S+\s\S+$/u.test(text) && documentWords.test(text))) return englishTopic(text)
  return { rank: 1, question: `How do I ${fromVisitorsView(uncapitalized(text))}?` }
}

const germanCandidate = (text: string): Candidate => {
  if (/^(?:wie|so)\s\p{Ll}/iu.test(text)) {
    return { rank: 1, question: /^wie\s/iu.test(text) ? `${text}?` : `Wie geht das: ${text}?` }
  }
  // German instructions end in the verb: "Einen Termin buchen".
  if (/\s\p{Ll}+(?:en|eln|ern)$/u.test(text))
    return { rank: 1, question: `Wie kann ich ${lowerArticle(text)}?` }
  return { rank: 2, question: `Was muss ich über „${text}“ wissen?` }
}

const lowerArticle = (text: string) =>
  /^(?:Ein|Eine|Einen|Der|Die|Das|Den|Mein|Meine|Meinen)\s/u.test(text) ? uncapitalized(text) : text

const candidateOf = (heading: Heading): Candidate | null => {
  const text = [displayedHeading(heading.heading), displayedHeading(heading.title)].find(isUsable)
  if (text === undefined) return null
  if (text.endsWith("?")) return { rank: 0, question: text }
  const language = languageOf(heading)
  if (language === "other") return { rank: 2, question: text }
  return language === "en" ? englishCandidate(text) : germanCandidate(text)
}

/**
 * At most three questions: first headings that are questions, then instructions, then topics. One per page while there
 * are enough pages.
 */
export const suggestedQuestions = (headings: ReadonlyArray<Heading>): ReadonlyArray<string> => {
  const found = headings.flatMap((heading) => {
    const candidate = candidateOf(heading)
    return candidate === null ? [] : [{ ...candidate, title: heading.title }]
  })
  const ranked = found.toSorted((one, other) => one.rank - other.rank)
  const questionsByKey = new Map<string, string>()
  const titles = new Set<string>()
  for (const isOnePerPage of [true, false]) {
    for (const { question, title } of ranked) {
      const key = question.toLowerCase()
      if (
        questionsByKey.size === maxQuestions ||
        questionsByKey.has(key) ||
        (isOnePerPage && titles.has(title))
      )
        continue
      questionsByKey.set(key, question)
      titles.add(title)
    }
  }
  return [...questionsByKey.values()]
}
