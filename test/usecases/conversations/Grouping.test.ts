import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { grouped } from "../../../src/search/QuestionGroups.ts"
import { groupQuestions } from "../../../src/usecases/conversations/Grouping.ts"
import { finished } from "../../../bench/insights/Evaluate.ts"
import { hashVector } from "../../HashingEmbedder.ts"

/** Questions of a thousand characters, none of which has a word of another. */
const asked = Array.from({ length: 300 }, (_, place) => {
  const text = Array.from({ length: 100 }, (_, word) =>
    `w${place.toString(36)}x${word.toString(36)}`.padEnd(9, "y")
  ).join(" ")
  return { text, vector: hashVector(text), value: place }
})

it.live("Questions are grouped while the thread serves requests", () =>
  Effect.gen(function* () {
    let turns = 0
    let goesOn = true
    const turn = () => {
      turns++
      if (goesOn) setImmediate(turn)
    }
    setImmediate(turn)
    const groups = yield* groupQuestions(asked)
    goesOn = false
    expect(turns).toBeGreaterThan(5)
    expect(groups).toEqual(finished(grouped(asked)))
  })
)

it("A step of the grouping examines one question", () => {
  const steps = grouped(asked)
  let count = 0
  while (steps.next().done !== true) count++
  // Its text without punctuation, its words, its vector, and twice its place.
  expect(count).toBeGreaterThanOrEqual(5 * asked.length)
})
