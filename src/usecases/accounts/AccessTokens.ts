/** Access tokens of people: made, listed, revoked, and what each may do now. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { Credentials } from "../../capabilities/Credentials.ts"
import type { SessionUser } from "../../domain/accounts/Access.ts"
import type { CreateToken, Scope } from "../../domain/accounts/AccessToken.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { NotFound, Unauthorized } from "../../domain/Errors.ts"
import { newId, type TokenId } from "../../domain/Ids.ts"
import { AccessTokenStore } from "../../store/accounts/AccessTokens.ts"
import type { PageRequest } from "../../store/accounts/Tenants.ts"
import { ahead, prefixLength } from "./Keys.ts"

/** How every secret begins. */
const secretPrefix = "spt_"
/** Longer than any secret we make: not worth a query. */
const maxSecretCharacters = 200

const unauthorized = () =>
  new Unauthorized({ message: "Send a valid access token, as Authorization: Bearer spt_…" })

export class AccessTokens extends Effect.Service<AccessTokens>()("usecases/accounts/AccessTokens", {
  effect: Effect.gen(function* () {
    const credentials = yield* Credentials
    const store = yield* AccessTokenStore

    /** A token of `user` and its secret, which cannot be read again. */
    const create = Effect.fn("AccessTokens.create")(function* (
      user: SessionUser,
      { name, scopes, expiresAt }: CreateToken
    ) {
      yield* ahead(expiresAt)
      const text = `${secretPrefix}${yield* credentials.token}`
      const secret = Redacted.make(text)
      const made = yield* store.insert(user, {
        id: yield* newId.token,
        userId: user.userId,
        name,
        prefix: text.slice(0, prefixLength),
        fingerprint: yield* credentials.fingerprint(secret),
        scopes,
        expiresAt: expiresAt ?? null
      })
      if (Option.isNone(made)) return yield* new Unauthorized({ message: "Sign in first." })
      return { token: made.value, secret }
    })

    /** All tokens of the tenant, newest first. */
    const list = (scope: TenantScope, page: PageRequest) => store.list(scope, page)

    /** For good; revoking again changes nothing. */
    const revoke = Effect.fn("AccessTokens.revoke")(function* (scope: TenantScope, id: TokenId) {
      if (!(yield* store.revoke(scope, id)))
        return yield* new NotFound({ message: "There is no such token." })
    })

    /** For whom the token acts, as they are now, and its scopes; UNAUTHORIZED when it is none, or no longer. */
    const authenticate = Effect.fn("AccessTokens.authenticate")(function* (secret: Redacted.Redacted) {
      const text = Redacted.value(secret)
      if (!text.startsWith(secretPrefix) || text.length > maxSecretCharacters) return yield* unauthorized()
      const found = yield* store.find(yield* credentials.fingerprint(secret))
      if (Option.isNone(found)) return yield* unauthorized()
      const { scopes, tokenId, ...maker } = found.value
      const user = { ...maker, session: null, token: tokenId } satisfies SessionUser
      return { user, scopes } satisfies { user: SessionUser; scopes: ReadonlyArray<Scope> }
    })

    return { create, list, revoke, authenticate } as const
  })
}) {}
