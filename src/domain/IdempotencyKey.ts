/** The header `Idempotency-Key`: a repeat of a request with the same one has no second effect for 24 hours. */
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

/** A request of a program that may come again. */
export interface RepeatableRequest extends TenantScope {
  readonly tokenId: TokenId
  readonly idempotencyKey: string
  /** Of its address and body. */
  readonly requestHash: Uint8Array
}
