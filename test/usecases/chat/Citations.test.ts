import * as FastCheck from "effect/FastCheck"
import { describe, expect, it } from "vitest"
import type { Citation, TurnPart } from "../../../src/domain/chat/ChatTurn.ts"
import { ChunkId, DocumentId, SourceId } from "../../../src/domain/Ids.ts"
import { CitationStream } from "../../../src/usecases/chat/grounding/Citations.ts"

const citation = (index: number): Citation => ({
  index,
  sourceId: SourceId.make("src_1"),
  sourceName: "Handbook",
  documentId: DocumentId.make("doc_1"),
  chunkId: ChunkId.make(`chk_${index}`),
  title: "Chapter",
  url: "https://example.com/",
  text: "Fact",
  score: 1
})

/** Text as it is, a citation as its number in braces. */
const written = (parts: ReadonlyArray<TurnPart>) =>
  parts
    .map((part) =>
      part._tag === "TextDelta" ? part.delta : part._tag === "Citation" ? `{${part.citation.index}}` : ""
    )
    .join("")

const told = (pieces: ReadonlyArray<string>, marks: "removed" | "kept" | "none" = "removed") => {
  const citationStream = new CitationStream([1, 2, 3].map(citation), marks)
  return written([...pieces.flatMap((piece) => citationStream.addText(piece)), ...citationStream.end()])
}

describe("The citations of a reply", () => {
  it("are sent before the bracket that ends their first mark, and only for existing passages", () => {
    expect(told(["So [1] and [9] and [2], again [1]."])).toBe("So [1{1}] and and [2{2}], again [1].")
    expect(told(["So [1] and [9]."], "kept")).toBe("So [1{1}] and [9].")
    expect(told(["So [1] and [9]."], "none")).toBe("So [1] and [9].")
    expect(told(["So [", "1", "] and [", "2]", "["])).toBe("So [1{1}] and [2{2}][")
  })

  it("are sent at the same position for any chunks of the text", () => {
    const text = FastCheck.array(
      FastCheck.constantFrom("[1]", "[2]", "[3]", "[9]", "[", "]", "1", "12", "word ", "[1", "2]"),
      { maxLength: 20 }
    )
    FastCheck.assert(
      FastCheck.property(text, FastCheck.infiniteStream(FastCheck.nat(5)), (all, sizes) => {
        const whole = all.join("")
        const pieces: Array<string> = []
        for (let at = 0; at < whole.length;) {
          const size = 1 + Number(sizes.next().value)
          pieces.push(whole.slice(at, at + size))
          at += size
        }
        expect(told(pieces)).toBe(whole === "" ? "" : told([whole]))
      }),
      { numRuns: 1_000 }
    )
  })

  it("are sent after the text if nothing marks them", () => {
    const citationStream = new CitationStream([1, 2].map(citation), "kept")
    citationStream.addText("As it is [2].")
    expect(written(citationStream.rest([1, 2].map(citation)))).toBe("{1}")
  })
})
