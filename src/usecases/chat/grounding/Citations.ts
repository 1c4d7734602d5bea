/** The citations of a reply. Each is emitted while the reply streams, at the place of its first mark. */
import type { Citation, TurnPart } from "../../../domain/chat/ChatTurn.ts"
import { MarkScanner, type Piece } from "./Marks.ts"
import { type Passage, titleOf } from "./Passages.ts"

/** Each passage as a citation, in order. */
export const candidatesOf = (passages: ReadonlyArray<Passage>): ReadonlyArray<Citation> =>
  passages.map(({ chunk, index, text }) => ({
    index,
    sourceId: chunk.sourceId,
    sourceName: chunk.sourceName,
    documentId: chunk.documentId,
    chunkId: chunk.id,
    title: titleOf(chunk),
    url: chunk.url,
    text,
    score: chunk.score
  }))

/**
 * Emits each citation within the text, right before the bracket that ends its first mark. A client that shows the text
 * as it comes then knows what the mark refers to. The place does not depend on how the text is split into pieces.
 */
export class CitationStream {
  private readonly candidates: Map<number, Citation>
  private readonly numbers: Set<number>
  private readonly scanner: MarkScanner | null
  private readonly emitted = new Set<number>()
  private emittedText = ""

  /**
   * `marks`: `removed` removes marks that match no passage, `kept` leaves them, `none` leaves the text alone, for an
   * agent without sources.
   */
  constructor(candidates: ReadonlyArray<Citation>, marks: "removed" | "kept" | "none") {
    this.candidates = new Map(candidates.map((citation) => [citation.index, citation]))
    this.numbers = new Set(this.candidates.keys())
    this.scanner =
      marks === "none" ? null : new MarkScanner(this.numbers, { removesOthers: marks === "removed" })
  }

  /** Adds passages that were found since the reply began. */
  add(candidates: ReadonlyArray<Citation>): void {
    for (const citation of candidates) {
      this.candidates.set(citation.index, citation)
      this.numbers.add(citation.index)
    }
  }

  /** Numbers of the passages that may be cited; null where texts have no marks. */
  get known(): ReadonlySet<number> | null {
    return this.scanner === null ? null : this.numbers
  }

  /** The candidates with these numbers, in order. */
  of(numbers: ReadonlySet<number>): ReadonlyArray<Citation> {
    return [...this.candidates.values()].filter(({ index }) => numbers.has(index))
  }

  /** The text emitted so far. */
  get text(): string {
    return this.emittedText
  }

  /** The candidates that the text cites, by number. */
  get cited(): ReadonlyArray<Citation> {
    return this.of(this.emitted)
  }

  /** The parts for the next piece of text. A citation comes before its mark. */
  addText(delta: string): ReadonlyArray<TurnPart> {
    return this.partsOf(this.scanner === null ? [{ _tag: "Text", text: delta }] : this.scanner.push(delta))
  }

  /** The text held back, at the end of the reply. */
  end(): ReadonlyArray<TurnPart> {
    return this.scanner === null ? [] : this.partsOf(this.scanner.flush())
  }

  /** Those of `citations` that were not emitted with the text. */
  rest(citations: ReadonlyArray<Citation>): ReadonlyArray<TurnPart> {
    return citations
      .filter(({ index }) => !this.emitted.has(index))
      .map((citation) => ({ _tag: "Citation", citation }))
  }

  private partsOf(pieces: ReadonlyArray<Piece>): ReadonlyArray<TurnPart> {
    const parts: Array<TurnPart> = []
    let text = ""
    const flush = () => {
      if (text !== "") parts.push({ _tag: "TextDelta", delta: text })
      this.emittedText += text
      text = ""
    }
    for (const piece of pieces) {
      if (piece._tag === "Text") {
        text += piece.text
        continue
      }
      const citation = this.candidates.get(piece.number)
      text += `[${piece.number}`
      if (citation !== undefined && !this.emitted.has(piece.number)) {
        this.emitted.add(piece.number)
        flush()
        parts.push({ _tag: "Citation", citation })
      }
      text += "]"
    }
    flush()
    return parts
  }
}
