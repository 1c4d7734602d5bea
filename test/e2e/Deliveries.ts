/** Signed deliveries of messaging providers to a running server. */
import { createHmac } from "node:crypto"

/** The signature header of a body, made with the app's secret. */
export const signatureHeader = (secret: string, body: string) => ({
  "x-hub-signature-256": `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`
})

export interface Text {
  readonly from: string
  readonly id: string
  readonly text: string
  /** Seconds; now by default. */
  readonly timestamp?: string
}

/** The body of a delivery with one WhatsApp text to the account `pn_1`. */
export const whatsappText = ({
  from,
  id,
  text,
  timestamp = String(Math.floor(Date.now() / 1_000))
}: Text) => {
  const message = { from, id, timestamp, type: "text", text: { body: text } }
  const value = { metadata: { phone_number_id: "pn_1" }, messages: [message] }
  return JSON.stringify({ entry: [{ id: "waba", changes: [{ field: "messages", value }] }] })
}

export const deliver = (
  server: { readonly url: string },
  channel: "whatsapp" | "messenger",
  secret: string,
  body: string
): Promise<Response> =>
  fetch(`${server.url}/api/webhooks/${channel}`, {
    method: "POST",
    headers: signatureHeader(secret, body),
    body
  })
