/** Callers' metadata of their sources. */
import * as Schema from "effect/Schema"
import { atMost } from "../Text.ts"

const metadataKey = /^\p{L}[\p{L}\p{N}_.-]{0,63}$/u
const maxMetadataKeys = 20

/**
 * Metadata by which retrieval can be filtered: up to 20 keys of up to 64 letters, digits, `_`, `.`, `-`, each with a
 * string of up to 500 characters, a finite number or a boolean.
 */
export const SourceMetadata = Schema.Record({
  key: Schema.String,
  value: Schema.Union(atMost(500), Schema.JsonNumber, Schema.Boolean)
}).pipe(
  Schema.filter((metadata) => Object.keys(metadata).length <= maxMetadataKeys, {
    message: () => "Expected at most 20 keys"
  }),
  Schema.filter((metadata) => Object.keys(metadata).every((key) => metadataKey.test(key)), {
    message: () => "Expected keys of up to 64 letters, digits, _ . - that begin with a letter"
  })
)
export type SourceMetadata = typeof SourceMetadata.Type
