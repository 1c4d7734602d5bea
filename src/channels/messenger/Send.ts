/** What Messenger is asked: to deliver a text, to show that a message was read and is being answered. */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { ContactAlias } from "../../domain/Channel.ts"
import type { JsonObject } from "../../domain/Text.ts"
import { shownAs } from "../Markdown.ts"
import type { Outgoing, OutboundChannel } from "../Outbound.ts"

const decode = Schema.decodeUnknownOption(Schema.Struct({ message_id: Schema.NonEmptyString }))

const recipient = (aliases: ReadonlyArray<ContactAlias>): JsonObject | null => {
  const person = aliases.find(({ kind }) => kind === "page_scoped_id")
  return person === undefined ? null : { recipient: { id: person.value } }
}

const text = ({ aliases, body, outboxId }: Outgoing): JsonObject | null => {
  const to = recipient(aliases)
  return to === null
    ? null
    : { ...to, messaging_type: "RESPONSE", message: { text: body, metadata: outboxId } }
}

export const messenger: OutboundChannel = {
  limit: 2_000,
  shown: shownAs({ strong: "", emphasis: "", code: "", fence: "" }),
  text,
  accepted: (answer) => Option.map(decode(answer), ({ message_id: id }) => id),
  seen: (aliases) => {
    const to = recipient(aliases)
    return to === null ? [] : ["mark_seen", "typing_on"].map((action) => ({ ...to, sender_action: action }))
  }
}
