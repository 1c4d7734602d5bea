/** Passkeys: people sign in to the dashboard with a key of an authenticator instead of a password. */
import * as Schema from "effect/Schema"
import { Text, trimmed } from "../Text.ts"

export const PasskeyId = Text.pipe(Schema.minLength(1), Schema.brand("PasskeyId"))
export type PasskeyId = typeof PasskeyId.Type

/** A passkey as its owner sees it. */
export const Passkey = Schema.Struct({
  id: PasskeyId,
  name: Schema.String,
  /** Whether the authenticator has a backup of it, so that it is not lost with one device. */
  backedUp: Schema.Boolean,
  createdAt: Schema.DateTimeUtc,
  usedAt: Schema.NullOr(Schema.DateTimeUtc)
})
export type Passkey = typeof Passkey.Type

/** Base64url of at most `max` characters. */
const encoded = (max: number) =>
  Schema.String.pipe(Schema.maxLength(max), Schema.pattern(/^[A-Za-z0-9_-]+$/)).annotations({
    message: () => "Expected base64url text"
  })

/** An authenticator's id of a key has at most 1,023 bytes. */
const credentialFields = { id: encoded(1_364), rawId: encoded(1_364), type: Schema.Literal("public-key") }
const clientDataJSON = encoded(8_192)

/** The result of `navigator.credentials.create`, as JSON. */
export const RegistrationResponse = Schema.Struct({
  ...credentialFields,
  response: Schema.Struct({ clientDataJSON, attestationObject: encoded(65_536) })
})
export type RegistrationResponse = typeof RegistrationResponse.Type

/** The result of `navigator.credentials.get`, as JSON. */
export const AuthenticationResponse = Schema.Struct({
  ...credentialFields,
  response: Schema.Struct({
    clientDataJSON,
    authenticatorData: encoded(8_192),
    signature: encoded(8_192),
    /** The user handle that the authenticator got when the key was created. */
    userHandle: Schema.optionalWith(Schema.NullOr(encoded(128)), { exact: true })
  })
})
export type AuthenticationResponse = typeof AuthenticationResponse.Type

/** Body of `POST /api/auth/passkeys`. */
export const CreatePasskey = Schema.Struct({ name: trimmed(100), credential: RegistrationResponse })
export type CreatePasskey = typeof CreatePasskey.Type

/** Body of `POST /api/auth/passkey`. */
export const SignInWithPasskey = Schema.Struct({ credential: AuthenticationResponse })

const text = Schema.String
const publicKey = Schema.Literal("public-key")
const required = Schema.Literal("required")

/** Options for `navigator.credentials.create`, as JSON. */
export const CreationOptions = Schema.Struct({
  challenge: text,
  rp: Schema.Struct({ id: text, name: text }),
  user: Schema.Struct({ id: text, name: text, displayName: text }),
  pubKeyCredParams: Schema.Array(Schema.Struct({ type: publicKey, alg: Schema.Int })),
  excludeCredentials: Schema.Array(Schema.Struct({ type: publicKey, id: text })),
  authenticatorSelection: Schema.Struct({
    residentKey: required,
    requireResidentKey: Schema.Literal(true),
    userVerification: required
  }),
  attestation: Schema.Literal("none"),
  timeout: Schema.Int
})

/** Options for `navigator.credentials.get`, as JSON. They are the same for everybody. */
export const RequestOptions = Schema.Struct({
  challenge: text,
  rpId: text,
  userVerification: required,
  timeout: Schema.Int
})

/** Where passkeys are valid: the origin of the dashboard, and its host. */
export interface PasskeySite {
  readonly origin: string
  readonly rpId: string
}
