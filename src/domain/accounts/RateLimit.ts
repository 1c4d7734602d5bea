/** The rate limit of a key; none by default. */
import * as Schema from "effect/Schema"

/** Maximum number of `requests` in any `window`, which is in seconds. */
export const RateLimit = Schema.Struct({
  requests: Schema.Int.pipe(Schema.between(1, 1_000_000)),
  window: Schema.Int.pipe(Schema.between(1, 86_400))
})
export type RateLimit = typeof RateLimit.Type
