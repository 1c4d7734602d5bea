/** Validation issues of a request, without its values. */
import { HttpApiDecodeError } from "@effect/platform/HttpApiError"
import * as Effect from "effect/Effect"
import type { ParseError } from "effect/ParseResult"
import { type Issue, ValidationError } from "../../domain/Errors.ts"

const maxIssues = 50
const maxMessageCharacters = 300

/** Replaces the schema library's terms with those of JSON. */
const translations: ReadonlyArray<readonly [library: RegExp, replacement: string]> = [
  [/^Expected (?:Struct\b|\{)[\s\S]*$/u, "Expected a JSON object"],
  [/^Expected (?:ReadonlyArray<|readonly \[)[\s\S]*$/u, "Expected an array"],
  [/^Expected (string|number|boolean)$/u, "Expected a $1"],
  [/^Expected a DateTime\.Utc$/u, "Expected an ISO 8601 timestamp"],
  [
    /^Expected a string at (least|most) (\d+) character\(s\) long$/u,
    "Expected a string of at $1 $2 characters"
  ],
  [/ 1 characters$/u, " 1 character"]
]

/**
 * The library's messages state the expectation and then the given value; only the first part is kept. Messages of our
 * own schemas never contain input.
 */
const withoutInput = (message: string): string => {
  const expected = message
    .replace(/,? actual [\s\S]*$/u, "")
    .replace(/^Unable to decode [\s\S]* into /u, "Expected ")
  return translations
    .reduce((text, [library, replacement]) => text.replace(library, replacement), expected)
    .slice(0, maxMessageCharacters)
}

const isAtOrBelow = (issue: Issue, other: Issue): boolean =>
  other.path.length >= issue.path.length && issue.path.every((part, index) => part === other.path[index])

/** Drops "Expected null" where another issue states the other allowed values. */
const withoutNull = (issues: ReadonlyArray<Issue>): ReadonlyArray<Issue> =>
  issues.filter(
    (issue) =>
      issue.message !== "Expected null" ||
      !issues.some((other) => other.message !== issue.message && isAtOrBelow(issue, other))
  )

/** Joins the issues of a union of literals into one. */
const mergedIssues = (issues: ReadonlyArray<Issue>): ReadonlyArray<Issue> =>
  issues.reduce<Array<Issue>>((merged, issue) => {
    const last = merged.at(-1)
    const alternative = /^Expected (".*")$/u.exec(issue.message)?.[1]
    const same = last !== undefined && JSON.stringify(last.path) === JSON.stringify(issue.path)
    if (!same || alternative === undefined || !last.message.startsWith('Expected "'))
      return [...merged, issue]
    const message = `${last.message} | ${alternative}`.slice(0, maxMessageCharacters)
    return [...merged.slice(0, -1), { ...last, message }]
  }, [])

const segment = (key: PropertyKey): string | number =>
  typeof key === "number" ? key : String(key).slice(0, 64).toWellFormed()

/** `VALIDATION_ERROR` with `details.issues`: `{ path, message }` each, `path` from the outermost field inwards. */
export const toError = ({ issues }: HttpApiDecodeError): ValidationError =>
  new ValidationError({
    message: "The request does not have the expected form.",
    details: {
      issues: mergedIssues(
        withoutNull(
          issues.slice(0, maxIssues).map(({ path, message }) => ({
            path: path.slice(0, 16).map(segment),
            message: withoutInput(message)
          }))
        )
      )
    }
  })

/** Fails with the issues of `error`. */
export const failWithIssues = (error: ParseError): Effect.Effect<never, ValidationError> =>
  Effect.flatMap(HttpApiDecodeError.fromParseError(error), (issues) => Effect.fail(toError(issues)))
