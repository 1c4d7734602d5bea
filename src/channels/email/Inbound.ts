/**
 * Converts mails to our events. A thread of one sender is a contact. Its alias is derived from the thread's first mail
 * and the sender's address, so that naming another mail in a header does not give access to that conversation.
 */
import { createHash } from "node:crypto"
import type * as DateTime from "effect/DateTime"
import type { ChannelAccess, Normalized } from "../../capabilities/ChannelAdapters.ts"
import type { DeliveryStatus, InboundMedia } from "../../domain/channels/Channel.ts"
import { mediaKindOf, optionalMember, outboxIdOf, textOf, identifierOf } from "../Fields.ts"
import { arrivalOrIgnored, ignored, statusesOrIgnored } from "../Normalized.ts"
import { addressForm, type ReceivedMail } from "./Mail.ts"
import { withoutQuotes } from "./Quotes.ts"

const channel = "email"

/** Maximum length of a sender's address, which becomes part of an alias. */
const maxAddressLength = 200
const maxSubjectLength = 500
/** Maximum length of a mail id that is repeated in a reply. */
const maxIdLength = 300
/** Maximum number of ids of a thread that are read. */
const maxReferences = 100

/** The form of our message ids: the outbox id and the thread. */
const ownMessageId = /^(out_[0-9a-z]{26})\.([0-9a-f]{16})@/

const hashed = (text: string, length: number) =>
  createHash("sha256").update(text).digest("hex").slice(0, length)

export const messageIdOf = (outboxId: string, thread: string, address: string) =>
  `${outboxId}.${thread}@${address.slice(address.lastIndexOf("@") + 1)}`

/** Mail ids in the order of a header, without brackets. */
const idsOf = (header: string | undefined): ReadonlyArray<string> =>
  Array.from((header ?? "").slice(0, 16_384).matchAll(/<([^<>\s]{1,998})>/g), ([, id = ""]) => id).slice(
    0,
    maxReferences
  )

/** The thread of a mail: taken from one of our message ids, else derived from the thread's first mail. */
const threadOf = (headers: ReceivedMail["headers"], own: string) => {
  const named = [...idsOf(headers.get("references")), ...idsOf(headers.get("in-reply-to"))]
  const known = named.map((id) => ownMessageId.exec(id)?.[2]).find((thread) => thread !== undefined)
  return { thread: known ?? hashed(named[0] ?? own, 16), isReply: named.length > 0 }
}

/** Mailboxes that nobody reads. */
const unattendedMailbox =
  /^(?:mailer-daemon|postmaster|bounces?|no-?reply|do-?not-?reply|noreply-.*|listserv|majordomo)(?:[+=].*)?$/i

const headerMatches = (value: string | undefined, pattern: RegExp) =>
  pattern.test((value ?? "").trim().slice(0, 100))

/** Whether a program has sent the mail. An answer to it could start a loop. */
const isAutomatic = ({ envelopeFrom, headers }: ReceivedMail, address: string) =>
  envelopeFrom === "" ||
  headerMatches(headers.get("auto-submitted"), /^(?!no\b)./i) ||
  headerMatches(headers.get("precedence"), /^(?:bulk|junk|list|auto_reply)\b/i) ||
  headerMatches(headers.get("x-auto-response-suppress"), /\b(?:all|oof|autoreply)\b/i) ||
  ["list-id", "list-post", "list-unsubscribe", "x-autoreply", "x-autorespond", "feedback-id"].some((name) =>
    headers.has(name)
  ) ||
  headerMatches(headers.get("content-type"), /^multipart\/report\b/i) ||
  unattendedMailbox.test(address.split("@", 1).join(""))

const failedResult = /^(?:fail|softfail|policy|permerror)$/
/** The receiving service's verdict on the sender. DMARC checks the address that people see. */
const verdictOf = ({ dkim, dmarc, spf }: ReceivedMail["authentication"]) => {
  if (dmarc === "pass") return "verified"
  if (failedResult.test(dmarc ?? "")) return "failed"
  return failedResult.test(spf ?? "") && dkim !== "pass" ? "failed" : "unknown"
}

/** Which senders an account answers; the first is the default. */
export const senderRules = ["plausible", "verified", "any"] as const

