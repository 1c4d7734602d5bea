/** What is made of mails: threads, who is answered and who never, quotations, files; and how replies are written. */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { createHmac } from "node:crypto"
import { describe, expect, it } from "vitest"
import type { MailLogin, SubmittedMail } from "../../src/capabilities/Mailer.ts"
import { emailAdapter } from "../../src/channels/email/Adapter.ts"
import { withoutQuotes } from "../../src/channels/email/Quotes.ts"
import { InboundEvent } from "../../src/domain/channels/Channel.ts"
import { OutboxId } from "../../src/domain/Ids.ts"

const now = DateTime.unsafeMake("2026-11-21T08:00:00Z")
const submitted: Array<{ readonly login: MailLogin; readonly mail: SubmittedMail }> = []
const adapter = emailAdapter({
  verify: () => Effect.void,
  submit: (login, mail) => Effect.sync(() => void submitted.push({ login, mail }))
})
const encode = Schema.encodeSync(InboundEvent)

const access = (profile: Readonly<Record<string, string>> = {}) => ({
  externalId: "support_example.com.0123456789ab",
  accessToken: Redacted.make("password-canary"),
  secrets: { signingSecret: Redacted.make("signing-canary") },
  profile: { address: "Support@example.com", server: "smtps://smtp.example.com", ...profile }
})

const base = {
  from: "Ada Lovelace <Ada@customers.example>",
  to: "support@example.com",
  "message-id": "<first@customers.example>",
  subject: "My order"
}

const mailOf = (headers: Readonly<Record<string, string>>, body: string) =>
  `${Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join("\r\n")}\r\n\r\n${body}`

const requestOf = (body: string, type = "application/json") => ({
  header: (name: string) => (name === "content-type" ? type : undefined),
  body: new TextEncoder().encode(body),
  now
})

interface Given {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly more?: object
  readonly profile?: Readonly<Record<string, string>>
}

const made = async ({ body = "Where is it?", headers = {}, more = {}, profile = {} }: Given = {}) => {
  const raw = Buffer.from(mailOf({ ...base, ...headers }, body)).toString("base64")
  const read = await Effect.runPromise(
    adapter.decode?.(requestOf(JSON.stringify({ raw, ...more }))) ?? Effect.die("none")
  )
  return adapter.normalize(read, now, access(profile))
}

/** The event, as it is stored. */
const event = async (given: Given = {}) => {
  const { arrivals } = await made(given)
  const [arrival] = arrivals
  if (arrival === undefined) throw new Error("Nothing was made of it.")
  const encoded = encode(arrival.event)
  if (encoded._tag !== "Message") throw new Error("It is no message.")
  return encoded
}

const thread = async (given: Given = {}) => (await event(given)).from[0].value

describe("A mail", () => {
  it("is a message of its thread and sender, with its subject where it begins one", async () => {
    const first = await event()
    expect(first).toMatchObject({
      channel: "email",
      accountId: "support_example.com.0123456789ab",
      kind: "text",
      text: "Subject: My order\n\nWhere is it?",
      profileName: "Ada Lovelace",
      sender: "ada@customers.example",
      standby: false,
      context: { subject: "My order", messageId: "first@customers.example" }
    })
    expect(first.from).toEqual([
      { kind: "thread", value: expect.stringMatching(/^[0-9a-f]{16}:ada@customers\.example$/) }
    ])
  })

  it("is read as bytes, too", async () => {
    const read = await Effect.runPromise(
      adapter.decode?.(requestOf(mailOf(base, "Hello"), "message/rfc822; charset=x")) ?? Effect.die("none")
    )
    expect(adapter.normalize(read, now, access()).arrivals).toHaveLength(1)
  })

  it.each(["", "{", "null", "7", "{}", '{"raw": 7}', '{"raw": "!"}'])("is not %j", async (body) => {
    const error = await Effect.runPromise(
      Effect.flip(adapter.decode?.(requestOf(body)) ?? Effect.die("none"))
    )
    expect(error._tag).toBe("VALIDATION_ERROR")
  })

  it("has the id of the mail, of its account alone, and the same for the same mail without an id", async () => {
    const { messageId } = await event()
    expect(messageId).toMatch(/^support_example\.com\.0123456789ab:[0-9a-f]{40}$/)
    expect((await event({ body: "Delivered again, with a footer" })).messageId).toBe(messageId)
    const nameless = { "message-id": "" }
    const bare = await event({ headers: nameless })
    expect((await event({ headers: nameless })).messageId).toBe(bare.messageId)
    expect((await event({ headers: nameless, body: "Other" })).messageId).not.toBe(bare.messageId)
    expect(bare.context).not.toHaveProperty("messageId")
  })

  it("continues its thread by References, by In-Reply-To, and by what we wrote", async () => {
    const first = await thread()
    const reply = (headers: Readonly<Record<string, string>>) =>
      thread({ headers: { "message-id": "<second@customers.example>", ...headers } })
    expect(await reply({ references: "<first@customers.example> <x@y>" })).toBe(first)
    expect(await reply({ "in-reply-to": "<first@customers.example>" })).toBe(first)
    const id = `out_${"0".repeat(26)}.${first.slice(0, 16)}@example.com`
    expect(await reply({ "in-reply-to": `<${id}>` })).toBe(first)
    expect(await reply({ references: `<unknown@x> <${id}>` })).toBe(first)
    expect(await reply({})).not.toBe(first)
    expect((await event({ headers: { "in-reply-to": `<${id}>` } })).text).toBe("Where is it?")
  })

  it("of somebody else gets into no thread, whatever it names and wherever it wants the reply", async () => {
    const first = await thread()
    const stranger = await event({
      headers: {
        from: "eve@evil.example",
        "reply-to": "ada@customers.example",
        "message-id": "<e@evil.example>",
        references: "<first@customers.example>"
      }
    })
    expect(stranger.from[0].value).not.toBe(first)
    expect(stranger.from[0].value).toMatch(/:eve@evil\.example$/)
  })
})

