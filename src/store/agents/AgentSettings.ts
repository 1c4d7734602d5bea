/** The settings of an agent. The published ones are columns of `agents`; versions record them as JSON. */
import type * as SqlClient from "@effect/sql/SqlClient"
import * as Schema from "effect/Schema"
import { Agent, GroundingMode, ReplyLength, ReplyTone, UnsupportedPolicy } from "../../domain/agents/Agent.ts"
import type { AgentVersionSettings } from "../../domain/agents/AgentVersion.ts"
import { Masking } from "../../domain/agents/Masking.ts"
import { AgentId } from "../../domain/Ids.ts"
import { jsonbOf } from "../Jsonb.ts"

export const AgentSettings = Schema.Struct({
  name: Schema.String,
  instructions: Schema.String,
  model: Schema.NullOr(Schema.String),
  greeting: Schema.NullOr(Schema.String),
  topK: Schema.Int,
  minScore: Schema.NullOr(Schema.Number),
  tools: Schema.Array(Schema.String),
  mode: GroundingMode,
  unsupported: UnsupportedPolicy,
  contextTokens: Schema.Int,
  maxSearches: Schema.Int,
  length: ReplyLength,
  tone: ReplyTone,
  masking: Schema.NullOr(Masking),
  streamReasoning: Schema.Boolean
})
/** All settings of an agent. */
export type AgentSettings = typeof AgentSettings.Type

export const settingsJson = jsonbOf(AgentSettings)
const maskingJson = jsonbOf(AgentSettings.fields.masking)

/** The value of the column. */
export const maskingColumn = (sql: SqlClient.SqlClient, { masking }: AgentSettings) =>
  sql`nullif(${maskingJson(masking)}::jsonb, 'null')`

/** The settings in answers. */
export const shownSettings = ({
  topK,
  minScore,
  mode,
  unsupported,
  contextTokens,
  maxSearches,
  length,
  tone,
  ...settings
}: AgentSettings): AgentVersionSettings => ({
  ...settings,
  retrieval: { topK, minScore },
  grounding: { mode, unsupported, contextTokens, maxSearches },
  style: { length, tone }
})

export const AgentRow = Schema.Struct({
  id: AgentId,
  ...AgentSettings.fields,
  version: Schema.Int,
  publishedVersion: Schema.Int,
  splitVersion: Schema.NullOr(Schema.Int),
  splitShare: Schema.Number,
  createdAt: Schema.DateTimeUtcFromDate,
  updatedAt: Schema.DateTimeUtcFromDate
})
type AgentRow = typeof AgentRow.Type

const splitOf = ({ splitShare: share, splitVersion: version }: AgentRow) =>
  version === null ? null : { version, share }

export const toAgent = (row: AgentRow) => {
  const { id, version, publishedVersion, splitVersion: _, splitShare: __, createdAt, updatedAt, ...set } = row
  return Agent.make({
    ...shownSettings(set),
    id,
    version,
    publishedVersion,
    split: splitOf(row),
    createdAt,
    updatedAt
  })
}

export const columnsOf = (sql: SqlClient.SqlClient) => sql`
  id, name, instructions, model, greeting, top_k as "topK", min_score as "minScore",
  grounding_mode as mode, unsupported, context_tokens as "contextTokens", max_searches as "maxSearches", reply_length as length,
  reply_tone as tone, tools,
  masking, stream_reasoning as "streamReasoning",
  version, published_version as "publishedVersion", split_version as "splitVersion", split_share as "splitShare",
  created_at as "createdAt", updated_at as "updatedAt"`

/** Assignments of all settings, for `update agents`. */
export const assignments = (sql: SqlClient.SqlClient, settings: AgentSettings) => sql`
  name = ${settings.name}, instructions = ${settings.instructions}, model = ${settings.model},
  greeting = ${settings.greeting}, top_k = ${settings.topK}, min_score = ${settings.minScore},
  tools = ${[...settings.tools]}::text[], grounding_mode = ${settings.mode}, unsupported = ${settings.unsupported},
  context_tokens = ${settings.contextTokens}, max_searches = ${settings.maxSearches},
  reply_length = ${settings.length}, reply_tone = ${settings.tone},
  masking = ${maskingColumn(sql, settings)}, stream_reasoning = ${settings.streamReasoning}`
