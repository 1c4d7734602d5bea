/** The versions of an agent: its settings after each change. A version never changes. */
import * as Schema from "effect/Schema"
import { Actor } from "../accounts/Audit.ts"
import { Version } from "../Version.ts"
import { Agent } from "./Agent.ts"
import { NotFound } from "../Errors.ts"

export const AgentVersion = Schema.Struct({
  version: Version,
  note: Schema.NullOr(Schema.String),
  /** Null if the service made it. */
  author: Schema.NullOr(Actor),
  createdAt: Schema.DateTimeUtc,
  /** True for the one version that turns use. */
  published: Schema.Boolean
})
export type AgentVersion = typeof AgentVersion.Type

/**
 * Settings that a version records. Sources, keys, channels and tools with an address belong to the agent, not to a
 * version.
 */
export const AgentVersionSettings = Schema.Struct(Agent.fields).pick(
  "name",
  "instructions",
  "model",
  "greeting",
  "retrieval",
  "tools",
  "grounding",
  "style",
  "masking",
  "streamReasoning"
)
export type AgentVersionSettings = typeof AgentVersionSettings.Type

const Value = Schema.Union(
  Schema.String,
  Schema.Number,
  Schema.Boolean,
  Schema.Array(Schema.String),
  Schema.Null
)

/** One setting that differs from the version before, by its path: `retrieval.topK`. */
export const SettingChange = Schema.Struct({ field: Schema.String, before: Value, after: Value })
export type SettingChange = typeof SettingChange.Type

const valuesOf = ({ grounding, masking, retrieval, style, ...settings }: AgentVersionSettings) =>
  new Map<string, typeof Value.Type>([
    ...Object.entries(settings),
    ...Object.entries(retrieval).map(([name, value]) => [`retrieval.${name}`, value] as const),
    ...Object.entries(grounding).map(([name, value]) => [`grounding.${name}`, value] as const),
    ...Object.entries(style).map(([name, value]) => [`style.${name}`, value] as const),
    ["masking.kinds", masking?.kinds ?? null],
    ["masking.patterns", masking?.patterns.map(({ name, pattern }) => `${name}: ${pattern}`) ?? null],
    ["masking.sources", masking?.sources ?? null],
    ["masking.tools", masking?.tools ?? null]
  ])

/** The differences, in the order of the settings. */
export const changesBetween = (
  before: AgentVersionSettings,
  after: AgentVersionSettings
): ReadonlyArray<SettingChange> => {
  const earlier = valuesOf(before)
  return [...valuesOf(after)].flatMap(([field, value]) => {
    const previous = earlier.get(field) ?? null
    return JSON.stringify(previous) === JSON.stringify(value)
      ? []
      : [{ field, before: previous, after: value }]
  })
}

export const noSuchVersion = () => new NotFound({ message: "The agent has no such version." })
