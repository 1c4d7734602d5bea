/** Tenants, agents and what a plan entitles to. */
import * as Schema from "effect/Schema"
import { AgentId, TenantId } from "../Ids.ts"
import { Text, trimmed } from "../Text.ts"
import { Masking, MaskingInput } from "./Masking.ts"
import { ToolName } from "./Tool.ts"
import { Version } from "../Version.ts"

const Timestamp = Schema.DateTimeUtc
const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

export class Tenant extends Schema.Class<Tenant>("Tenant")({
  id: TenantId,
  name: Schema.String,
  createdAt: Timestamp
}) {}

/** How a chat turn searches; `minScore` null means the embedding provider's recommended cut. */
const RetrievalSettings = Schema.Struct({
  topK: Schema.Int.pipe(Schema.between(1, 20)),
  minScore: Schema.NullOr(Schema.Number.pipe(Schema.between(0, 1)))
})
type RetrievalSettings = typeof RetrievalSettings.Type

/** Without a source that answers: `strict` says so, `general` may use general knowledge and says that it does. */
export const GroundingMode = Schema.Literal("strict", "general")
/**
 * What becomes of a reply with a statement that its sources do not support: it is sent as it is, replaced by a refusal, or
 * replaced while a human is asked.
 */
export const UnsupportedPolicy = Schema.Literal("annotate", "withhold", "handoff")

/** How the agent keeps to its sources. */
const GroundingSettings = Schema.Struct({
  mode: GroundingMode,
  unsupported: UnsupportedPolicy,
  /** Tokens of sources that the model is shown with a question. */
  contextTokens: Schema.Int.pipe(Schema.between(500, 32_000)),
  /** Maximum number of further searches by the model in one turn. */
  maxSearches: Schema.Int.pipe(Schema.between(0, 8))
})
type GroundingSettings = typeof GroundingSettings.Type

/** `share` of the conversations are answered by `version`, and each stays with what answered it first. */
export const Split = Schema.Struct({
  version: Version,
  share: Schema.Number.pipe(Schema.greaterThan(0), Schema.lessThanOrEqualTo(1))
})
export type Split = typeof Split.Type

export class Agent extends Schema.Class<Agent>("Agent")({
  id: AgentId,
  name: Schema.String,
  instructions: Schema.String,
  model: Schema.NullOr(Schema.String),
  greeting: Schema.NullOr(Schema.String),
  retrieval: RetrievalSettings,
  /** Of the process, by name; those with an address are listed on their own. */
  tools: Schema.Array(Schema.String),
  grounding: GroundingSettings,
  /** Null: nothing is masked. */
  masking: Schema.NullOr(Masking),
  /** Streams of `/v1` carry what the model thinks before it replies. It may repeat instructions and sources. */
  streamReasoning: Schema.Boolean,
  /** The newest: of every change there is one. */
  version: Version,
  /** The version of these settings, which turns use. */
  publishedVersion: Version,
  /** A share of the conversations that another version answers; null for none. */
  split: Schema.NullOr(Split),
  createdAt: Timestamp,
  updatedAt: Timestamp
}) {}

const RetrievalInput = Schema.Struct({
  topK: optional(RetrievalSettings.fields.topK),
  minScore: optional(RetrievalSettings.fields.minScore)
})

const GroundingInput = Schema.Struct({
  mode: optional(GroundingMode),
  unsupported: optional(UnsupportedPolicy),
  contextTokens: optional(GroundingSettings.fields.contextTokens),
  maxSearches: optional(GroundingSettings.fields.maxSearches)
})

const AgentName = trimmed(200)
const Instructions = Text.pipe(Schema.maxLength(32_000))
const Model = trimmed(200)
const Greeting = Text.pipe(Schema.maxLength(2_000))

const ToolNames = Schema.Array(ToolName).pipe(Schema.maxItems(64))

export const CreateAgent = Schema.Struct({
  name: AgentName,
  instructions: optional(Instructions),
  model: optional(Model),
  greeting: optional(Greeting),
  retrieval: optional(RetrievalInput),
  tools: optional(ToolNames),
  grounding: optional(GroundingInput),
  masking: optional(Schema.NullOr(MaskingInput)),
  streamReasoning: optional(Schema.Boolean)
})
export type CreateAgent = typeof CreateAgent.Type

/** Settings that one turn tries before they are saved: what is left out is as in the version that the turn uses. */
export const TriedSettings = Schema.Struct({
  instructions: optional(Instructions),
  model: optional(Schema.NullOr(Model)),
  retrieval: optional(RetrievalInput),
  tools: optional(ToolNames),
  grounding: optional(GroundingInput)
})
export type TriedSettings = typeof TriedSettings.Type

/** Of a version: why it was made. */
const Note = trimmed(500)

/** `null` clears a field. */
export const PatchAgent = Schema.Struct({
  name: optional(AgentName),
  instructions: optional(Schema.NullOr(Instructions)),
  model: optional(Schema.NullOr(Model)),
  greeting: optional(Schema.NullOr(Greeting)),
  retrieval: optional(Schema.NullOr(RetrievalInput)),
  tools: optional(Schema.NullOr(ToolNames)),
  grounding: optional(Schema.NullOr(GroundingInput)),
  /** As a whole. */
  masking: optional(Schema.NullOr(MaskingInput)),
  streamReasoning: optional(Schema.Boolean),
  note: optional(Note),
  /** False: the version that the change makes is a draft, which no turn uses. */
  publish: optional(Schema.Boolean),
  /** The version that is changed; without it the published one, which it has to be where the change is published. */
  from: optional(Version)
})
export type PatchAgent = typeof PatchAgent.Type

const Count = Schema.Int.pipe(Schema.between(0, 1_000_000_000))

/** What a tenant may use in a period. */
export const Entitlements = Schema.Struct({
  publicApi: Schema.Boolean,
  turns: Count,
  ingestionJobs: Count,
  sources: Count,
  overageEnabled: Schema.Boolean
})
export type Entitlements = typeof Entitlements.Type

/** Plan `self-hosted`, on which every tenant starts. */
export const selfHosted: Entitlements = {
  publicApi: true,
  turns: 1_000_000,
  ingestionJobs: 1_000_000,
  sources: 1_000_000,
  overageEnabled: false
}

export const Period = Schema.Struct({ start: Timestamp, end: Timestamp })
export type Period = typeof Period.Type

export class Subscription extends Schema.Class<Subscription>("Subscription")({
  plan: Schema.String,
  status: Schema.String,
  period: Schema.NullOr(Period),
  entitlements: Entitlements
}) {}

/** Turns beside the plan's: bought and not refunded, and used. */
export const Credits = Schema.Struct({
  granted: Schema.Int.pipe(Schema.nonNegative()),
  used: Schema.Int.pipe(Schema.nonNegative())
})
export type Credits = typeof Credits.Type
