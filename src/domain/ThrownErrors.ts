/**
 * Recognizes thrown errors by their shape. A host, such as a test runner, may run this code in another realm, where
 * Node's errors are not instances of this realm's `Error`.
 */

/** True for a value with a name and a message, as errors of every realm have. */
export const isError = (thrown: unknown): thrown is Error =>
  typeof thrown === "object" &&
  thrown !== null &&
  "name" in thrown &&
  typeof thrown.name === "string" &&
  "message" in thrown &&
  typeof thrown.message === "string"

/** The error code of the system or a driver, such as `ENOENT`; empty when there is none. */
export const codeOf = (thrown: unknown): string =>
  typeof thrown === "object" && thrown !== null && "code" in thrown && typeof thrown.code === "string"
    ? thrown.code
    : ""
