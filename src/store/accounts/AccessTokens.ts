/** Access tokens: their scopes, their owner, and the fingerprint of their secret. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { Role } from "../../domain/accounts/Access.ts"
import { AccessToken, Scope } from "../../domain/accounts/AccessToken.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { TenantId, TokenId, UserId } from "../../domain/Ids.ts"
import { pageOf } from "../../domain/Page.ts"
import type { PageRequest } from "./Tenants.ts"
import { toJsonb } from "../Jsonb.ts"
import * as Rows from "../Rows.ts"

const { user: _, ...shown } = AccessToken.fields

const Row = Schema.Struct({
  ...shown,
  userId: UserId,
  email: Schema.String,
  expiresAt: Schema.NullOr(Schema.DateTimeUtcFromDate),
  lastUsedAt: Schema.NullOr(Schema.DateTimeUtcFromDate),
  createdAt: Schema.DateTimeUtcFromDate
})

const toToken = ({ email, userId, ...row }: typeof Row.Type) =>
  AccessToken.make({ ...row, user: { id: userId, email } })

interface NewToken {
  readonly id: TokenId
  readonly userId: UserId
  readonly name: string
  readonly prefix: string
  readonly fingerprint: Uint8Array
  readonly scopes: ReadonlyArray<Scope>
  readonly expiresAt: DateTime.Utc | null
}

/** A valid token, and the current data of its owner. */
const LiveToken = Schema.Struct({
  tokenId: TokenId,
  scopes: Schema.Array(Scope),
  userId: UserId,
  tenantId: TenantId,
  email: Schema.String,
  role: Role
})

export class AccessTokenStore extends Effect.Service<AccessTokenStore>()("store/accounts/AccessTokens", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const columns = sql`
      t.id, t.name, t.prefix, t.scopes, u.id as "userId", u.email,
      case when t.revoked_at is not null then 'REVOKED'
        when t.expires_at <= now() then 'EXPIRED' else 'ACTIVE' end as status,
      t.expires_at as "expiresAt", t.last_used_at as "lastUsedAt", t.created_at as "createdAt"`

    /** True for a user `u` who is active, and has a password, an identity at a provider or a passkey. */
    const maySignIn = sql`
      (u.active and (u.password_hash is not null
        or exists (select from user_identities i where i.tenant_id = u.tenant_id and i.user_id = u.id)
        or exists (select from passkeys p where p.tenant_id = u.tenant_id and p.user_id = u.id)))`

    /** None when the user does not exist or has no password any more. */
    const insert = ({ tenantId }: TenantScope, token: NewToken) =>
      // The lock waits for a concurrent removal of the user or change of the password.
      sql`
        with u as (
          select id, email from users u
          where u.tenant_id = ${tenantId} and u.id = ${token.userId} and ${maySignIn} for share
        ), t as (
          insert into access_tokens (id, tenant_id, user_id, name, prefix, secret_hash, scopes, expires_at)
          select ${token.id}, ${tenantId}, id, ${token.name}, ${token.prefix}, ${token.fingerprint}::bytea,
            array(select jsonb_array_elements_text(${toJsonb(token.scopes)}::jsonb)),
            ${token.expiresAt && DateTime.formatIso(token.expiresAt)}::timestamptz
          from u returning *
        )
        select ${columns} from t join u on u.id = t.user_id`.pipe(
        Rows.first(Row),
        Effect.map(Option.map(toToken))
      )

    /** Newest first. */
    const list = ({ tenantId }: TenantScope, { limit, after }: PageRequest) =>
      sql`
        select ${columns} from access_tokens t join users u on u.tenant_id = t.tenant_id and u.id = t.user_id
        where t.tenant_id = ${tenantId} and ${after === undefined ? sql`true` : sql`t.id < ${after}`}
        order by t.id desc limit ${limit + 1}`.pipe(
        Rows.all(Row),
        Effect.map((found) => pageOf(found.map(toToken), limit)),
        Effect.withSpan("AccessTokenStore.list")
      )

    /**
     * None when no token has this fingerprint, the token is revoked or expired, or its owner may not sign in. Records
     * the use.
     */
    const find = (fingerprint: Uint8Array) =>
      // Updates the time of use at most once a minute. It skips the row if another request is writing it.
      sql`/* every tenant: directory */
        with noted as (
          update access_tokens set last_used_at = now() where (tenant_id, id) in (
            select tenant_id, id from access_tokens
            where secret_hash = ${fingerprint} and revoked_at is null
              and (expires_at is null or expires_at > now())
              and (last_used_at is null or last_used_at < now() - interval '1 minute')
            for update skip locked
          )
        )
        select t.id as "tokenId", t.scopes, u.id as "userId", u.tenant_id as "tenantId", u.email, u.role
        from access_tokens t join users u on u.id = t.user_id and u.tenant_id = t.tenant_id
        where t.secret_hash = ${fingerprint} and t.revoked_at is null and ${maySignIn}
          and (t.expires_at is null or t.expires_at > now())`.pipe(Rows.first(LiveToken))

    /** Permanent. True when the tenant has the token, even if it was revoked before. */
    const revoke = ({ tenantId }: TenantScope, id: TokenId) =>
      sql`
        update access_tokens set revoked_at = coalesce(revoked_at, now())
        where tenant_id = ${tenantId} and id = ${id} returning id`.pipe(Rows.any)

    return { insert, list, find, revoke } as const
  })
}) {}
