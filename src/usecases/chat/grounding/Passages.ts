/** Builds the passages that the model is shown, each with one number, from the chunks that a search found. */
import type * as DateTime from "effect/DateTime"
import type * as ModelRuntime from "../../../capabilities/ModelRuntime.ts"
import type { FoundChunk } from "../../../capabilities/VectorSearch.ts"
import type { RunPassage } from "../../../domain/chat/AgentRun.ts"
import { estimateTokens } from "../../../domain/Tokens.ts"
import type { SectionChunk } from "../../../store/knowledge/Passages.ts"

/** A chunk of a passage. */
interface Piece {
  readonly ordinal: number
  readonly text: string
  /** Whether a search found it, or it was added: as a neighbour in the section, or as the beginning of its parent. */
  readonly kind: "found" | "near" | "parent"
}

export interface Passage {
  /** The number by which the reply cites it, from 1 in search order. */
  readonly index: number
  /** The best of its chunks. */
  readonly chunk: FoundChunk
  /** Chunks of one section in reading order. */
  readonly pieces: ReadonlyArray<Piece>
  /** Their text. */
  readonly text: string
  /** When the service read it; null where unknown. */
  readonly readAt: DateTime.Utc | null
  /** True for a curated answer. */
  readonly curated: boolean
}

export const titleOf = ({ title, heading }: FoundChunk): string =>
  heading === "" ? title : `${title} > ${heading}`

const keyOf = ({ documentId, heading }: { readonly documentId: string; readonly heading: string }) =>
  `${documentId} ${heading}`

/** Separates chunks that are not neighbours. */
export const gap = "\n\n[…]\n\n"

interface Section {
  readonly best: FoundChunk
  readonly foundOrdinals: Array<number>
  /** By ordinal: the stored chunks of the section, and the text shown of each. */
  readonly stored: ReadonlyMap<number, SectionChunk>
  readonly shown: Map<number, string>
  /** The beginning of the parent section, if it is shown. */
  parent: Piece | null
}

const piecesOf = ({ foundOrdinals, parent, shown }: Section): ReadonlyArray<Piece> => {
  const own = Array.from(shown, ([ordinal, text]): Piece => ({
    ordinal,
    text,
    kind: foundOrdinals.includes(ordinal) ? "found" : "near"
  }))
  return [...own, ...(parent === null ? [] : [parent])].toSorted((one, other) => one.ordinal - other.ordinal)
}

/** The beginning of the nearest parent section among `nearby`. */
const parentOf = ({ best }: Section, nearby: ReadonlyArray<SectionChunk>): SectionChunk | undefined =>
  nearby
    .filter(
      ({ documentId, heading }) =>
        documentId === best.documentId &&
        heading !== best.heading &&
        (heading === "" || best.heading.startsWith(`${heading} > `))
    )
    .toSorted((one, other) => other.heading.length - one.heading.length || one.ordinal - other.ordinal)[0]

const joinedText = (pieces: ReadonlyArray<Piece>): string => {
  let all = ""
  let last: number | undefined
  for (const { ordinal, text } of pieces) {
    if (last !== undefined) all += ordinal === last + 1 ? "\n\n" : gap
    all += text
    last = ordinal
  }
  return all
}

/** The first stored chunk of the section: from the first found chunk backwards without a gap. */
const startOf = ({ foundOrdinals, stored }: Section): number => {
  let start = Math.min(...foundOrdinals)
  while (stored.has(start - 1)) start--
  return start
}

/** Largest share of the context window that sources may take. The rest is for the conversation and the reply. */
const sourcesShare = 0.25
/** Tokens of sources from which a reply without a model is taken. */
const maxQuotedTokens = 6_000

/** Token budget for the sources of one turn. */
export const budgetOf = (
  { contextWindow, readsPassages }: Pick<ModelRuntime.ModelRuntimeService, "contextWindow" | "readsPassages">,
  { contextTokens }: { readonly contextTokens: number }
): number => (readsPassages ? maxQuotedTokens : Math.min(contextTokens, contextWindow * sourcesShare))

/** A shorter text is compared together with its title: two questions may have the answer "Yes.". In UTF-16 units. */
const minTextAlone = 200

/** Texts with the same key are shown once. White space and case do not matter. */
const deduplicationKey = (text: string, title: string, heading: string): string => {
  const whole = text.length < minTextAlone ? `${title}\n${heading}\n${text}` : text
  // Single spaces, the most frequent white space, are not matched.
  return whole
    .replaceAll(/\s{2,}|[^\S ]/gu, " ")
    .trim()
    .toLowerCase()
}

/** Takes texts within a token budget, and no text twice. */
class Budget {
  readonly #seen: Set<string>
  #left: number
  #isEmpty = true

