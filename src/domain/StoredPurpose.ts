import * as Schema from "effect/Schema"

/** What a sealed (encrypted) column contains. The comment of the column in the database names it: `sealed: tool-secret`. */
export const StoredPurpose = Schema.Literal(
  "tool-secret",
  "tool-tokens",
  "tool-sign-in",
  "channel-token",
  "channel-secrets",
  "webhook-secret",
  "source-secret",
  "stored-answer",
  "sso-secret"
)
export type StoredPurpose = typeof StoredPurpose.Type
