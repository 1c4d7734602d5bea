import * as DateTime from "effect/DateTime"
import { describe, expect, it } from "vitest"
import type { FoundChunk } from "../../../src/capabilities/VectorSearch.ts"
import { DocumentId } from "../../../src/domain/Ids.ts"
import type { SectionChunk } from "../../../src/store/knowledge/Passages.ts"
import { budgetOf, fitPassages, toRuntimePassages } from "../../../src/usecases/chat/grounding/Passages.ts"
import { chunk } from "./TurnHarness.ts"

const readAt = DateTime.unsafeMake("2026-11-01T10:00:00Z")

const hit = (document: number, ordinal: number, text: string, heading = "Prices"): FoundChunk => ({
  ...chunk(document * 100 + ordinal),
  documentId: DocumentId.make(`doc_${document}`),
  title: `Chapter ${document}`,
  heading,
  ordinal,
  text
})

const stored = (document: number, ordinal: number, text: string, heading = "Prices"): SectionChunk => ({
  documentId: DocumentId.make(`doc_${document}`),
  heading,
  ordinal,
  text,
  readAt
})

const section = (document: number, length: number) =>
  Array.from({ length }, (_, ordinal) =>
    stored(document, ordinal, `Piece ${ordinal} of document ${document}.`)
  )

describe("The passages that a model is shown", () => {
  it("are one for each section, in reading order, with the start of the section and neighbouring chunks", () => {
    const passages = fitPassages(
      [hit(1, 4, "Piece 4 of document 1."), hit(2, 0, "Other."), hit(1, 2, "Piece 2 of document 1.")],
      [...section(1, 6), stored(2, 0, "Other.")],
      1_000
    )
    expect(passages.map(({ chunk: { documentId }, index }) => [index, documentId])).toEqual([
      [1, "doc_1"],
      [2, "doc_2"]
    ])
    expect(passages[0]?.text).toBe([0, 1, 2, 3, 4, 5].map((at) => `Piece ${at} of document 1.`).join("\n\n"))
    expect(passages[0]?.readAt).toEqual(readAt)
  })

  it("stay within their token limit; found chunks take precedence over neighbours", () => {
    const text = (place: number) => `${place} `.padEnd(400, "word ")
    const around = Array.from({ length: 12 }, (_, ordinal) => stored(1, ordinal, text(ordinal)))
    const shown = fitPassages([hit(1, 6, text(6))], around, 310)[0]?.text ?? ""
    // About a hundred tokens each: what was found, the start of its section, one neighbour.
    expect(shown).toBe([text(0), "[…]", `${text(6)}\n\n${text(7)}`].join("\n\n"))
    expect(fitPassages([hit(1, 6, "x".repeat(8_000))], [], 500)[0]?.text).toHaveLength(2_000)
  })

  const titled = (document: number, title: string, text: string) => ({ ...hit(document, 0, text), title })

  it("contain no text twice: a short one per title, a long one over all titles", () => {
    const texts = (one: string, other: string, title: string) =>
      fitPassages([titled(1, "Guide", one), titled(2, title, other)], [], 1_000).map(({ text }) => text)
    expect(texts("The same text.", "the same\ntext.", "Guide")).toEqual(["The same text."])
    const long = "The same text. ".repeat(20)
    expect(texts(long, long, "Copy")).toEqual([long])
  })

  it("contain equal short answers to different questions, also of a second search", () => {
    const answers = [
      titled(1, "Do you ship to France?", "Yes."),
      titled(2, "Do you ship to Japan?", "Yes."),
      titled(3, "Do you ship to Brazil?", "No.")
    ]
    const first = fitPassages(answers, [], 1_000)
    expect(first).toHaveLength(3)
    const second = fitPassages([titled(4, "Do you ship to Norway?", "Yes."), ...answers], [], 1_000, first)
    expect(second).toMatchObject([{ index: 4, text: "Yes." }])
  })

  it("contain an amount that is the end of another amount", () => {
    const first = fitPassages([titled(1, "Price", "It costs 110 EUR")], [], 1_000)
    expect(fitPassages([titled(2, "Price", "10 EUR")], [], 1_000, first)).toHaveLength(1)
  })

  it("are the found chunks if nothing else is known", () => {
    expect(fitPassages([hit(1, 3, "Alone.")], [], 1_000)).toMatchObject([
      { index: 1, text: "Alone.", readAt: null }
    ])
  })

  it("begin with the beginning of the nearest parent section that has text", () => {
    const around = [
      stored(1, 0, "About this page.", ""),
      stored(1, 1, "Prices are net.", "Prices"),
      stored(1, 2, "They hold for a year.", "Prices"),
      stored(1, 3, "Basic costs 10 euros.", "Prices > Plans > Basic"),
      stored(2, 0, "Another document.", "Prices")
    ]
    const [passage] = fitPassages(
      [hit(1, 3, "Basic costs 10 euros.", "Prices > Plans > Basic")],
      around,
      1_000
    )
    expect(passage?.text).toBe("Prices are net.\n\n[…]\n\nBasic costs 10 euros.")
    const [first, second] = fitPassages(
      [hit(1, 3, "Basic costs 10 euros.", "Prices > Plans > Basic"), hit(1, 1, "Prices are net.")],
      around,
      1_000
    )
    expect(first?.text).toBe("Basic costs 10 euros.")
    expect(second?.text).toBe("About this page.\n\nPrices are net.\n\nThey hold for a year.")
    const [short] = fitPassages([hit(1, 3, "Basic costs 10 euros.", "Prices > Plans > Basic")], around, 6)
    expect(short?.text).toBe("Basic costs 10 euros.")
  })

  it("are single chunks without the parent section for a runtime that quotes them", () => {
    const around = [
      stored(1, 0, "About this page.", ""),
      ...[1, 2, 3].map((at) => stored(1, at, `Piece ${at} of document 1.`))
    ]
    const passages = fitPassages([hit(1, 2, "Piece 2 of document 1."), hit(2, 0, "Other.")], around, 1_000)
    expect(
      toRuntimePassages(passages).map(({ index, isFound, ordinal, text }) => [index, ordinal, text, isFound])
    ).toEqual([
      [1, 1, "Piece 1 of document 1.", false],
      [1, 2, "Piece 2 of document 1.", true],
      [1, 3, "Piece 3 of document 1.", false],
      [2, 0, "Other.", true]
    ])
  })

  it("take at most a quarter of a small context window, and the same for every agent without a model", () => {
    const window = (contextWindow: number, readsPassages = false) => ({ contextWindow, readsPassages })
    expect(budgetOf(window(128_000), { contextTokens: 6_000 })).toBe(6_000)
    expect(budgetOf(window(8_000), { contextTokens: 6_000 })).toBe(2_000)
    expect(budgetOf(window(128_000, true), { contextTokens: 500 })).toBe(6_000)
  })
})
