/** Imported conversations. Their messages are stored without keys; the backfill adds those later. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { ExternalEndUserId } from "../../domain/chat/ChatTurn.ts"
import { MessageRole } from "../../domain/conversations/Conversation.ts"
import { AgentId, ConversationId, EndUserId, MessageId } from "../../domain/Ids.ts"
import { jsonbOf } from "../Jsonb.ts"
import * as Rows from "../Rows.ts"

const NewConversation = Schema.Struct({
  id: ConversationId,
  agentId: AgentId,
  /** Identifies the conversation when it is imported again. */
  importKey: Schema.String,
  endUserId: EndUserId,
  externalEndUserId: Schema.NullOr(ExternalEndUserId),
  createdAt: Schema.DateTimeUtc,
  updatedAt: Schema.DateTimeUtc,
  /** In order: of two messages with the same time, the one with the lower id comes first. */
  messages: Schema.Array(
    Schema.Struct({ id: MessageId, role: MessageRole, content: Schema.String, createdAt: Schema.DateTimeUtc })
  )
})
export type NewConversation = typeof NewConversation.Type

const Outcome = Schema.Struct({
  id: ConversationId,
  /** False when the agent does not exist. */
  known: Schema.Boolean,
  /** False when it had been imported before. */
  fresh: Schema.Boolean
})
type Outcome = typeof Outcome.Type

const encode = jsonbOf(Schema.Array(NewConversation))

export class ConversationImports extends Effect.Service<ConversationImports>()(
  "store/conversations/ConversationImports",
  {
    effect: Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      /** Stores those of `conversations` that are new, in one statement. Returns a result for each. */
      const insert = (conversations: ReadonlyArray<NewConversation>) =>
        sql`/* every tenant: directory */
          with given as materialized (
            select g.*, a.tenant_id from jsonb_to_recordset(${encode(conversations)}::jsonb) as g (
              id text, "agentId" text, "importKey" text, "endUserId" text, "externalEndUserId" text,
              "createdAt" timestamptz, "updatedAt" timestamptz, messages jsonb
            ) left join agents a on a.id = g."agentId"
          ),
          fresh as (
            select distinct on (g."agentId", g."importKey") g.* from given g
            where g.tenant_id is not null and not exists (
              select from conversations c
              where c.tenant_id = g.tenant_id and c.agent_id = g."agentId" and c.import_key = g."importKey"
            )
            order by g."agentId", g."importKey", g.id
          ),
          named as (
            insert into end_users (id, tenant_id, external_id, created_at)
            select distinct on (tenant_id, "externalEndUserId") "endUserId", tenant_id, "externalEndUserId", "createdAt"
            from fresh where "externalEndUserId" is not null
            order by tenant_id, "externalEndUserId", "createdAt"
            on conflict (tenant_id, external_id) do update set external_id = excluded.external_id
            returning id, tenant_id, external_id
          ),
          unnamed as (
            insert into end_users (id, tenant_id, created_at)
            select "endUserId", tenant_id, "createdAt" from fresh where "externalEndUserId" is null
          ),
          made as (
            insert into conversations (
              id, tenant_id, agent_id, end_user_id, channel, legacy_count, import_key, created_at, updated_at
            )
            select f.id, f.tenant_id, f."agentId", coalesce(n.id, f."endUserId"), 'api',
              jsonb_array_length(f.messages), f."importKey", f."createdAt", f."updatedAt"
            from fresh f
            left join named n on n.tenant_id = f.tenant_id and n.external_id = f."externalEndUserId"
            on conflict (tenant_id, agent_id, import_key) where import_key is not null do nothing
            returning id
          ),
          told as (
            insert into messages (id, tenant_id, conversation_id, agent_id, position, role, content, created_at)
            select m.id, f.tenant_id, f.id, f."agentId", null, m.role, m.content, m."createdAt"
            from made join fresh f on f.id = made.id cross join lateral jsonb_to_recordset(f.messages) as m (
              id text, role text, content text, "createdAt" timestamptz
            )
          )
          select g.id, g.tenant_id is not null as known, made.id is not null as fresh
          from given g left join made on made.id = g.id`.pipe(
          Rows.all(Outcome),
          Effect.withSpan("ConversationImports.insert")
        )

      return { insert } as const
    })
  }
) {}
