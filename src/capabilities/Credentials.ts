/** Secrets we make and passwords people choose: making, fingerprinting, hashing. */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"

/** More passwords wait to be hashed than this process takes on, and no owner has more of them waiting than `owner`. */
export class CredentialsBusy extends Schema.TaggedError<CredentialsBusy>()("CredentialsBusy", {}) {}

export class Credentials extends Context.Tag("capabilities/Credentials")<
  Credentials,
  {
    /** 256 fresh random bits as 43 base64url characters. */
    readonly token: Effect.Effect<string>
    /** What is stored of a secret that {@link token} made: its SHA-256. Too weak for a password. */
    readonly fingerprint: (secret: Redacted.Redacted) => Effect.Effect<Uint8Array>
    /**
     * A slow, salted hash that names its own parameters. `owner` is whom the work is done for, a client or a tenant: it
     * takes turns with all others, and never all of the process's share of hashing.
     */
    readonly hashPassword: (
      password: Redacted.Redacted,
      owner: string
    ) => Effect.Effect<string, CredentialsBusy>
    /** Compares in constant time; with `null` (no such user) it takes just as long and is false. */
    readonly verifyPassword: (
      password: Redacted.Redacted,
      hash: string | null,
      owner: string
    ) => Effect.Effect<boolean, CredentialsBusy>
  }
>() {}
