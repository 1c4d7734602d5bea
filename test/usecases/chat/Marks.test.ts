import * as FastCheck from "effect/FastCheck"
import { describe, expect, it } from "vitest"
import { MarkScanner, withoutMarks } from "../../../src/usecases/chat/grounding/Marks.ts"

/** Text as it is, a mark in braces. */
const scanned = (pieces: ReadonlyArray<string>, numbers: ReadonlyArray<number> = [1, 2, 3]) => {
  const scanner = new MarkScanner(new Set(numbers), { removesOthers: true })
  return [...pieces.flatMap((piece) => scanner.push(piece)), ...scanner.flush()]
    .map((piece) => (piece._tag === "Text" ? piece.text : `{${piece.number}}`))
    .join("")
}

/** What a reader sees of it. */
const plain = (text: string) => text.replaceAll("{", "[").replaceAll("}", "]")

describe("The marks of a text", () => {
  it("of no passage are removed with the space before them", () => {
    for (const [text, seen] of [
      ["It is so [9].", "It is so."],
      ["It is [9] so [1].", "It is so {1}."],
      ["[9] It is so.", "It is so."],
      ["It is so.[9]", "It is so."],
      ["一句话[9]。", "一句话。"],
      ["It is so [9]", "It is so"],
      ["One [0]\nTwo [1]", "One\nTwo {1}"],
      ["[[9]1] is marked", "{1} is marked"]
    ] as const)
      expect(scanned([text])).toBe(seen)
  })

  it("in a list become separate marks, and a list with any other number is not a list of marks", () => {
    expect(scanned(["So [1, 2] and [3,1]."])).toBe("So {1}{2} and {3}{1}.")
    expect(scanned(["From the interval [0, 100]."])).toBe("From the interval [0, 100].")
  })

  it("do not exist in code, where brackets are unchanged", () => {
    for (const text of ["Write `list[9]` here", "```js\nlist[9] = list[1]\n```", "~~~~\n[9]\n~~~\n[1]\n~~~~"])
      expect(scanned([text])).toBe(text)
    expect(scanned(["`a` [1] and\n```\nx[1]\n```\nthen [2], it's ` open\nand [3]"])).toBe(
      "`a` {1} and\n```\nx[1]\n```\nthen {2}, it's ` open\nand {3}"
    )
  })

  it("are not the texts of links", () => {
    const text = "See [404](https://example.com/404) and [7](https://example.com/7)."
    expect(scanned([text])).toBe(text)
    expect(scanned(["So [9] (as said)."])).toBe("So (as said).")
  })

  it("are not links, notes or empty brackets", () => {
    const text = "A [link](https://example.com/), a [x] box, a note[^1] and []."
    expect(scanned([text])).toBe(text)
  })

  it("are the same for any chunks of the text, and none remains to be removed afterwards", () => {
    const text = FastCheck.array(
      FastCheck.constantFrom(
        "[1]",
        "[2]",
        "[9]",
        "[",
        "]",
        "1",
        "12",
        "word ",
        " ",
        ", ",
        "\n",
        "`",
        "```",
        "~",
        ".",
        "(",
        "["
      ),
      { maxLength: 24 }
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
        const seen = scanned([whole])
        expect(scanned(pieces)).toBe(seen)
        expect(scanned([plain(seen)])).toBe(seen)
      }),
      { numRuns: 3_000 }
    )
  })

  it("are removed from a text that must not have them", () => {
    expect(withoutMarks("It is so [1][2]. And so [3].")).toBe("It is so. And so.")
  })
})
