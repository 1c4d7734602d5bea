/** Tells errors about content that cannot be stored, which are permanent, from those of an unavailable database, which are transient. */
import { SqlError } from "@effect/sql/SqlError"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"

/** The same content is refused again, however often it is tried. */
export class Unstorable extends Schema.TaggedError<Unstorable>()("Unstorable", { cause: Schema.Defect }) {}

const sqlState = /^(?:\d[0-9A-Z]|F0|HV|P0|XX)[0-9A-Z]{3}$/
/** Classes of connections, transactions lost to others, resources, locks, operators and the system. */
const passing = /^(?:08|25|40|53|55|57|58)/

const isRefusal = (cause: Cause.Cause<unknown>): boolean => {
  if (Cause.isInterrupted(cause)) return false
  const error = Cause.squash(cause)
  // What cannot be encoded does not get as far as the database.
  if (!(error instanceof SqlError)) return true
  // Without the server's word for it the connection failed.
  const code = Predicate.hasProperty(error.cause, "code") ? String(error.cause.code) : ""
  return sqlState.test(code) && !passing.test(code)
}

/** `statement`, which fails where its content is refused; every other failure is a defect. */
export const orUnstorable = <A, E, R>(statement: Effect.Effect<A, E, R>): Effect.Effect<A, Unstorable, R> =>
  Effect.catchAllCause(statement, (cause) =>
    isRefusal(cause)
      ? Effect.fail(new Unstorable({ cause: Cause.squash(cause) }))
      : Effect.orDie(Effect.failCause(cause))
  )
