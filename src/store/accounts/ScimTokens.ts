/** The provisioning token of a tenant's provider. A tenant has at most one. Only its fingerprint is stored. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { TenantId } from "../../domain/Ids.ts"
import * as Rows from "../Rows.ts"

const Row = Schema.Struct({
  prefix: Schema.String,
  createdAt: Schema.DateTimeUtcFromDate,
  usedAt: Schema.NullOr(Schema.DateTimeUtcFromDate)
})

export class ScimTokenStore extends Effect.Service<ScimTokenStore>()("store/accounts/ScimTokens", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    /** Replaces the previous token. False without a connection. */
    const put = ({ tenantId }: TenantScope, prefix: string, fingerprint: Uint8Array) =>
      sql`
        insert into scim_tokens (tenant_id, prefix, secret_hash)
        select tenant_id, ${prefix}, ${fingerprint}::bytea from sso_connections where tenant_id = ${tenantId}
        on conflict (tenant_id) do update set prefix = excluded.prefix, secret_hash = excluded.secret_hash,
          created_at = now(), used_at = null
        returning tenant_id`.pipe(Rows.any)

    const remove = ({ tenantId }: TenantScope) =>
      sql`delete from scim_tokens where tenant_id = ${tenantId} returning tenant_id`.pipe(Rows.any)

    const find = ({ tenantId }: TenantScope) =>
      sql`
        select prefix, created_at as "createdAt", used_at as "usedAt" from scim_tokens
        where tenant_id = ${tenantId}`.pipe(Rows.first(Row))

    /** The tenant of the token; records the use. */
    const tenantOf = (fingerprint: Uint8Array) =>
      // Updates the time of use at most once a minute. It skips the row if another request is writing it.
      sql`/* every tenant: directory */
        with noted as (
          update scim_tokens set used_at = now() where tenant_id in (
            select tenant_id from scim_tokens where secret_hash = ${fingerprint}
              and (used_at is null or used_at < now() - interval '1 minute') for update skip locked
          )
        )
        select tenant_id as "tenantId" from scim_tokens where secret_hash = ${fingerprint}`.pipe(
        Rows.first(Schema.Struct({ tenantId: TenantId }))
      )

    return { put, remove, find, tenantOf } as const
  })
}) {}
