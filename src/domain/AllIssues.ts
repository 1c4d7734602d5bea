/** Decoding of values from outside that reports every issue of a small value. */
import * as Schema from "effect/Schema"

/** Collecting issues takes time for each invalid value, so that a long list of them would occupy the process. */
const maxValuesWithAllIssues = 256

/** Whether `input` contains at most `maxValuesWithAllIssues` values, nested ones included. */
const isSmall = (input: unknown): boolean => {
  const unread = [input]
  for (let count = 1; unread.length > 0;) {
    const value = unread.pop()
    if (typeof value !== "object" || value === null) continue
    const members = Object.values(value)
    count += members.length
    if (count > maxValuesWithAllIssues) return false
    unread.push(...members)
  }
  return true
}

/** Decodes with `schema`. Fails with all issues of a small input, else with the first one. */
export const decodeUnknown = <A, I, R>(
  schema: Schema.Schema<A, I, R>,
  options: { readonly onExcessProperty?: "error" } = {}
) => {
  const decode = Schema.decodeUnknown(schema)
  return (input: unknown) => decode(input, { ...options, errors: isSmall(input) ? "all" : "first" })
}
