/** The token for provisioning: one per tenant, shown once, rate limited. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { Credentials } from "../../capabilities/Credentials.ts"
import { RateLimiter } from "../../capabilities/RateLimiter.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { ScimError } from "../../domain/accounts/Scim.ts"
import { Conflict, noSuch } from "../../domain/Errors.ts"
import { ScimTokenStore } from "../../store/accounts/ScimTokens.ts"
import { prefixLength } from "./Keys.ts"

const secretPrefix = "sps_"
/** Longer than any secret that is issued: longer ones are refused without a query. */
const maxSecretCharacters = 200

/** Providers send at most about twenty-five requests per second. */
const limit = { requests: 3_000, window: 60 }

const unauthorized = () =>
  new ScimError({
    status: 401,
    scimType: null,
    detail: "Send the tenant's token, as Authorization: Bearer sps_…"
  })

export class ScimAccess extends Effect.Service<ScimAccess>()("usecases/accounts/ScimAccess", {
  effect: Effect.gen(function* () {
    const credentials = yield* Credentials
    const limiter = yield* RateLimiter
    const store = yield* ScimTokenStore

    /** Null when there is none. */
    const find = Effect.fn("ScimAccess.find")(function* (scope: TenantScope) {
      return Option.getOrNull(yield* store.find(scope))
    })

    /** Creates the token. Its secret is not shown again; the previous token is revoked at once. */
    const create = Effect.fn("ScimAccess.create")(function* (scope: TenantScope) {
      const text = `${secretPrefix}${yield* credentials.token}`
      const secret = Redacted.make(text)
      const fingerprint = yield* credentials.fingerprint(secret)
      if (!(yield* store.put(scope, text.slice(0, prefixLength), fingerprint))) {
        return yield* new Conflict({ message: "Set up single sign-on first." })
      }
      const token = yield* find(scope)
      return { token, secret }
    })

    const remove = Effect.fn("ScimAccess.remove")(function* (scope: TenantScope) {
      if (!(yield* store.remove(scope))) return yield* noSuch("token")
    })

    /** The tenant of the token. Counts the request against the rate limit. */
    const authenticate = Effect.fn("ScimAccess.authenticate")(function* (secret: Redacted.Redacted) {
      const text = Redacted.value(secret)
      if (!text.startsWith(secretPrefix) || text.length > maxSecretCharacters) return yield* unauthorized()
      const found = yield* store.tenantOf(yield* credentials.fingerprint(secret))
      if (Option.isNone(found)) return yield* unauthorized()
      const { tenantId } = found.value
      // When the counter is unavailable the request is allowed.
      const counted = yield* limiter
        .take(`scim:${tenantId}`, limit)
        .pipe(Effect.timeout("500 millis"), Effect.option)
      if (Option.isSome(counted) && !counted.value.granted) {
        return yield* new ScimError({
          status: 429,
          scimType: null,
          detail: "Too many requests. Try again shortly."
        })
      }
      return { tenantId }
    })

    return { find, create, remove, authenticate } as const
  })
}) {}
