/**
 * The customer of a WhatsApp item. Since 2026 a customer may have no phone number, only ids scoped to the business. Ids
 * and phone numbers are never confused.
 */
import type { ContactAlias } from "../../domain/channels/Channel.ts"
import { type Fields, fieldsOf, identifierOf, maxAliasCharacters } from "../Fields.ts"
import { itemsOf } from "../../domain/JsonValue.ts"

type Aliases = readonly [ContactAlias, ...ReadonlyArray<ContactAlias>]

const scopedId = /^[A-Z]{2}\.(?:ENT\.)?[A-Za-z0-9]{1,128}$/
const parentId = /^[A-Z]{2}\.ENT\./

/** The digits of a phone number; undefined for anything else. */
export const phoneOf = (value: unknown): string | undefined => {
  const digits = identifierOf(value, 40)?.replace(/^\+|[\s()./-]/g, "")
  return digits !== undefined && /^\d{3,20}$/.test(digits) ? digits : undefined
}

const alias = (kind: ContactAlias["kind"], value: string | undefined): ReadonlyArray<ContactAlias> =>
  value === undefined ? [] : [{ kind, value }]

/** The alias of a business-scoped id. Its form shows whether it is a parent's id. */
const scopedAlias = (value: unknown, kind: "user_id" | "parent_user_id"): ReadonlyArray<ContactAlias> => {
  const id = identifierOf(value, maxAliasCharacters)
  if (id === undefined || phoneOf(id) !== undefined) return []
  return alias(parentId.test(id) ? "parent_user_id" : kind, id)
}

/** The fields that may identify one person. */
export interface PersonIds {
  readonly phone?: unknown
  readonly userId?: unknown
  readonly parentUserId?: unknown
}

const keyOf = ({ kind, value }: ContactAlias): string => `${kind} ${value}`

const ranks = ["user_id", "phone", "parent_user_id"]

/** Distinct aliases, the most stable first; undefined when there is none. */
const distinctAliases = (found: ReadonlyArray<ContactAlias>): Aliases | undefined => {
  const [first, ...others] = [...new Map(found.map((each) => [keyOf(each), each])).values()].toSorted(
    (one, other) => ranks.indexOf(one.kind) - ranks.indexOf(other.kind)
  )
  return first === undefined ? undefined : [first, ...others]
}

/** All aliases of one person, the most stable first; undefined when there is none. */
export const aliasesOf = ({ phone, userId, parentUserId }: PersonIds): Aliases | undefined =>
  distinctAliases([
    ...scopedAlias(userId, "user_id"),
    ...alias("phone", phoneOf(phone)),
    // Some senders put the id into the field of the number.
    ...(scopedId.test(identifierOf(phone) ?? "") ? scopedAlias(phone, "user_id") : []),
    ...scopedAlias(parentUserId, "parent_user_id")
  ])

export interface Sender {
  readonly from: Aliases
  readonly profileName: string | undefined
  /** The matching entry of `contacts`. */
  readonly contact: Fields | undefined
}

/** An entry of `contacts`, decoded once for all messages of the person. */
interface Contact {
  readonly fields: Fields
  readonly aliases: Aliases | undefined
  readonly profileName: string | undefined
  readonly index: number
}

export interface Contacts {
  readonly byAlias: ReadonlyMap<string, Contact>
  /** The only entry, if there is just one. */
  readonly only: Contact | undefined
}

export const contactsOf = (contacts: unknown): Contacts => {
  const byAlias = new Map<string, Contact>()
  const all = itemsOf(contacts).map((item, index): Contact => {
    const fields = fieldsOf(item)
    const aliases = aliasesOf({
      phone: fields["wa_id"],
      userId: fields["user_id"],
      parentUserId: fields["parent_user_id"]
    })
    const profileName = identifierOf(fieldsOf(fields["profile"])["name"], 1_000)
    return { fields, aliases, profileName, index }
  })
  for (const contact of all)
    for (const each of contact.aliases ?? []) if (!byAlias.has(keyOf(each))) byAlias.set(keyOf(each), contact)
  return { byAlias, only: all.length === 1 ? all[0] : undefined }
}

/** The first contact that has one of the aliases. */
const contactWithAlias = (aliases: Aliases, { byAlias }: Contacts): Contact | undefined =>
  aliases
    .flatMap((each) => byAlias.get(keyOf(each)) ?? [])
    .toSorted((one, other) => one.index - other.index)
    .at(0)

/** The sender of a message, by its own fields and by `contacts`. */
export const senderOf = (own: PersonIds, contacts: Contacts): Sender | undefined => {
  const aliases = aliasesOf(own)
  // A message without a sender's id belongs to the only contact of the payload.
  const found = aliases === undefined ? contacts.only : contactWithAlias(aliases, contacts)
  const from = distinctAliases([...(aliases ?? []), ...(found?.aliases ?? [])])
  return from === undefined ? undefined : { from, profileName: found?.profileName, contact: found?.fields }
}

/** The ids in "User … changed from A to B". They are matched at the end, because customers choose the name before them. */
const changedIds = /changed from ([A-Z]{2}\.[A-Za-z0-9.]{1,132}) to ([A-Z]{2}\.[A-Za-z0-9.]{1,132})\.?$/

/** The old and the new number or id of a contact, in a `system` message. */
export const changedAliasesOf = (message: Fields): Aliases | undefined => {
  const system = fieldsOf(message["system"])
  const [, previous, current] = changedIds.exec(identifierOf(system["body"], 4_096) ?? "") ?? []
  const known = current !== undefined && current === identifierOf(system["user_id"]) ? previous : undefined
  const before = aliasesOf({
    phone: message["from"],
    userId: message["from_user_id"] ?? system["previous_user_id"] ?? known,
    parentUserId: message["from_parent_user_id"]
  })
  const after = aliasesOf({
    phone: system["wa_id"] ?? system["new_wa_id"],
    userId: system["user_id"],
    parentUserId: system["parent_user_id"]
  })
  return joinedAliases(before, after)
}

/** The old aliases together with the new ones; undefined unless there are both. */
export const joinedAliases = (
  before: Aliases | undefined,
  after: Aliases | undefined
): Aliases | undefined => {
  if (before === undefined || after === undefined) return undefined
  // The new ones come first, because later messages contain them.
  const onlyBefore = before.filter(
    ({ kind, value }) => !after.some((each) => each.kind === kind && each.value === value)
  )
  return onlyBefore.length === 0 && after.length === 1 ? undefined : [...after, ...onlyBefore]
}
