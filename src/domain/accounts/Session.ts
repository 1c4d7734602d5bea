/** Sessions of the dashboard: users see their own, owners those of members. */
import * as Schema from "effect/Schema"
import { Text } from "../Text.ts"

export const SignInId = Text.pipe(Schema.minLength(1), Schema.brand("SignInId"))
export type SignInId = typeof SignInId.Type

/** Where a session was opened from. */
export const SessionOrigin = Schema.Struct({
  /** The network of the sign-in. */
  address: Schema.NullOr(Schema.String),
  /** The browser's `user-agent`. */
  device: Schema.NullOr(Schema.String)
})

/** How a session was opened: with a password, at the tenant's provider, or with a passkey. */
export const SignInMethod = Schema.Literal("password", "sso", "passkey")
export type SignInMethod = typeof SignInMethod.Type

/** An open session. */
export const Session = Schema.Struct({
  id: SignInId,
  method: SignInMethod,
  ...SessionOrigin.fields,
  /** Whether it is the session of the request. */
  current: Schema.Boolean,
  /** The last request, to the minute. */
  usedAt: Schema.DateTimeUtc,
  createdAt: Schema.DateTimeUtc,
  expiresAt: Schema.DateTimeUtc
})

const maxDeviceCharacters = 300
const clean = Schema.decodeSync(Text)

/** The part of a `user-agent` that is stored. */
export const deviceOf = (userAgent: string | undefined): string | null =>
  userAgent === undefined || userAgent === "" ? null : clean(userAgent).slice(0, maxDeviceCharacters)
