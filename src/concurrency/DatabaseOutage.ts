/** Recognizes defects that mean that the database is temporarily unavailable, and waits for its return. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import { monotonicMillis } from "../domain/MonotonicClock.ts"
import { isError } from "../domain/ThrownErrors.ts"

/**
 * SQLSTATE and system codes: connection errors, a server that stops, became a standby, or has no free connections or
 * disk, and network errors.
 */
const outageCodes =
  /^(?:08|25006$|53[13]00$|57P0|ECONN|EPIPE$|EHOSTUNREACH$|ETIMEDOUT$|ENOTFOUND$|EAI_AGAIN$)/

/** Messages of the driver, without a code, for a broken connection or a time-out of the pool. */
const brokenConnection =
  /^(?:Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error)/

const codeOf = (cause: unknown): string => (Predicate.hasProperty(cause, "code") ? String(cause.code) : "")

const isOutageCause = (cause: unknown): boolean =>
  outageCodes.test(codeOf(cause)) || (isError(cause) && brokenConnection.test(cause.message))

/** SQLSTATE of a change of a tenant that is being moved (migrations/0024_tenant_moves.sql). */
const tenantMoving = "SM001"

const hasCause = (thrown: unknown, test: (cause: unknown) => boolean): boolean =>
  Predicate.isTagged(thrown, "SqlError") && Predicate.hasProperty(thrown, "cause") && test(thrown.cause)

/** True when the database refused a change because the tenant is being moved. */
export const isTenantMoving = (thrown: unknown): boolean =>
  hasCause(thrown, (cause) => codeOf(cause) === tenantMoving)

/** True when the same request may be sent again once the database is back. */
export const isOutage = (thrown: unknown): boolean => hasCause(thrown, isOutageCause)

/** Codes and messages of a connection that broke while it was used, not while it was opened. */
const brokenInUse =
  /^(?:ECONNRESET|ECONNABORTED|EPIPE)$|^(?:Connection terminated(?! due to)|Client has encountered a connection error)/

/** True for an {@link isOutage | outage} in which the server may have executed the statement. */
export const isAnswerLost = (thrown: unknown): boolean =>
  hasCause(
    thrown,
    (cause) => brokenInUse.test(codeOf(cause)) || (isError(cause) && brokenInUse.test(cause.message))
  )

/** Longest outage that a running turn outlives. Its process's lease ends then, and other processes end its turns. */
const maxOutage = Duration.seconds(20)
const firstPause = Duration.millis(100)
const maxPause = Duration.seconds(1)

/**
 * Runs `effect` again while it dies of an outage, for at most 20 seconds. The pauses can be interrupted, also where
 * `effect` cannot.
 */
export const retryDuringOutage = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(monotonicMillis, (startedAt) => {
    const attempt = (pause: Duration.Duration): Effect.Effect<A, E, R> =>
      Effect.catchSomeDefect(effect, (defect) => {
        if (!isOutage(defect)) return Option.none()
        const next = Effect.flatMap(monotonicMillis, (now) =>
          now - startedAt > Duration.toMillis(maxOutage)
            ? Effect.die(defect)
            : Effect.zipRight(
                Effect.interruptible(Effect.sleep(pause)),
                attempt(Duration.min(Duration.times(pause, 2), maxPause))
              )
        )
        return Option.some(next)
      })
    return attempt(firstPause)
  })
