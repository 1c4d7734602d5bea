import { expect, it } from "vitest"
import * as FastCheck from "effect/FastCheck"
import { similarity } from "../../src/search/QuestionSimilarity.ts"

/** As docs/sources.md says. */
const likenessFloor = 0.8

it("A question is alike to itself, whatever its case, spaces and marks", () => {
  for (const [one, other] of [
    ["How do I reset my password?", "  how do i RESET my password "],
    ["Wann öffnet der Laden?", "wann öffnet der laden"],
    ["退款需要多久？", "退款需要多久"],
    ["Why?", "why"]
  ] as const) {
    expect([one, similarity(one, other)]).toEqual([one, 1])
  }
})

it("A question that says the same with other small words is alike", () => {
  for (const [one, other] of [
    ["How can I reset a password?", "How do I reset my password?"],
    ["What are your opening hours?", "opening hours"],
    ["Which payment methods do you accept?", "What payment methods are accepted?"]
  ] as const) {
    const found = similarity(one, other)
    expect([one, found >= likenessFloor && found <= 1]).toEqual([one, true])
  }
})

it("Numbers, negations and directions that differ make another question", () => {
  for (const [one, other] of [
    ["What does plan 1 cost a month?", "What does plan 2 cost a month?"],
    ["Can I cancel my order after shipping?", "Can I cancel my order before shipping?"],
    ["Is delivery to islands included?", "Is delivery to islands not included?"],
    ["Can I cancel my order?", "Can't I cancel my order?"],
    ["How do I turn notifications on?", "How do I turn notifications off?"],
    ["Ist der Versand mit Rechnung möglich?", "Ist der Versand ohne Rechnung möglich?"],
    ["Do you open on Sunday?", "Do you open on Saturday?"],
    ["What is C++?", "What is C#?"],
    ["How do I install the C++ compiler?", "How do I install the C# compiler?"],
    ["refunds", "What about a refund?"],
    ["", ""],
    ["?!", "?!"]
  ] as const) {
    expect([one, similarity(one, other)]).toEqual([one, 0])
  }
})

it("Likeness is the same both ways, 0 or from the floor to 1, for any two texts", () => {
  FastCheck.assert(
    FastCheck.property(
      FastCheck.string({ maxLength: 60 }),
      FastCheck.string({ maxLength: 60 }),
      (one, other) => {
        const found = similarity(one, other)
        return found === similarity(other, one) && (found === 0 || (found >= likenessFloor && found <= 1))
      }
    ),
    { numRuns: 2_000 }
  )
})
