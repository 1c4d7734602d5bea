/** The result of one case: the agent's reply, and whether it meets the case's expectations. */
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import { Supported } from "../../chat/ChatTurn.ts"
import * as Notices from "../../chat/Notices.ts"
import type { Case } from "../TestCaseFile.ts"
import { Count } from "../../Count.ts"
import { parse } from "../../Json.ts"
import { isList, isObject } from "../../JsonValue.ts"
import type { JsonObject, JsonValue } from "../../Text.ts"

export const Citation = Schema.Struct({
  index: Schema.Number,
  sourceId: Schema.String,
  sourceName: Schema.String,
  title: Schema.String,
  url: Schema.String,
  /** Whether the passage supports the text before its mark, where the service has checked it. */
  supported: Schema.optional(Supported)
})
export type Citation = typeof Citation.Type

/** A stored turn as the service answered it. */
export interface Reply {
  readonly text: string
  readonly citations: ReadonlyArray<Citation>
  /** Milliseconds from the request to the end of the reply. */
  readonly latency: number
  /** Null where the key may not read traces. */
  readonly tokens: { readonly input: number; readonly output: number } | null
}

/** Why there is no reply: the code of the error. `tokens` were used up to there, where they are known. */
export interface NoReply {
  readonly error: string
  readonly tokens?: Reply["tokens"]
}

const CheckResult = Schema.NullOr(Schema.Boolean)

/** A language model's verdict on a reply. */
export const Verdict = Schema.Struct({
  /** Null if no model could judge it. Such a case does not pass. */
  passed: CheckResult,
  reason: Schema.String,
  inputTokens: Count,
  outputTokens: Count,
  /** Billionths of a US dollar; null if the price is not known. */
  costNano: Schema.NullOr(Schema.Number)
})
export type Verdict = typeof Verdict.Type

/** The verdict on a reply that could not be judged. */
export const unjudged = (reason: string): Verdict => ({
  passed: null,
  reason,
  inputTokens: 0,
  outputTokens: 0,
  costNano: null
})

/** A case and its reply, as in `results` of the report. A field is null where the case expects nothing of that kind. */
export const CaseResult = Schema.Struct({
  line: Schema.Number,
  question: Schema.String,
  passed: Schema.Boolean,
  /** Why it failed, in words. */
  problems: Schema.Array(Schema.String),
  /** Whether the first cited document, one of the first three, or any of them is an expected one. */
  sourceAt1: CheckResult,
  sourceAt3: CheckResult,
  sourceCited: CheckResult,
  facts: CheckResult,
  refusal: CheckResult,
  /** The verdict on the case's criterion. */
  verdict: Schema.optionalWith(Schema.NullOr(Verdict), { default: () => null }),
  /** Share of its citations that are supported; null if the service does not report it. */
  grounding: Schema.NullOr(Schema.Number),
  citations: Schema.Array(
    Schema.Struct({ sourceName: Schema.String, title: Schema.String, url: Schema.String })
  ),
  reply: Schema.NullOr(Schema.String),
  error: Schema.NullOr(Schema.String),
  latencyMs: Schema.NullOr(Schema.Number),
  inputTokens: Schema.NullOr(Schema.Number),
  outputTokens: Schema.NullOr(Schema.Number)
})
export type CaseResult = typeof CaseResult.Type

const marks = /\[(\d{1,3})\]/g

/** The citations that have marks in the reply, in the order of their first marks. */
const markedCitations = ({ citations, text }: Reply): ReadonlyArray<Citation> => {
  const indices = new Set(Array.from(text.matchAll(marks), ([, number]) => Number(number)))
  return [...indices].flatMap((index) => citations.filter((citation) => citation.index === index))
}

/** Identifies the cited document. Only web addresses are unique: text sources share one, and uploads may have the same. */
const documentKeyOf = ({ sourceId, url }: Citation): string =>
  /^https?:/i.test(url) ? url : `${sourceId} ${url}`

/** The citations grouped by document, in the order of each document's first citation. */
const citationsByDocument = (
  citations: ReadonlyArray<Citation>
): ReadonlyArray<readonly [Citation, ...Array<Citation>]> => {
  const found = new Map<string, [Citation, ...Array<Citation>]>()
  for (const citation of citations) {
    const document = found.get(documentKeyOf(citation))
    if (document === undefined) found.set(documentKeyOf(citation), [citation])
    else document.push(citation)
  }
  return [...found.values()]
}

