/**
 * API keys: their permissions and the fingerprint of their secret. Authentication reads them in capabilities/KeyStore.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as SqlSchema from "@effect/sql/SqlSchema"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { Permission } from "../../domain/accounts/Access.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { ApiKey } from "../../domain/accounts/ApiKey.ts"
import { AgentId, KeyId, TenantId } from "../../domain/Ids.ts"
import type { Page } from "../../domain/Page.ts"
import { RateLimit } from "../../domain/accounts/RateLimit.ts"
import { SourceScope } from "../../domain/knowledge/SourceScope.ts"
import { sourceScopeJson } from "../knowledge/SourceScopeColumns.ts"
import type { PageRequest } from "./Tenants.ts"

const Row = Schema.Struct({
  ...ApiKey.fields,
  expiresAt: Schema.NullOr(Schema.DateTimeUtcFromDate),
  lastUsedAt: Schema.NullOr(Schema.DateTimeUtcFromDate),
  createdAt: Schema.DateTimeUtcFromDate
})

const NewKey = Schema.Struct({
  id: KeyId,
  tenantId: TenantId,
  /** Null for a key of the whole organisation. */
  agentId: Schema.NullOr(AgentId),
  name: Schema.String,
  prefix: Schema.String,
  fingerprint: Schema.Uint8ArrayFromSelf,
  permissions: Schema.parseJson(Schema.Array(Permission)),
  allowedOrigins: Schema.parseJson(Schema.Array(Schema.String)),
  expiresAt: Schema.NullOr(Schema.DateTimeUtc),
  rateLimit: Schema.NullOr(RateLimit),
  sourceScope: Schema.NullOr(Schema.typeSchema(SourceScope))
})
export type NewKey = Omit<typeof NewKey.Type, "tenantId">

/** Fields of a key that can be changed, unless it is revoked. */
const Changes = Schema.Struct({
  name: Schema.String,
  allowedOrigins: Schema.parseJson(Schema.Array(Schema.String)),
  expiresAt: Schema.NullOr(Schema.DateTimeUtc),
  rateLimit: Schema.NullOr(RateLimit),
  active: Schema.Boolean,
  sourceScope: Schema.NullOr(Schema.typeSchema(SourceScope))
}).pipe(Schema.partial)
export type KeyChanges = typeof Changes.Type