describe("Nobody answers", () => {
  const automatic: ReadonlyArray<readonly [string, Given]> = [
    ["a program", { headers: { "auto-submitted": "auto-generated" } }],
    ["an absence note", { headers: { "auto-submitted": "auto-replied (vacation)" } }],
    ["bulk mail", { headers: { precedence: "bulk" } }],
    ["a list", { headers: { precedence: "List" } }],
    ["a mailing list", { headers: { "list-id": "<news.example.com>" } }],
    ["a newsletter", { headers: { "list-unsubscribe": "<https://example.com/u>" } }],
    ["what asks not to be answered by programs", { headers: { "x-auto-response-suppress": "OOF, DR" } }],
    ["an old auto-reply", { headers: { "x-autoreply": "yes" } }],
    ["a bounce", { headers: { "return-path": "<>" } }],
    ["an empty sender of the envelope", { more: { envelope: { from: "" } } }],
    ["a missing sender of the envelope", { more: { envelope: { from: null } } }],
    ["the mail system", { headers: { from: "Mail <MAILER-DAEMON@example.com>" } }],
    ["a mailbox that nobody reads", { headers: { from: "no-reply@shop.example" } }],
    ["itself", { headers: { from: "support@EXAMPLE.com" } }],
    [
      "a mail of ours that comes back",
      { headers: { "message-id": `<out_${"0".repeat(26)}.${"a".repeat(16)}@example.com>` } }
    ],
    ["a sender without an address", { headers: { from: "Ada" } }],
    ["several senders in one address", { headers: { from: '"a, b"@x.example' } }],
    ["nothing at all", { headers: { subject: "" }, body: " \r\n" }]
  ]
  it.each(automatic)("%s", async (_, given) => {
    expect(await made(given)).toEqual({ arrivals: [], statuses: [], ignored: 1 })
  })

  it("but people are answered who say that they are some", async () => {
    for (const headers of [
      { "auto-submitted": "no" },
      { precedence: "normal" },
      { "return-path": "<ada@x>" }
    ]) {
      expect((await made({ headers })).arrivals).toHaveLength(1)
    }
  })

  const authentication = (verdicts: object, senders?: string) =>
    event({
      more: { authentication: verdicts },
      profile: senders === undefined ? {} : { senders }
    }).then(({ standby }) => !standby)

  it("whom the receiving service found to be forged, unless the account says so", async () => {
    expect(await authentication({ dmarc: "pass" })).toBe(true)
    expect(await authentication({ dmarc: "FAIL", spf: "pass", dkim: "pass" })).toBe(false)
    expect(await authentication({ spf: "softfail" })).toBe(false)
    expect(await authentication({ spf: "fail", dkim: "pass" })).toBe(true)
    expect(await authentication({})).toBe(true)
    expect(await authentication({ dmarc: "fail" }, "any")).toBe(true)
  })

  it("whom it did not find to be genuine, where the account answers no others", async () => {
    expect(await authentication({ dmarc: "pass" }, "verified")).toBe(true)
    for (const verdicts of [{}, { dmarc: "none" }, { spf: "pass", dkim: "pass" }, { dmarc: "fail" }]) {
      expect(await authentication(verdicts, "verified")).toBe(false)
    }
    // What the mail says of itself proves nothing.
    const forged = await event({
      headers: { "authentication-results": "mx.example.com; dmarc=pass" },
      profile: { senders: "verified" }
    })
    expect(forged.standby).toBe(true)
  })
})

