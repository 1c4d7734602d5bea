/** The tools of an agent. The caller seals secrets. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as SqlSchema from "@effect/sql/SqlSchema"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { AgentId, TenantId } from "../../domain/Ids.ts"
import { type Page, pageOf } from "../../domain/Page.ts"
import { ToolConnection } from "../../domain/agents/ToolConnection.ts"
import { maxTools, ToolDefinition, ToolId, ToolName } from "../../domain/agents/Tool.ts"
import type { PageRequest } from "../accounts/Tenants.ts"

const Row = Schema.Struct({
  id: ToolId,
  agentId: AgentId,
  name: ToolName,
  definition: ToolDefinition,
  /** Sealed. */
  secret: Schema.NullOr(Schema.String),
  /** The connection by OAuth. It may be of an earlier definition. */
  connection: Schema.NullOr(Schema.Struct({ ...ToolConnection.fields, basis: Schema.String })),
  version: Schema.Int,
  createdAt: Schema.DateTimeUtcFromDate,
  updatedAt: Schema.DateTimeUtcFromDate
})
export type StoredTool = typeof Row.Type

const Values = Schema.Struct({
  tenantId: TenantId,
  id: ToolId,
  name: Schema.String,
  definition: Schema.parseJson(ToolDefinition),
  secret: Schema.NullOr(Schema.String)
})
const NewTool = Schema.Struct({ ...Values.fields, agentId: AgentId })

export class ToolStore extends Effect.Service<ToolStore>()("store/agents/Tools", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const columns = sql`
      id, agent_id as "agentId", name, definition, secret, version, created_at as "createdAt", updated_at as "updatedAt", (
        select jsonb_build_object('basis', c.basis, 'issuer', coalesce(c.server ->> 'issuer', ''),
          'state', case when c.state = 'connected' and c.server #> '{scopes,missing}' <> '[]' then 'insufficient' else c.state end,
          'missingScopes', coalesce(c.server #> '{scopes,missing}', '[]'), 'connectedAt', c.connected_at)
        from tool_connections c
        where c.tenant_id = tools.tenant_id and c.tool_id = tools.id and c.state <> 'none'
      ) as connection`

    const insertRow = SqlSchema.findOne({
      Request: NewTool,
      Result: Row,
      execute: ({ tenantId, agentId, id, name, definition, secret }) => sql`
        insert into tools (id, tenant_id, agent_id, name, definition, secret)
        select ${id}, tenant_id, id, ${name}, ${definition}::jsonb, ${secret} from agents
        where tenant_id = ${tenantId} and id = ${agentId}
          and (select count(*) from tools where tenant_id = ${tenantId} and agent_id = ${agentId}) < ${maxTools}
        on conflict (tenant_id, agent_id, name) do nothing returning ${columns}`
    })

    const updateRow = SqlSchema.findOne({
      Request: Schema.Struct({ ...Values.fields, version: Schema.Int }),
      Result: Row,
      execute: ({ tenantId, id, name, definition, secret, version }) => sql`
        update tools set name = ${name}, definition = ${definition}::jsonb, secret = ${secret}, updated_at = now(),
          version = version + 1
        where tenant_id = ${tenantId} and id = ${id} and version = ${version}
          and not exists (
            select 1 from tools other
            where other.tenant_id = ${tenantId} and other.agent_id = tools.agent_id and other.name = ${name} and other.id <> ${id}
          )
        returning ${columns}`
    })

    const selectRow = SqlSchema.findOne({
      Request: Schema.Struct({ tenantId: TenantId, id: ToolId }),
      Result: Row,
      execute: ({ tenantId, id }) =>
        sql`select ${columns} from tools where tenant_id = ${tenantId} and id = ${id}`
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
        select ${columns} from tools
        where tenant_id = ${tenantId} and agent_id = ${agentId}
          and ${after === null ? sql`true` : sql`id > ${after}`}
        order by id limit ${limit}`
    })

    /** None when the agent is not the tenant's, it has too many tools, or the name is taken. */
    const insert = (
      scope: AgentScope,
      tool: Pick<StoredTool, "id" | "name" | "definition" | "secret">
    ): Effect.Effect<Option.Option<StoredTool>> =>
      Effect.orDie(insertRow({ ...tool, tenantId: scope.tenantId, agentId: scope.agentId }))

    /** None when the tenant has no such tool, its version differs, or the name is taken. */
    const update = (
      { tenantId }: TenantScope,
      { id, name, definition, secret, version }: StoredTool
    ): Effect.Effect<Option.Option<StoredTool>> =>
      Effect.orDie(updateRow({ tenantId, id, name, definition, secret, version }))

    const find = ({ tenantId }: TenantScope, id: ToolId): Effect.Effect<Option.Option<StoredTool>> =>
      Effect.orDie(selectRow({ tenantId, id }))

    /** All of them, oldest first. */
    const list = ({ tenantId, agentId }: AgentScope): Effect.Effect<ReadonlyArray<StoredTool>> =>
      Effect.orDie(selectPage({ tenantId, agentId, limit: maxTools, after: null }))

    /** Oldest first. */
    const page = (
      { tenantId, agentId }: AgentScope,
      { limit, after }: PageRequest
    ): Effect.Effect<Page<StoredTool>> =>
      selectPage({ tenantId, agentId, limit: limit + 1, after: after ?? null }).pipe(
        Effect.orDie,
        Effect.map((found) => pageOf(found, limit))
      )

    /** False when the tenant has no such tool. */
    const remove = ({ tenantId }: TenantScope, id: ToolId) =>
      sql`delete from tools where tenant_id = ${tenantId} and id = ${id} returning id`.pipe(
        Effect.orDie,
        Effect.map((rows) => rows.length === 1)
      )

    return { insert, update, find, list, page, remove } as const
  })
}) {}
