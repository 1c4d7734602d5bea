/** Passkeys: keys of an authenticator that people sign in to the dashboard with, instead of a password. */
import * as Schema from "effect/Schema"
import { Text, trimmed } from "../Text.ts"

export const PasskeyId = Text.pipe(Schema.minLength(1), Schema.brand("PasskeyId"))
export type PasskeyId = typeof PasskeyId.Type

/** A passkey as its owner sees it. */
export const Passkey = Schema.Struct({
  id: PasskeyId,
  name: Schema.String,
  /** The authenticator keeps it in more than one place: it is not lost with one device. */
  backedUp: Schema.Boolean,
  createdAt: Schema.DateTimeUtc,
  usedAt: Schema.NullOr(Schema.DateTimeUtc)
})
export type Passkey = typeof Passkey.Type

/** Base64url, of at most so many characters. */
const encoded = (max: number) =>
  Schema.String.pipe(Schema.maxLength(max), Schema.pattern(/^[A-Za-z0-9_-]+$/)).annotations({
    message: () => "Expected base64url text"
  })

/** An authenticator's id of a key is of 1,023 bytes at most. */
const credential = { id: encoded(1_364), rawId: encoded(1_364), type: Schema.Literal("public-key") }
const clientDataJSON = encoded(8_192)

/** What `navigator.credentials.create` answered, as JSON. */
export const MadeCredential = Schema.Struct({
  ...credential,
  response: Schema.Struct({ clientDataJSON, attestationObject: encoded(65_536) })
})
export type MadeCredential = typeof MadeCredential.Type

/** What `navigator.credentials.get` answered, as JSON. */
export const SignedCredential = Schema.Struct({
  ...credential,
  response: Schema.Struct({
    clientDataJSON,
    authenticatorData: encoded(8_192),
    signature: encoded(8_192),
    /** Whose it is, as the authenticator was told when it was made. */
    userHandle: Schema.optionalWith(Schema.NullOr(encoded(128)), { exact: true })
  })
})
export type SignedCredential = typeof SignedCredential.Type

/** Body of `POST /api/auth/passkeys`. */
export const CreatePasskey = Schema.Struct({ name: trimmed(100), credential: MadeCredential })
export type CreatePasskey = typeof CreatePasskey.Type

/** Body of `POST /api/auth/passkey`. */
export const SignInWithPasskey = Schema.Struct({ credential: SignedCredential })

const text = Schema.String
const publicKey = Schema.Literal("public-key")
const required = Schema.Literal("required")

/** What `navigator.credentials.create` is asked for, as JSON. */
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

/** What `navigator.credentials.get` is asked for, as JSON. It is the same for everybody. */
export const RequestOptions = Schema.Struct({
  challenge: text,
  rpId: text,
  userVerification: required,
  timeout: Schema.Int
})

/** Where passkeys are good: the origin of the dashboard, and its host. */
export interface PasskeySite {
  readonly origin: string
  readonly rpId: string
}
