/**
 * Identifiers are TypeIDs: a prefix for the kind, `_`, and a UUIDv7 in 26 characters of Crockford base 32. They sort by
 * creation time, so indexes are compact and cursors simple.
 */
import * as Clock from "effect/Clock"
import type * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Text } from "./Text.ts"

/** Accepts any text where a caller sends an id. An id that does not exist is a 404, not a 400. */
export const brandedId = <const B extends string>(brand: B) =>
  Text.pipe(Schema.minLength(1), Schema.brand(brand))

export const TenantId = brandedId("TenantId")
export type TenantId = typeof TenantId.Type
export const UserId = brandedId("UserId")
export type UserId = typeof UserId.Type
export const AgentId = brandedId("AgentId")
export type AgentId = typeof AgentId.Type
export const KeyId = brandedId("KeyId")
export type KeyId = typeof KeyId.Type
export const TokenId = brandedId("TokenId")
export type TokenId = typeof TokenId.Type
export const EndUserId = brandedId("EndUserId")
export type EndUserId = typeof EndUserId.Type
export const ConversationId = brandedId("ConversationId")
export type ConversationId = typeof ConversationId.Type
export const MessageId = brandedId("MessageId")
export type MessageId = typeof MessageId.Type
export const RunId = brandedId("RunId")
export type RunId = typeof RunId.Type
export const SourceId = brandedId("SourceId")
export type SourceId = typeof SourceId.Type
export const IngestionJobId = brandedId("IngestionJobId")
export type IngestionJobId = typeof IngestionJobId.Type
export const DocumentId = brandedId("DocumentId")
export type DocumentId = typeof DocumentId.Type
export const ChunkId = brandedId("ChunkId")
export type ChunkId = typeof ChunkId.Type
export const QueueJobId = brandedId("QueueJobId")
export type QueueJobId = typeof QueueJobId.Type
export const ChannelId = brandedId("ChannelId")
export type ChannelId = typeof ChannelId.Type
export const InboundEventId = brandedId("InboundEventId")
export type InboundEventId = typeof InboundEventId.Type
export const OutboxId = brandedId("OutboxId")
export type OutboxId = typeof OutboxId.Type

const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"

/** Encodes 128 bits, 5 per character, with two zero bits in front. */
const base32 = (bytes: Uint8Array): string => {
  let text = ""
  let pending = 0
  let bits = 2
  for (const byte of bytes) {
    pending = (pending << 8) | byte
    bits += 8
    while (bits >= 5) {
      bits -= 5
      text += ALPHABET.charAt((pending >> bits) & 31)
    }
  }
  return text
}

/** Number of characters of an id that encode its creation time. */
const timestampLength = 10

/** Random bytes are drawn for many ids at once, because the call costs more than the bytes. */
const pool = new Uint8Array(256 * 16)
let usedBytes = pool.length

const randomBytes = (): Uint8Array => {
  if (usedBytes === pool.length) {
    crypto.getRandomValues(pool)
    usedBytes = 0
  }
  usedBytes += 16
  return pool.subarray(usedBytes - 16, usedBytes)
}

/** `prefix_` and a fresh UUIDv7 (48 bits of milliseconds, 74 random bits). */
export const typeId = (prefix: string, milliseconds: number): string => {
  const bytes = randomBytes()
  let rest = milliseconds
  for (let index = 5; index >= 0; index--) {
    bytes[index] = rest % 256
    rest = Math.floor(rest / 256)
  }
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x70
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80
  return `${prefix}_${base32(bytes)}`
}

/** The smallest id of a run that can begin at `moment` plus `laterMillis`. Ids begin with their creation time. */
export const minRunIdAt = (moment: DateTime.Utc, laterMillis = 0): string =>
  typeId("run", Math.max(0, moment.epochMillis + laterMillis)).slice(0, "run_".length + timestampLength)

/** A generator of ids with that prefix. */
export const idGenerator = <A>(prefix: string, brand: (text: string) => A): Effect.Effect<A> =>
  Effect.map(Clock.currentTimeMillis, (now) => brand(typeId(prefix, now)))

/** The id of something that is known by a hash of its request. It does not sort by creation time. */
export const hashedId = (prefix: string, hash: Uint8Array): string =>
  `${prefix}_${base32(hash.subarray(0, 16))}`

export const messageIdOf = (hash: Uint8Array): MessageId => MessageId.make(hashedId("msg", hash))

/** One generator for each kind: `yield* newId.agent`. */
export const newId = {
  tenant: idGenerator("ten", (text) => TenantId.make(text)),
  user: idGenerator("mbr", (text) => UserId.make(text)),
  agent: idGenerator("agt", (text) => AgentId.make(text)),
  key: idGenerator("key", (text) => KeyId.make(text)),
  token: idGenerator("tok", (text) => TokenId.make(text)),
  endUser: idGenerator("usr", (text) => EndUserId.make(text)),
  conversation: idGenerator("cnv", (text) => ConversationId.make(text)),
  message: idGenerator("msg", (text) => MessageId.make(text)),
  run: idGenerator("run", (text) => RunId.make(text)),
  source: idGenerator("src", (text) => SourceId.make(text)),
  ingestionJob: idGenerator("job", (text) => IngestionJobId.make(text)),
  document: idGenerator("doc", (text) => DocumentId.make(text)),
  chunk: idGenerator("chk", (text) => ChunkId.make(text)),
  queueJob: idGenerator("qjb", (text) => QueueJobId.make(text)),
  channel: idGenerator("chn", (text) => ChannelId.make(text)),
  inbox: idGenerator("inb", (text) => InboundEventId.make(text)),
  outbox: idGenerator("out", (text) => OutboxId.make(text))
} as const
