/** Verifies the signature of a webhook: the HMAC of its bytes, keyed with the app's secret. */
import { createHmac, timingSafeEqual } from "node:crypto"
import * as Redacted from "effect/Redacted"

const form = /^sha256=([0-9a-f]{64})$/

/**
 * True when `header`, the value of `x-hub-signature-256`, is `sha256=` and the lower-case hex HMAC-SHA-256 of `body`.
 * Compared in constant time. A header of any other form is refused without hashing the body.
 */
export const isSigned = (
  secret: Redacted.Redacted,
  header: string | undefined,
  body: Uint8Array
): boolean => {
  const given = form.exec(header ?? "")?.[1]
  if (given === undefined) return false
  const expected = createHmac("sha256", Redacted.value(secret)).update(body).digest()
  return timingSafeEqual(expected, Buffer.from(given, "hex"))
}
