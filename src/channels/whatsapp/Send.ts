/** What WhatsApp is asked: to deliver a text, to show that a message was read and is being answered. */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { ContactAlias } from "../../domain/Channel.ts"
import type { JsonObject } from "../../domain/Text.ts"
import { shownAs } from "../Markdown.ts"
import type { Outgoing, OutboundChannel } from "../Outbound.ts"

const Accepted = Schema.Struct({
  messages: Schema.NonEmptyArray(Schema.Struct({ id: Schema.NonEmptyString }))
})
const decode = Schema.decodeUnknownOption(Accepted)

const digits = /^\d{5,20}$/

/**
 * The phone number when one is known, else the user id. The provider answers a user id in `to` with 200 and drops the
 * message (guarantee G17), so nothing but digits of a phone gets there.
 */
export const recipient = (aliases: ReadonlyArray<ContactAlias>): JsonObject | null => {
  const phone = aliases.find(({ kind, value }) => kind === "phone" && digits.test(value))
  if (phone !== undefined) return { to: phone.value }
  const user =
    aliases.find(({ kind }) => kind === "user_id") ?? aliases.find(({ kind }) => kind === "parent_user_id")
  return user === undefined ? null : { recipient: user.value }
}

const text = ({ aliases, body, outboxId }: Outgoing): JsonObject | null => {
  const to = recipient(aliases)
  if (to === null) return null
  return {
    messaging_product: "whatsapp",
    recipient_type: "individual",
    ...to,
    type: "text",
    text: { body, preview_url: false },
    biz_opaque_callback_data: outboxId
  }
}

export const whatsapp: OutboundChannel = {
  limit: 4_096,
  shown: shownAs({ strong: "*", emphasis: "_", code: "`", fence: "```" }),
  text,
  accepted: (answer) => Option.map(decode(answer), ({ messages: [{ id }] }) => id),
  seen: (_, messageId) => [
    {
      messaging_product: "whatsapp",
      status: "read",
      message_id: messageId,
      typing_indicator: { type: "text" }
    }
  ]
}
