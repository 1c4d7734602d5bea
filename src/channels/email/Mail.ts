/** A delivered mail: its bytes, and the results of sender authentication. */
import * as Effect from "effect/Effect"
import * as Encoding from "effect/Encoding"
import * as Schema from "effect/Schema"
import type { Attachment, Email } from "postal-mime"
import type { ChannelRequest } from "../../capabilities/ChannelAdapters.ts"
import { ValidationError } from "../../domain/Errors.ts"
import * as Json from "../../domain/Json.ts"
import { unquotedHtml } from "./Quotes.ts"

/** An address of mailbox and domain, without name, comments or quotes. */
export const addressForm = /^[^\s@<>",;:]{1,64}@[A-Za-z0-9.-]{1,190}$/

const Verdict = Schema.optionalWith(Schema.Lowercase.pipe(Schema.compose(Schema.String)), { exact: true })
/** A delivery as JSON. A delivery of type `message/rfc822` is the mail itself. */
const JsonDelivery = Schema.Struct({
  /** The mail in base64. */
  raw: Schema.String,
  envelope: Schema.optionalWith(
    Schema.Struct({ from: Schema.optionalWith(Schema.NullOr(Schema.String), { exact: true }) }),
    { exact: true }
  ),
  /** The receiving service's results for the sender, as in RFC 8601. */
  authentication: Schema.optionalWith(Schema.Struct({ spf: Verdict, dkim: Verdict, dmarc: Verdict }), {
    exact: true
  })
})

export interface MailFile {
  readonly name: string | null
  readonly mimeType: string
  /** In base64. */
  readonly data: string
}

/** The parsed body of a delivery. */
export interface ReceivedMail {
  /** Lower-case names. Of repeated headers the first is used. */
  readonly headers: ReadonlyMap<string, string>
  readonly from: { readonly address: string; readonly name: string } | null
  readonly subject: string
  readonly text: string
  readonly files: ReadonlyArray<MailFile>
  /** Empty for a mail that must not be answered; null if the service did not say. */
  readonly envelopeFrom: string | null
  readonly authentication: Readonly<Partial<Record<"spf" | "dkim" | "dmarc", string>>>
}

const decode = Schema.decodeUnknown(JsonDelivery)
const invalidBody = () =>
  new ValidationError({ message: "The body is neither a mail nor JSON with a base64 mail in raw." })

const parserLimits = { maxNestingDepth: 32, maxHeadersSize: 262_144, maxRfc822NestingDepth: 2 } as const

const postalMime = Effect.promise(() => import("postal-mime"))

const parseMail = (raw: Uint8Array) =>
  Effect.flatMap(postalMime, ({ default: PostalMime }) =>
    Effect.tryPromise({
      try: () => PostalMime.parse(raw, { ...parserLimits, attachmentEncoding: "base64" }),
      catch: invalidBody
    })
  )

/** The text of HTML. The parser renders the HTML part of a mail that also has plain text, so both are put into a mail. */
const htmlToText = (html: string) => {
  const part = `content-type: text/html; charset=utf-8\r\ncontent-transfer-encoding: base64\r\n\r\n${Encoding.encodeBase64(html)}`
  const mail = `content-type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\n \r\n--b\r\n${part}\r\n--b--\r\n`
  return Effect.map(parseMail(new TextEncoder().encode(mail)), ({ text = "" }) => text)
}

const textOf = ({ html, text }: Email) => {
  if (text !== undefined && text.trim() !== "") return Effect.succeed(text)
  return html === undefined ? Effect.succeed("") : htmlToText(unquotedHtml(html))
}

const fileOf = ({ content, filename, mimeType }: Attachment): ReadonlyArray<MailFile> =>
  typeof content === "string" ? [{ name: filename, mimeType, data: content }] : []

/** The bytes of the mail, and the receiving service's results for its sender. */
const deliveredMail = (request: ChannelRequest) => {
  const type = request.header("content-type") ?? ""
  if (/^message\/rfc822\s*(?:;|$)/i.test(type))
    return Effect.succeed({ raw: request.body, envelopeFrom: null, authentication: {} })
  return Effect.gen(function* () {
    const body = yield* Json.parse(new TextDecoder().decode(request.body))
    const { authentication = {}, envelope = {}, raw } = yield* decode(body)
    return {
      raw: yield* Encoding.decodeBase64(raw),
      envelopeFrom: envelope.from === null ? "" : (envelope.from ?? null),
      authentication
    }
  }).pipe(Effect.mapError(invalidBody))
}

export const receivedMail = (request: ChannelRequest): Effect.Effect<ReceivedMail, ValidationError> =>
  Effect.gen(function* () {
    const { authentication, envelopeFrom, raw } = yield* deliveredMail(request)
    const email = yield* parseMail(raw)
    const headers = new Map(email.headers.toReversed().map(({ key, value }) => [key, value] as const))
    const path = headers.get("return-path")?.trim()
    return {
      headers,
      from: email.from?.address === undefined ? null : email.from,
      subject: email.subject ?? "",
      text: yield* textOf(email),
      files: email.attachments.flatMap(fileOf),
      envelopeFrom: envelopeFrom ?? (path === undefined ? null : path.replace(/^<|>$/g, "")),
      authentication
    }
  }).pipe(Effect.withSpan("Email.receivedMail"))
