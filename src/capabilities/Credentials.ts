/** Secrets we make, passwords people choose, and passkeys: making, fingerprinting, hashing, verifying. */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import type { MadeCredential, PasskeySite, SignedCredential } from "../domain/accounts/Passkey.ts"

/** More passwords wait to be hashed than this process takes on, and no owner has more of them waiting than `owner`. */
export class CredentialsBusy extends Schema.TaggedError<CredentialsBusy>()("CredentialsBusy", {}) {}

export class Credentials extends Context.Tag("capabilities/Credentials")<
  Credentials,
  {
    /** 256 fresh random bits as 43 base64url characters. */
    readonly token: Effect.Effect<string>
    /** The stored form of a secret from {@link token}: its SHA-256. Too weak for a password. */
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

/** What an authenticator answered is not what it was asked. `message` is for the log. */
export class PasskeyRejected extends Schema.TaggedError<PasskeyRejected>()("PasskeyRejected", {
  message: Schema.String
}) {}

/** What an answer has to be about. */
interface PasskeyExpected extends PasskeySite {
  /** Base64url, of 256 random bits. */
  readonly challenge: string
}

interface PasskeyState {
  readonly counter: number
  readonly backedUp: boolean
}

/** What of a passkey is kept to know it again. */
interface PasskeyProof extends PasskeyState {
  readonly credentialId: string
  readonly publicKey: Uint8Array
}

/** Answers of authenticators. Each is refused unless the person was present and verified. */
export class PasskeyProofs extends Context.Tag("capabilities/Credentials/PasskeyProofs")<
  PasskeyProofs,
  {
    /** Of COSE, the most wanted first. */
    readonly algorithms: ReadonlyArray<number>
    readonly made: (
      credential: MadeCredential,
      expected: PasskeyExpected
    ) => Effect.Effect<PasskeyProof, PasskeyRejected>
    readonly signed: (
      credential: SignedCredential,
      expected: PasskeyExpected,
      known: Omit<PasskeyProof, "backedUp">
    ) => Effect.Effect<PasskeyState, PasskeyRejected>
  }
>() {}
