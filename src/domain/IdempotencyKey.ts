/** The header `Idempotency-Key`: within 24 hours a request with the same key has no second effect. */
import * as Schema from "effect/Schema"
import type { TenantScope } from "./accounts/Account.ts"
import type { TokenId } from "./Ids.ts"

/** 1 to 255 visible ASCII characters. */
const IdempotencyKey = Schema.String.pipe(
  Schema.pattern(/^[\x21-\x7e]{1,255}$/, { message: () => "Expected 1 to 255 visible ASCII characters" })
)

/** The headers of a request that may carry one. */
export const IdempotencyHeader = Schema.Struct({
  "idempotency-key": Schema.optionalWith(IdempotencyKey, { exact: true })
})

/** A request of a program that may be repeated. */
export interface RepeatableRequest extends TenantScope {
  readonly tokenId: TokenId
  readonly idempotencyKey: string
  /** Hash of the address and the body. */
  readonly requestHash: Uint8Array
}
