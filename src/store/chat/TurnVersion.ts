/**
 * Chooses the version of its agent that a turn uses, and reads that version's settings in the statement that starts the
 * turn.
 */
import { createHash } from "node:crypto"
import type * as SqlClient from "@effect/sql/SqlClient"
import * as Schema from "effect/Schema"
import type { ConversationId } from "../../domain/Ids.ts"
import { AgentSettings } from "../agents/AgentSettings.ts"

/** The agent's settings when the turn starts. */
export const TurnAgent = Schema.Struct({
  ...AgentSettings.omit("name", "greeting", "mode", "tools").fields,
  agentVersion: Schema.Int,
  groundingMode: AgentSettings.fields.mode,
  hasSources: Schema.Boolean,
  /** False if no tools have to be read. */
  hasTools: Schema.Boolean,
  /** Names of tools of the process that the agent may call. */
  sourceTools: Schema.Array(Schema.String),
  /** False if the agent has no source of questions and answers. */
  hasCurated: Schema.Boolean,
  /** Replaces the settings above; null if the turn uses the published version. */
  recorded: Schema.NullOr(AgentSettings)
})

/** Determines the version of a turn. */
interface VersionChoice {
  readonly conversationId: ConversationId
  /** The version to test. Without it, the published one is used, or that of a split for its share of conversations. */
  readonly version: number | undefined
}

/** A number from 0 to below 1 that never changes for a conversation. It is compared with the share of a split. */
const shareOf = (id: ConversationId): number =>
  createHash("sha256").update(id).digest().readUInt32BE() / 2 ** 32

/** The version of the agent `a` that the turn uses. */
export const chosenVersion = (sql: SqlClient.SqlClient, { conversationId, version }: VersionChoice) =>
  version === undefined
    ? sql`case when a.split_share > ${shareOf(conversationId)} then a.split_version else a.published_version end`
    : sql`${version}::int`

/** The columns of {@link TurnAgent}, for the agent `a`. */
export const settingsColumns = (sql: SqlClient.SqlClient, choice: VersionChoice) => {
  const chosen = chosenVersion(sql, choice)
  return sql`
    ${chosen} as "agentVersion",
    case when ${chosen} <> a.published_version then (
      select v.settings from agent_versions v
      where v.tenant_id = a.tenant_id and v.agent_id = a.id and v.version = ${chosen}) end as recorded,
    a.instructions, a.model, a.top_k as "topK", a.min_score as "minScore",
    a.grounding_mode as "groundingMode", a.unsupported, a.context_tokens as "contextTokens",
    a.max_searches as "maxSearches", a.reply_length as length, a.reply_tone as tone, a.masking, a.stream_reasoning as "streamReasoning",
    exists (select 1 from sources s where s.tenant_id = a.tenant_id and s.agent_id = a.id) as "hasSources",
    exists (select 1 from tools t where t.tenant_id = a.tenant_id and t.agent_id = a.id) as "hasTools",
    a.tools as "sourceTools",
    exists (select 1 from sources s where s.tenant_id = a.tenant_id and s.agent_id = a.id and s.type = 'QA') as "hasCurated"`
}

/** Applies the settings of the version that the turn uses to `started`. */
export const withRecorded = <A extends typeof TurnAgent.Type>(started: A): A => {
  if (started.recorded === null) return started
  const { greeting: _, mode, name: __, tools, ...settings } = started.recorded
  return { ...started, ...settings, groundingMode: mode, sourceTools: tools }
}
