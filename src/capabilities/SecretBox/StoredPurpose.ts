/** Purposes of what is stored sealed. A comment of its column names it: `sealed: tool-secret`. */
export const storedPurposes = [
  "tool-secret",
  "tool-tokens",
  "tool-sign-in",
  "channel-token",
  "channel-secrets",
  "webhook-secret",
  "source-secret",
  "stored-answer",
  "sso-secret"
] as const

export type StoredPurpose = (typeof storedPurposes)[number]

export const isStoredPurpose = (name: string): name is StoredPurpose =>
  storedPurposes.some((purpose) => purpose === name)
