import * as path from "node:path"
import { expect, it } from "@effect/vitest"
import * as fc from "effect/FastCheck"
import { finished, measure, read } from "../../bench/insights/Evaluate.ts"
import { groupQuestions } from "../../src/search/QuestionGroups.ts"
import { hashVector } from "../HashingEmbedder.ts"

const lines = read(path.resolve(import.meta.dirname, "../../bench/insights/questions.jsonl"))

interface Given {
  readonly text: string
  readonly place: number
}

/** Every third question has no vector, as one in another language than the model's. */
const groups = (given: ReadonlyArray<Given>) =>
  finished(
    groupQuestions(
      given.map(({ place, text }) => ({
        text,
        vector: text.length % 3 === 0 ? null : hashVector(text),
        value: place
      }))
    )
  ).map(({ title, values }) => ({ title, values: values.toSorted((one, other) => one - other) }))

const inOrder = (found: ReturnType<typeof groups>) =>
  found.toSorted((one, other) => (one.values[0] ?? 0) - (other.values[0] ?? 0))

const questions = fc.array(
  fc.oneof(
    fc.constantFrom(...lines.map(({ question }) => question)),
    fc.constantFrom("Where is my invoice?", "where is my  INVOICE", "Where is my invoice?!"),
    fc.string({ maxLength: 30 })
  ),
  { maxLength: 60 }
)

it("A step of the grouping examines one question", () => {
  const texts = Array.from(
    { length: 300 },
    (_, place) => `question number ${place} about subject ${place ** 3}`
  )
  const steps = groupQuestions(texts.map((text, place) => ({ text, vector: hashVector(text), value: place })))
  let count = 0
  while (steps.next().done !== true) count++
  // Its text without punctuation, its words, its vector, and twice its place.
  expect(count).toBeGreaterThanOrEqual(5 * texts.length)
})

it("The same questions make the same groups, in whatever order they come", () => {
  fc.assert(
    fc.property(questions, fc.infiniteStream(fc.nat()), (texts, keys) => {
      const given = texts.map((text, place) => ({ text, place }))
      const shuffled = given
        .map((one) => ({ one, key: keys.next().value }))
        .toSorted((one, other) => one.key - other.key)
        .map(({ one }) => one)
      expect(inOrder(groups(shuffled))).toEqual(inOrder(groups(given)))
    })
  )
})

it("Every question is in one group, and those that differ in case, spaces and signs alone are in the same", () => {
  fc.assert(
    fc.property(questions, (texts) => {
      const found = groups(texts.map((text, place) => ({ text, place })))
      expect(found.flatMap(({ values }) => values).toSorted((one, other) => one - other)).toEqual([
        ...texts.keys()
      ])
      const keyOf = (text: string) =>
        text
          .toLowerCase()
          .replaceAll(/[\s?!]+/gu, " ")
          .trim()
      const groupOf = new Map(
        found.flatMap(({ values }, group) => values.map((place) => [place, group] as const))
      )
      for (const [one, text] of texts.entries())
        for (const [other, second] of texts.entries())
          if (/[a-z]/u.test(keyOf(text)) && keyOf(text) === keyOf(second))
            expect(groupOf.get(one)).toBe(groupOf.get(other))
    })
  )
})

it("A group is named by one of its questions, the most typical", () => {
  const texts = [
    "How do I reset my password?",
    "How can I reset my password?",
    "reset password",
    "I forgot how to reset the password of my old account, what can I do?"
  ]
  const [group, ...others] = groups(texts.map((text, place) => ({ text, place })))
  expect(others).toEqual([])
  expect(texts.slice(0, 3)).toContain(group?.title)
})

it("By their words alone, two of three pairs that stand together belong together", () => {
  const { noiseAlone, precision, recall } = measure(lines, [])
  expect(precision).toBeGreaterThan(0.66)
  expect(recall).toBeGreaterThan(0.3)
  expect(noiseAlone).toBeGreaterThan(0.6)
})
