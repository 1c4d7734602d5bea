/** Which version of its agent a turn uses, and the settings of that version: read by the statement that begins the turn. */
import { createHash } from "node:crypto"
import type * as SqlClient from "@effect/sql/SqlClient"
import * as Schema from "effect/Schema"
import { GroundingMode, UnsupportedPolicy } from "../../domain/agents/Agent.ts"
import { Masking } from "../../domain/agents/Masking.ts"
import type { ConversationId } from "../../domain/Ids.ts"
import { AgentSettings } from "../agents/AgentSettings.ts"

/** The agent's settings as they are when the turn begins. */
export const TurnAgent = Schema.Struct({
  agentVersion: Schema.Int,
  instructions: Schema.String,
  model: Schema.NullOr(Schema.String),
  topK: Schema.Int,
  minScore: Schema.NullOr(Schema.Number),
  groundingMode: GroundingMode,
  unsupported: UnsupportedPolicy,
  contextTokens: Schema.Int,
  maxSearches: Schema.Int,
  masking: Schema.NullOr(Masking),
  streamReasoning: Schema.Boolean,
  hasSources: Schema.Boolean,
  /** False when there is nothing to read of tools. */
  hasTools: Schema.Boolean,
  /** Tools of the process that the agent may call, by name. */
  sourceTools: Schema.Array(Schema.String),
  /** False when the agent has no source of questions and answers. */
  hasCurated: Schema.Boolean,
  /** What replaces the settings above; null where the turn uses the published version. */
  recorded: Schema.NullOr(AgentSettings)
})

/** What decides which version a turn uses. */
interface Asked {
  readonly conversationId: ConversationId
  /** The one that is tried; without it the published one, or that of the conversation's share. */
  readonly version: number | undefined
}

/** From 0 to below 1, always the same for a conversation. */
const placeOf = (id: ConversationId): number =>
  createHash("sha256").update(id).digest().readUInt32BE() / 2 ** 32

/** The version that the turn uses, of the agent `a`. */
export const chosenVersion = (sql: SqlClient.SqlClient, { conversationId, version }: Asked) =>
  version === undefined
    ? sql`case when a.split_share > ${placeOf(conversationId)} then a.split_version else a.published_version end`
    : sql`${version}::int`

/** Columns of {@link TurnAgent}, of the agent `a`. */
export const settingsColumns = (sql: SqlClient.SqlClient, asked: Asked) => {
  const chosen = chosenVersion(sql, asked)
  return sql`
    ${chosen} as "agentVersion",
    case when ${chosen} <> a.published_version then (
      select v.settings from agent_versions v
      where v.tenant_id = a.tenant_id and v.agent_id = a.id and v.version = ${chosen}) end as recorded,
    a.instructions, a.model, a.top_k as "topK", a.min_score as "minScore",
    a.grounding_mode as "groundingMode", a.unsupported, a.context_tokens as "contextTokens",
    a.max_searches as "maxSearches", a.masking, a.stream_reasoning as "streamReasoning",
    exists (select 1 from sources s where s.tenant_id = a.tenant_id and s.agent_id = a.id) as "hasSources",
    exists (select 1 from tools t where t.tenant_id = a.tenant_id and t.agent_id = a.id) as "hasTools",
    a.tools as "sourceTools",
    exists (select 1 from sources s where s.tenant_id = a.tenant_id and s.agent_id = a.id and s.type = 'QA') as "hasCurated"`
}

/** `started` with the settings of the version that the turn uses. */
export const withRecorded = <A extends typeof TurnAgent.Type>(started: A): A => {
  if (started.recorded === null) return started
  const {
    contextTokens,
    instructions,
    masking,
    maxSearches,
    minScore,
    mode,
    model,
    streamReasoning,
    tools,
    topK,
    unsupported
  } = started.recorded
  return {
    ...started,
    instructions,
    model,
    topK,
    minScore,
    groundingMode: mode,
    unsupported,
    contextTokens,
    maxSearches,
    masking,
    streamReasoning,
    sourceTools: tools
  }
}
