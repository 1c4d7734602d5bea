/** Recognizes defects that mean that the database is temporarily unavailable. */
import * as Predicate from "effect/Predicate"
import { isError } from "../../domain/Thrown.ts"

/**
 * SQLSTATE and system codes: connection errors, a server that stops, became a standby, or has no free connections or
 * disk, and network errors.
 */
const outageCodes =
  /^(?:08|25006$|53[13]00$|57P0|ECONN|EPIPE$|EHOSTUNREACH$|ETIMEDOUT$|ENOTFOUND$|EAI_AGAIN$)/

/** Messages of the driver, without a code, for a broken connection or a time-out of the pool. */
const brokenConnection =
  /^(?:Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error)/

const isOutageCause = (cause: unknown): boolean => {
  if (Predicate.hasProperty(cause, "code") && outageCodes.test(String(cause.code))) return true
  return isError(cause) && brokenConnection.test(cause.message)
}

/** SQLSTATE of a change of a tenant that is being moved (migrations/0024_tenant_moves.sql). */
const tenantMoving = "SM001"

/** True when the database refused a change because the tenant is being moved. */
export const isTenantMoving = (thrown: unknown): boolean =>
  Predicate.isTagged(thrown, "SqlError") &&
  Predicate.hasProperty(thrown, "cause") &&
  Predicate.hasProperty(thrown.cause, "code") &&
  thrown.cause.code === tenantMoving

/** True when the same request may be sent again once the database is back. */
export const isOutage = (thrown: unknown): boolean =>
  Predicate.isTagged(thrown, "SqlError") &&
  Predicate.hasProperty(thrown, "cause") &&
  isOutageCause(thrown.cause)
