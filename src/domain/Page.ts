/** Pages of lists. */
import * as Schema from "effect/Schema"

/** A whole number in decimal digits and nothing else: neither `0x10` nor ` 7 ` nor `1e3` is one. */
export const WholeNumber = Schema.String.pipe(
  Schema.pattern(/^\d{1,16}$/, { message: () => "Expected a whole number" }),
  Schema.compose(Schema.NumberFromString)
)

/** `?limit=`: 1 to `max` in digits; anything else is 400. */
export const limitParam = (max: number) =>
  Schema.optionalWith(WholeNumber.pipe(Schema.between(1, max)), { exact: true })

/** `?cursor=`: opaque; made and checked by `http/Cursor`. */
export const cursorParam = Schema.optionalWith(Schema.String.pipe(Schema.maxLength(1024)), { exact: true })

/** Rows of one page and where the next begins, if there is one. */
export interface Page<A> {
  readonly rows: ReadonlyArray<A>
  readonly next: string | null
}

/** The page of `limit` rows of a list in the order of ids, from up to one more row that was read. */
export const pageOf = <A extends { readonly id: string }>(
  found: ReadonlyArray<A>,
  limit: number
): Page<A> => {
  const rows = found.slice(0, limit)
  return { rows, next: found.length > limit ? (rows.at(-1)?.id ?? null) : null }
}
