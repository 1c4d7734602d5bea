/** Defects that say no more than that the database is away for the moment. */
import * as Predicate from "effect/Predicate"
import { isError } from "../../domain/Thrown.ts"

/**
 * Codes of connections, of a server that stops, has become a standby, or has no place or disk left, and of the operating
 * system's network.
 */
const away = /^(?:08|25006$|53[13]00$|57P0|ECONN|EPIPE$|EHOSTUNREACH$|ETIMEDOUT$|ENOTFOUND$|EAI_AGAIN$)/

/** What the driver says, without a code, when a connection breaks or none is to be had in time. */
const broken =
  /^(?:Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error)/

const saysSo = (cause: unknown): boolean => {
  if (Predicate.hasProperty(cause, "code") && away.test(String(cause.code))) return true
  return isError(cause) && broken.test(cause.message)
}

/** True when the request may simply be sent again, once the database is back. */
export const isOutage = (thrown: unknown): boolean =>
  Predicate.isTagged(thrown, "SqlError") && Predicate.hasProperty(thrown, "cause") && saysSo(thrown.cause)
