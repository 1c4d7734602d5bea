/** Pages of lists. */
import * as Schema from "effect/Schema"

/** A whole number in decimal digits only: `0x10`, ` 7 ` and `1e3` are not accepted. */
const digits = Schema.String.pipe(Schema.pattern(/^\d{1,16}$/, { message: () => "Expected a whole number" }))

/** JSON Schema annotation for digits: a number from `minimum` to `maximum`. */
const numeric = (minimum: number, maximum?: number) => ({
  description: maximum === undefined ? `At least ${minimum}.` : `${minimum} to ${maximum}.`,
  jsonSchema: { type: "integer", minimum, ...(maximum === undefined ? {} : { maximum }) }
})

export const WholeNumber = digits.annotations(numeric(0)).pipe(Schema.compose(Schema.NumberFromString))

/** `?limit=`: 1 to `max` in digits; anything else is 400. */
export const limitParam = (max: number) =>
  Schema.optionalWith(
    digits.annotations(numeric(1, max)).pipe(Schema.compose(Schema.NumberFromString), Schema.between(1, max)),
    { exact: true }
  )

/** Longer than any cursor: it contains the filter of its list, with texts of up to 200 characters. */
const maxCursorCharacters = 4_096

/** `?cursor=`: opaque; made and checked by `http/Cursor`. */
export const cursorParam = Schema.optionalWith(Schema.String.pipe(Schema.maxLength(maxCursorCharacters)), {
  exact: true
})

/** The parameters of most lists. A page has up to 100 rows. */
export const pageParams = Schema.Struct({ limit: limitParam(100), cursor: cursorParam })

/** The cursor of the next page; null on the last one. */
export const nextCursor = Schema.NullOr(Schema.String)

/** Rows of one page and the position of the next page, if there is one. */
export interface Page<A> {
  readonly rows: ReadonlyArray<A>
  readonly next: string | null
}

/** The first `limit` rows of `found`. If there are more, `next` is the position of the last of them. */
export const pageBy = <A, Position>(
  found: ReadonlyArray<A>,
  limit: number,
  positionOf: (row: A) => Position
) => {
  const rows = found.slice(0, limit)
  const last = found.length > limit ? rows.at(-1) : undefined
  return { rows, next: last === undefined ? null : positionOf(last) }
}

/** The page of `limit` rows in the order of ids. If `found` holds one more row, there is a next page. */
export const pageOf = <A extends { readonly id: string }>(found: ReadonlyArray<A>, limit: number): Page<A> =>
  pageBy(found, limit, ({ id }): string => id)
