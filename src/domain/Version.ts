/** Optimistic concurrency: a change names the version it is based on, and is refused when there is a newer one. */
import * as Schema from "effect/Schema"
import { Conflict } from "./Errors.ts"

/** Number of changes, from 1. Its columns are 32-bit integers. */
export const Version = Schema.Int.pipe(Schema.positive(), Schema.lessThan(2 ** 31))

const tag = /^"(\d{1,9})"$/

/** The value of `If-Match`: `"7"` is version 7, `*` is any version (null). */
const IfMatch = Schema.String.pipe(
  Schema.filter((text) => text === "*" || tag.test(text) || 'Expected a version in quotes, such as "7", or *')
)

/** Headers of a change. */
export const IfMatchHeader = Schema.Struct({ "if-match": Schema.optionalWith(IfMatch, { exact: true }) })

/** The version that a change is based on; null where the request does not say. */
export const expectedVersion = (headers: typeof IfMatchHeader.Type): number | null => {
  const [, digits] = tag.exec(headers["if-match"] ?? "") ?? []
  return digits === undefined ? null : Number(digits)
}

/** `details.version` is the newest one. */
export const outdated = (version: number) =>
  new Conflict({
    message: "It has changed since you read it. Read it again and repeat your change.",
    details: { version }
  })
