/** What was wrong with a request, told without repeating any of it (specification 7.1). */
import type { HttpApiDecodeError } from "@effect/platform/HttpApiError"
import { ValidationError } from "../domain/Errors.ts"

const most = 50
const longest = 300

/**
 * The library's messages name what was expected and then what was given; only the first part leaves. Messages of our own
 * schemas never repeat input.
 */
export const withoutInput = (message: string): string =>
  message
    .replace(/,? actual [\s\S]*$/u, "")
    .replace(/^Unable to decode [\s\S]* into /u, "Expected ")
    .slice(0, longest)

const segment = (key: PropertyKey): string | number =>
  typeof key === "number" ? key : String(key).slice(0, 64).toWellFormed()

/** `VALIDATION_ERROR` with `details.issues`: `{ path, message }` each, `path` from the outermost field inwards. */
export const toError = ({ issues }: HttpApiDecodeError): ValidationError =>
  new ValidationError({
    message: "The request does not have the expected form.",
    details: {
      issues: issues.slice(0, most).map(({ path, message }) => ({
        path: path.slice(0, 16).map(segment),
        message: withoutInput(message)
      }))
    }
  })
