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

  it("are parts of a sentence where each of them has its own marks, and the whole where one has no words", () => {
    expect(shown("It costs 10 euros [1], and it ships in 3 days [2].")).toEqual([
      ["It costs 10 euros", 1],
      [", and it ships in 3 days.", 2]
    ])
    expect(shown("According to [1], it costs 10 euros.")).toEqual([["According to, it costs 10 euros.", 1]])
  })

  it("are what stands before marks on a line of their own, and never code", () => {
    expect(shown("Run this:\n\n```\nlist[1]\n```\n\nIt is done.\n\n[2]")).toEqual([["It is done.", 2]])
  })

  it("have their places in the reply", () => {
    const reply = "First 🙂. It costs 10 euros [1]. Then."
    const [claim] = claimsOf(reply, numbers)
    expect(reply.slice(claim?.start, claim?.end)).toBe("It costs 10 euros [1].")
  })

  it("are bounded in number", () => {
    expect(claimsOf("It is so [1]. ".repeat(200), numbers)).toHaveLength(64)
  })
})
