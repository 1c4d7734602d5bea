/** The tools of an agent. The caller seals secrets. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { AgentId } from "../../domain/Ids.ts"
import { ToolConnection } from "../../domain/agents/ToolConnection.ts"
import { maxTools, ToolDefinition, ToolId, ToolName } from "../../domain/agents/Tool.ts"
import type { PageRequest } from "../accounts/Tenants.ts"
import * as Rows from "../Rows.ts"
import { jsonbOf } from "../Jsonb.ts"

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

const encodeDefinition = jsonbOf(ToolDefinition)

type NewTool = Pick<StoredTool, "id" | "name" | "definition" | "secret">

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

    /** None when the agent is not the tenant's, it has too many tools, or the name is taken. */
    const insert = ({ tenantId, agentId }: AgentScope, { id, name, definition, secret }: NewTool) =>
      sql`
        insert into tools (id, tenant_id, agent_id, name, definition, secret)
        select ${id}, tenant_id, id, ${name}, ${encodeDefinition(definition)}::jsonb, ${secret} from agents
        where tenant_id = ${tenantId} and id = ${agentId}
          and (select count(*) from tools where tenant_id = ${tenantId} and agent_id = ${agentId}) < ${maxTools}
        for key share
        on conflict (tenant_id, agent_id, name) do nothing returning ${columns}`.pipe(Rows.first(Row))

    /** None when the tenant has no such tool, its version differs, or the name is taken. */
    const update = ({ tenantId }: TenantScope, { id, name, definition, secret, version }: StoredTool) =>
      sql`
        update tools set name = ${name}, definition = ${encodeDefinition(definition)}::jsonb, secret = ${secret},
          updated_at = now(), version = version + 1
        where tenant_id = ${tenantId} and id = ${id} and version = ${version}
          and not exists (
            select 1 from tools other
            where other.tenant_id = ${tenantId} and other.agent_id = tools.agent_id and other.name = ${name} and other.id <> ${id}
          )
        returning ${columns}`.pipe(Rows.first(Row))

    const find = ({ tenantId }: TenantScope, id: ToolId) =>
      sql`select ${columns} from tools where tenant_id = ${tenantId} and id = ${id}`.pipe(Rows.first(Row))

    /** Like {@link find}, but locks it until the caller's transaction ends: no sign-in connects it meanwhile. */
    const hold = ({ tenantId }: TenantScope, id: ToolId) =>
      sql`select 1 from tools where tenant_id = ${tenantId} and id = ${id} for update`.pipe(
        Effect.orDie,
        Effect.zipRight(find({ tenantId }, id))
      )

    /** Oldest first. */
    const page = ({ tenantId, agentId }: AgentScope, { limit, after }: PageRequest) =>
      sql`
        select ${columns} from tools
        where tenant_id = ${tenantId} and agent_id = ${agentId}
          and ${after === undefined ? sql`true` : sql`id > ${after}`}
        order by id limit ${limit + 1}`.pipe(Rows.page(Row, limit))

    /** All of them, oldest first. */
    const list = (scope: AgentScope) => Effect.map(page(scope, { limit: maxTools }), ({ rows }) => rows)

    /** Like {@link list}, but locks them as {@link hold} does. */
    const holdAll = ({ agentId, tenantId }: AgentScope) =>
      sql`select 1 from tools where tenant_id = ${tenantId} and agent_id = ${agentId} for update`.pipe(
        Effect.orDie,
        Effect.zipRight(list({ tenantId, agentId }))
      )

    /** False when the tenant has no such tool. */
    const remove = ({ tenantId }: TenantScope, id: ToolId) =>
      Rows.any(sql`delete from tools where tenant_id = ${tenantId} and id = ${id} returning id`)

    return { insert, update, find, hold, list, holdAll, page, remove } as const
  })
}) {}
