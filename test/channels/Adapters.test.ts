/** Slack's signatures, challenge and refusals, as Slack documents them; and how Telegram is told of formatting. */
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { describe, expect, it } from "vitest"
import { parseMarkedText, toMarkedText } from "../../src/channels/MarkedText.ts"
import { slackAdapter } from "../../src/channels/slack/Adapter.ts"
import { telegramAdapter } from "../../src/channels/telegram/Adapter.ts"
import { OutboxId } from "../../src/domain/Ids.ts"

/** Slack's own example of a signed request. */
const example = {
  secret: "8f742231b10e8888abcd99yyyzzz85a5",
  stamp: "1531420618",
  body:
    "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar" +
    "&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com" +
    "%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c",
  signature: "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"
}

interface Asked {
  readonly url: string
  readonly body: ReturnType<typeof JSON.parse>
}

/** A provider that says one thing to everything. */
const saying = (status: number, json: object, headers: Readonly<Record<string, string>> = {}) => {
  const asked: Array<Asked> = []
  const client = HttpClient.make((request, url) =>
    Effect.sync(() => {
      const body = request.body._tag === "Uint8Array" ? new TextDecoder().decode(request.body.body) : "null"
      asked.push({ url: url.toString(), body: JSON.parse(body) })
      return HttpClientResponse.fromWeb(request, new Response(JSON.stringify(json), { status, headers }))
    })
  )
  return { asked, client }
}

const access = (secret: string, token = "xoxb-1") => ({
  externalId: "T1.U1",
  accessToken: Redacted.make(token),
  secrets: { signingSecret: Redacted.make(secret) },
  profile: {}
})

const verified = (fields: Partial<Record<"stamp" | "signature" | "body" | "secret", string>>, after = 0) => {
  const { body, secret, signature, stamp } = { ...example, ...fields }
  const headers: Readonly<Record<string, string>> = {
    "x-slack-request-timestamp": stamp,
    "x-slack-signature": signature
  }
  const request = {
    header: (name: string) => headers[name],
    body: new TextEncoder().encode(body),
    now: DateTime.unsafeMake((Number(example.stamp) + after) * 1_000)
  }
  return Either.isRight(
    slackAdapter(saying(200, {}).client, "https://slack.invalid").verify(request, access(secret))
  )
}

describe("Slack", () => {
  it("signs as it documents, for five minutes", () => {
    expect(verified({})).toBe(true)
    expect(verified({}, 300)).toBe(true)
    expect(verified({}, 301)).toBe(false)
    expect(verified({}, -301)).toBe(false)
    for (const wrong of [
      { body: `${example.body}x` },
      { stamp: "1531420619" },
      { stamp: "soon" },
      { secret: "another" },
      { signature: example.signature.replace("v0", "v1") },
      { signature: example.signature.slice(0, -1) },
      { signature: "" }
    ]) {
      expect(verified(wrong)).toBe(false)
    }
  })

  it("is answered its challenge, and only that", () => {
    const { challenge } = slackAdapter(saying(200, {}).client, "https://slack.invalid")
    expect(challenge?.({ type: "url_verification", challenge: "3eZbrw1a" })).toEqual(Option.some("3eZbrw1a"))
    for (const body of [
      null,
      1,
      {},
      { type: "url_verification" },
      { type: "event_callback", challenge: "x" }
    ])
      expect(challenge?.(body)).toEqual(Option.none())
  })

  it.each([
    [200, { ok: false, error: "channel_not_found" }, {}, "Refused", false],
    [200, { ok: false, error: "token_revoked" }, {}, "Refused", false],
    [200, { ok: false, error: "ratelimited" }, {}, "Refused", true],
    [429, { ok: false, error: "ratelimited" }, { "retry-after": "30" }, "Refused", true],
    [200, { ok: false, error: "internal_error" }, {}, "Unknown", true],
    [500, {}, {}, "Unknown", true],
    [200, { ok: true }, {}, "Unknown", true],
    [200, { ok: false, error: "<script>" }, {}, "Refused", false]
  ] as const)("that answers %d %j is understood", async (status, json, headers, reason, retryable) => {
    const { client } = saying(status, json, headers)
    const to = { ...access("s"), context: {}, aliases: [{ kind: "thread", value: "C1:1.2" }] }
    const message = {
      body: "a < b & c",
      author: "agent",
      outboxId: OutboxId.make("out_1"),
      file: null
    } as const
    const error = await Effect.runPromise(
      Effect.flip(slackAdapter(client, "https://slack.invalid").send(to, message))
    )
    expect(error).toMatchObject({ reason, retryable })
    expect(error.message).not.toMatch(/script|xoxb/)
    if (status === 429) expect(error.retryAfter).toMatchObject({ value: { millis: 30_000 } })
  })

  it("is given a thread's reply, with its own marks written out", async () => {
    const { asked, client } = saying(200, { ok: true, ts: "7.8" })
    const to = { ...access("s"), context: {}, aliases: [{ kind: "thread", value: "C1:1.2" }] }
    const message = {
      body: "a < b & *c*",
      author: "agent",
      outboxId: OutboxId.make("out_1"),
      file: null
    } as const
    expect(await Effect.runPromise(slackAdapter(client, "https://slack.invalid").send(to, message))).toBe(
      "C1:7.8"
    )
    expect(asked).toMatchObject([
      {
        url: "https://slack.invalid/chat.postMessage",
        body: { channel: "C1", thread_ts: "1.2", text: "a &lt; b &amp; *c*" }
      }
    ])
  })

  it.each([
    [undefined, { url: "https://files.invalid/x", mime_type: "image/png", file_size: 4 }],
    [false, { url: "https://files.invalid/x", mime_type: "image/png", file_size: 4 }],
    [true, { reason: "Refused", retryable: false }]
  ])("has no address for a file that it does not store (is_external: %j)", async (is_external, expected) => {
    const stored = { url_private_download: "https://files.invalid/x", mimetype: "image/png", size: 4 }
    const { client } = saying(200, { ok: true, file: { ...stored, is_external } })
    const located = slackAdapter(client, "https://slack.invalid").locate(access("s"), "F1")
    expect(await Effect.runPromise(Effect.merge(located))).toMatchObject(expected)
  })
})

