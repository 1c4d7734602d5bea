/** The set-up that the hostile caller and the others share. */
import { createHmac } from "node:crypto"

export const appSecret = "the app secret of the shares"
export const billingSecret = "whsec_of_the_shares"

export const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds))

/** A message to `account`, as the provider delivers it. */
export const deliveryOf = (account, id) => {
  const message = {
    from: String(491_700_000_000 + (Number(id.split(".").at(-1)) % 200)),
    id: `wamid.${account}.${id}`,
    timestamp: String(Math.floor(Date.now() / 1_000)),
    type: "text",
    text: { body: `Where is ${id}?` }
  }
  const value = { metadata: { phone_number_id: account }, messages: [message] }
  const body = JSON.stringify({ entry: [{ id: "waba", changes: [{ field: "messages", value }] }] })
  const signature = `sha256=${createHmac("sha256", appSecret).update(body).digest("hex")}`
  return { body, headers: { "x-hub-signature-256": signature } }
}
