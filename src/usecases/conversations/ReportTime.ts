/** The time range of a report. */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import { invalidField } from "../../domain/Errors.ts"

/** Maximum days of a report, and its days when no start is given. */
const maxDays = 92
const defaultDays = 30

const invalidStart = (message: string) => invalidField(["from"], message)

/** The time range of a request. The default is the last {@link defaultDays} days. */
export const reportTime = Effect.fn("reportTime")(function* (request: {
  readonly from?: DateTime.Utc | undefined
  readonly to?: DateTime.Utc | undefined
}) {
  const to = request.to ?? (yield* DateTime.now)
  const from = request.from ?? DateTime.subtract(to, { days: defaultDays })
  if (!DateTime.lessThan(from, to)) return yield* invalidStart("Expected a moment before `to`")
  if (DateTime.lessThan(from, DateTime.subtract(to, { days: maxDays })))
    return yield* invalidStart(`Expected at most ${maxDays} days before \`to\``)
  return { from, to }
})

/** The cursor of a list over a time range: the same range, after `id`. */
export const cursorOf = (
  { from, to }: { readonly from: DateTime.Utc; readonly to: DateTime.Utc },
  id: string
): string => `${DateTime.formatIso(from)} ${DateTime.formatIso(to)} ${id}`

/** The range and the id of a cursor from {@link cursorOf}. */
export const parseCursor = (after: string) => {
  const [from = "", to = "", id = ""] = after.split(" ")
  return { time: { from: DateTime.unsafeMake(from), to: DateTime.unsafeMake(to) }, id }
}