const normalized = (text: string): string => text.normalize("NFKC").toLowerCase().replace(/\s+/g, " ").trim()

/** An address without query, fragment and trailing slash. For an uploaded file it is the path. */
const addressOf = (url: string): string => {
  const [address = ""] = normalized(url)
    .replace(/^upload:/, "/")
    .split(/[?#]/, 1)
  return address.endsWith("/") ? address.slice(0, -1) : address
}

/**
 * Whether `expected` identifies the cited document: by the source's id or name, the document's address or its end from a
 * slash on, its title, or a heading of the title's path. Case and runs of white space are ignored.
 */
export const matchesDocument = (
  expected: string,
  { sourceId, sourceName, title, url }: Citation
): boolean => {
  const wanted = normalized(expected)
  const address = addressOf(url)
  return (
    [sourceId, sourceName, title, ...title.split(" > ")].some((name) => normalized(name) === wanted) ||
    normalized(url) === wanted ||
    address === addressOf(expected) ||
    address.endsWith(`/${addressOf(expected).replace(/^\//, "")}`)
  )
}

/** The text for comparison: without citation marks, emphasis and code marks, and with one kind of apostrophe. */
const comparableText = (text: string): string =>
  normalized(
    text
      .replace(/\[\d{1,3}\]/g, "")
      .replace(/[*`_]/g, "")
      .replaceAll("’", "'")
  ).replace(/ (?=[.,;:!?])/g, "")

/** Whether `text` contains `fact` word for word. A number does not match within a longer one. */
export const containsFact = (text: string, fact: string): boolean => {
  const all = comparableText(text)
  const wanted = comparableText(fact)
  if (wanted === "") return all.includes(normalized(fact))
  for (let at = all.indexOf(wanted); at >= 0; at = all.indexOf(wanted, at + 1)) {
    const before = all.slice(Math.max(0, at - 2), at)
    const after = all.slice(at + wanted.length, at + wanted.length + 2)
    const continuesBefore = /^\d/.test(wanted) && /\d[.,]?$/.test(before)
    const continuesAfter = /\d$/.test(wanted) && /^[.,]?\d/.test(after)
    if (!continuesBefore && !continuesAfter) return true
  }
  return false
}

/** Verbs that follow "not" or "n't" in a reply that refuses. */
const negatedVerbs =
  "know find found answer contain mention cover include say state tell provide have able sure available help enough"

/** English phrases that say that the sources do not answer, and the notices that replace a withheld reply. */
const refusalPhrases = [
  ...negatedVerbs.split(" ").flatMap((verb) => [`not ${verb}`, `n't ${verb}`]),
  ..."found nothing|find nothing|nothing on|nothing about|no information|no answer|no mention|no source|no passage".split(
    "|"
  ),
  "unable to",
  "sorry",
  ...Notices.refusals.map(comparableText)
]

/**
 * Whether a reply refuses to answer: it cites nothing, and it contains a known refusal or one of the `phrases`. `cited`
 * is what it cites.
 */
export const isRefusal = (
  reply: Reply,
  phrases: ReadonlyArray<string>,
  cited: ReadonlyArray<Citation> = markedCitations(reply)
): boolean => {
  if (cited.length > 0) return false
  const replyWords = comparableText(reply.text)
  const furtherPhrases = phrases.map(comparableText).filter((phrase) => phrase !== "")
  return [...refusalPhrases, ...furtherPhrases].some((phrase) => replyWords.includes(phrase))
}

/** A name in a message. The quotes tell it from the words around it. */
const quoted = (name: string): string => JSON.stringify(name)

const groundingOf = (citations: ReadonlyArray<Citation>): number | null => {
  const judged = citations.flatMap(({ supported }) => (supported === undefined ? [] : [supported]))
  return judged.length === 0 ? null : judged.filter((supported) => supported === "yes").length / judged.length
}

/** The object of a reply; null for any other text. */
const objectOf = (text: string): JsonObject | null => {
  const value = Either.getOrNull(parse(text))
  return isObject(value) ? value : null
}

const valuesOf = (value: JsonValue): ReadonlyArray<string> =>
  typeof value === "object" && value !== null
    ? (isList(value) ? value : Object.values(value)).flatMap(valuesOf)
    : [String(value)]

/** The text and the citations of a reply. The text of an object is its values. It has no marks, so all citations count. */
const contentOf = (reply: Reply, object: JsonObject | null) =>
  object === null
    ? { text: reply.text, citations: markedCitations(reply) }
    : { text: valuesOf(object).join("\n"), citations: reply.citations }

/** Why the sources do not support the reply. A citation that is partly supported, or was not checked, is accepted. */
const groundingProblems = ({ citations }: Reply): ReadonlyArray<string> => {
  if (citations.length === 0) return ["cites nothing, and was expected to be supported by sources"]
  const unsupported = citationsByDocument(citations.filter(({ supported }) => supported === "no"))
  return unsupported.length === 0
    ? []
    : [`not supported by what it cites: ${unsupported.map(([{ title }]) => title).join(", ")}`]
}

const resultWithoutReply = (
  { expectFacts, expectRefusal, expectSources, line, question, responseSchema }: Case,
  { error, tokens = null }: NoReply
): CaseResult => {
  const missed = (expected: boolean) => (expected ? false : null)
  return {
    line,
    question,
    passed: false,
    problems: [`no reply${responseSchema === undefined ? "" : " that fits the responseSchema"}: ${error}`],
    sourceAt1: missed(expectSources.length > 0),
    sourceAt3: missed(expectSources.length > 0),
    sourceCited: missed(expectSources.length > 0),
    facts: missed(expectFacts.length > 0),
    refusal: missed(expectRefusal !== undefined),
    verdict: null,
    grounding: null,
    citations: [],
    reply: null,
    error,
    latencyMs: null,
    inputTokens: tokens?.input ?? null,
    outputTokens: tokens?.output ?? null
  }
}

const verdictProblems = ({ passed, reason }: Verdict): ReadonlyArray<string> =>
  passed === true
    ? []
    : [passed === false ? `does not meet the criterion: ${reason}` : `cannot be judged: ${reason}`]

/**
 * `phrases` are further ways to say that the sources do not answer. `modelVerdict` is a model's judgement of the case's
 * criterion. A case with a criterion but without a verdict does not pass.
 */
export const judge = (
  asked: Case,
  reply: Reply | NoReply,
  phrases: ReadonlyArray<string>,
  modelVerdict: Verdict = unjudged("no language model was asked")
): CaseResult => {
  if ("error" in reply) return resultWithoutReply(asked, reply)
  const verdict = asked.criterion === undefined ? null : modelVerdict
  const { expectFacts, expectGrounding, expectRefusal, expectSources, line, question, responseSchema } = asked
  const object = responseSchema === undefined ? null : objectOf(reply.text)
  const { citations, text } = contentOf(reply, object)
  const cited = citationsByDocument(citations)
  const citedAmongFirst = (first: number) =>
    expectSources.length === 0
      ? null
      : cited
          .slice(0, first)
          .flat()
          .some((citation) => expectSources.some((source) => matchesDocument(source, citation)))
  const missing = expectFacts.filter((fact) => !containsFact(text, fact))
  const refused = isRefusal(reply, phrases, citations)
  const sourceCited = citedAmongFirst(Infinity)
  const problems = [
    // The turn has checked the object against the schema. A handoff notice is no object.
    ...(responseSchema !== undefined && object === null ? ["is no object that fits the responseSchema"] : []),
    ...(sourceCited === false
      ? [
          `expected ${expectSources.map(quoted).join(" or ")}, cited ${cited.map(([{ title }]) => quoted(title)).join(", ") || "nothing"}`
        ]
      : []),
    ...missing.map((fact) => `does not say: ${fact}`),
    ...(expectRefusal === true && !refused ? ["answered, and was expected to refuse"] : []),
    ...(expectRefusal === false && refused ? ["refused, and was expected to answer"] : []),
    ...(expectGrounding === true ? groundingProblems(reply) : []),
    ...(verdict === null ? [] : verdictProblems(verdict))
  ]
  return {
    line,
    question,
    passed: problems.length === 0,
    problems,
    sourceAt1: citedAmongFirst(1),
    sourceAt3: citedAmongFirst(3),
    sourceCited,
    facts: expectFacts.length === 0 ? null : missing.length === 0,
    refusal: expectRefusal === undefined ? null : expectRefusal === refused,
    verdict,
    grounding: groundingOf(reply.citations),
    citations: cited.map(([{ sourceName, title, url }]) => ({ sourceName, title, url })),
    reply: reply.text,
    error: null,
    latencyMs: Math.round(reply.latency),
    inputTokens: reply.tokens?.input ?? null,
    outputTokens: reply.tokens?.output ?? null
  }
}
