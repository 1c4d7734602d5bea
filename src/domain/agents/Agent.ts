/** Tenants, agents and the entitlements of a plan. */
import * as Schema from "effect/Schema"
import { AgentId, TenantId } from "../Ids.ts"
import { optional } from "../Optional.ts"
import { atMost, trimmed } from "../Text.ts"
import { Masking, MaskingInput } from "./Masking.ts"
import { ToolName } from "./Tool.ts"
import { Version } from "../Version.ts"
import { Count } from "../Count.ts"

const Timestamp = Schema.DateTimeUtc

export class Tenant extends Schema.Class<Tenant>("Tenant")({
  id: TenantId,
  name: Schema.String,
  createdAt: Timestamp
}) {}

/** How a chat turn searches. `minScore` null uses the minimum that the embedding provider recommends. */
const RetrievalSettings = Schema.Struct({
  topK: Schema.Int.pipe(Schema.between(1, 20)),
  minScore: Schema.NullOr(Schema.Number.pipe(Schema.between(0, 1)))
})
type RetrievalSettings = typeof RetrievalSettings.Type

/**
 * The reply without a matching source: `strict` states that there is none; `general` may use general knowledge and states
 * that.
 */
export const GroundingMode = Schema.Literal("strict", "general")
/**
 * What happens to a reply with a statement that its sources do not support. It is sent as it is, replaced by a refusal,
 * or replaced while a human is asked.
 */
export const UnsupportedPolicy = Schema.Literal("annotate", "withhold", "handoff")

/** How strictly replies follow the sources. */
const GroundingSettings = Schema.Struct({
  mode: GroundingMode,
  unsupported: UnsupportedPolicy,
  /** Tokens of passages that the model is shown with a question. */
  contextTokens: Schema.Int.pipe(Schema.between(500, 32_000)),
  /** Maximum number of further searches by the model in one turn. */
  maxSearches: Schema.Int.pipe(Schema.between(0, 8))
})
type GroundingSettings = typeof GroundingSettings.Type

/** How long replies are. `default` leaves it to the instructions. */
export const ReplyLength = Schema.Literal("default", "short", "detailed")
/** The tone of replies. `default` leaves it to the instructions. */
export const ReplyTone = Schema.Literal("default", "friendly", "formal", "casual")

/** How the agent writes. */
const StyleSettings = Schema.Struct({ length: ReplyLength, tone: ReplyTone })

/**
 * A share of the conversations is answered by `version`. A conversation has one version for as long as the split does
 * not change.
 */
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
  /** Names of tools of the process. Tools with an address are listed separately. */
  tools: Schema.Array(Schema.String),
  grounding: GroundingSettings,
  style: StyleSettings,
  /** Null masks nothing. */
  masking: Schema.NullOr(Masking),
  /** Whether streams of `/v1` contain the model's reasoning. It may repeat instructions and sources. */
  streamReasoning: Schema.Boolean,
  /** The newest version. Every change makes one. */
  version: Version,
  /** The version of these settings, which turns use. */
  publishedVersion: Version,
  /** The share of conversations that another version answers; null for none. */
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

const StyleInput = Schema.Struct({ length: optional(ReplyLength), tone: optional(ReplyTone) })

const AgentName = trimmed(200)
const Instructions = atMost(32_000)
const Model = trimmed(200)
const Greeting = atMost(2_000)

const ToolNames = Schema.Array(ToolName).pipe(Schema.maxItems(64))

export const CreateAgent = Schema.Struct({
  name: AgentName,
  instructions: optional(Instructions),
  model: optional(Model),
  greeting: optional(Greeting),
  retrieval: optional(RetrievalInput),
  tools: optional(ToolNames),
  grounding: optional(GroundingInput),
  style: optional(StyleInput),
  masking: optional(Schema.NullOr(MaskingInput)),
  streamReasoning: optional(Schema.Boolean)
})
export type CreateAgent = typeof CreateAgent.Type

/** Settings that one turn tries before they are saved. Omitted ones are as in the version that the turn uses. */
export const TrialSettings = Schema.Struct({
  instructions: optional(Instructions),
  model: optional(Schema.NullOr(Model)),
  retrieval: optional(RetrievalInput),
  tools: optional(ToolNames),
  grounding: optional(GroundingInput),
  style: optional(StyleInput)
})
export type TrialSettings = typeof TrialSettings.Type

/** Why a version was made. */
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
  style: optional(Schema.NullOr(StyleInput)),
  /** Replaces the whole setting. */
  masking: optional(Schema.NullOr(MaskingInput)),
  streamReasoning: optional(Schema.Boolean),
  note: optional(Note),
  /** If false, the change makes a draft version, which no turn uses. */
  publish: optional(Schema.Boolean),
  /** The version that is changed. Default: the published one, which is required when the change is published. */
  from: optional(Version)
})
export type PatchAgent = typeof PatchAgent.Type

const EntitledCount = Schema.Int.pipe(Schema.between(0, 1_000_000_000))

/** The plan's features and limits of a tenant in a period. */
export const Entitlements = Schema.Struct({
  publicApi: Schema.Boolean,
  turns: EntitledCount,
  ingestionJobs: EntitledCount,
  sources: EntitledCount,
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

/** Turns that were bought in addition to the plan and not refunded, and how many of them are used. */
export const Credits = Schema.Struct({
  granted: Count,
  used: Count
})
export type Credits = typeof Credits.Type
