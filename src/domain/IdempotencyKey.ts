/** The header `Idempotency-Key`: a repeat of a request with the same one has no second effect for 24 hours. */
import * as Schema from "effect/Schema"

/** 1 to 255 visible ASCII characters. */
const IdempotencyKey = Schema.String.pipe(
  Schema.pattern(/^[\x21-\x7e]{1,255}$/, { message: () => "Expected 1 to 255 visible ASCII characters" })
)

/** The headers of a request that may carry one. */
export const IdempotencyHeader = Schema.Struct({
  "idempotency-key": Schema.optionalWith(IdempotencyKey, { exact: true })
})
