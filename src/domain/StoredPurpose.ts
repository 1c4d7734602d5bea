import * as Schema from "effect/Schema"

/** Purposes of what is stored sealed. A comment of its column names it: `sealed: tool-secret`. */
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