  constructor(tokens: number, before: ReadonlyArray<Passage>) {
    this.#left = tokens
    this.#seen = new Set(
      before.flatMap(({ chunk: { heading, title }, pieces }) =>
        pieces.map(({ text }) => deduplicationKey(text, title, heading))
      )
    )
  }

  /** `text` if it fits and was not taken before, else null. The very first text is cut to fit. */
  take(text: string, title: string, heading: string): string | null {
    const tokens = estimateTokens(text)
    // Checked first: it costs a fraction of the comparison, and most neighbours do not fit.
    if (tokens > this.#left && !this.#isEmpty) return null
    const key = deduplicationKey(text, title, heading)
    if (this.#seen.has(key)) return null
    this.#seen.add(key)
    this.#isEmpty = false
    const share = Math.min(1, this.#left / tokens)
    this.#left -= Math.ceil(tokens * share)
    return share === 1 ? text : text.slice(0, Math.floor(text.length * share)).toWellFormed()
  }
}

/** Maximum distance from a found chunk, in chunks, at which neighbours are added. */
const maxDistance = 24

/**
 * Fills `tokens` (estimated by {@link estimateTokens}) with the found chunks, then the start of each section, then the
 * beginning of its parent section, then neighbours, nearest first and the best section first. Chunks of one section form
 * one passage. Texts that were shown already are left out, also those of `before`; the numbers continue after `before`.
 */
export const fitPassages = (
  found: ReadonlyArray<FoundChunk>,
  nearby: ReadonlyArray<SectionChunk>,
  tokens: number,
  before: ReadonlyArray<Passage> = []
): ReadonlyArray<Passage> => {
  const bySection = new Map<string, Array<SectionChunk>>()
  for (const chunk of nearby) {
    const key = keyOf(chunk)
    const section = bySection.get(key)
    if (section === undefined) bySection.set(key, [chunk])
    else section.push(chunk)
  }
  const budget = new Budget(tokens, before)
  const sections = new Map<string, Section>()
  for (const chunk of found) {
    const text = budget.take(chunk.text, chunk.title, chunk.heading)
    if (text === null) continue
    const key = keyOf(chunk)
    const stored = new Map((bySection.get(key) ?? []).map((one) => [one.ordinal, one]))
    const section = sections.get(key) ?? {
      best: chunk,
      foundOrdinals: [],
      stored,
      shown: new Map<number, string>(),
      parent: null
    }
    section.foundOrdinals.push(chunk.ordinal)
    section.shown.set(chunk.ordinal, text)
    sections.set(key, section)
  }
  const show = ({ best, shown, stored }: Section, ordinal: number) => {
    const chunk = stored.get(ordinal)
    if (chunk === undefined || shown.has(ordinal)) return
    const text = budget.take(chunk.text, best.title, best.heading)
    if (text !== null) shown.set(ordinal, text)
  }
  const all = [...sections.values()]
  for (const section of all) show(section, startOf(section))
  for (const section of all) {
    const parent = parentOf(section, nearby)
    const text = parent === undefined ? null : budget.take(parent.text, section.best.title, parent.heading)
    if (parent !== undefined && text !== null)
      section.parent = { ordinal: parent.ordinal, text, kind: "parent" }
  }
  for (let distance = 1; distance <= maxDistance; distance++) {
    for (const section of all) {
      for (const hit of section.foundOrdinals) {
        show(section, hit + distance)
        show(section, hit - distance)
      }
    }
  }
  return all.map((section, index) => {
    const pieces = piecesOf(section)
    return {
      index: before.length + index + 1,
      chunk: section.best,
      pieces,
      text: joinedText(pieces),
      readAt: section.stored.get(section.best.ordinal)?.readAt ?? null,
      curated: false
    }
  })
}

/** The passages as stored with the run. */
export const toRunPassages = (passages: ReadonlyArray<Passage>): ReadonlyArray<RunPassage> =>
  passages.map(({ chunk, index, text }) => ({
    index,
    sourceId: chunk.sourceId,
    sourceName: chunk.sourceName,
    documentId: chunk.documentId,
    chunkId: chunk.id,
    title: chunk.title,
    heading: chunk.heading,
    url: chunk.url,
    text,
    score: chunk.score
  }))

/** The chunks of the passages, for a runtime that answers from them. */
export const toRuntimePassages = (passages: ReadonlyArray<Passage>): ReadonlyArray<ModelRuntime.Passage> =>
  passages.flatMap(({ chunk, curated, index, pieces }) =>
    pieces.flatMap(({ kind, ordinal, text }) =>
      kind === "parent"
        ? []
        : {
            index,
            title: titleOf(chunk),
            text,
            score: chunk.score,
            documentId: chunk.documentId,
            ordinal,
            isFound: kind === "found",
            curated
          }
    )
  )
