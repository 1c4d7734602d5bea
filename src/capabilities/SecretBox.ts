/** Signing and sealing with keys derived from the master secret, one key per purpose. */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import type * as Redacted from "effect/Redacted"
import type { StoredPurpose } from "../domain/StoredPurpose.ts"

/** Each purpose has its own derived key. */
export type Purpose = StoredPurpose | "cursor" | "realtime" | "visitor" | "sso-flow" | "passkey-flow"

export interface Sealing {
  readonly seal: (purpose: Purpose, text: string) => Effect.Effect<string>
  readonly open: (purpose: Purpose, sealed: string) => Effect.Effect<Option.Option<string>>
}

export class SecretBox extends Context.Tag("capabilities/SecretBox")<
  SecretBox,
  {
    /** `text` with an HMAC-SHA-256 tag, URL-safe. */
    readonly sign: (purpose: Purpose, text: string) => Effect.Effect<string>
    /** The signed text, or none when the tag does not match (compared in constant time). */
    readonly verify: (purpose: Purpose, signed: string) => Effect.Effect<Option.Option<string>>
    /** AES-256-GCM with a fresh nonce. The result contains the key's id, so that the master secret can be rotated. */
    readonly seal: (purpose: Purpose, text: string) => Effect.Effect<string>
    /** The sealed text, or none when it was changed or its key is not available. */
    readonly open: (purpose: Purpose, sealed: string) => Effect.Effect<Option.Option<string>>
    /** Seals and opens with keys that are derived from another secret, to pass sealed texts between installations. */
    readonly under: (secret: Redacted.Redacted) => Sealing
  }
>() {}
