/**
 * E-mail as a channel. A mail-receiving service delivers mails, signed with a secret of the account. Replies are sent
 * through the account's own mail server. The account is identified by the login there, which proves its ownership.
 */
import { createHash } from "node:crypto"
import * as Effect from "effect/Effect"
import {
  type ChannelAccess,
  type ChannelAdapter,
  type ChannelRecipient,
  ChannelError,
  channelRefusal
} from "../../capabilities/ChannelAdapters.ts"
import type { MailLogin, MailSubmission, SubmissionError } from "../../capabilities/Mailer.ts"
import { urlOf } from "../../domain/Address.ts"
import { markdownFormatter } from "../Markdown.ts"
import { emptyDelivery } from "../Normalized.ts"
import { messageIdOf, normalize, senderRules } from "./Inbound.ts"
import { addressForm, type ReceivedMail, receivedMail } from "./Mail.ts"
import { noContactAddress } from "../Refusals.ts"
import { verifyTimestamped } from "../Signature.ts"
import { MiB } from "../../domain/Bytes.ts"

/** `v1=` and the HMAC-SHA-256 of `{timestamp}.{body}`. */
const verify = verifyTimestamped({
  timestampHeader: "x-spoke-timestamp",
  signatureHeader: "x-spoke-signature",
  form: /^v1=([0-9a-f]{64})$/,
  signedPrefix: (timestamp) => `${timestamp}.`
})

const failureOf = ({ message, reason, retryable }: SubmissionError) =>
  new ChannelError({ reason, message, retryable })

/** Server and credentials of an account, or what is wrong with its settings. */
const loginOf = ({ accessToken, profile }: ChannelAccess) =>
  Effect.gen(function* () {
    const address = profile["address"] ?? ""
    const url = /^smtps?:\/\//i.test(profile["server"] ?? "")
      ? urlOf((profile["server"] ?? "").replace(/^smtp/i, "http"))
      : null
    if (!addressForm.test(address)) return yield* channelRefusal("The address is no e-mail address.")
    if (url === null || url.username !== "" || url.pathname !== "/")
      return yield* channelRefusal(
        "The mail server is no address like smtps://smtp.example.com or smtp://host:587."
      )
    const secure = url.protocol === "https:"
    // `URL` omits the default port of the scheme.
    const port = url.port === "" ? (secure ? 465 : 587) : Number(url.port)
    const user = profile["user"] ?? address
    const login: MailLogin = {
      host: url.hostname.replace(/^\[|\]$/g, ""),
      port,
      secure,
      user,
      password: accessToken
    }
    return { address, login }
  })

/** The same login at the same server with the same address is the same account, regardless of its owner. */
const accountOf = (address: string, { host, user }: MailLogin) => {
  const id = createHash("sha256")
    .update(JSON.stringify([host, user, address.toLowerCase()]))
    .digest("hex")
  return `${address
    .toLowerCase()
    .replace(/[^a-z0-9.-]/g, "_")
    .slice(0, 100)}.${id.slice(0, 12)}`
}

const recipientOf = ({ aliases }: ChannelRecipient) => {
  const found = aliases.find(({ kind }) => kind === "thread")?.value ?? ""
  const at = found.indexOf(":")
  return at === -1 ? null : { thread: found.slice(0, at), address: found.slice(at + 1) }
}

const file = { as: "document", maxBytes: 10 * MiB } as const

/** Plain text, which every mail program can show. */
const toPlainText = markdownFormatter({ strong: "", emphasis: "", code: "", fence: "" })

const isMail = (body: unknown): body is ReceivedMail =>
  typeof body === "object" && body !== null && "headers" in body && "files" in body

export const emailAdapter = (mails: typeof MailSubmission.Service): ChannelAdapter => ({
  name: "email",
  title: "E-mail",
  form: {
    account: null,
    secrets: [{ name: "signingSecret", label: "Signing secret" }],
    settings: [
      { name: "address", label: "E-mail address" },
      { name: "server", label: "Mail server", address: true },
      { name: "user", label: "User name", optional: true },
      { name: "senders", label: "Answered senders", optional: true, choices: senderRules }
    ]
  },
  webhook: "account",

  verify,
  decode: receivedMail,
  normalize: (body, now, access) =>
    access === null || !isMail(body) ? emptyDelivery : normalize(body, now, access),

  prove: (access) =>
    Effect.gen(function* () {
      const { address, login } = yield* loginOf(access)
      yield* Effect.mapError(mails.verify(login), failureOf)
      return { externalId: accountOf(address, login), profile: access.profile }
    }),

  senderLimit: { requests: 30, window: 3_600 },
  maxTextLength: 100_000,
  maxCaptionLength: 100_000,
  formatText: toPlainText,
  fileTypes: {
    "image/jpeg": file,
    "image/png": file,
    "image/webp": file,
    "image/gif": file,
    "application/pdf": file
  },
  send: (to, message) =>
    Effect.gen(function* () {
      const { address, login } = yield* loginOf(to)
      const recipient = recipientOf(to)
      if (recipient === null) return yield* noContactAddress()
      const { messageId: answered, subject = "" } = to.context
      const messageId = messageIdOf(message.outboxId, recipient.thread, address)
      yield* Effect.mapError(
        mails.submit(login, {
          from: address,
          to: recipient.address,
          subject: `Re: ${subject}`.trim(),
          text: message.body,
          messageId,
          headers: {
            ...(answered === undefined
              ? {}
              : { "In-Reply-To": `<${answered}>`, References: `<${answered}>` }),
            // Automatic replies are not sent to automatic mails.
            ...(message.author === "human"
              ? {}
              : { "Auto-Submitted": "auto-replied", "X-Auto-Response-Suppress": "All" })
          },
          files: message.file === null ? [] : [message.file]
        }),
        failureOf
      )
      return messageId
    }),
  // Mail has no read receipts.
  markSeen: () => Effect.void,

  // A mail contains its files.
  locate: () => Effect.fail(channelRefusal("A mail has no files elsewhere.")),
  read: () => Effect.succeedNone
})
