/** Creates the first tenant and owner of a database without users, from SPOKE_ADMIN_EMAIL and SPOKE_ADMIN_PASSWORD. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { CreateTenant } from "../domain/accounts/Account.ts"
import { Accounts } from "../usecases/accounts/Accounts.ts"
import type { Settings } from "./config/Config.ts"

const decode = Schema.decodeUnknown(CreateTenant)

/** The first tenant, with the configured owner. */
export const tenantOf = ({ admin }: Pick<Settings, "admin">, password: Redacted.Redacted) =>
  Effect.orDie(decode({ name: "Spoke", owner: { email: admin.email, password: Redacted.value(password) } }))

/** True when the owner was created; false when there is a user already. */
export const create = (settings: Pick<Settings, "admin">, password: Redacted.Redacted) =>
  Effect.gen(function* () {
    const accounts = yield* Accounts
    return yield* accounts.createFirst(yield* tenantOf(settings, password))
  })

/** Does nothing without a configured password: nobody would see one that a process among many generated. */
export const ensure = Effect.fn("FirstOwner.ensure")(function* (settings: Settings) {
  if (Option.isNone(settings.admin.password)) return
  if (yield* create(settings, settings.admin.password.value)) {
    yield* Effect.logInfo("The first owner was created", { email: settings.admin.email })
  }
})
