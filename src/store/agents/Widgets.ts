/** The widgets of agents, each with the key that determines where it may be shown. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { WidgetLook } from "../../domain/agents/Widget.ts"
import { AgentId, KeyId } from "../../domain/Ids.ts"
import { SourceScope } from "../../domain/knowledge/SourceScope.ts"
import { jsonbOf } from "../Jsonb.ts"
import * as Rows from "../Rows.ts"

const Row = Schema.Struct({
  agentId: AgentId,
  publicId: Schema.String,
  keyId: KeyId,
  /** False if the key was revoked. The widget then cannot be opened. */
  live: Schema.Boolean,
  allowedOrigins: Schema.Array(Schema.String),
  sourceScope: Schema.NullOr(SourceScope),
  look: WidgetLook,
  version: Schema.Int
})

export type StoredWidget = typeof Row.Type

const lookJson = jsonbOf(WidgetLook)

export class AgentWidgetStore extends Effect.Service<AgentWidgetStore>()("store/agents/Widgets", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const columns = sql`
      w.agent_id as "agentId", w.public_id as "publicId", w.key_id as "keyId", k.status <> 'REVOKED' as live,
      k.allowed_origins as "allowedOrigins", k.source_scope as "sourceScope", w.look, w.version`

    const find = ({ agentId, tenantId }: AgentScope) =>
      sql`
        select ${columns} from agent_widgets w join api_keys k on k.tenant_id = w.tenant_id and k.id = w.key_id
        where w.tenant_id = ${tenantId} and w.agent_id = ${agentId}`.pipe(
        Rows.first(Row),
        Effect.withSpan("AgentWidgetStore.find")
      )

    /** Widgets of all agents. */
    const ofTenant = ({ tenantId }: TenantScope) =>
      sql`
        select ${columns} from agent_widgets w join api_keys k on k.tenant_id = w.tenant_id and k.id = w.key_id
        where w.tenant_id = ${tenantId}`.pipe(Rows.all(Row), Effect.withSpan("AgentWidgetStore.ofTenant"))

    /** Blocks other changes of the widget until the transaction ends. */
    const lock = ({ agentId, tenantId }: AgentScope) =>
      sql`select 1 from agents where tenant_id = ${tenantId} and id = ${agentId} for no key update`.pipe(
        Rows.none
      )

    const put = (
      { agentId, tenantId }: AgentScope,
      widget: { readonly publicId: string; readonly keyId: KeyId; readonly look: WidgetLook }
    ) =>
      sql`
        insert into agent_widgets (agent_id, tenant_id, public_id, key_id, look)
        values (${agentId}, ${tenantId}, ${widget.publicId}, ${widget.keyId}, ${lookJson(widget.look)}::jsonb)
        on conflict (tenant_id, agent_id) do update set public_id = excluded.public_id, key_id = excluded.key_id,
          look = excluded.look, version = agent_widgets.version + 1, updated_at = now()`.pipe(Rows.none)

    return { find, ofTenant, lock, put } as const
  })
}) {}
