/** WhatsApp's webhooks: entries with changes, which contain messages, echoes, new ids and statuses. All are processed. */
import type * as DateTime from "effect/DateTime"
import type { Arrival } from "../../domain/channels/Channel.ts"
import {
  type Fields,
  fieldsOf,
  maxAccountIdCharacters,
  optionalMember,
  timestampOf,
  identifierOf
} from "../Fields.ts"
import type { Normalized } from "../../capabilities/ChannelAdapters.ts"
import { arrivalOrIgnored, ignored, type Normalizer, combine, statusesOrIgnored } from "../Normalized.ts"
import { aliasesOf, type Contacts, contactsOf, joinedAliases, changedAliasesOf, senderOf } from "./Contact.ts"
import { contentOf, sentContentOf } from "./Content.ts"
import { statusOf } from "./Statuses.ts"
import { itemsOf } from "../../domain/JsonValue.ts"

interface Change {
  readonly accountId: string
  readonly value: Fields
  readonly contacts: Contacts
  /** Contacts that were stored with an earlier message. Each is stored once, however many messages it has. */
  readonly storedContacts: Set<Fields>
  readonly now: DateTime.Utc
}

const channel = "whatsapp"

const aliasUpdate = ({ accountId, now }: Change, message: Fields): Arrival | undefined => {
  const aliases = changedAliasesOf(message)
  if (aliases === undefined) return undefined
  const timestamp = timestampOf(message["timestamp"], 1_000, now)
  return { event: { _tag: "AliasUpdate", channel, accountId, aliases, timestamp }, raw: message }
}

const message = (change: Change, fields: Fields): Arrival | undefined => {
  if (fields["type"] === "system") return aliasUpdate(change, fields)
  const { accountId, contacts, now, storedContacts } = change
  const messageId = identifierOf(fields["id"])
  const sender = senderOf(
    { phone: fields["from"], userId: fields["from_user_id"], parentUserId: fields["from_parent_user_id"] },
    contacts
  )
  const content = contentOf(fields)
  // An answer to a group message would be sent only to its author.
  const inGroup = identifierOf(fields["group_id"]) !== undefined
  if (messageId === undefined || sender === undefined || content === undefined || inGroup) return undefined
  const contact =
    sender.contact === undefined || storedContacts.has(sender.contact) ? undefined : sender.contact
  if (contact !== undefined) storedContacts.add(contact)
  return {
    event: {
      _tag: "Message",
      channel,
      accountId,
      messageId,
      from: sender.from,
      ...optionalMember("profileName", sender.profileName),
      ...content,
      standby: false,
      timestamp: timestampOf(fields["timestamp"], 1_000, now)
    },
    raw: { message: fields, ...optionalMember("contact", contact) }
  }
}

/** A reply written in the WhatsApp Business app; `to` is the customer. */
const echo = ({ accountId, contacts, now }: Change, fields: Fields): Arrival | undefined => {
  const messageId = identifierOf(fields["id"])
  const customer = aliasesOf({
    phone: fields["to"],
    userId: fields["to_user_id"],
    parentUserId: fields["to_parent_user_id"]
  })
  const content = sentContentOf(fields)
  if (messageId === undefined || customer === undefined || content === undefined) return undefined
  const sender = senderOf({ phone: fields["to"], userId: fields["to_user_id"] }, contacts)
  return {
    event: {
      _tag: "Message",
      channel,
      accountId,
      messageId,
      from: sender?.from ?? customer,
      ...optionalMember("profileName", sender?.profileName),
      text: content.text,
      media: content.media,
      kind: "echo",
      origin: {},
      standby: false,
      timestamp: timestampOf(fields["timestamp"], 1_000, now)
    },
    raw: { message: fields }
  }
}

/** `user_id: {previous, current}`, the same for the parent id, and the number that they belong to. */
const idUpdate = ({ accountId, now, value }: Change, fields: Fields): Arrival | undefined => {
  const [id, parent] = [fieldsOf(fields["user_id"]), fieldsOf(fields["parent_user_id"])]
  const phone = fields["wa_id"] ?? fieldsOf(itemsOf(value["contacts"])[0])["wa_id"]
  const before = aliasesOf({ userId: id["previous"], parentUserId: parent["previous"] })
  const after = aliasesOf({ userId: id["current"], parentUserId: parent["current"], phone })
  const aliases = joinedAliases(before, after)
  if (aliases === undefined) return undefined
  const timestamp = timestampOf(fields["timestamp"], 1_000, now)
  return { event: { _tag: "AliasUpdate", channel, accountId, aliases, timestamp }, raw: fields }
}

const status = ({ accountId }: Change, fields: Fields): Normalized => {
  const found = statusOf(accountId, fields)
  return statusesOrIgnored(found === undefined ? [] : [found])
}

const normalizers = {
  messages: (change: Change, item: Fields) => arrivalOrIgnored(message(change, item)),
  message_echoes: (change: Change, item: Fields) => arrivalOrIgnored(echo(change, item)),
  user_id_update: (change: Change, item: Fields) => arrivalOrIgnored(idUpdate(change, item)),
  statuses: status
} as const

/** The events of one change. `businessId` is that of the entry, which may contain any number of changes. */
const normalizeChange = (businessId: string | undefined, change: Fields, now: DateTime.Utc): Normalized => {
  const value = fieldsOf(change["value"])
  const accountId =
    identifierOf(fieldsOf(value["metadata"])["phone_number_id"], maxAccountIdCharacters) ??
    // An id changes for the whole business, so the event may name none of its numbers.
    (itemsOf(value["user_id_update"]).length > 0 ? businessId : undefined)
  const items = Object.entries(normalizers).flatMap(([name, normalizeItem]) =>
    itemsOf(value[name]).map((item) => ({ item: fieldsOf(item), normalizeItem }))
  )
  // Other kinds of changes, and errors of the account, are acknowledged and ignored.
  if (accountId === undefined || items.length === 0) return { ...ignored, ignored: Math.max(1, items.length) }
  const all: Change = {
    accountId,
    value,
    contacts: contactsOf(value["contacts"]),
    storedContacts: new Set(),
    now
  }
  return combine(items.map(({ item, normalizeItem }) => normalizeItem(all, item)))
}

/** {@link Normalizer} for `object: "whatsapp_business_account"`. */
export const normalize: Normalizer = (body, now) =>
  combine(
    itemsOf(fieldsOf(body)["entry"]).flatMap((item) => {
      const entry = fieldsOf(item)
      const businessId = identifierOf(entry["id"], maxAccountIdCharacters)
      return itemsOf(entry["changes"]).map((change) => normalizeChange(businessId, fieldsOf(change), now))
    })
  )
