/** Generated secrets, passwords and passkeys: creation, fingerprints, hashes, verification. */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import type { RegistrationResponse, PasskeySite, AuthenticationResponse } from "../domain/accounts/Passkey.ts"

/** The queue for password hashing is full. No other owner has more requests in it than this one. */
export class CredentialsBusy extends Schema.TaggedError<CredentialsBusy>()("CredentialsBusy", {}) {}

export class Credentials extends Context.Tag("capabilities/Credentials")<
  Credentials,
  {
    /** 256 fresh random bits as 43 base64url characters. */
    readonly token: Effect.Effect<string>
    /** The stored form of a secret from {@link token}: its SHA-256. Not suitable for passwords. */
    readonly fingerprint: (secret: Redacted.Redacted) => Effect.Effect<Uint8Array>
    /**
     * A slow, salted hash that contains its parameters. `owner` is the client or tenant of the request. Owners take
     * turns, and one never gets all of the process's hashing capacity.
     */
    readonly hashPassword: (
      password: Redacted.Redacted,
      owner: string
    ) => Effect.Effect<string, CredentialsBusy>
    /** Compares in constant time. With `null` (no such user) it takes as long and returns false. */
    readonly verifyPassword: (
      password: Redacted.Redacted,
      hash: string | null,
      owner: string
    ) => Effect.Effect<boolean, CredentialsBusy>
  }
>() {}

/** An authenticator's answer does not match the request. `message` is for the log. */
export class PasskeyRejected extends Schema.TaggedError<PasskeyRejected>()("PasskeyRejected", {
  message: Schema.String
}) {}

/** Expected values of an answer. */
interface PasskeyExpected extends PasskeySite {
  /** 256 random bits, in base64url. */
  readonly challenge: string
}

interface PasskeyState {
  readonly counter: number
  readonly backedUp: boolean
}

/** The stored data of a passkey, for later sign-ins. */
interface PasskeyProof extends PasskeyState {
  readonly credentialId: string
  readonly publicKey: Uint8Array
}

/** Verifies answers of authenticators. An answer is refused unless the person was present and verified. */
export class PasskeyProofs extends Context.Tag("capabilities/Credentials/PasskeyProofs")<
  PasskeyProofs,
  {
    /** COSE algorithm ids, in order of preference. */
    readonly algorithms: ReadonlyArray<number>
    /** Verifies a new passkey. */
    readonly verifyRegistration: (
      credential: RegistrationResponse,
      expected: PasskeyExpected
    ) => Effect.Effect<PasskeyProof, PasskeyRejected>
    /** Verifies a sign-in with a passkey of which `known` is stored. */
    readonly verifySignIn: (
      credential: AuthenticationResponse,
      expected: PasskeyExpected,
      known: Omit<PasskeyProof, "backedUp">
    ) => Effect.Effect<PasskeyState, PasskeyRejected>
  }
>() {}
