import * as Schema from "effect/Schema"

/** A whole number of things. */
export const Count = Schema.Int.pipe(Schema.nonNegative())
