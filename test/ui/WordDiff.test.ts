import { describe, expect, it } from "vitest"
import { diffWords } from "../../src/ui/dashboard/pages/agents/wordDiff.ts"

const marked = (text: string, other: string) =>
  diffWords(text, other)
    .map((part) => (part.isNew ? `[${part.text}]` : part.text))
    .join("")

describe("What differs between two replies", () => {
  it("is marked by words, in both directions", () => {
    expect(marked("Pull the plug, hold the button.", "Pull the plug.")).toBe(
      "Pull the[ plug, hold the button.]"
    )
    expect(marked("Pull the plug.", "Pull the plug.")).toBe("Pull the plug.")
    expect(marked("Yes, on Monday at nine.", "Yes, at nine.")).toBe("Yes,[ on Monday] at nine.")
    expect(marked("New", "")).toBe("[New]")
    expect(marked("", "Old")).toBe("")
  })

  it("keeps every character, whatever the other one is", () => {
    for (const text of ["  a  b\n\nc ", "x", "a b a b", "one\ttwo "])
      for (const other of ["", "a b", "c b a", text])
        expect(
          diffWords(text, other)
            .map((part) => part.text)
            .join("")
        ).toBe(text)
  })

  it("is the whole of a text that is too long to be compared", () => {
    const long = "word ".repeat(1_500)
    expect(diffWords(long, "word")).toEqual([{ text: long, isNew: true }])
  })
})
