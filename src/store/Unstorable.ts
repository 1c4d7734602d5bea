/** Distinguishes content that cannot be stored, a permanent error, from an unavailable database, a transient one. */
import { SqlError } from "@effect/sql/SqlError"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"

/** The content cannot be stored. A retry fails again. */
export class Unstorable extends Schema.TaggedError<Unstorable>()("Unstorable", { cause: Schema.Defect }) {}

const sqlState = /^(?:\d[0-9A-Z]|F0|HV|P0|XX)[0-9A-Z]{3}$/
/**
 * SQLSTATE classes of transient errors: connections, rolled back transactions, resources, locks, operators and the
 * system.
 */
const transient = /^(?:08|25|40|53|55|57|58)/

const isRefused = (cause: Cause.Cause<unknown>): boolean => {
  if (Cause.isInterrupted(cause)) return false
  const error = Cause.squash(cause)
  // The value could not be encoded and was not sent to the database.
  if (!(error instanceof SqlError)) return true
  // Without an error code of the server, the connection failed.
  const code = Predicate.hasProperty(error.cause, "code") ? String(error.cause.code) : ""
  return sqlState.test(code) && !transient.test(code)
}

/** Runs `statement` and fails with {@link Unstorable} if its content is refused. Every other failure is a defect. */
export const orUnstorable = <A, E, R>(statement: Effect.Effect<A, E, R>): Effect.Effect<A, Unstorable, R> =>
  Effect.catchAllCause(statement, (cause) =>
    isRefused(cause)
      ? Effect.fail(new Unstorable({ cause: Cause.squash(cause) }))
      : Effect.orDie(Effect.failCause(cause))
  )
