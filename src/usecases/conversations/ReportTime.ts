/** The time that a report is about. */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import { ValidationError } from "../../domain/Errors.ts"

/** Days of a report, and of one whose start is not named. */
const maxDays = 92
const defaultDays = 30

const refusedTime = (path: string, message: string) =>
  new ValidationError({
    message: "The request does not have the expected form.",
    details: { issues: [{ path: [path], message }] }
  })

/** The last {@link defaultDays} days where nothing is said. */
export const reportTime = Effect.fn("reportTime")(function* (request: {
  readonly from?: DateTime.Utc | undefined
  readonly to?: DateTime.Utc | undefined
}) {
  const to = request.to ?? (yield* DateTime.now)
  const from = request.from ?? DateTime.subtract(to, { days: defaultDays })
  if (!DateTime.lessThan(from, to)) return yield* refusedTime("from", "Expected a moment before `to`")
  if (DateTime.lessThan(from, DateTime.subtract(to, { days: maxDays })))
    return yield* refusedTime("from", `Expected at most ${maxDays} days before \`to\``)
  return { from, to }
})

/** Where a list of the time goes on: in the same time, after `id`. */
export const afterOf = (
  { from, to }: { readonly from: DateTime.Utc; readonly to: DateTime.Utc },
  id: string
): string => `${DateTime.formatIso(from)} ${DateTime.formatIso(to)} ${id}`

export const placeOf = (after: string) => {
  const [from = "", to = "", id = ""] = after.split(" ")
  return { time: { from: DateTime.unsafeMake(from), to: DateTime.unsafeMake(to) }, id }
}
