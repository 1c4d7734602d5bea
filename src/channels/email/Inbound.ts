/**
 * Converts mails to our events. A thread of one sender is a contact. Its alias is derived from the thread's first mail
 * and the sender's address, so that naming another mail in a header does not give access to that conversation.
 */
import { createHash } from "node:crypto"
import type * as DateTime from "effect/DateTime"
import type { ChannelAccess, Normalized } from "../../capabilities/ChannelAdapters.ts"
import type { DeliveryStatus, InboundMedia } from "../../domain/channels/Channel.ts"
import { member, outboxIdOf, textOf, identifierOf } from "../Fields.ts"
import { arrived, ignored, singleEvent } from "../Normalized.ts"
import { addressForm, type ReceivedMail } from "./Mail.ts"
import { withoutQuotes } from "./Spoken.ts"

const channel = "email"

/** Maximum length of a sender's address, which becomes part of an alias. */
const maxAddressLength = 200
const maxSubjectLength = 500
/** Maximum length of a mail id that is repeated in a reply. */
const maxIdLength = 300
/** Maximum number of ids of a thread that are read. */
const maxReferences = 100

/** Our message ids: the outbox id and the thread. */
const ours = /^(out_[0-9a-z]{26})\.([0-9a-f]{16})@/

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

/** The thread of a mail: taken from one of our ids, else derived from the first mail. */
const threadOf = (headers: ReceivedMail["headers"], own: string) => {
  const named = [...idsOf(headers.get("references")), ...idsOf(headers.get("in-reply-to"))]
  const known = named.map((id) => ours.exec(id)?.[2]).find((thread) => thread !== undefined)
  return { thread: known ?? hashed(named[0] ?? own, 16), isReply: named.length > 0 }
}

/** Addresses that nobody reads. */
const robots =
  /^(?:mailer-daemon|postmaster|bounces?|no-?reply|do-?not-?reply|noreply-.*|listserv|majordomo)(?:[+=].*)?$/i

const isSaid = (value: string | undefined, words: RegExp) => words.test((value ?? "").trim().slice(0, 100))

/** A mail that a program has sent. An answer could start a loop. */
const isAutomatic = ({ envelopeFrom, headers }: ReceivedMail, address: string) =>
  envelopeFrom === "" ||
  isSaid(headers.get("auto-submitted"), /^(?!no\b)./i) ||
  isSaid(headers.get("precedence"), /^(?:bulk|junk|list|auto_reply)\b/i) ||
  isSaid(headers.get("x-auto-response-suppress"), /\b(?:all|oof|autoreply)\b/i) ||
  ["list-id", "list-post", "list-unsubscribe", "x-autoreply", "x-autorespond", "feedback-id"].some((name) =>
    headers.has(name)
  ) ||
  isSaid(headers.get("content-type"), /^multipart\/report\b/i) ||
  robots.test(address.split("@", 1).join(""))

const refuted = /^(?:fail|softfail|policy|permerror)$/
/** The receiving service's verdict on the sender. DMARC checks the address that people see. */
const verdictOf = ({ dkim, dmarc, spf }: ReceivedMail["authentication"]) => {
  if (dmarc === "pass") return "verified"
  if (refuted.test(dmarc ?? "")) return "refuted"
  return refuted.test(spf ?? "") && dkim !== "pass" ? "refuted" : "unknown"
}

/** Which senders an account answers; the first is the default. */
export const senderRules = ["plausible", "verified", "any"] as const

const isTrusted = (authentication: ReceivedMail["authentication"], rule: string | undefined) => {
  const verdict = verdictOf(authentication)
  if (rule === "any") return true
  return rule === "verified" ? verdict === "verified" : verdict !== "refuted"
}

const kindOf = (mimeType: string): InboundMedia["kind"] => {
  const [family] = mimeType.split("/")
  return family === "image" || family === "video" || family === "audio" ? family : "document"
}

const mediaOf = (files: ReceivedMail["files"]): ReadonlyArray<InboundMedia> =>
  files.map(({ data, mimeType, name }) => ({
    kind: kindOf(mimeType),
    data,
    ...member("mimeType", identifierOf(mimeType, 200)),
    ...member("fileName", identifierOf(name ?? undefined))
  }))

/** A bounced mail of ours, from the report of a mail server. */
const returned = (mail: ReceivedMail, accountId: string): ReadonlyArray<DeliveryStatus> => {
  if (!isSaid(mail.headers.get("content-type"), /^multipart\/report\b/i)) return []
  const parts = mail.files
    .filter(({ mimeType }) => /^message\/|^text\/rfc822-headers$/.test(mimeType))
    .map(({ data }) => Buffer.from(data.slice(0, 65_536), "base64").toString("latin1"))
  const failed = parts.some((part) => /^Action:\s*failed\b/im.test(part))
  const id = [...parts.flatMap((part) => idsOf(part)), ...idsOf(mail.headers.get("references"))]
    .map((one) => outboxIdOf(ours.exec(one)?.[1]))
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
  const back = returned(mail, accountId)
  if (back.length > 0) return singleEvent(back)
  const address = (from?.address ?? "").toLowerCase()
  const [id] = idsOf(headers.get("message-id"))
  if (!addressForm.test(address) || address.length > maxAddressLength) return ignored
  if (address === (profile["address"] ?? "").toLowerCase() || ours.test(id ?? "")) return ignored
  if (isAutomatic(mail, address)) return ignored
  const subject = withoutPrefix(textOf(given).replace(/\s+/g, " ")).slice(0, maxSubjectLength)
  const written = withoutQuotes(textOf(mail.text))
  const media = mediaOf(files)
  const { isReply, thread } = threadOf(headers, id ?? `${address} ${given} ${mail.text}`)
  const text = isReply || subject === "" ? written : `Subject: ${subject}\n\n${written}`.trim()
  if (text === "" && media.length === 0) return ignored
  return arrived({
    event: {
      _tag: "Message",
      channel,
      accountId,
      // Includes the account, because the secret of one account must not affect another.
      messageId: `${accountId}:${hashed(id ?? JSON.stringify([address, given, headers.get("date"), mail.text]), 40)}`,
      from: [{ kind: "thread", value: `${thread}:${address}` }],
      ...member("profileName", identifierOf(from?.name, 500)),
      kind: media.length > 0 ? "media" : "text",
      text,
      media,
      standby: !isTrusted(mail.authentication, profile["senders"]),
      sender: address,
      context: {
        thread,
        subject,
        ...member("messageId", identifierOf(id, maxIdLength))
      },
      // The time of receipt counts, because mails may be delayed.
      timestamp: now
    },
    raw: {
      headers: Object.fromEntries(Array.from(headers).filter(([name]) => keptHeaders.has(name))),
      authentication: mail.authentication,
      text: mail.text.slice(0, maxKeptText)
    }
  })
}

/** Headers that are stored with the event, for support. */
const keptHeaders = new Set(["from", "to", "cc", "date", "message-id", "in-reply-to", "references"])
const maxKeptText = 65_536
