import { ApiError } from "../api/Client.ts"
import { isSame } from "./merge.ts"

/**
 * Fails with a conflict unless the `newest` values are those that were `read`. For resources without versions, which
 * are read again before each change.
 */
export const requireUnchanged = (read: unknown, newest: unknown): void => {
  if (isSame(read, newest)) return
  throw new ApiError(409, "CONFLICT", "It has been changed since it was read.", { version: null }, "")
}
