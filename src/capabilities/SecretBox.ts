/** Signing and sealing with keys derived from the master secret, one key for each purpose. */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Option from "effect/Option"

/** A key of its own is derived for each. */
export type Purpose =
  | "cursor"
  | "realtime"
  | "visitor"
  | "tool-secret"
  | "channel-token"
  | "channel-secrets"
  | "webhook-secret"
  | "source-secret"
  | "stored-answer"
  | "sso-secret"
  | "sso-flow"
  | "passkey-flow"

export class SecretBox extends Context.Tag("capabilities/SecretBox")<
  SecretBox,
  {
    /** `text` with an HMAC-SHA-256 tag, URL-safe. */
    readonly sign: (purpose: Purpose, text: string) => Effect.Effect<string>
    /** The signed text, or none when the tag does not match (compared in constant time). */
    readonly verify: (purpose: Purpose, signed: string) => Effect.Effect<Option.Option<string>>
    /** AES-256-GCM under a fresh nonce; the result names its key's version, so that the master secret can be rotated. */
    readonly seal: (purpose: Purpose, text: string) => Effect.Effect<string>
    /** The sealed text, or none when it was tampered with or its key is gone. */
    readonly open: (purpose: Purpose, sealed: string) => Effect.Effect<Option.Option<string>>
  }
>() {}
