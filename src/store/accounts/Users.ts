/** Dashboard users and their password hashes. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { type Email, type TenantScope, User } from "../../domain/accounts/Account.ts"
import type { UserId } from "../../domain/Ids.ts"
import * as Rows from "../Rows.ts"

/** A user with the password hash, which is null until a password is set. */
export const Account = Schema.Struct({
  ...User.fields,
  passwordHash: Schema.NullOr(Schema.String),
  /** False if the tenant allows sign-in at its provider only, and for a deactivated user. */
  allowsPasswords: Schema.Boolean
})
export type Account = typeof Account.Type

type NewUser = Omit<Account, "tenantId" | "allowsPasswords"> & {
  /** The member who chose the password for the user; null when the user, or the operator, did. */
  readonly passwordBy: UserId | null
}

export class UserStore extends Effect.Service<UserStore>()("store/accounts/Users", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    /** True while there is no user of any tenant. */
    const isEmpty = sql<{
      readonly none: boolean
    }>`/* every tenant: operator */ select not exists (select from users) as none`.pipe(
      Effect.orDie,
      Effect.map(([row]) => row?.none === true)
    )

    /** Blocks inserts and updates of users until the transaction ends. */
    const lock = Effect.orDie(sql`lock table users in share row exclusive mode`)

    /** None when the e-mail address is taken in any tenant. */
    const insert = ({ tenantId }: TenantScope, user: NewUser) =>
      sql`
        insert into users (id, tenant_id, email, password_hash, password_by, role)
        values (${user.id}, ${tenantId}, ${user.email}, ${user.passwordHash}, ${user.passwordBy}, ${user.role})
        on conflict (email) do nothing
        returning id, tenant_id as "tenantId", email, role`.pipe(Rows.first(User))

    /** The only look-up without a tenant, because a sign-in finds its tenant by it. */
    const findByEmail = (email: Email) =>
      sql`/* every tenant: directory */
        select u.id, u.tenant_id as "tenantId", u.email, u.role, u.password_hash as "passwordHash",
          u.active and coalesce(c.allows_passwords, true) as "allowsPasswords"
        from users u left join sso_connections c on c.tenant_id = u.tenant_id where u.email = ${email}`.pipe(
        Rows.first(Account)
      )

    return { isEmpty, lock, insert, findByEmail } as const
  })
}) {}
