/** Passkeys of the people of a tenant. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { type TenantScope, User } from "../../domain/accounts/Account.ts"
import { Passkey, PasskeyId } from "../../domain/accounts/Passkey.ts"
import { TenantId, UserId } from "../../domain/Ids.ts"
import * as Rows from "../Rows.ts"

const Row = Schema.Struct({
  ...Passkey.fields,
  createdAt: Schema.DateTimeUtcFromDate,
  usedAt: Schema.NullOr(Schema.DateTimeUtcFromDate),
  credentialId: Schema.String
})

/** The stored key that a sign-in is checked against, and its user. */
const StoredKey = Schema.Struct({
  id: PasskeyId,
  tenantId: TenantId,
  userId: UserId,
  email: Schema.String,
  role: User.fields.role,
  credentialId: Schema.String,
  publicKey: Schema.Uint8ArrayFromSelf,
  counter: Schema.Number
})

interface NewPasskey {
  readonly id: PasskeyId
  readonly userId: UserId
  readonly name: string
  readonly credentialId: string
  readonly publicKey: Uint8Array
  readonly counter: number
  readonly backedUp: boolean
}

export class PasskeyStore extends Effect.Service<PasskeyStore>()("store/accounts/Passkeys", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    /** The passkeys of a person, oldest first. */
    const list = ({ tenantId }: TenantScope, userId: UserId) =>
      sql`
        select id, name, credential_id as "credentialId", backed_up as "backedUp", created_at as "createdAt",
          used_at as "usedAt"
        from passkeys where tenant_id = ${tenantId} and user_id = ${userId} order by id`.pipe(
        Rows.all(Row),
        Effect.withSpan("PasskeyStore.list")
      )

    /** False when the authenticator's key is already registered. */
    const insert = ({ tenantId }: TenantScope, passkey: NewPasskey) =>
      sql`
        insert into passkeys (tenant_id, id, user_id, name, credential_id, public_key, counter, backed_up)
        values (${tenantId}, ${passkey.id}, ${passkey.userId}, ${passkey.name}, ${passkey.credentialId},
          ${passkey.publicKey}::bytea, ${passkey.counter}, ${passkey.backedUp})
        on conflict do nothing returning id`.pipe(Rows.any, Effect.withSpan("PasskeyStore.insert"))

    /** The only look-up without a tenant, because a sign-in finds its tenant by it. */
    const find = (credentialId: string) =>
      sql`/* every tenant: directory */
        select p.id, p.tenant_id as "tenantId", p.user_id as "userId", u.email, u.role, p.credential_id as "credentialId",
          p.public_key as "publicKey", p.counter::float8 as counter
        from passkeys p join users u on u.tenant_id = p.tenant_id and u.id = p.user_id
        where p.credential_id = ${credentialId}`.pipe(
        Rows.first(StoredKey),
        Effect.withSpan("PasskeyStore.find")
      )

    /**
     * Records the use. False when the passkey does not exist, or was used with this count or a later one.
     * Authenticators without a counter send 0.
     */
    const use = (
      { tenantId }: TenantScope,
      id: PasskeyId,
      { backedUp, counter }: { readonly counter: number; readonly backedUp: boolean }
    ) =>
      sql`
        update passkeys set counter = ${counter}::bigint, backed_up = ${backedUp}, used_at = now()
        where tenant_id = ${tenantId} and id = ${id} and (counter < ${counter}::bigint or (counter = 0 and ${counter}::bigint = 0))
        returning id`.pipe(Rows.any, Effect.withSpan("PasskeyStore.use"))

    /** False when the person has no such passkey. */
    const remove = ({ tenantId }: TenantScope, userId: UserId, id: PasskeyId) =>
      sql`
        delete from passkeys where tenant_id = ${tenantId} and user_id = ${userId} and id = ${id} returning id`.pipe(
        Rows.any,
        Effect.withSpan("PasskeyStore.remove")
      )

    return { list, insert, find, use, remove } as const
  })
}) {}
