import * as Prompt from "@effect/ai/Prompt"
import { expect, it } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as Stream from "effect/Stream"
import { describe } from "vitest"
import { ModelRuntime, type Passage } from "../../../src/capabilities/ModelRuntime.ts"
import { extract, layerExtractive } from "../../../src/capabilities/ModelRuntime/Extractive.ts"

const passage = (index: number, title: string, text: string, score = 0.5): Passage => ({
  index,
  title,
  text,
  score
})

const install = passage(
  1,
  "Guide > Install",
  "You need Node 20 or later. Clone the repository first.\n\n" +
    "Then install the packages and start the service:\n\n```bash\nnpm ci\nnpm start\n```\n\nIt listens on port 3000.",
  0.7
)
const returns = passage(
  2,
  "Returns",
  "A refund takes five working days after the parcel is back\nat our warehouse. It is paid to the card that was used. " +
    "See e.g. the [account page](https://example.com/a). You can follow every step there.[3]\n\n" +
    "![stamp](https://example.com/stamp.png) Our shops open at nine."
)
const plans = passage(
  3,
  "Plans",
  "The plans are:\n\n- Free: 100 turns a month\n- Pro: 10,000 turns a month\n\n" +
    "| Plan | Price |\n|---|---|\n| Free | 0 euro |\n| Pro | 20 euro |"
)
const all = [install, returns, plans]

const notice =
  "_No language model is configured, so replies are extracts from the sources. Set OPENAI_API_KEY for written answers._"

/** The extract without the line that says it is one. */
const answer = (question: string, passages: ReadonlyArray<Passage> = all): string => {
  const text = extract(question, passages)
  expect(text.endsWith(`\n\n${notice}`)).toBe(true)
  return text.slice(0, -notice.length).trim()
}

describe("Extractive", () => {
  it("answers with the sentence that answers, whole and followed by its mark", () => {
    expect(answer("How long does a refund take?")).toBe(
      "A refund takes five working days after the parcel is back at our warehouse. [2]"
    )
  })

  it("brings the sentence along that the answer leans on", () => {
    expect(answer("To which card is it paid?")).toBe(
      "A refund takes five working days after the parcel is back at our warehouse. [2] " +
        "It is paid to the card that was used. [2]"
    )
  })

  it("keeps commands whole, after the sentence that announces them", () => {
    expect(answer("How do I install it?")).toBe(
      "Then install the packages and start the service:\n\n```bash\nnpm ci\nnpm start\n```\n\n[1]"
    )
  })

  it("quotes the row of a table that answers, with the names of its columns", () => {
    expect(answer("What is the price of Pro?")).toContain("- Pro – Price: 20 euro [3]")
  })

  it("keeps a list with the sentence that announces it", () => {
    expect(answer("Which plans are there?")).toBe(
      "The plans are:\n\n- Free: 100 turns a month\n- Pro: 10,000 turns a month [3]"
    )
  })

  it("takes no marks or images over from the sources", () => {
    expect(answer("Which step can I follow?")).toBe("You can follow every step there. [2]")
    expect(answer("When do the shops open?")).toBe("stamp Our shops open at nine. [2]")
  })

  it("says so when the sources hold nothing on the question", () => {
    const nothing = "I found nothing on that in the sources."
    expect(answer("Who won the world cup in 1998?")).toBe(nothing)
    expect(answer("Hello!")).toBe(nothing)
    expect(answer("How long does a refund take?", [])).toBe(nothing)
  })

  it("answers in scripts without spaces", () => {
    const passages = [passage(1, "退款", "退款需要五个工作日。营业时间是九点到五点。")]
    expect(answer("退款需要多久？", passages)).toBe("退款需要五个工作日。 [1]")
  })

  it("closes a fence that was cut when the document was chunked", () => {
    const passages = [passage(1, "Deploy", "Deploy with this script:\n\n```sh\nmake deploy")]
    expect(answer("How do I deploy?", passages)).toBe(
      "Deploy with this script:\n\n```sh\nmake deploy\n```\n\n[1]"
    )
  })

  it("says nothing twice, and puts what it says in the order of the passages", () => {
    const passages = [
      passage(1, "A", "The warranty lasts two years for batteries."),
      passage(2, "B", "The warranty lasts two years for batteries!"),
      passage(3, "C", "Warranty claims for batteries need the receipt.")
    ]
    expect(answer("How many years does the warranty last, and with which receipt?", passages)).toBe(
      "The warranty lasts two years for batteries. [1]\n\nWarranty claims for batteries need the receipt. [3]"
    )
  })

  const word = FastCheck.constantFrom(
    "refund",
    "card",
    "`code",
    "```",
    "\n\n",
    "\n",
    "|",
    "| a |",
    "|---|",
    "- ",
    "1. ",
    "# ",
    "[x](",
    "![",
    "e.g.",
    "It",
    "is",
    ". ",
    ": ",
    "> ",
    "\u0000",
    "👋",
    "退款",
    ""
  )
  it.prop(
    "any passage gives one to four marked excerpts or none, the same each time",
    [
      FastCheck.array(FastCheck.array(word, { maxLength: 60 }), { maxLength: 4 }),
      FastCheck.array(word, { maxLength: 6 })
    ],
    ([texts, question]) => {
      const passages = texts.map((words, place) => passage(place + 1, "Title", words.join(" ")))
      const text = extract(question.join(" "), passages)
      expect(extract(question.join(" "), passages)).toBe(text)
      const marks = text.match(/\[\d+\](?=\s)/g) ?? []
      expect(marks.length).toBeLessThanOrEqual(4)
      expect(text.startsWith("I found nothing") || marks.length > 0).toBe(true)
      for (const mark of marks) expect(Number(mark.slice(1, -1))).toBeLessThanOrEqual(passages.length)
    }
  )

  it.effect("streams word by word and ends with a finish and estimated tokens", () =>
    Effect.gen(function* () {
      const runtime = yield* ModelRuntime
      const question = "How long does a refund take?"
      const request = { model: null, prompt: Prompt.make(question), tools: [], question, passages: all }
      const parts = Chunk.toReadonlyArray(yield* Stream.runCollect(runtime.reply(request)))
      const deltas = parts.flatMap((part) => (part._tag === "TextDelta" ? [part.delta] : []))
      expect(deltas.join("")).toBe(extract(question, all))
      expect(deltas.every((delta) => /^\s*\S+$/.test(delta))).toBe(true)
      expect(parts.at(-1)).toMatchObject({ _tag: "Finish", reason: "stop", inputTokens: 7 })
    }).pipe(Effect.provide(layerExtractive))
  )
})
