/** Bodies that providers are sent, the texts in them, and what their refusals mean. */
import * as Duration from "effect/Duration"
import * as FastCheck from "effect/FastCheck"
import { describe, expect, it } from "vitest"
import { toChannelError } from "../../src/channels/Graph.ts"
import { messenger } from "../../src/channels/messenger/Send.ts"
import { whatsapp } from "../../src/channels/whatsapp/Send.ts"
import { markdownFormatter } from "../../src/channels/Markdown.ts"
import { parseMarkedText, toMarkedText } from "../../src/channels/MarkedText.ts"
import { split, splitFormatted } from "../../src/channels/SplitText.ts"
import type { ContactAlias } from "../../src/domain/channels/Channel.ts"
import { OutboxId } from "../../src/domain/Ids.ts"

const outboxId = OutboxId.make("out_1")

const userId = FastCheck.stringMatching(/^[A-Z]{2}\.(ENT\.)?[A-Za-z0-9]{1,128}$/)
const digits = FastCheck.stringMatching(/^[1-9][0-9]{6,14}$/)
const alias: FastCheck.Arbitrary<ContactAlias> = FastCheck.oneof(
  FastCheck.record({ kind: FastCheck.constant("phone" as const), value: FastCheck.oneof(digits, userId) }),
  FastCheck.record({
    kind: FastCheck.constantFrom("user_id" as const, "parent_user_id" as const),
    value: FastCheck.oneof(userId, digits)
  }),
  FastCheck.record({ kind: FastCheck.constant("page_scoped_id" as const), value: digits })
)

