/**
 * API keys: their permissions and the fingerprint of their secret. Authentication reads them in capabilities/KeyStore.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { Permission } from "../../domain/accounts/Access.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { ApiKey } from "../../domain/accounts/ApiKey.ts"
import type { AgentId, KeyId } from "../../domain/Ids.ts"
import { pageOf } from "../../domain/Page.ts"
import type { RateLimit } from "../../domain/accounts/RateLimit.ts"
import type { SourceScope } from "../../domain/knowledge/SourceScope.ts"
import { sourceScopeJson } from "../knowledge/SourceScopeColumns.ts"
import type { PageRequest } from "./Tenants.ts"
import { toJsonb } from "../Jsonb.ts"
import * as Rows from "../Rows.ts"

const Row = Schema.Struct({
  ...ApiKey.fields,
  expiresAt: Schema.NullOr(Schema.DateTimeUtcFromDate),
  lastUsedAt: Schema.NullOr(Schema.DateTimeUtcFromDate),
  createdAt: Schema.DateTimeUtcFromDate
})

export interface NewKey {
  readonly id: KeyId
  /** Null for a key of the whole organisation. */
  readonly agentId: AgentId | null
  readonly name: string
  readonly prefix: string
  readonly fingerprint: Uint8Array
  readonly permissions: ReadonlyArray<Permission>
  readonly allowedOrigins: ReadonlyArray<string>
  readonly expiresAt: DateTime.Utc | null
  readonly rateLimit: RateLimit | null
  readonly sourceScope: SourceScope | null
}

/** Fields of a key that can be changed, unless it is revoked. */
export type KeyChanges = Partial<
  Pick<NewKey, "name" | "allowedOrigins" | "expiresAt" | "rateLimit" | "sourceScope"> & {
    readonly active: boolean
  }
>

const toKey = (row: typeof Row.Type) => ApiKey.make(row)

export class ApiKeyStore extends Effect.Service<ApiKeyStore>()("store/accounts/ApiKeys", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const columns = sql`
      id, name, prefix, permissions, allowed_origins as "allowedOrigins",
      case when status = 'ACTIVE' and expires_at <= now() then 'EXPIRED' else status end as status,
      expires_at as "expiresAt",
      case when rate_requests is not null
        then jsonb_build_object('requests', rate_requests, 'window', rate_window) end as "rateLimit",
      source_scope as "sourceScope", last_used_at as "lastUsedAt", version, created_at as "createdAt"`

    const textArray = (values: ReadonlyArray<string>) =>
      sql`array(select jsonb_array_elements_text(${toJsonb(values)}::jsonb))`
    const timeOf = (time: DateTime.Utc | null) => sql`${time && DateTime.formatIso(time)}::timestamptz`

    /** None when the tenant has no such agent. */
    const insert = ({ tenantId }: TenantScope, key: NewKey) => {
      // Locks the agent, so that it still exists when its key is inserted.
      const owned =
        key.agentId === null
          ? sql`true`
          : sql`exists (
              select from agents where tenant_id = ${tenantId} and id = ${key.agentId} for key share)`
      return sql`
        insert into api_keys (id, tenant_id, agent_id, name, prefix, secret_hash, scope, permissions,
          allowed_origins, expires_at, rate_requests, rate_window, source_scope)
        select ${key.id}, ${tenantId}, ${key.agentId}, ${key.name}, ${key.prefix},
          ${key.fingerprint}::bytea, ${key.agentId === null ? "org" : "agent"}, ${textArray(key.permissions)},
          ${textArray(key.allowedOrigins)}, ${timeOf(key.expiresAt)},
          ${key.rateLimit?.requests ?? null}::int, ${key.rateLimit?.window ?? null}::int,
          ${sourceScopeJson(key)}::jsonb
        where ${owned}
        returning ${columns}`.pipe(Rows.first(Row), Effect.map(Option.map(toKey)))
    }

    const find = (scope: TenantScope, id: KeyId) =>
      sql`select ${columns} from api_keys where tenant_id = ${scope.tenantId} and id = ${id}`.pipe(
        Rows.first(Row),
        Effect.map(Option.map(toKey))
      )

    /** The keys of an agent, newest first. */
    const list = ({ tenantId }: TenantScope, agentId: AgentId, { limit, after }: PageRequest) =>
      sql`
        select ${columns} from api_keys
        where tenant_id = ${tenantId} and agent_id = ${agentId}
          and ${after === undefined ? sql`true` : sql`id < ${after}`}
        order by id desc limit ${limit + 1}`.pipe(
        Rows.all(Row),
        Effect.map((found) => pageOf(found.map(toKey), limit)),
        Effect.withSpan("ApiKeyStore.list")
      )

    /**
     * Sets the fields in `changes`. None when the tenant has no such key, it is revoked, or its version is not
     * `expected`.
     */
    const update = ({ tenantId }: TenantScope, id: KeyId, changes: KeyChanges, expected: number | null) => {
      const { name, allowedOrigins, expiresAt, rateLimit, active, sourceScope } = changes
      const assignments = [
        // An empty change is a statement too, and keeps the version.
        sql`version = version + ${Object.keys(changes).length === 0 ? 0 : 1}::int`,
        ...(name === undefined ? [] : [sql`name = ${name}`]),
        ...(allowedOrigins === undefined ? [] : [sql`allowed_origins = ${textArray(allowedOrigins)}`]),
        ...(expiresAt === undefined ? [] : [sql`expires_at = ${timeOf(expiresAt)}`]),
        ...(rateLimit === undefined
          ? []
          : [
              sql`rate_requests = ${rateLimit?.requests ?? null}::int`,
              sql`rate_window = ${rateLimit?.window ?? null}::int`
            ]),
        ...(active === undefined ? [] : [sql`status = ${active ? "ACTIVE" : "INACTIVE"}`]),
        ...(sourceScope === undefined ? [] : [sql`source_scope = ${sourceScopeJson({ sourceScope })}::jsonb`])
      ]
      return sql`
        update api_keys set ${sql.csv(assignments)}
        where tenant_id = ${tenantId} and id = ${id} and status <> 'REVOKED'
          and version = coalesce(${expected}::int, version)
        returning ${columns}`.pipe(Rows.first(Row), Effect.map(Option.map(toKey)))
    }

    /** Permanent. True when the tenant has the key, even if it was revoked before. */
    const revoke = (scope: TenantScope, id: KeyId) =>
      sql`
        update api_keys set status = 'REVOKED'
        where tenant_id = ${scope.tenantId} and id = ${id} returning id`.pipe(Rows.any)

    return { insert, find, list, update, revoke } as const
  })
}) {}
