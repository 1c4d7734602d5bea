/**
 * What ends a PostgreSQL server, PGlite reports as an error and goes on: the next statement then waits, on the engine's one
 * thread, for a lock that nobody holds any more. A disk without room for the write-ahead log is such an end. Nothing is asked
 * after it; everything committed is found again by the process that opens the directory next.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"

/** What is done, once, when the embedded engine has ended by itself; by default nothing. */
export class WhenEnded extends Context.Reference<WhenEnded>()("store/database/WhenEnded", {
  defaultValue: (): Effect.Effect<unknown> => Effect.void
}) {}