describe("What was said in a mail", () => {
  const attribution = "On Mon, 2 Nov 2026 at 10:00, Support <support@example.com> wrote:"
  it.each([
    ["Hello\n\nYes please.", "Hello\n\nYes please."],
    [`Yes.\n\n${attribution}\n> Is it blue?\n> -- \n> Us`, "Yes."],
    [
      "Ja.\r\n\r\nAm Mo., 2. Nov. 2026 um 10:00 Uhr schrieb\r\nSupport <support@example.com>:\r\n\r\n> Blau?",
      "Ja."
    ],
    [`${attribution}\n> Is it blue?\n\nYes.\n\n> And large?\n\nNo.`, "Yes.\n\nNo."],
    ["Yes.\n-- \nAda\n+44 1", "Yes."],
    ["Yes.\n\n-----Ursprüngliche Nachricht-----\nVon: Support\nText", "Yes."],
    [
      "Yes.\n\n________________________________\nFrom: Support <s@example.com>\nSent: Monday\nTo: Ada\n\nOld",
      "Yes."
    ],
    ["Yes.\n\nFrom: Lovelace, Ada\nSent: Monday\nTo: Support\nCc: Bob\nSubject: Tea\n\nOld", "Yes."],
    [
      "A ticket, please.\n\nFrom: Berlin\nTo: Hamburg\nDate: 3 December\n\nFor two.",
      "A ticket, please.\n\nFrom: Berlin\nTo: Hamburg\nDate: 3 December\n\nFor two."
    ],
    ["Oui.\n\nDe : Support <s@example.com>\nEnvoyé : lundi\n\nAncien", "Oui."],
    ["Yes.\n\nSent from my phone", "Yes."],
    ["From: here to there is how far?", "From: here to there is how far?"],
    ["I need the following:\n\n- tea", "I need the following:\n\n- tea"],
    ["a - b -- c", "a - b -- c"],
    ["> forwarded without a word", "> forwarded without a word"],
    ["-- \nonly a signature", "-- \nonly a signature"]
  ])("%j is %j", (text, said) => {
    expect(withoutQuotes(text)).toBe(said)
  })

  it("is found in HTML, without what is quoted", async () => {
    const headers = { "content-type": "text/html; charset=utf-8", subject: "" }
    const body =
      "<html><head><style>p { color: red }</style></head><body><p>Is it <b>blue</b> &amp; large?</p><script>evil()</script>" +
      '<div class="gmail_quote">On Monday we wrote:<blockquote>Old</blockquote></div></body></html>'
    expect((await event({ headers, body })).text).toMatch(/^Is it blue & large\?$/)
  })

  it("is found in the text of a mail that is both, in its character set", async () => {
    const headers = {
      "content-type": "multipart/alternative; boundary=b",
      subject: "=?utf-8?q?Gr=C3=BC=C3=9Fe?="
    }
    const body =
      "--b\r\ncontent-type: text/plain; charset=iso-8859-1\r\ncontent-transfer-encoding: quoted-printable\r\n\r\nSch=F6n\r\n" +
      "--b\r\ncontent-type: text/html\r\n\r\n<p>Other</p>\r\n--b--\r\n"
    expect((await event({ headers, body })).text).toBe("Subject: Grüße\n\nSchön")
  })

  it("comes with its files", async () => {
    const headers = { "content-type": "multipart/mixed; boundary=b" }
    const body =
      "--b\r\n\r\nSee there\r\n--b\r\ncontent-type: image/png; name=a.png\r\ncontent-transfer-encoding: base64\r\n" +
      "content-disposition: attachment; filename=a.png\r\n\r\niVBORw0KGgo=\r\n--b--\r\n"
    expect(await event({ headers, body })).toMatchObject({
      kind: "media",
      media: [{ kind: "image", data: "iVBORw0KGgo=", fileName: "a.png", mimeType: "image/png" }]
    })
  })

  it("can be stored, whatever it is", async () => {
    for (const body of ["\u0000a", "x".repeat(100_000), "> ".repeat(50_000), "\n".repeat(50_000)]) {
      const { arrivals } = await made({ body, headers: { subject: "\u0000 s" } })
      for (const { event: one } of arrivals) expect(JSON.stringify(encode(one))).not.toContain("\\u0000")
    }
  })
})

