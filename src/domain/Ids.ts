/**
 * Identifiers are TypeIDs: a prefix for the kind, `_`, and a UUIDv7 in 26 characters of Crockford base 32. They sort by
 * creation time, which keeps indexes compact and cursors simple.
 */
import * as Clock from "effect/Clock"
import type * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Text } from "./Text.ts"

/** Accepts any text where a caller sends an id. An id that does not exist is a 404, not a 400. */
const id = <const B extends string>(brand: B) => Text.pipe(Schema.minLength(1), Schema.brand(brand))

export const TenantId = id("TenantId")
export type TenantId = typeof TenantId.Type
export const UserId = id("UserId")
export type UserId = typeof UserId.Type
export const AgentId = id("AgentId")
export type AgentId = typeof AgentId.Type
export const KeyId = id("KeyId")
export type KeyId = typeof KeyId.Type
export const TokenId = id("TokenId")
export type TokenId = typeof TokenId.Type
export const EndUserId = id("EndUserId")
export type EndUserId = typeof EndUserId.Type
export const ConversationId = id("ConversationId")
export type ConversationId = typeof ConversationId.Type
export const MessageId = id("MessageId")
export type MessageId = typeof MessageId.Type
export const RunId = id("RunId")
export type RunId = typeof RunId.Type
export const SourceId = id("SourceId")
export type SourceId = typeof SourceId.Type
export const IngestionJobId = id("IngestionJobId")
export type IngestionJobId = typeof IngestionJobId.Type
export const DocumentId = id("DocumentId")
export type DocumentId = typeof DocumentId.Type
export const ChunkId = id("ChunkId")
export type ChunkId = typeof ChunkId.Type
export const QueueJobId = id("QueueJobId")
export type QueueJobId = typeof QueueJobId.Type
export const ChannelId = id("ChannelId")
export type ChannelId = typeof ChannelId.Type
export const InboundEventId = id("InboundEventId")
export type InboundEventId = typeof InboundEventId.Type
export const OutboxId = id("OutboxId")
export type OutboxId = typeof OutboxId.Type

const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"

/** Encodes 128 bits, 5 per character, with two zero bits in front. */
const base32 = (bytes: Uint8Array): string => {
  let text = ""
  let waiting = 0
  let bits = 2
  for (const byte of bytes) {
    waiting = (waiting << 8) | byte
    bits += 8
    while (bits >= 5) {
      bits -= 5
      text += ALPHABET.charAt((waiting >> bits) & 31)
    }
  }
  return text
}

/** Number of characters of an id that encode its millisecond. */
const momentLength = 10

/** Random bytes are drawn for many ids at once, because the call costs more than the bytes. */
const pool = new Uint8Array(256 * 16)
let drawn = pool.length

const randomBytes = (): Uint8Array => {
  if (drawn === pool.length) {
    crypto.getRandomValues(pool)
    drawn = 0
  }
  drawn += 16
  return pool.subarray(drawn - 16, drawn)
}

/** `prefix_` and a fresh UUIDv7 (48 bits of milliseconds, 74 random bits). */
export const typeId = (prefix: string, milliseconds: number): string => {
  const bytes = randomBytes()
  let rest = milliseconds
  for (let place = 5; place >= 0; place--) {
    bytes[place] = rest % 256
    rest = Math.floor(rest / 256)
  }
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x70
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80
  return `${prefix}_${base32(bytes)}`
}

/** The smallest id that can be created at `moment` plus `laterMillis`. Ids begin with their creation time. */
export const minIdAt = (prefix: string, moment: DateTime.Utc, laterMillis = 0): string =>
  typeId(prefix, Math.max(0, moment.epochMillis + laterMillis)).slice(0, prefix.length + 1 + momentLength)

const generator = <A>(prefix: string, brand: (text: string) => A): Effect.Effect<A> =>
  Effect.map(Clock.currentTimeMillis, (now) => brand(typeId(prefix, now)))

/** One generator for each kind: `yield* newId.agent`. */
export const newId = {
  tenant: generator("ten", (text) => TenantId.make(text)),
  user: generator("mbr", (text) => UserId.make(text)),
  agent: generator("agt", (text) => AgentId.make(text)),
  key: generator("key", (text) => KeyId.make(text)),
  token: generator("tok", (text) => TokenId.make(text)),
  endUser: generator("usr", (text) => EndUserId.make(text)),
  conversation: generator("cnv", (text) => ConversationId.make(text)),
  message: generator("msg", (text) => MessageId.make(text)),
  run: generator("run", (text) => RunId.make(text)),
  source: generator("src", (text) => SourceId.make(text)),
  ingestionJob: generator("job", (text) => IngestionJobId.make(text)),
  document: generator("doc", (text) => DocumentId.make(text)),
  chunk: generator("chk", (text) => ChunkId.make(text)),
  queueJob: generator("qjb", (text) => QueueJobId.make(text)),
  channel: generator("chn", (text) => ChannelId.make(text)),
  inbox: generator("inb", (text) => InboundEventId.make(text)),
  outbox: generator("out", (text) => OutboxId.make(text))
} as const
