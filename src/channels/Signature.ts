/** Verifies the signature of a webhook: the HMAC of its bytes, keyed with the app's or the account's secret. */
import { createHmac, timingSafeEqual } from "node:crypto"
import * as Duration from "effect/Duration"
import * as Either from "effect/Either"
import * as Redacted from "effect/Redacted"
import type { ChannelAdapter } from "../capabilities/ChannelAdapters.ts"
import { invalidSignature } from "./Refusals.ts"

/** Whether `given`, 64 lower-case hex digits, is the HMAC-SHA-256 of `prefix` and `body`. Compared in constant time. */
const isHmac = (given: string, secret: Redacted.Redacted, prefix: string, body: Uint8Array): boolean => {
  const expected = createHmac("sha256", Redacted.value(secret)).update(prefix).update(body).digest()
  return timingSafeEqual(expected, Buffer.from(given, "hex"))
}

const form = /^sha256=([0-9a-f]{64})$/

/**
 * True when `header`, the value of `x-hub-signature-256`, is `sha256=` and the lower-case hex HMAC-SHA-256 of `body`.
 * A header of any other form is refused without hashing the body.
 */
export const isSigned = (
  secret: Redacted.Redacted,
  header: string | undefined,
  body: Uint8Array
): boolean => {
  const given = form.exec(header ?? "")?.[1]
  return given !== undefined && isHmac(given, secret, "", body)
}

/** Maximum age of a request. An older one may be a replay. */
const maxRequestAge = Duration.minutes(5)
const timestampForm = /^\d{1,12}$/

/** A signature that includes the time of the request. */
interface TimestampedSignature {
  readonly timestampHeader: string
  readonly signatureHeader: string
  /** The form of its header, with the 64 hex digits as the first group. */
  readonly form: RegExp
  /** What is signed before the body. */
  readonly signedPrefix: (timestamp: string) => string
}

/** Checks the signature with the account's signing secret, for requests of the last five minutes. */
export const verifyTimestamped =
  (signature: TimestampedSignature): ChannelAdapter["verify"] =>
  ({ body, header, now }, access) => {
    const secret = access?.secrets["signingSecret"]
    const timestamp = header(signature.timestampHeader) ?? ""
    const given = signature.form.exec(header(signature.signatureHeader) ?? "")?.[1]
    return secret !== undefined &&
      given !== undefined &&
      timestampForm.test(timestamp) &&
      Math.abs(now.epochMillis - Number(timestamp) * 1_000) <= Duration.toMillis(maxRequestAge) &&
      isHmac(given, secret, signature.signedPrefix(timestamp), body)
      ? Either.void
      : Either.left(invalidSignature())
  }
