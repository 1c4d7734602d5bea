/**
 * What others throw, told by its shape. A host may run us among globals of its own, as test runners do: what Node throws is
 * then no instance of our `Error`.
 */

/** True of a value with a name and a message, as errors of every realm have. */
export const isError = (thrown: unknown): thrown is Error =>
  typeof thrown === "object" &&
  thrown !== null &&
  "name" in thrown &&
  typeof thrown.name === "string" &&
  "message" in thrown &&
  typeof thrown.message === "string"

/** The system's or a driver's code, such as `ENOENT`; empty when there is none. */
export const codeOf = (thrown: unknown): string =>
  typeof thrown === "object" && thrown !== null && "code" in thrown && typeof thrown.code === "string"
    ? thrown.code
    : ""
