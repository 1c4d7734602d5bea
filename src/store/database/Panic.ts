/**
 * What ends a PostgreSQL server, PGlite reports as an error and goes on: the next statement then waits, on the one thread of
 * the process, for a lock that nobody holds any more. A disk without room for the write-ahead log is such an end. Here
 * nothing is asked after it; everything committed is found again by the process that opens the directory next.
 */
import type { PGlite } from "@electric-sql/pglite"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"

/** What is done, once, when the embedded engine has ended by itself; by default nothing. */
export class WhenEnded extends Context.Reference<WhenEnded>()("store/database/WhenEnded", {
  defaultValue: (): Effect.Effect<unknown> => Effect.void
}) {}

/** Said of that statement and of every one from then on, with the code by which a server says that it crashed. */
const crashed = () => Object.assign(new Error("The embedded database has ended."), { code: "57P02" })

const isPanic = (message: object): boolean => "severity" in message && message.severity === "PANIC"

/** Stands before the engine; `isOver` says that it must not even be closed. */
export const guard = (db: PGlite, whenEnded: () => void): { readonly isOver: () => boolean } => {
  const { execProtocolStream: ask } = db
  let over = false
  const end = () => {
    if (!over) whenEnded()
    over = true
  }
  const guarded: PGlite["execProtocolStream"] = async (...given) => {
    if (over) throw crashed()
    try {
      const answer = await Reflect.apply(ask, db, given)
      if (!answer.some(isPanic)) return answer
    } catch (error) {
      // The engine itself broke: its memory may be in any state.
      if (!(error instanceof Error && error.name === "RuntimeError")) throw error
    }
    end()
    // The driver would wait for the rest of the answer.
    throw crashed()
  }
  Object.defineProperty(db, "execProtocolStream", { value: guarded })
  return { isOver: () => over }
}