describe("A reply", () => {
  it("goes to the phone number when one is known, else to the user id, which never stands in `to`", () => {
    FastCheck.assert(
      FastCheck.property(FastCheck.array(alias, { maxLength: 6 }), (aliases) => {
        const body = whatsapp.text({ aliases, body: "Hi", outboxId })
        const phones = aliases.filter(({ kind, value }) => kind === "phone" && /^\d+$/.test(value))
        const users = aliases.filter(({ kind }) => kind === "user_id" || kind === "parent_user_id")
        if (phones.length > 0) {
          expect(body).toMatchObject({ to: phones[0]?.value })
          expect(body).not.toHaveProperty("recipient")
        } else if (users.length > 0) {
          expect(users.map(({ value }) => value)).toContain(body?.["recipient"])
          expect(body).not.toHaveProperty("to")
        } else expect(body).toBe(null)
      }),
      { numRuns: 1_000 }
    )
  })

  it("carries its outbox id for statuses and echoes to bring back", () => {
    expect(whatsapp.text({ aliases: [{ kind: "phone", value: "491701" }], body: "Hi", outboxId })).toEqual({
      messaging_product: "whatsapp",
      recipient_type: "individual",
      to: "491701",
      type: "text",
      text: { body: "Hi", preview_url: false },
      biz_opaque_callback_data: "out_1"
    })
    expect(
      messenger.text({ aliases: [{ kind: "page_scoped_id", value: "77" }], body: "Hi", outboxId })
    ).toEqual({
      recipient: { id: "77" },
      messaging_type: "RESPONSE",
      message: { text: "Hi", metadata: "out_1" }
    })
  })

  it("is split so that no part is too long, none cuts a surrogate pair or a grapheme, and nothing is lost", () => {
    const piece = FastCheck.oneof(
      FastCheck.string({ unit: "grapheme", maxLength: 30 }),
      FastCheck.constantFrom("👩‍👩‍👧‍👦", "🇩🇪", "e\u0301", ". ", "!\n\n", " ", "字。", "https://a.example/b?c=d")
    )
    const graphemes = (text: string) =>
      [...new Intl.Segmenter(undefined, { granularity: "grapheme" }).segment(text)].map(
        ({ segment }) => segment
      )
    FastCheck.assert(
      FastCheck.property(
        FastCheck.array(piece, { maxLength: 60 }),
        FastCheck.integer({ min: 60, max: 200 }),
        (all, limit) => {
          const text = all.join("").toWellFormed()
          const parts = split(text, limit)
          const bare = (pieces: ReadonlyArray<string>) => pieces.join("").replace(/\s+/g, "")
          expect(bare(parts)).toBe(bare([text]))
          const whole = new Set(graphemes(text))
          for (const part of parts) {
            expect(part.length).toBeLessThanOrEqual(limit)
            expect(part.isWellFormed()).toBe(true)
            expect(whole.has(graphemes(part)[0]?.trim() === "" ? " " : (graphemes(part)[0] ?? ""))).toBe(true)
          }
        }
      ),
      { numRuns: 500 }
    )
  })

  it("is split at the end of a sentence where there is one", () => {
    const sentence = `${"word ".repeat(10).trim()}.`
    const parts = split(Array.from({ length: 200 }, () => sentence).join(" "), whatsapp.maxTextLength)
    expect(parts.length).toBe(3)
    expect(parts.every((part) => part.endsWith("."))).toBe(true)
    expect(whatsapp.maxTextLength).toBe(4_096)
    expect(messenger.maxTextLength).toBe(2_000)
  })

  it("shows the model's Markdown as the channel has it, without marks of citations", () => {
    const text =
      "# Hours\n\n**Open** daily [1][2]. See *here*: [our site](https://a.example).\n- one\n- `two` [3]"
    expect(whatsapp.formatText(text)).toBe(
      "*Hours*\n\n*Open* daily. See _here_: our site (https://a.example).\n• one\n• `two`"
    )
    expect(messenger.formatText(text)).toBe(
      "Hours\n\nOpen daily. See here: our site (https://a.example).\n• one\n• two"
    )
    expect(whatsapp.formatText("2 * 3 * 4 and snake_case_name")).toBe("2 * 3 * 4 and snake_case_name")
  })

  it("keeps code and addresses as they are", () => {
    const plain = markdownFormatter({ strong: "", emphasis: "", code: "", fence: "" })
    for (const code of ["argv[1]", "__init__", "a **b** c", "*args, **kwargs", "[x](https://a.example)"])
      expect(whatsapp.formatText(`**Use** \`${code}\` [2].`)).toBe(`*Use* \`${code}\`.`)
    expect(plain("**Use `__init__` and `argv[1]`** [2].")).toBe("Use __init__ and argv[1].")
    const url = "https://a.example/b__c__d?e=*f"
    expect(plain(`See https://a.example/b__c__d, **https://e.example**.`)).toBe(
      "See https://a.example/b__c__d, https://e.example."
    )
    expect(plain(`[the __page__](${url}) and [${url}](${url})`)).toBe(`the page (${url}) and ${url}`)
    expect(plain("one__two__three and __four__")).toBe("one__two__three and four")
    expect(whatsapp.formatText("***Both*** and **one**")).toBe("*_Both_* and *one*")
  })

  it("keeps code with three backticks in a line, and what follows it", () => {
    const text = "Run this:\n```npm install```\nThen **wait**."
    expect(messenger.formatText(text)).toBe("Run this:\nnpm install\nThen wait.")
    expect(whatsapp.formatText("```js\na **b**\n```\n**end**")).toBe("```\na **b**\n```\n*end*")
  })

  it("takes no time for marks that nothing closes", () => {
    const taken = (text: string) => {
      const begun = performance.now()
      whatsapp.formatText(text)
      return performance.now() - begun
    }
    for (const mark of ["[", "[a](", "[](", "[a](b[c", "**a ", "***a ", "__a ", "__a."]) {
      const text = mark.repeat(16_000 / mark.length)
      const least = Math.min(...Array.from({ length: 5 }, () => taken(text)))
      expect([mark, least < 10]).toEqual([mark, true])
    }
    expect(whatsapp.formatText("[[a](https://a.example/?b[c]=d) **e **f**")).toBe(
      "[a (https://a.example/?b[c]=d) **e *f*"
    )
  })

  it("closes formatting that is cut at the end of a part, and opens it again in the next one", () => {
    const code = `\`\`\`sh\n${"npm run one\n".repeat(600)}\`\`\`\n\nDone: **all**.`
    const parts = splitFormatted(whatsapp.formatText(code), whatsapp.maxTextLength)
    expect(parts.length).toBe(2)
    for (const part of parts) {
      expect(part.length).toBeLessThanOrEqual(whatsapp.maxTextLength)
      expect(part.startsWith("```\nnpm")).toBe(true)
      expect(part.match(/```/g)).toHaveLength(2)
    }
    expect(parts.at(-1)?.endsWith("npm run one\n```\n\nDone: *all*.")).toBe(true)

    const bold = `${"word ".repeat(190)}**${"strong ".repeat(30).trim()}** plain **end**`
    const spans = splitFormatted(toMarkedText(bold), 1_000).map(parseMarkedText)
    expect(
      spans.flatMap((part) =>
        part.spans.map(({ offset, length }) => part.text.slice(offset, offset + length)).join(" | ")
      )
    ).toEqual([expect.stringMatching(/^(strong ?)+$/), expect.stringMatching(/^(strong ?)+ \| end$/)])

    expect(splitFormatted(toMarkedText("```\n```"), 1_000)).toEqual([])
    const ends = `\`\`\`\n${"x".repeat(972)}\n${"y".repeat(20)}\n\`\`\``
    for (const part of splitFormatted(toMarkedText(ends), 990).map(parseMarkedText))
      expect(part.text.trim()).not.toBe("")
  })
})

describe("An answer of the provider", () => {
  const told = (status: number, error: unknown, headers = {}) =>
    toChannelError(status, headers, JSON.stringify({ error }), 0)

  it("counts as taken only with an id", () => {
    expect(whatsapp.messageId({ messages: [{ id: "wamid.1" }] })).toMatchObject({ value: "wamid.1" })
    for (const answer of [{}, { messages: [] }, { messages: [{ id: "" }] }, null, "ok"]) {
      expect(whatsapp.messageId(answer)._tag).toBe("None")
      expect(messenger.messageId(answer)._tag).toBe("None")
    }
  })

  it("says whether another attempt may help, and after how long", () => {
    const limited = told(429, { code: 80007, message: "secret" }, { "retry-after": "7" })
    expect(limited).toMatchObject({ reason: "Refused", retryable: true })
    expect(limited.retryAfter && Duration.toSeconds(limited.retryAfter)).toBe(7)
    for (const code of [1, 2, 4, 130429]) expect(told(400, { code }).retryable).toBe(true)
    expect(told(503, { code: 99 })).toMatchObject({ reason: "Refused", retryable: true })
    for (const code of [190, 131047, 131026, 100]) expect(told(400, { code }).retryable).toBe(false)
    expect(told(400, { code: 131047 }).message).toContain("window for replies is closed")
    expect(told(401, { code: 190, message: "token EAAB was refused" }).message).not.toContain("EAAB")
  })

  it("leaves open what became of the message when it is a gateway's", () => {
    expect(toChannelError(502, {}, "<html>Bad Gateway</html>", 0)).toMatchObject({
      reason: "Unknown",
      retryable: true
    })
  })
})
