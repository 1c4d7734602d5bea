/** Identity providers of tenants: configured by owners, their domains confirmed by the operator. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { SecretBox } from "../../capabilities/SecretBox.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import type { Domain, PutConnection } from "../../domain/accounts/SingleSignOn.ts"
import { Conflict, NotFound, invalidField } from "../../domain/Errors.ts"
import { SingleSignOnStore, type StoredConnection } from "../../store/accounts/SingleSignOn.ts"

const missingSecret = () =>
  invalidField(
    ["clientSecret"],
    "Expected the client secret of this issuer",
    "Send the client secret. It is kept only while the issuer stays the same."
  )
const nobodyCouldSignIn = (remedy: string) => new Conflict({ message: `Nobody could sign in. ${remedy}` })
const remedies = {
  noOwner: "An owner must sign in at the provider once before passwords are switched off.",
  noDomain: "Without passwords, at least one confirmed domain must stay."
}
const missing = () => new NotFound({ message: "There is no single sign-on." })

const withoutSecret = ({ clientSecret: _, ...connection }: StoredConnection) => connection

export class SingleSignOn extends Effect.Service<SingleSignOn>()("usecases/accounts/SingleSignOn", {
  effect: Effect.gen(function* () {
    const store = yield* SingleSignOnStore
    const box = yield* SecretBox

    /** Null when there is none. */
    const find = Effect.fn("SingleSignOn.find")(function* (scope: TenantScope) {
      return Option.match(yield* store.find(scope), { onNone: () => null, onSome: withoutSecret })
    })

    /**
     * CONFLICT when passwords are switched off before an owner has signed in through the provider, or without a
     * confirmed domain. A stored secret is only used with the issuer that it was given for.
     */
    const put = Effect.fn("SingleSignOn.put")(function* (
      scope: TenantScope,
      { clientSecret, ...given }: PutConnection
    ) {
      const before = yield* store.find(scope)
      const keptSecret =
        Option.isSome(before) && before.value.issuer === given.issuer ? before.value.clientSecret : null
      const sealed =
        clientSecret === undefined ? keptSecret : yield* box.seal("sso-secret", Redacted.value(clientSecret))
      if (sealed === null) return yield* missingSecret()
      const outcome = yield* store.put(scope, { ...given, clientSecret: sealed })
      if (outcome !== "stored") return yield* nobodyCouldSignIn(remedies[outcome])
      const stored = yield* store.find(scope)
      if (Option.isNone(stored)) return yield* missing()
      return withoutSecret(stored.value)
    })

    /** Removes the connection, and ends the sessions that it opened. CONFLICT when no owner could sign in afterwards. */
    const remove = Effect.fn("SingleSignOn.remove")(function* (scope: TenantScope) {
      const outcome = yield* store.remove(scope)
      if (outcome === "missing") return yield* missing()
      if (outcome === "noOwnerCanSignIn")
        return yield* nobodyCouldSignIn(
          "An owner needs a passkey or a password before the connection is removed."
        )
    })

    /** The operator confirms a domain that the tenant claims. CONFLICT when it belongs to another tenant. */
    const confirm = Effect.fn("SingleSignOn.confirm")(function* (
      scope: TenantScope,
      domain: Domain,
      confirmed: boolean
    ) {
      const outcome = yield* store.confirm(scope, domain, confirmed)
      if (outcome === "missing") {
        return yield* new NotFound({ message: "The tenant does not claim this domain." })
      }
      if (outcome === "taken") {
        return yield* new Conflict({ message: "The domain is confirmed for another tenant." })
      }
    })

    return { find, put, remove, confirm } as const
  })
}) {}
