/** Transactions that the database rolled back because of a deadlock. The other transaction has continued. */
import { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { sqlStateOf } from "./Database.ts"

export const isDeadlock = (error: unknown): boolean =>
  error instanceof SqlError && sqlStateOf(error) === "40P01"

/** Runs a whole transaction again if it was rolled back because of a deadlock. */
export const retryDeadlocks = <A, E, R>(
  transaction: Effect.Effect<A, E, R>,
  tries = 5
): Effect.Effect<A, E, R> =>
  Effect.catchSomeDefect(transaction, (defect) =>
    tries > 0 && isDeadlock(defect) ? Option.some(retryDeadlocks(transaction, tries - 1)) : Option.none()
  )
