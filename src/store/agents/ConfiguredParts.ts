/** Sources and tools of all agents of a tenant, for configuration files, and a fingerprint of all configured parts. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { AgentId, SourceId } from "../../domain/Ids.ts"
import { SourceType } from "../../domain/knowledge/Source.ts"
import { ToolDefinition, ToolId, ToolName } from "../../domain/agents/Tool.ts"
import * as Rows from "../Rows.ts"

const SourceRow = Schema.Struct({
  id: SourceId,
  agentId: AgentId,
  type: SourceType,
  name: Schema.String,
  labels: Schema.Array(Schema.String),
  config: Schema.Record({ key: Schema.String, value: Schema.Unknown })
})
/** A source that was not uploaded. */
export type SourcePart = typeof SourceRow.Type

const ToolRow = Schema.Struct({
  id: ToolId,
  agentId: AgentId,
  name: ToolName,
  definition: ToolDefinition,
  /** Sealed. */
  secret: Schema.NullOr(Schema.String)
})
export type ToolPart = typeof ToolRow.Type

const Size = Schema.Struct({ count: Schema.Int, bytes: Schema.Number })

export class ConfiguredPartStore extends Effect.Service<ConfiguredPartStore>()(
  "store/agents/ConfiguredParts",
  {
    effect: Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      // A configuration file cannot contain the original of an upload, or the secrets of a connector.
      const describable = sql`type not in ('BULK_UPLOAD', 'CONNECTOR') and config -> 'artifact' is null`

      /** Their number, and the total length of their texts and of the test cases, in characters. */
      const size = ({ tenantId }: TenantScope) =>
        sql`
          select (count(*) filter (where named))::int as count, coalesce(sum(bytes), 0)::float8 as bytes from (
            select true as named, length(config::text) as bytes from sources where tenant_id = ${tenantId} and ${describable}
            union all
            select true, length(definition::text) from tools where tenant_id = ${tenantId}
            union all
            select true, length(profile::text) from channels where tenant_id = ${tenantId}
            union all
            select false, length(question) + length(expect_sources::text) + length(expect_facts::text)
              + coalesce(length(response_schema), 0) from test_cases
            where tenant_id = ${tenantId} and run_id is null
          ) parts`.pipe(Rows.one(Size))

      /** Oldest first. */
      const sources = ({ tenantId }: TenantScope): Effect.Effect<ReadonlyArray<SourcePart>> =>
        sql`
          select id, agent_id as "agentId", type, name, coalesce(next_labels, labels) as labels, config from sources
          where tenant_id = ${tenantId} and ${describable} order by id`.pipe(Rows.all(SourceRow))

      /** Oldest first. */
      const tools = ({ tenantId }: TenantScope): Effect.Effect<ReadonlyArray<ToolPart>> =>
        sql`
          select id, agent_id as "agentId", name, definition, secret from tools
          where tenant_id = ${tenantId} order by id`.pipe(Rows.all(ToolRow))

      /** A value that differs after any change of a source, a tool, a case, a channel or a widget. */
      const fingerprint = ({ tenantId }: TenantScope) =>
        sql`
          select md5(coalesce(string_agg(part, ',' order by part), '')) as fingerprint from (
            select id || md5(name || config::text || coalesce(next_labels, labels)::text) as part from sources where tenant_id = ${tenantId}
            union all
            select id || version from tools where tenant_id = ${tenantId}
            union all
            select id || updated_at from test_cases where tenant_id = ${tenantId} and run_id is null
            union all
            select id || version from channels where tenant_id = ${tenantId}
            union all
            select w.public_id || w.version || k.status || md5(k.allowed_origins::text || coalesce(k.source_scope::text, ''))
            from agent_widgets w join api_keys k on k.tenant_id = w.tenant_id and k.id = w.key_id
            where w.tenant_id = ${tenantId}
          ) parts`.pipe(
          Rows.one(Schema.Struct({ fingerprint: Schema.String })),
          Effect.map((row) => row.fingerprint)
        )

      return { size, sources, tools, fingerprint } as const
    })
  }
) {}
