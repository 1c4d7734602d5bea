/**
 * Tokens for visitors. A server's key issues them; they are valid until they expire or that key ends, and allow no more
 * than it.
 */
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { SecretBox } from "../../../capabilities/SecretBox.ts"
import { type AgentKey, type AgentScope, hostKey } from "../../../domain/accounts/Access.ts"
import { ExternalEndUserId } from "../../../domain/chat/ChatTurn.ts"
import type { VisitorTokenRequest } from "../../../domain/chat/VisitorToken.ts"
import { AgentId, KeyId, TenantId } from "../../../domain/Ids.ts"
import { intersectScopes, SourceScope } from "../../../domain/knowledge/SourceScope.ts"
import { ApiKeyStore } from "../../../store/accounts/ApiKeys.ts"

/** Longer than any token that is issued: a hundred sources and twenty labels. */
const maxTokenCharacters = 16_384

/** The payload of a token. */
const Grant = Schema.parseJson(
  Schema.Struct({
    tenantId: TenantId,
    agentId: AgentId,
    /** The key that issued it. */
    keyId: KeyId,
    externalEndUserId: Schema.NullOr(ExternalEndUserId),
    sourceScope: SourceScope,
    /** Milliseconds since 1970. The token is valid until then. */
    expires: Schema.Int
  })
)
type Grant = typeof Grant.Type

const write = Schema.encodeSync(Grant)
const read = Schema.decodeUnknownOption(Grant)

export class VisitorTokens extends Effect.Service<VisitorTokens>()("usecases/chat/widget/VisitorTokens", {
  effect: Effect.gen(function* () {
    const box = yield* SecretBox
    const keys = yield* ApiKeyStore

    /** A token for the agent of `key`. It reads nothing that `key` may not read. */
    const issue = Effect.fn("VisitorTokens.issue")(function* (
      key: AgentKey,
      { expiresIn, externalEndUserId, sourceScope: asked }: VisitorTokenRequest
    ) {
      const { agentId, keyId, tenantId } = key
      const sourceScope = intersectScopes(key.sourceScope, asked)
      const expires = (yield* Clock.currentTimeMillis) + expiresIn * 1_000
      const owner = { tenantId, agentId, keyId, externalEndUserId: externalEndUserId ?? null }
      const grant: Grant = { ...owner, sourceScope, expires }
      const visitorToken = yield* box.sign("visitor", write(grant))
      return { visitorToken, expiresAt: DateTime.unsafeMake(expires), sourceScope }
    })

    /**
     * None for an invalid signature, another agent's token, an expired token, or one whose key has ended. A token
     * issued by a host of the library ends only by its time.
     */
    const verify = Effect.fn("VisitorTokens.verify")(function* (
      { agentId, tenantId }: AgentScope,
      token: string
    ) {
      if (token.length > maxTokenCharacters) return Option.none<Grant>()
      const found = Option.flatMap(yield* box.verify("visitor", token), read)
      const now = yield* Clock.currentTimeMillis
      const grant = Option.filter(
        found,
        (one) => one.expires > now && one.tenantId === tenantId && one.agentId === agentId
      )
      if (Option.isNone(grant) || grant.value.keyId === hostKey) return grant
      const key = yield* keys.find({ tenantId }, grant.value.keyId)
      return Option.exists(key, ({ status }) => status === "ACTIVE") ? grant : Option.none<Grant>()
    })

    return { issue, verify } as const
  })
}) {}
