/** Secrets and signatures in the format of Standard Webhooks. */
import { createHmac, randomBytes } from "node:crypto"

const prefix = "whsec_"
const secretBytes = 32

/** A new secret: `whsec_` and base64. */
export const newSecret = (): string => prefix + randomBytes(secretBytes).toString("base64")

/** The headers of a call whose body is `body`: one signature for each of `secrets`. */
export const signed = (
  secrets: ReadonlyArray<string>,
  eventId: string,
  at: number,
  body: string
): Readonly<Record<string, string>> => {
  const timestamp = String(Math.floor(at / 1_000))
  const signatureOf = (secret: string) => {
    const key = Buffer.from(secret.slice(prefix.length), "base64")
    return `v1,${createHmac("sha256", key).update(`${eventId}.${timestamp}.${body}`).digest("base64")}`
  }
  return {
    "webhook-id": eventId,
    "webhook-timestamp": timestamp,
    "webhook-signature": secrets.map(signatureOf).join(" ")
  }
}
