/** Sources that are written here: texts, and questions with answers that come before anything else. */
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { createSpoke, type Spoke, type SpokeAgent, SpokeError } from "../../src/index.ts"

const root = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-curated-"))

const rejection = async (promise: Promise<unknown>) => {
  const cause: unknown = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown
  )
  if (!(cause instanceof SpokeError)) throw new Error("It was not rejected with a SpokeError.", { cause })
  return cause
}

describe("A curated source", () => {
  let spoke: Spoke
  let agent: SpokeAgent

  beforeAll(async () => {
    spoke = await createSpoke({
      dataDir: Path.join(root, "data"),
      admin: { email: "owner@example.com", password: "correct horse battery" }
    })
  })
  afterAll(async () => {
    await spoke.close()
    Fs.rmSync(root, { recursive: true, force: true })
  })

  const fresh = async () => {
    agent = spoke.agent((await spoke.agents.create({ name: "Shop" })).id)
  }

  const added = async (source: Parameters<SpokeAgent["sources"]["create"]>[0]) => {
    const { source: made } = await agent.sources.create(source)
    await agent.sources.ready(made.id, { every: 20 })
    return made.id
  }

  it("of questions without words that a search counts, answers whoever asks them", async () => {
    await fresh()
    const pairs = [
      ["Wer sind Sie?", "Wir sind eine kleine Werft an der Elbe."],
      ["Кто вы?", "Мы небольшая компания, которая строит лодки."],
      ["Quem são vocês?", "Somos uma pequena empresa que constrói barcos."],
      ["Wie zijn jullie?", "Wij zijn een klein bedrijf dat boten bouwt."],
      ["ما هذا؟", "هذا موقع عن القوارب والأشرعة."]
    ] as const
    const others = Array.from({ length: 40 }, (_, place) => ({
      question: `What does boat ${place} cost?`,
      answer: `Boat ${place} costs ${place} coins.`
    }))
    const config = { pairs: [...pairs.map(([question, answer]) => ({ question, answer })), ...others] }
    await added({ type: "QA", name: "Answers", labels: ["staff"], config })
    for (const [question, answer] of pairs) {
      const { citations, reply } = await agent.chat({
        message: `  ${question.replace(/[?؟]/, "").toUpperCase()} ! `
      })
      expect(reply).toContain(answer)
      expect(citations[0]).toMatchObject({ title: question, score: 1 })
    }
    const asked = { message: "Wer sind Sie?", filter: { labels: ["guests"] } }
    expect((await agent.chat(asked)).reply).not.toContain("Werft")
    expect((await agent.chat({ message: "Wer sind Sie nicht?" })).reply).not.toContain("Werft")
  })

  it("of text answers, is edited in place and read again by itself", async () => {
    await fresh()
    const text = "# Opening hours\n\nThe shop opens at nine o'clock in the morning."
    const id = await added({ type: "TEXT", name: "Hours", config: { text } })
    const asked = { message: "When does the shop open in the morning?" }
    const first = await agent.chat(asked)
    expect(first.reply).toContain("nine o'clock")
    expect(first.citations[0]).toMatchObject({ sourceId: id, sourceName: "Hours", url: "text:" })
    expect(first.citations[0]?.title).toContain("Opening hours")
    expect((await agent.sources.get(id)).config).toEqual({ text })
    // A list says what there is, not all that it holds.
    expect((await agent.sources.list()).sources.map(({ config }) => config)).toEqual([{}])

    await agent.sources.update(id, { config: { text: text.replace("nine", "ten") } })
    await agent.sources.ready(id, { every: 20 })
    const second = await agent.chat(asked)
    expect(second.reply).toContain("ten o'clock")
    expect(JSON.stringify(second)).not.toContain("nine o'clock")

    const { latestJob } = await agent.sources.get(id)
    await agent.sources.update(id, {
      name: "Times",
      config: { text: text.replace("nine", "ten"), metadata: {} }
    })
    expect((await agent.sources.get(id)).latestJob?.id).toBe(latestJob?.id)
  })

  it("of plain text takes no mark for Markdown", async () => {
    await fresh()
    const text = "# 5 is the number of the lantern\n* not a list"
    await added({ type: "TEXT", name: "Plain", config: { text, format: "text" } })
    const { chunks } = await agent.retrieve({ query: "number of the lantern" })
    expect(chunks[0]?.text).toContain("# 5 is the number")
  })

  it("of questions answers the same and nearly the same question first, whole, and is cited", async () => {
    await fresh()
    const page =
      "# Refunds\n\nHow long does a refund take? A refund takes long. Refunds: how long does a refund take, refund after refund."
    await added({ type: "TEXT", name: "Page", config: { text: page } })
    const answer = "Five days.\n\nWrite to us when it takes longer."
    const pairs = [
      { question: "How long does a refund take?", answer },
      { question: "How long does a refund take without a receipt?", answer: "Ten days." },
      { question: "Can I pay in 3 rates?", answer: "Yes, in three." },
      { question: "Can I pay in 12 rates?", answer: "No, not in twelve." }
    ]
    const id = await added({ type: "QA", name: "Answers", config: { pairs } })
    for (const message of [
      "How long does a refund take?",
      "  how long does a REFUND take ",
      "How long will the refund take?"
    ]) {
      const { citations, reply } = await agent.chat({ message })
      expect(reply).toMatch(/^Five days\.\s+Write to us when it takes longer\. \[1\]/u)
      expect(reply).not.toContain("refund after refund")
      expect(citations).toHaveLength(1)
      expect(citations[0]).toMatchObject({ index: 1, sourceId: id, sourceName: "Answers" })
      expect(citations[0]?.title).toBe("How long does a refund take?")
      expect(citations[0]?.score).toBeGreaterThanOrEqual(0.8)
    }
    const reply = async (message: string) => (await agent.chat({ message })).reply
    expect(await reply("How long does a refund take without a receipt?")).toMatch(/^Ten days/u)
    expect(await reply("Can I pay in 12 rates?")).toMatch(/^No, not in twelve/u)
    expect(await reply("Can I pay in 7 rates?")).not.toMatch(/^(?:Yes|No)/u)

    // A follow-up that would be searched for with the question before it.
    const { conversationId = "" } = await agent.chat({ message: "Is there a shop in the north?" })
    const second = await agent.chat({ message: "How long does a refund take?", conversationId })
    expect(second.reply).toMatch(/^Five days/u)

    await agent.sources.update(id, {
      config: { pairs: [{ question: pairs[0]?.question ?? "", answer: "Six days." }] }
    })
    await agent.sources.ready(id, { every: 20 })
    expect(await reply("How long does a refund take?")).toMatch(/^Six days/u)
    expect(await reply("How long does a refund take without a receipt?")).not.toContain("Ten days")
  })

  it("of questions gives nobody an answer that the filter or the scope leaves out", async () => {
    await fresh()
    const pairs = [{ question: "What is the code of the vault?", answer: "The code of the vault is 4711." }]
    const id = await added({ type: "QA", name: "Vault", labels: ["board"], config: { pairs } })
    const asked = { message: "What is the code of the vault?" }
    expect((await agent.chat(asked)).reply).toContain("4711")
    for (const filter of [{ labels: ["staff"] }, { sourceTypes: ["URL" as const] }, { sourceIds: [] }]) {
      expect(JSON.stringify(await agent.chat({ ...asked, filter }))).not.toContain("4711")
    }
    expect((await agent.chat({ ...asked, filter: { sourceIds: [id] } })).reply).toContain("4711")
  })

  it("is refused with the reason when it says nothing or too much, and changes nothing then", async () => {
    await fresh()
    const pair = { question: "Why?", answer: "Because." }
    const id = await added({ type: "QA", name: "Answers", config: { pairs: [pair] } })
    const issueOf = async (promise: Promise<unknown>) => {
      const { code, details } = await rejection(promise)
      return `${code} ${JSON.stringify(details)}`
    }
    const texts = { "": /empty/u, "  \n": /empty/u, ["x".repeat(200_001)]: /at most 200000 characters/u }
    for (const [text, why] of Object.entries(texts)) {
      expect(await issueOf(agent.sources.create({ type: "TEXT", name: "Text", config: { text } }))).toMatch(
        why
      )
    }
    const wrong: ReadonlyArray<readonly [ReadonlyArray<typeof pair>, RegExp]> = [
      [[], /at least one pair/u],
      [Array.from({ length: 501 }, () => pair), /at most 500 pairs/u],
      [[{ ...pair, question: "x".repeat(501) }], /question.*at most 500/u],
      [[{ ...pair, answer: "x".repeat(4_001) }], /answer.*at most 4000/u],
      [[{ ...pair, answer: " " }], /answer/u],
      [
        Array.from({ length: 60 }, () => ({ ...pair, answer: "x".repeat(4_000) })),
        /200000 characters in all/u
      ]
    ]
    for (const [pairs, why] of wrong) {
      expect(await issueOf(agent.sources.create({ type: "QA", name: "Wrong", config: { pairs } }))).toMatch(
        why
      )
      expect(await issueOf(agent.sources.update(id, { config: { pairs } }))).toMatch(/^VALIDATION_ERROR/u)
    }
    expect((await agent.sources.get(id)).config).toEqual({ pairs: [pair] })
    expect((await agent.sources.list()).sources).toHaveLength(1)
  })
})
