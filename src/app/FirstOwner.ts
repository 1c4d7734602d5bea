/** The first owner, with a tenant, of a database that has no user yet: whom SPOKE_ADMIN_EMAIL and SPOKE_ADMIN_PASSWORD name. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { CreateTenant } from "../domain/accounts/Account.ts"
import { Accounts } from "../usecases/accounts/Accounts.ts"
import type { Settings } from "./config/Config.ts"

const decode = Schema.decodeUnknown(CreateTenant)

/** True when it was made; false when there is a user already. */
export const create = ({ admin }: Pick<Settings, "admin">, password: Redacted.Redacted) =>
  Effect.gen(function* () {
    const accounts = yield* Accounts
    const owner = { email: admin.email, password: Redacted.value(password) }
    return yield* accounts.createFirst(yield* Effect.orDie(decode({ name: "Spoke", owner })))
  })

/** Nothing where no password is given: with many processes, the one that a process makes up would not be seen. */
export const ensure = Effect.fn("FirstOwner.ensure")(function* (settings: Settings) {
  if (Option.isNone(settings.admin.password)) return
  if (yield* create(settings, settings.admin.password.value)) {
    yield* Effect.logInfo("The first owner was created", { email: settings.admin.email })
  }
})