describe("A report of a mail server", () => {
  const id = `out_${"0".repeat(26)}`
  const report = (action: string) =>
    [
      "--b\r\n\r\nIt could not be delivered.",
      `--b\r\ncontent-type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.example.com\r\n\r\nAction: ${action}\r\nStatus: 5.1.1`,
      `--b\r\ncontent-type: message/rfc822\r\n\r\nMessage-ID: <${id}.${"a".repeat(16)}@example.com>\r\nSubject: Re: x\r\n\r\nText`,
      "--b--\r\n"
    ].join("\r\n")
  const headers = {
    from: "MAILER-DAEMON@example.com",
    "return-path": "<>",
    "content-type": "multipart/report; report-type=delivery-status; boundary=b"
  }

  it("says that a mail of ours has come back", async () => {
    const { arrivals, statuses } = await made({ headers, body: report("failed") })
    expect(arrivals).toEqual([])
    expect(statuses).toMatchObject([
      { channel: "email", accountId: "support_example.com.0123456789ab", outboxId: id, delivery: "failed" }
    ])
  })

  it("that it only takes longer says nothing", async () => {
    expect(await made({ headers, body: report("delayed") })).toMatchObject({ ignored: 1, statuses: [] })
  })
})

describe("A delivery", () => {
  const signed = (body: string, { age = 0, secret = "signing-canary" } = {}) => {
    const stamp = String(Math.floor(now.epochMillis / 1_000) - age)
    const tag = createHmac("sha256", secret).update(`${stamp}.${body}`).digest("hex")
    const headers: Readonly<Record<string, string>> = {
      "x-spoke-timestamp": stamp,
      "x-spoke-signature": `v1=${tag}`
    }
    const request = { ...requestOf(body), header: (name: string) => headers[name] }
    return Either.isRight(adapter.verify(request, access()))
  }
  it("is the receiving service's when it is signed with the account's secret, lately", () => {
    expect(signed("{}")).toBe(true)
    expect(signed("{}", { secret: "other" })).toBe(false)
    expect(signed("{}", { age: 301 })).toBe(false)
    expect(signed("{}", { age: -301 })).toBe(false)
    expect(Either.isLeft(adapter.verify(requestOf("{}"), access()))).toBe(true)
    expect(Either.isLeft(adapter.verify(requestOf("{}"), null))).toBe(true)
  })
})

describe("A reply", () => {
  const to = {
    ...access({ user: "apikey" }),
    aliases: [{ kind: "thread", value: `${"a".repeat(16)}:ada@customers.example` }],
    context: { subject: "My order", messageId: "first@customers.example" }
  }
  const message = {
    body: "It is on its way.",
    author: "agent",
    outboxId: OutboxId.make(`out_${"1".repeat(26)}`),
    file: null
  } as const

  it("goes to who wrote, into their thread, and says that a program has written it", async () => {
    submitted.length = 0
    const id = await Effect.runPromise(adapter.send(to, message))
    expect(id).toBe(`out_${"1".repeat(26)}.${"a".repeat(16)}@example.com`)
    expect(submitted).toMatchObject([
      {
        login: { host: "smtp.example.com", port: 465, secure: true, user: "apikey" },
        mail: {
          from: "Support@example.com",
          to: "ada@customers.example",
          subject: "Re: My order",
          text: "It is on its way.",
          messageId: id,
          headers: {
            "In-Reply-To": "<first@customers.example>",
            References: "<first@customers.example>",
            "Auto-Submitted": "auto-replied"
          }
        }
      }
    ])
    await Effect.runPromise(adapter.send(to, { ...message, author: "human" }))
    expect(submitted[1]?.mail.headers).not.toHaveProperty("Auto-Submitted")
  })

  it.each([
    [{ server: "https://smtp.example.com" }, "mail server"],
    [{ server: "smtps://user:secret@smtp.example.com" }, "mail server"],
    [{ server: "smtps://smtp.example.com/path" }, "mail server"],
    [{ server: "smtp.example.com" }, "mail server"],
    [{ address: "nobody" }, "e-mail address"],
    [{ address: "a@b.example\r\nBcc: c@d.example" }, "e-mail address"]
  ])("is not sent with %j", async (profile, words) => {
    const error = await Effect.runPromise(Effect.flip(adapter.prove(access(profile))))
    expect(error).toMatchObject({ reason: "Refused", retryable: false })
    expect(error.message).toContain(words)
  })

  it("comes from an account that is the login at its server", async () => {
    const idOf = async (profile: Readonly<Record<string, string>>) =>
      (await Effect.runPromise(adapter.prove(access(profile)))).externalId
    const id = await idOf({})
    expect(id).toMatch(/^support_example\.com\.[0-9a-f]{12}$/)
    expect(await idOf({ server: "smtps://SMTP.example.com:465" })).toBe(id)
    expect(await idOf({ server: "smtps://smtp.evil.example" })).not.toBe(id)
    expect(await idOf({ user: "other" })).not.toBe(id)
  })
})
