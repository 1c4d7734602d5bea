/** Reads stored turns for a replay. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { AgentScope, ReadScope } from "../../domain/accounts/Access.ts"
import { RunEventType, RunStatus } from "../../domain/chat/AgentRun.ts"
import { Citation } from "../../domain/chat/ChatTurn.ts"
import { ConversationChannel } from "../../domain/conversations/Conversation.ts"
import { ConversationId, EndUserId, MessageId, RunId } from "../../domain/Ids.ts"
import { SourceScope } from "../../domain/knowledge/SourceScope.ts"
import { readableUnder } from "../knowledge/SourceScopeColumns.ts"
import { HistoryMessage } from "./Turns.ts"
import { mayBeOfVisitor } from "./Visitors.ts"
import * as Rows from "../Rows.ts"

/** Maximum number of history messages and of events that are read of one run. */
const maxHistory = 60
const maxEvents = 1_000

const RecordedEvent = Schema.Struct({ type: RunEventType, payload: Schema.NullOr(Schema.Unknown) })
export type RecordedEvent = typeof RecordedEvent.Type

const RecordedRun = Schema.Struct({
  id: RunId,
  status: RunStatus,
  conversationId: ConversationId,
  channel: ConversationChannel,
  endUserId: EndUserId,
  userMessageId: MessageId,
  question: Schema.String,
  /** Whether the message had files. */
  hasFiles: Schema.Boolean,
  startedAt: Schema.DateTimeUtcFromDate,
  sourceScope: Schema.NullOr(SourceScope),
  /** Null unless the run is complete. */
  reply: Schema.NullOr(Schema.String),
  citations: Schema.NullOr(Schema.Array(Citation)),
  inputTokens: Schema.Int,
  outputTokens: Schema.Int,
  /** Sorted by sequence. */
  events: Schema.Array(RecordedEvent),
  /** The conversation as the turn read it, oldest first. */
  history: Schema.Array(HistoryMessage)
})
export type RecordedRun = typeof RecordedRun.Type

/** What an agent has in addition to its settings. */
const AgentResources = Schema.Struct({
  hasSources: Schema.Boolean,
  hasTools: Schema.Boolean,
  hasCurated: Schema.Boolean
})

export class RecordedRunStore extends Effect.Service<RecordedRunStore>()("store/chat/RecordedRuns", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    /** The key of the message that the run `r` answers; above all keys if the message could not be stored. */
    const questionPosition = sql`
      coalesce((select q.position from messages q
          where q.tenant_id = r.tenant_id and q.conversation_id = r.conversation_id and q.id = r.user_message_id),
        9223372036854775807)`

    /**
     * The start of the episode of the run `r`: the last return of the conversation to the agent before it, if known,
     * else the position after the last message of a team member.
     */
    const episodeStart = sql`
      greatest(
        case when c.episode_start > 0 and c.episode_start < ${questionPosition} then c.episode_start else -9223372036854775807 end,
        coalesce((
          select max(h.position) from messages h
          where h.tenant_id = r.tenant_id and h.conversation_id = r.conversation_id and h.author = 'human' and h.position < ${questionPosition}
        ), -9223372036854775807)
      )`

    /** None when the agent has no such run, or not under this scope. */
    const find = (scope: ReadScope, id: RunId) =>
      sql`
        select r.id, r.status, r.conversation_id as "conversationId", c.channel, c.end_user_id as "endUserId",
          r.user_message_id as "userMessageId", r.user_message as question,
          r.attachments <> '[]' or exists (
            select from messages f where f.tenant_id = r.tenant_id and f.id = any(r.answers) and f.attachments <> '[]'
          ) as "hasFiles",
          r.started_at as "startedAt", r.source_scope as "sourceScope", m.content as reply, m.citations,
          coalesce(m.input_tokens, 0) as "inputTokens", coalesce(m.output_tokens, 0) as "outputTokens",
          (
            select coalesce(json_agg(json_build_object('type', e.type, 'payload', e.payload) order by e.sequence), '[]')
            from (
              select * from agent_run_events where tenant_id = r.tenant_id and run_id = ${id} order by sequence limit ${maxEvents}
            ) e
          ) as events,
          (
            select coalesce(json_agg(json_build_object('role', h.role, 'content', h.content) order by h.position), '[]')
            from (
              select h.role, h.content, h.position from messages h
              where h.tenant_id = r.tenant_id and h.conversation_id = r.conversation_id and h.position > ${episodeStart} and h.position < ${questionPosition}
                and (r.answers is null or h.id <> all(r.answers))
              order by h.position desc limit ${maxHistory}
            ) h
          ) as history
        from agent_runs r
        join conversations c on c.tenant_id = r.tenant_id and c.id = r.conversation_id
        left join messages m on m.tenant_id = r.tenant_id and m.id = r.message_id and r.status = 'complete'
        where r.tenant_id = ${scope.tenantId} and r.agent_id = ${scope.agentId} and r.id = ${id}
          and ${readableUnder(sql, scope, "c.source_scope")}
          and ${mayBeOfVisitor(sql, scope, sql`r.conversation_id`)}`.pipe(
        Rows.first(RecordedRun),
        Effect.withSpan("RecordedRunStore.find")
      )

    const resourcesOf = ({ agentId, tenantId }: AgentScope) =>
      sql`
        select
          exists (select from sources s where s.tenant_id = ${tenantId} and s.agent_id = ${agentId}) as "hasSources",
          exists (select from tools t where t.tenant_id = ${tenantId} and t.agent_id = ${agentId}) as "hasTools",
          exists (
            select from sources s where s.tenant_id = ${tenantId} and s.agent_id = ${agentId} and s.type = 'QA'
          ) as "hasCurated"`.pipe(Rows.one(AgentResources), Effect.withSpan("RecordedRunStore.resourcesOf"))

    return { find, resourcesOf } as const
  })
}) {}
