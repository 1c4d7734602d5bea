/** Messenger's webhooks: entries with the events of a Page, including threads that another app owns. */
import * as DateTime from "effect/DateTime"
import type { Arrival, ContactAlias, DeliveryStatus } from "../../domain/channels/Channel.ts"
import {
  type Fields,
  maxAccountIdCharacters,
  maxAliasCharacters,
  fieldsOf,
  optionalMember,
  timestampOf,
  outboxIdOf,
  identifierOf
} from "../Fields.ts"
import type { Normalized } from "../../capabilities/ChannelAdapters.ts"
import { arrivalOrIgnored, ignored, type Normalizer, combine, statusesOrIgnored } from "../Normalized.ts"
import { contentOf } from "./Content.ts"
import { itemsOf } from "../../domain/JsonValue.ts"

const channel = "messenger"

interface Event {
  readonly accountId: string
  readonly fields: Fields
  readonly standby: boolean
  readonly now: DateTime.Utc
}

const idOf = (party: unknown) => identifierOf(fieldsOf(party)["id"], maxAliasCharacters)

const contact = (id: string): readonly [ContactAlias] => [{ kind: "page_scoped_id", value: id }]

/** The origin of an echo. It is ours if it has an id of our outbox, or names our app. */
const originOf = (message: Fields) => ({
  ...optionalMember("outboxId", outboxIdOf(message["metadata"]) ?? undefined),
  ...optionalMember("appId", identifierOf(message["app_id"]))
})

const message = ({ accountId, fields, standby, now }: Event): Arrival | undefined => {
  const sent = fieldsOf(fields["message"])
  const messageId = identifierOf(sent["mid"])
  const sender = idOf(fields["sender"])
  // The Page's own messages are echoes even if not marked as such, because the agent must never answer itself.
  const isEcho = sent["is_echo"] === true || sender === accountId
  const customer = isEcho ? idOf(fields["recipient"]) : sender
  const content = contentOf(sent)
  if (messageId === undefined || customer === undefined || customer === accountId || content === undefined)
    return undefined
  return {
    event: {
      _tag: "Message",
      channel,
      accountId,
      messageId,
      from: contact(customer),
      ...content,
      ...(isEcho ? { kind: "echo" as const, origin: originOf(sent) } : {}),
      standby,
      timestamp: timestampOf(fields["timestamp"], 1, now)
    },
    raw: fields
  }
}

/** A tap on a button or a menu entry. Old buttons send no id, so sender and time identify the tap. */
const postback = ({ accountId, fields, standby, now }: Event): Arrival | undefined => {
  const { mid, title, payload } = fieldsOf(fields["postback"])
  const customer = idOf(fields["sender"])
  const text = identifierOf(title, 4_096) ?? identifierOf(payload, 4_096)
  if (customer === undefined || customer === accountId || text === undefined) return undefined
  const timestamp = timestampOf(fields["timestamp"], 1, now)
  return {
    event: {
      _tag: "Message",
      channel,
      accountId,
      messageId: identifierOf(mid) ?? `postback.${customer}.${timestamp.epochMillis}`,
      from: contact(customer),
      kind: "interactive",
      text,
      media: [],
      standby,
      timestamp
    },
    raw: fields
  }
}

const statusOf = (
  { accountId }: Event,
  delivery: "delivered" | "read",
  of: Pick<DeliveryStatus, "providerMessageId" | "watermark">
): DeliveryStatus => ({ channel, accountId, outboxId: null, delivery, error: null, ...of })

/** A status for each message id, and one for everything up to the watermark. */
const statusesOf = (event: Event, delivery: "delivered" | "read", receipt: Fields) => {
  const pageScopedId = idOf(event.fields["sender"])
  const until = timestampOf(receipt["watermark"], 1, noTime)
  const ids = itemsOf(receipt["mids"]).flatMap((mid) => identifierOf(mid) ?? [])
  return [
    ...ids.map((providerMessageId) => statusOf(event, delivery, { providerMessageId })),
    ...(pageScopedId === undefined || until === noTime
      ? []
      : [statusOf(event, delivery, { providerMessageId: null, watermark: { pageScopedId, until } })])
  ]
}
const noTime = DateTime.unsafeMake(0)

/** Edits, reactions, referrals, handovers and unknown events are acknowledged and ignored. */
const normalizeEvent = (event: Event): Normalized => {
  const { fields } = event
  if (Object.hasOwn(fields, "message")) return arrivalOrIgnored(message(event))
  if (Object.hasOwn(fields, "postback")) return arrivalOrIgnored(postback(event))
  if (Object.hasOwn(fields, "delivery"))
    return statusesOrIgnored(statusesOf(event, "delivered", fieldsOf(fields["delivery"])))
  if (Object.hasOwn(fields, "read"))
    return statusesOrIgnored(statusesOf(event, "read", fieldsOf(fields["read"])))
  return ignored
}

const eventsOf = (entry: Fields, now: DateTime.Utc): ReadonlyArray<Normalized> => {
  const accountId = identifierOf(entry["id"], maxAccountIdCharacters)
  const of = (items: unknown, standby: boolean) =>
    itemsOf(items).map((item) =>
      accountId === undefined ? ignored : normalizeEvent({ accountId, fields: fieldsOf(item), standby, now })
    )
  // Other events of a Page come as `changes`.
  const others = itemsOf(entry["changes"]).map(() => ignored)
  return [...of(entry["messaging"], false), ...of(entry["standby"], true), ...others]
}

/** {@link Normalizer} for `object: "page"`. */
export const normalize: Normalizer = (body, now) => {
  const { object, entry } = fieldsOf(body)
  if (object === "instagram") return { ...ignored, ignored: itemsOf(entry).length }
  return combine(itemsOf(entry).flatMap((item) => eventsOf(fieldsOf(item), now)))
}
