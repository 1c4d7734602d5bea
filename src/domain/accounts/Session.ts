/** Sessions of the dashboard, as people see their own and owners those of members. */
import * as Schema from "effect/Schema"
import { Text } from "../Text.ts"

export const SignInId = Text.pipe(Schema.minLength(1), Schema.brand("SignInId"))
export type SignInId = typeof SignInId.Type

/** From where a session was opened. */
export const SessionOrigin = Schema.Struct({
  /** The network that the sign-in came from. */
  address: Schema.NullOr(Schema.String),
  /** The browser's `user-agent`. */
  device: Schema.NullOr(Schema.String)
})

/** How a session was opened: with a password, at the tenant's provider, or with a passkey. */
export const SignInMethod = Schema.Literal("password", "sso", "passkey")
export type SignInMethod = typeof SignInMethod.Type

/** A session that is open. */
export const Session = Schema.Struct({
  id: SignInId,
  method: SignInMethod,
  ...SessionOrigin.fields,
  /** The one that asks. */
  current: Schema.Boolean,
  /** The last request, to the minute. */
  usedAt: Schema.DateTimeUtc,
  createdAt: Schema.DateTimeUtc,
  expiresAt: Schema.DateTimeUtc
})

const maxDeviceCharacters = 300
const clean = Schema.decodeSync(Text)

/** What is kept of a `user-agent`. */
export const deviceOf = (userAgent: string | undefined): string | null =>
  userAgent === undefined || userAgent === "" ? null : clean(userAgent).slice(0, maxDeviceCharacters)
