/**
 * Suggested questions that an agent's content answers. They are made from its headings without a model, so the same
 * content always gives the same ones. For English and German content they are sentences; for other languages, the
 * headings themselves.
 */
import type { Heading } from "../../store/agents/Starts.ts"

/** Number of suggestions. */
const count = 3
const minCharacters = 4
const maxCharacters = 100

type Language = "en" | "de" | "other"

const german = /(?:^|\s)(?:der|die|das|und|ist|nicht|sie|wir|ein|eine|mit|für|von|auf|werden)(?=[\s,.])/giu

const languageOf = ({ beginning, english, heading }: Heading): Language => {
  // The index treats short texts of other languages as English.
  const text = `${heading} ${beginning}`
  if ((text.match(german)?.length ?? 0) >= 3) return "de"
  return english ? "en" : "other"
}

/** The innermost heading without numbering, marks and final punctuation. */
const shown = (heading: string): string =>
  (heading.split(" > ").at(-1) ?? "")
    .replace(/[*_`#[\]]/gu, "")
    .replace(/^(?:\d+(?:\.\d+)*[.)]?|[-–•])\s+/u, "")
    .replace(/\s+/gu, " ")
    .replace(/(?<![\s:.!])[\s:.!]+$/u, "")
    .trim()

/** Headings that most sites have ("Home", "Contact"). They say nothing about this site. */
const boilerplate =
  /^(?:home|start|menu|navigation|contents?|table of contents|overview|introduction|summary|imprint|legal notice|terms.*|privacy.*|cookies?.*|footer|links?|more|see also|search|untitled|index|readme|impressum|datenschutz.*|agb|inhalt|inhaltsverzeichnis|übersicht|einleitung|startseite|suche|mehr|welcome.*|willkommen.*)$/iu

const isUsable = (text: string) =>
  text.length >= minCharacters &&
  text.length <= maxCharacters &&
  !boilerplate.test(text) &&
  !/https?:|\/\/|[{}<>=|\\]|\.\w{2,4}$/u.test(text) &&
  /\p{L}{3}/u.test(text)

/** Verbs at the start of an instruction's heading. */
const instructionVerbs =
  /^(?:add|apply|ask|book|build|buy|cancel|change|choose|configure|connect|contact|create|delete|deploy|embed|exchange|find|follow|get|install|invite|manage|make|open|order|pay|register|remove|renew|replace|request|reset|return|run|send|set up|sign|start|test|track|try|update|upgrade|upload|use|write)\s/iu

const uncapitalized = (text: string) => text.charAt(0).toLowerCase() + text.slice(1)

const lowered = (text: string) =>
  // Names stay capitalized.
  /^\p{Lu}\p{Lu}|\s\p{Lu}/u.test(text) ? text : uncapitalized(text)

/** A question and the rank of its heading; 0 is best. */
interface Candidate {
  readonly rank: 0 | 1 | 2
  readonly question: string
}

const ofEnglish = (text: string): Candidate => {
  const [, way] = /^how to (.+)$/iu.exec(text) ?? []
  if (way !== undefined) return { rank: 1, question: `How do I ${way}?` }
  if (/^how (?:do|does|can|is|are)\s/iu.test(text)) return { rank: 1, question: `${text}?` }
  if (instructionVerbs.test(text)) return { rank: 1, question: `How do I ${lowered(text)}?` }
  return { rank: 2, question: `What ${/[^si]s$/iu.test(text) ? "are" : "is"} ${lowered(text)}?` }
}

const ofGerman = (text: string): Candidate => {
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

const ofHeading = (heading: Heading): Candidate | null => {
  const text = [shown(heading.heading), shown(heading.title)].find(isUsable)
  if (text === undefined) return null
  if (text.endsWith("?")) return { rank: 0, question: text }
  const language = languageOf(heading)
  if (language === "other") return { rank: 2, question: text }
  return language === "en" ? ofEnglish(text) : ofGerman(text)
}

/**
 * At most three questions: first headings that are questions, then instructions, then topics. One per page while there
 * are enough pages.
 */
export const questionsOf = (headings: ReadonlyArray<Heading>): ReadonlyArray<string> => {
  const found = headings.flatMap((heading) => {
    const candidate = ofHeading(heading)
    return candidate === null ? [] : [{ ...candidate, title: heading.title }]
  })
  const ranked = found.toSorted((one, other) => one.rank - other.rank)
  const taken = new Map<string, string>()
  const titles = new Set<string>()
  for (const isOnePerPage of [true, false]) {
    for (const { question, title } of ranked) {
      const key = question.toLowerCase()
      if (taken.size === count || taken.has(key) || (isOnePerPage && titles.has(title))) continue
      taken.set(key, question)
      titles.add(title)
    }
  }
  return [...taken.values()]
}
