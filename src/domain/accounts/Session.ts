/** Sessions of the dashboard, as people see their own and owners those of members. */
import * as Schema from "effect/Schema"
import { Text } from "../Text.ts"

/** From where a session was opened. */
export const SessionOrigin = Schema.Struct({
  /** The network that the sign-in came from. */
  address: Schema.NullOr(Schema.String),
  /** What the browser says that it is. */
  device: Schema.NullOr(Schema.String)
})

const maxDeviceCharacters = 300
const clean = Schema.decodeSync(Text)

/** What is kept of a `user-agent`. */
export const deviceOf = (userAgent: string | undefined): string | null =>
  userAgent === undefined || userAgent === "" ? null : clean(userAgent).slice(0, maxDeviceCharacters)
