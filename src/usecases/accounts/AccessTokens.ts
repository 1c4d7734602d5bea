/** Access tokens of people: create, list, revoke, authenticate. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { Credentials } from "../../capabilities/Credentials.ts"
import type { SessionUser } from "../../domain/accounts/Access.ts"
import type { CreateToken, Scope } from "../../domain/accounts/AccessToken.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { Unauthorized, noSuch } from "../../domain/Errors.ts"
import { newId, type TokenId } from "../../domain/Ids.ts"
import { AccessTokenStore } from "../../store/accounts/AccessTokens.ts"
import { requireFutureExpiry, prefixLength } from "./Keys.ts"

/** Prefix of every secret. */
const secretPrefix = "spt_"
/** Longer than any secret that is issued: longer ones are refused without a query. */
const maxSecretCharacters = 200

const unauthorized = () =>
  new Unauthorized({ message: "Send a valid access token, as Authorization: Bearer spt_…" })

export class AccessTokens extends Effect.Service<AccessTokens>()("usecases/accounts/AccessTokens", {
  effect: Effect.gen(function* () {
    const credentials = yield* Credentials
    const store = yield* AccessTokenStore

    /** A new token of `user` with its secret, which is not shown again. */
    const create = Effect.fn("AccessTokens.create")(function* (
      user: SessionUser,
      { name, scopes, expiresAt }: CreateToken
    ) {
      yield* requireFutureExpiry(expiresAt)
      const text = `${secretPrefix}${yield* credentials.token}`
      const secret = Redacted.make(text)
      const created = yield* store.insert(user, {
        id: yield* newId.token,
        userId: user.userId,
        name,
        prefix: text.slice(0, prefixLength),
        fingerprint: yield* credentials.fingerprint(secret),
        scopes,
        expiresAt: expiresAt ?? null
      })
      if (Option.isNone(created)) return yield* new Unauthorized({ message: "Sign in first." })
      return { token: created.value, secret }
    })

    /** Revokes a token permanently. Revoking it again changes nothing. */
    const revoke = Effect.fn("AccessTokens.revoke")(function* (scope: TenantScope, id: TokenId) {
      if (!(yield* store.revoke(scope, id))) return yield* noSuch("token")
    })

    /**
     * The user that the token acts for, with the current role, and its scopes. UNAUTHORIZED for an invalid, expired or
     * revoked token.
     */
    const authenticate = Effect.fn("AccessTokens.authenticate")(function* (secret: Redacted.Redacted) {
      const text = Redacted.value(secret)
      if (!text.startsWith(secretPrefix) || text.length > maxSecretCharacters) return yield* unauthorized()
      const found = yield* store.find(yield* credentials.fingerprint(secret))
      if (Option.isNone(found)) return yield* unauthorized()
      const { scopes, tokenId, ...maker } = found.value
      const user = { ...maker, session: null, token: tokenId } satisfies SessionUser
      return { user, scopes } satisfies { user: SessionUser; scopes: ReadonlyArray<Scope> }
    })

    return { create, list: store.list, revoke, authenticate } as const
  })
}) {}
