/** Pages of lists (specification 4.17). */
import * as Schema from "effect/Schema"

/** `?limit=`: 1 to `max`; out of range is 400. */
export const limitParam = (max: number) =>
  Schema.optionalWith(Schema.NumberFromString.pipe(Schema.int(), Schema.between(1, max)), { exact: true })

/** `?cursor=`: opaque; made and checked by `http/Cursor`. */
export const cursorParam = Schema.optionalWith(Schema.String.pipe(Schema.maxLength(1024)), { exact: true })

/** Rows of one page and where the next begins, if there is one. */
export interface Page<A> {
  readonly rows: ReadonlyArray<A>
  readonly next: string | null
}
