import { describe, expect, it } from "vitest"
import { searchText } from "../../../src/usecases/chat/Question.ts"

const history = [
  { role: "user", content: "How long is the warranty of the blue bicycle?" },
  { role: "assistant", content: "Two years [1]." }
] as const

describe("A follow-up question", () => {
  it.each(["And the red one?", "How long is it?", "Why?", "What does that cost in winter?"])(
    "that leans on what was said is searched together with the question before: %s",
    (message) => {
      expect(searchText(message, history)).toBe(`${message}\n${history[0].content}`)
    }
  )

  it.each([
    "Which payment methods does the online shop accept on weekends?",
    "How do I change the delivery address of an order?"
  ])("that stands by itself is searched as it is: %s", (message) => {
    expect(searchText(message, history)).toBe(message)
  })

  it("without a question before it is searched as it is", () => {
    expect(searchText("Why?", [])).toBe("Why?")
  })
})