const isTrusted = (authentication: ReceivedMail["authentication"], rule: string | undefined) => {
  const verdict = verdictOf(authentication)
  if (rule === "any") return true
  return rule === "verified" ? verdict === "verified" : verdict !== "failed"
}

const mediaOf = (files: ReceivedMail["files"]): ReadonlyArray<InboundMedia> =>
  files.map(({ data, mimeType, name }) => ({
    kind: mediaKindOf(mimeType),
    data,
    ...optionalMember("mimeType", identifierOf(mimeType, 200)),
    ...optionalMember("fileName", identifierOf(name ?? undefined))
  }))

/** The failed delivery of one of our mails, if `mail` is the report of a mail server about it. */
const bounceOf = (mail: ReceivedMail, accountId: string): ReadonlyArray<DeliveryStatus> => {
  if (!headerMatches(mail.headers.get("content-type"), /^multipart\/report\b/i)) return []
  const parts = mail.files
    .filter(({ mimeType }) => /^message\/|^text\/rfc822-headers$/.test(mimeType))
    .map(({ data }) => Buffer.from(data.slice(0, 65_536), "base64").toString("latin1"))
  const failed = parts.some((part) => /^Action:\s*failed\b/im.test(part))
  const id = [...parts.flatMap((part) => idsOf(part)), ...idsOf(mail.headers.get("references"))]
    .map((one) => outboxIdOf(ownMessageId.exec(one)?.[1]))
    .find((one) => one !== null)
  if (!failed || id === undefined || id === null) return []
  const error = "The mail bounced: the recipient's server did not accept it."
  return [{ channel, accountId, providerMessageId: null, outboxId: id, delivery: "failed", error }]
}

const withoutPrefix = (subject: string) => subject.replace(/^(?:(?:re|aw|sv|antw)\s?:\s*){1,10}/i, "")

/** `access` belongs to the account: `profile` contains its address, and which senders it answers. */
export const normalize = (mail: ReceivedMail, now: DateTime.Utc, access: ChannelAccess): Normalized => {
  const { externalId: accountId, profile } = access
  const { files, from, headers, subject: given } = mail
  const bounce = bounceOf(mail, accountId)
  if (bounce.length > 0) return statusesOrIgnored(bounce)
  const address = (from?.address ?? "").toLowerCase()
  const [id] = idsOf(headers.get("message-id"))
  if (!addressForm.test(address) || address.length > maxAddressLength) return ignored
  if (address === (profile["address"] ?? "").toLowerCase() || ownMessageId.test(id ?? "")) return ignored
  if (isAutomatic(mail, address)) return ignored
  const subject = withoutPrefix(textOf(given).replace(/\s+/g, " ")).slice(0, maxSubjectLength)
  const ownText = withoutQuotes(textOf(mail.text))
  const media = mediaOf(files)
  const { isReply, thread } = threadOf(headers, id ?? `${address} ${given} ${mail.text}`)
  const text = isReply || subject === "" ? ownText : `Subject: ${subject}\n\n${ownText}`.trim()
  if (text === "" && media.length === 0) return ignored
  return arrivalOrIgnored({
    event: {
      _tag: "Message",
      channel,
      accountId,
      // Includes the account, because the secret of one account must not affect another.
      messageId: `${accountId}:${hashed(id ?? JSON.stringify([address, given, headers.get("date"), mail.text]), 40)}`,
      from: [{ kind: "thread", value: `${thread}:${address}` }],
      ...optionalMember("profileName", identifierOf(from?.name, 500)),
      kind: media.length > 0 ? "media" : "text",
      text,
      media,
      standby: !isTrusted(mail.authentication, profile["senders"]),
      sender: address,
      context: {
        thread,
        subject,
        ...optionalMember("messageId", identifierOf(id, maxIdLength))
      },
      // The time of receipt counts, because mails may be delayed.
      timestamp: now
    },
    raw: {
      headers: Object.fromEntries(Array.from(headers).filter(([name]) => storedHeaders.has(name))),
      authentication: mail.authentication,
      text: mail.text.slice(0, maxStoredText)
    }
  })
}

/** Headers that are stored with the event, for support. */
const storedHeaders = new Set(["from", "to", "cc", "date", "message-id", "in-reply-to", "references"])
const maxStoredText = 65_536
