/**
 * Tokens for the realtime socket of one conversation. A token is valid for at most one hour, and ends with the key or
 * the session that it was issued to.
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { SecretBox } from "../../capabilities/SecretBox.ts"
import { GrantingCredential } from "../../domain/accounts/Access.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { ConversationId, TenantId } from "../../domain/Ids.ts"
import * as CheapSpans from "../../concurrency/CheapSpans.ts"
import { TurnSettings } from "./TurnSettings.ts"

const tokenLifetime = Duration.hours(1)

/** The payload of a token. */
const Grant = Schema.Struct({
  conversationId: ConversationId,
  /** Null for a host of the library. */
  by: Schema.optionalWith(Schema.NullOr(GrantingCredential), { exact: true, default: () => null }),
  /** Milliseconds since 1970. The token is valid until then. */
  expires: Schema.Int,
  /** The conversation's tenant. Its sockets share one limit. */
  tenantId: Schema.propertySignature(TenantId).pipe(Schema.fromKey("owner"))
})
export type Grant = typeof Grant.Type

const GrantText = Schema.parseJson(Grant)
const write = Schema.encodeSync(GrantText)
const read = Schema.decodeUnknownOption(GrantText)

export class RealtimeAccess extends Effect.Service<RealtimeAccess>()("usecases/chat/RealtimeAccess", {
  effect: Effect.gen(function* () {
    const box = yield* SecretBox
    const { realtimeUrl } = yield* TurnSettings
    /** Issues a signed token with the socket's address. `by` is the credential that it depends on. */
    const issue = CheapSpans.fn("RealtimeAccess.issue")(function* (
      { tenantId }: TenantScope,
      conversationId: ConversationId,
      by: GrantingCredential | null
    ) {
      const expires = (yield* Clock.currentTimeMillis) + Duration.toMillis(tokenLifetime)
      const realtimeToken = yield* box.sign("realtime", write({ conversationId, by, expires, tenantId }))
      return { realtimeToken, realtimeUrl }
    })
    /** The payload of `token`; none when the signature is not ours or the token has expired. */
    const verify = CheapSpans.fn("RealtimeAccess.verify")(function* (token: string) {
      const text = yield* box.verify("realtime", token)
      const now = yield* Clock.currentTimeMillis
      return Option.filter(Option.flatMap(text, read), ({ expires }) => expires > now)
    })
    return { issue, verify } as const
  })
}) {}