describe("Telegram", () => {
  const bot = { ...access("s", "4711:AAE"), context: {}, aliases: [{ kind: "chat_id", value: "-100:77" }] }
  const message = { body: "Hi", author: "agent", outboxId: OutboxId.make("out_1"), file: null } as const
  const sent = (client: HttpClient.HttpClient, body = "Hi", to = bot) =>
    telegramAdapter(client, "https://telegram.invalid").send(to, { ...message, body })

  it.each([
    [429, { ok: false, error_code: 429, parameters: { retry_after: 7 } }, "Refused", true],
    [403, { ok: false, error_code: 403, description: "Forbidden: bot was blocked" }, "Refused", false],
    [400, { ok: false, error_code: 400, description: "chat not found" }, "Refused", false],
    [401, { ok: false, error_code: 401 }, "Refused", false],
    [502, {}, "Unknown", true],
    [200, { ok: true, result: {} }, "Unknown", true]
  ] as const)("that answers %d %j is understood", async (status, json, reason, retryable) => {
    const error = await Effect.runPromise(Effect.flip(sent(saying(status, json).client)))
    expect(error).toMatchObject({ reason, retryable })
    expect(error.message).not.toMatch(/AAE|chat not found/)
    if (status === 429) expect(error.retryAfter).toMatchObject({ value: { millis: 7_000 } })
  })

  it("is told of formatting beside the text, for a topic of a chat", async () => {
    const { asked, client } = saying(200, { ok: true, result: { message_id: 9 } })
    const body = toMarkedText("# Hours\nOpen **daily** *from* `10`:\n```\nten\n```\nBye [1]")
    expect(await Effect.runPromise(sent(client, body))).toBe("-100:9")
    expect(asked[0]?.url).toBe("https://telegram.invalid/bot4711:AAE/sendMessage")
    const { entities, text, ...place } = asked[0]?.body ?? {}
    expect(place).toMatchObject({ chat_id: "-100", message_thread_id: 77 })
    expect(text).toBe("Hours\nOpen daily from 10:\nten\nBye")
    const parts = entities.map(
      ({ length, offset, type }: { type: string; offset: number; length: number }) => [
        type,
        text.slice(offset, offset + length)
      ]
    )
    expect(parts).toEqual([
      ["bold", "Hours"],
      ["bold", "daily"],
      ["italic", "from"],
      ["code", "10"],
      ["pre", "ten\n"]
    ])
  })

  it("is not asked with what is no token of a bot", async () => {
    const { asked, client } = saying(200, { ok: true, result: { message_id: 9 } })
    const to = { ...bot, accessToken: Redacted.make("../../other") }
    expect(await Effect.runPromise(Effect.flip(sent(client, "Hi", to)))).toMatchObject({ retryable: false })
    expect(asked).toEqual([])
  })

  it("never sees half of a mark that was cut between two messages", () => {
    const whole = toMarkedText("**one two**")
    expect(parseMarkedText(whole.slice(0, 4))).toEqual({ text: "one", spans: [] })
    expect(parseMarkedText(whole.slice(4))).toEqual({ text: " two", spans: [] })
  })
})