const one = { tenantId: TenantId, id: KeyId }

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

    const array = (json: string) => sql`array(select jsonb_array_elements_text(${json}::jsonb))`

    const insertRow = SqlSchema.findOne({
      Request: NewKey,
      Result: Row,
      execute: (key) => {
        // Locks the agent, so that it still exists when its key is inserted.
        const owned =
          key.agentId === null
            ? sql`true`
            : sql`exists (
                select from agents where tenant_id = ${key.tenantId} and id = ${key.agentId} for key share)`
        return sql`
          insert into api_keys (id, tenant_id, agent_id, name, prefix, secret_hash, scope, permissions,
            allowed_origins, expires_at, rate_requests, rate_window, source_scope)
          select ${key.id}, ${key.tenantId}, ${key.agentId}, ${key.name}, ${key.prefix},
            ${key.fingerprint}::bytea, ${key.agentId === null ? "org" : "agent"}, ${array(key.permissions)},
            ${array(key.allowedOrigins)}, ${key.expiresAt}::timestamptz,
            ${key.rateLimit?.requests ?? null}::int, ${key.rateLimit?.window ?? null}::int,
            ${sourceScopeJson(key)}::jsonb
          where ${owned}
          returning ${columns}`
      }
    })

    const selectRow = SqlSchema.findOne({
      Request: Schema.Struct(one),
      Result: Row,
      execute: ({ tenantId, id }) =>
        sql`select ${columns} from api_keys where tenant_id = ${tenantId} and id = ${id}`
    })

    const selectPage = SqlSchema.findAll({
      Request: Schema.Struct({
        tenantId: TenantId,
        agentId: AgentId,
        limit: Schema.Int,
        after: Schema.NullOr(Schema.String)
      }),
      Result: Row,
      execute: ({ tenantId, agentId, limit, after }) => sql`
        select ${columns} from api_keys
        where tenant_id = ${tenantId} and agent_id = ${agentId}
          and ${after === null ? sql`true` : sql`id < ${after}`}
        order by id desc limit ${limit}`
    })

    const updateRow = SqlSchema.findOne({
      Request: Schema.Struct({ ...one, changes: Changes, expected: Schema.NullOr(Schema.Int) }),
      Result: Row,
      execute: ({ tenantId, id, expected, changes }) => {
        const { name, allowedOrigins, expiresAt, rateLimit, active, sourceScope } = changes
        const assignments = [
          // An empty change is a statement too, and keeps the version.
          sql`version = version + ${Object.keys(changes).length === 0 ? 0 : 1}::int`,
          ...(name === undefined ? [] : [sql`name = ${name}`]),
          ...(allowedOrigins === undefined ? [] : [sql`allowed_origins = ${array(allowedOrigins)}`]),
          ...(expiresAt === undefined ? [] : [sql`expires_at = ${expiresAt}`]),
          ...(rateLimit === undefined
            ? []
            : [
                sql`rate_requests = ${rateLimit?.requests ?? null}::int`,
                sql`rate_window = ${rateLimit?.window ?? null}::int`
              ]),
          ...(active === undefined ? [] : [sql`status = ${active ? "ACTIVE" : "INACTIVE"}`]),
          ...(sourceScope === undefined
            ? []
            : [sql`source_scope = ${sourceScopeJson({ sourceScope })}::jsonb`])
        ]
        return sql`
          update api_keys set ${sql.csv(assignments)}
          where tenant_id = ${tenantId} and id = ${id} and status <> 'REVOKED'
            and version = coalesce(${expected}::int, version)
          returning ${columns}`
      }
    })

    /** None when the tenant has no such agent. */
    const insert = (scope: TenantScope, key: NewKey) =>
      insertRow({ ...key, tenantId: scope.tenantId }).pipe(
        Effect.orDie,
        Effect.map(Option.map((row) => ApiKey.make(row)))
      )

    const find = (scope: TenantScope, id: KeyId) =>
      selectRow({ tenantId: scope.tenantId, id }).pipe(
        Effect.orDie,
        Effect.map(Option.map((row) => ApiKey.make(row)))
      )

    /** The keys of an agent, newest first. */
    const list = Effect.fn("ApiKeyStore.list")(function* (
      scope: TenantScope,
      agentId: AgentId,
      { limit, after }: PageRequest
    ) {
      const request = { tenantId: scope.tenantId, agentId, limit: limit + 1, after: after ?? null }
      const found = yield* selectPage(request)
      const rows = found.slice(0, limit).map((row) => ApiKey.make(row))
      const page: Page<ApiKey> = { rows, next: found.length > limit ? (rows.at(-1)?.id ?? null) : null }
      return page
    }, Effect.orDie)

    /**
     * Sets the fields in `changes`. None when the tenant has no such key, it is revoked, or its version is not
     * `expected`.
     */
    const update = (scope: TenantScope, id: KeyId, changes: KeyChanges, expected: number | null = null) =>
      updateRow({ tenantId: scope.tenantId, id, changes, expected }).pipe(
        Effect.orDie,
        Effect.map(Option.map((row) => ApiKey.make(row)))
      )

    /** Permanent. True when the tenant has the key, even if it was revoked before. */
    const revoke = (scope: TenantScope, id: KeyId) =>
      sql`
        update api_keys set status = 'REVOKED'
        where tenant_id = ${scope.tenantId} and id = ${id} returning id`.pipe(
        Effect.orDie,
        Effect.map((rows) => rows.length === 1)
      )

    return { insert, find, list, update, revoke } as const
  })
}) {}
