/** Builds the passages that the model is shown, each with one number, from the chunks that a search found. */
import type * as DateTime from "effect/DateTime"
import type * as ModelRuntime from "../../../capabilities/ModelRuntime.ts"
import type { FoundChunk } from "../../../capabilities/VectorSearch.ts"
import type { RunPassage } from "../../../domain/chat/AgentRun.ts"
import { estimateTokens } from "../../../domain/Tokens.ts"
import type { SectionChunk } from "../../../store/knowledge/Passages.ts"

export interface Passage {
  /** The number by which the reply cites it, from 1 in search order. */
  readonly index: number
  /** The best of its chunks. */
  readonly chunk: FoundChunk
  /** Chunks of one section in reading order. */
  readonly text: string
  /** When the service read it; null where unknown. */
  readonly readAt: DateTime.Utc | null
  /** True for a curated answer. */
  readonly curated: boolean
}

/** One passage per chunk, for a runtime that answers from the chunks themselves. */
export const onePerChunk = (chunks: ReadonlyArray<FoundChunk>): ReadonlyArray<Passage> =>
  chunks.map((chunk, place) => ({ index: place + 1, chunk, text: chunk.text, readAt: null, curated: false }))

export const titleOf = ({ title, heading }: FoundChunk): string =>
  heading === "" ? title : `${title} > ${heading}`

const keyOf = ({ documentId, heading }: { readonly documentId: string; readonly heading: string }) =>
  `${documentId} ${heading}`

/** Separates chunks that are not neighbours. */
export const gap = "\n\n[…]\n\n"

interface Section {
  readonly best: FoundChunk
  readonly hits: Array<number>
  /** By ordinal: the stored chunks of the section, and the text shown of each. */
  readonly stored: ReadonlyMap<number, SectionChunk>
  readonly shown: Map<number, string>
}

const textOf = ({ shown }: Section): string => {
  let text = ""
  let last: number | undefined
  for (const [ordinal, piece] of [...shown].toSorted(([one], [other]) => one - other)) {
    if (last !== undefined) text += ordinal === last + 1 ? "\n\n" : gap
    text += piece
    last = ordinal
  }
  return text
}

/** The first stored chunk of the section: from the first hit backwards without a gap. */
const startOf = ({ hits, stored }: Section): number => {
  let start = Math.min(...hits)
  while (stored.has(start - 1)) start--
  return start
}

/** Takes texts within a token budget, and no text twice. */
class Budget {
  private readonly seen = new Set<string>()
  private left: number

  constructor(tokens: number) {
    this.left = tokens
  }

  /** `text` if it fits and was not taken before, else null. The very first text is cut to fit. */
  take(text: string): string | null {
    const tokens = estimateTokens(text)
    // Checked first: it costs a fraction of the comparison, and most neighbours do not fit.
    if (tokens > this.left && this.seen.size > 0) return null
    // Single spaces, the most frequent white space, are not matched.
    const compared = text
      .replaceAll(/\s{2,}|[^\S ]/gu, " ")
      .trim()
      .toLowerCase()
    if (this.seen.has(compared)) return null
    this.seen.add(compared)
    const share = Math.min(1, this.left / tokens)
    this.left -= Math.ceil(tokens * share)
    return share === 1 ? text : text.slice(0, Math.floor(text.length * share)).toWellFormed()
  }
}

/** Maximum distance from a hit, in chunks, at which neighbours are added. */
const maxDistance = 24

/**
 * Fills `tokens` (estimated by {@link estimateTokens}) with the found chunks, then the start of each section, then
 * neighbours, nearest first and the best section first. Chunks of one section form one passage. Texts that were shown
 * already are left out, also those of `before`; the numbers continue after `before`.
 */
export const fitPassages = (
  found: ReadonlyArray<FoundChunk>,
  around: ReadonlyArray<SectionChunk>,
  tokens: number,
  before: ReadonlyArray<Passage> = []
): ReadonlyArray<Passage> => {
  const isFresh = ({ text }: { readonly text: string }) =>
    !before.some((passage) => passage.text.includes(text))
  const bySection = new Map<string, Array<SectionChunk>>()
  for (const chunk of around.filter(isFresh)) {
    const key = keyOf(chunk)
    const section = bySection.get(key)
    if (section === undefined) bySection.set(key, [chunk])
    else section.push(chunk)
  }
  const budget = new Budget(tokens)
  const sections = new Map<string, Section>()
  for (const chunk of found.filter(isFresh)) {
    const text = budget.take(chunk.text)
    if (text === null) continue
    const key = keyOf(chunk)
    const stored = new Map((bySection.get(key) ?? []).map((one) => [one.ordinal, one]))
    const section = sections.get(key) ?? { best: chunk, hits: [], stored, shown: new Map<number, string>() }
    section.hits.push(chunk.ordinal)
    section.shown.set(chunk.ordinal, text)
    sections.set(key, section)
  }
  const show = ({ shown, stored }: Section, ordinal: number) => {
    const chunk = stored.get(ordinal)
    if (chunk === undefined || shown.has(ordinal)) return
    const text = budget.take(chunk.text)
    if (text !== null) shown.set(ordinal, text)
  }
  const all = [...sections.values()]
  for (const section of all) show(section, startOf(section))
  for (let distance = 1; distance <= maxDistance; distance++) {
    for (const section of all) {
      for (const hit of section.hits) {
        show(section, hit + distance)
        show(section, hit - distance)
      }
    }
  }
  return all.map((section, place) => ({
    index: before.length + place + 1,
    chunk: section.best,
    text: textOf(section),
    readAt: section.stored.get(section.best.ordinal)?.readAt ?? null,
    curated: false
  }))
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

/** The passages as a runtime that answers from them receives them. */
export const toRuntimePassages = (passages: ReadonlyArray<Passage>): ReadonlyArray<ModelRuntime.Passage> =>
  passages.map(({ chunk, curated, index, text }) => ({
    index,
    title: titleOf(chunk),
    text,
    score: chunk.score,
    documentId: chunk.documentId,
    ordinal: chunk.ordinal,
    curated
  }))
