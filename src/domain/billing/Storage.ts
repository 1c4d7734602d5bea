/** Storage that the data of a tenant takes. */
import * as Schema from "effect/Schema"

const Bytes = Schema.Int.pipe(Schema.nonNegative())

/** Bytes by kind, as they are stored: compressed, without indexes and without the overhead of a row. */
export const StorageBytes = Schema.Struct({
  messages: Bytes,
  /** Runs with their traces, and the passages that models were shown. */
  runs: Bytes,
  /** Documents and chunks with their search terms. */
  knowledge: Bytes,
  vectors: Bytes,
  /** Uploaded and fetched files, and those of messages. A file counts once. */
  originals: Bytes
})
export type StorageBytes = typeof StorageBytes.Type

export const noBytes: StorageBytes = { messages: 0, runs: 0, knowledge: 0, vectors: 0, originals: 0 }

/** Counted in the background, about once a day; null before the first count. */
export const StorageUsage = Schema.NullOr(
  Schema.Struct({ countedAt: Schema.DateTimeUtc, bytes: StorageBytes })
)
export type StorageUsage = typeof StorageUsage.Type
