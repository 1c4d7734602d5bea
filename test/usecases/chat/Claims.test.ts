import { describe, expect, it } from "vitest"
import { claimsOf } from "../../../src/usecases/chat/grounding/Claims.ts"

const numbers = new Set([1, 2, 3])
const shown = (reply: string) => claimsOf(reply, numbers).map(({ numbers: cited, text }) => [text, ...cited])

describe("The statements that marks stand for", () => {
  it("are the sentences with a mark in them or after them", () => {
    expect(
      shown(
        "Nothing is said here. It costs 10 euros [1]. It ships in 3.5 days. [2] Dr. Who agrees, e.g. here [1][3]!\nSo?"
      )
    ).toEqual([
      ["It costs 10 euros.", 1],
      ["It ships in 3.5 days.", 2],
      ["Dr. Who agrees, e.g. here!", 1, 3]
    ])
    expect(shown("它的价格是10欧元[1]。三天送达。[2]")).toEqual([
      ["它的价格是10欧元。", 1],
      ["三天送达。", 2]
    ])
  })

  it("end with the signs of other scripts, and with the marks after a blank", () => {
    expect(shown("本は10冊まで借りられます。 [1] 貸出期間は2週間です。 [2]")).toEqual([
      ["本は10冊まで借りられます。", 1],
      ["貸出期間は2週間です。", 2]
    ])
    expect(shown("यह 8 बार होता है [1]। सीमा 100 है। [2]")).toEqual([
      ["यह 8 बार होता है।", 1],
      ["सीमा 100 है।", 2]
    ])
    expect(shown("کیا یہ سچ ہے؟ ہاں [1]۔ نہیں [2]۔")).toEqual([
      ["ہاں۔", 1],
      ["نہیں۔", 2]
    ])
  })

  it("begin with a word or a sign, also within a sentence", () => {
    const reply = "It costs 10 euros [1] and it ships in 3 days [2]."
    expect(claimsOf(reply, numbers).map(({ end, start }) => reply.slice(start, end))).toEqual([
      "It costs 10 euros [1]",
      "and it ships in 3 days [2]."
    ])
  })

  it("are parts of a sentence where each of them has its own marks, and the whole where one has no words", () => {
    expect(shown("It costs 10 euros [1], and it ships in 3 days [2].")).toEqual([
      ["It costs 10 euros", 1],
      [", and it ships in 3 days.", 2]
    ])
    expect(shown("According to [1], it costs 10 euros.")).toEqual([["According to, it costs 10 euros.", 1]])
  })

  it("are the text before marks on their own line, and never code", () => {
    expect(shown("Run this:\n\n```\nlist[1]\n```\n\nIt is done.\n\n[2]")).toEqual([["It is done.", 2]])
  })

  it("have their positions in the reply", () => {
    const reply = "First 🙂. It costs 10 euros [1]. Then."
    const [claim] = claimsOf(reply, numbers)
    expect(reply.slice(claim?.start, claim?.end)).toBe("It costs 10 euros [1].")
  })

  it("are bounded in number", () => {
    expect(claimsOf("It is so [1]. ".repeat(200), numbers)).toHaveLength(64)
  })
})
