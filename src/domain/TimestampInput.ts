/** Timestamps as callers write them. */
import * as DateTime from "effect/DateTime"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"

const form = /^(\d{4}-\d{2}-\d{2})T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})$/

/** Also checks that the day exists: February 30 would become March 1. */
const isTimestamp = (text: string): boolean => {
  const [, day = ""] = form.exec(text) ?? []
  return (
    Option.isSome(DateTime.make(text)) &&
    Option.exists(DateTime.make(`${day}T00:00:00Z`), (start) => DateTime.formatIsoDateUtc(start) === day)
  )
}

/** A timestamp with a time zone. Without one it would depend on the machine. */
export const TimestampInput = Schema.String.pipe(
  Schema.filter(isTimestamp, {
    message: () => "Expected an ISO 8601 time with its zone, like 2024-05-01T09:30:00.000Z"
  }),
  Schema.compose(Schema.DateTimeUtc)
)
