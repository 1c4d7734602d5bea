/** The agents of a tenant as one file: its contents, and the plan of changes that applies it. */
import * as Schema from "effect/Schema"
import { AgentId } from "../Ids.ts"
import { optional } from "../Optional.ts"
import { ChannelName, ConfiguredChannel } from "../channels/ChannelConfiguration.ts"
import { ConfiguredSource, SourceName } from "../knowledge/Source.ts"
import { CreateAgent } from "./Agent.ts"
import { maxTestCases, TestCaseFields } from "./TestCase.ts"
import { ConfiguredTool, maxTools, ToolName } from "./Tool.ts"
import { PatchWidget } from "./Widget.ts"

const { name: AgentName, ...settings } = CreateAgent.fields

/** Maximum number of sources, tools with an address and channels of all agents together in one file. */
export const maxParts = 1_000

/** A record whose names `isName` accepts, without surrounding spaces. */
const namedRecord = <A, I>(value: Schema.Schema<A, I>, isName: (name: string) => boolean, maxNames: number) =>
  Schema.Record({ key: Schema.String, value }).pipe(
    Schema.filter((values) => {
      const names = Object.keys(values)
      if (names.length > maxNames) return `Expected at most ${maxNames} entries`
      const wrong = names.filter((name) => !isName(name) || name !== name.trim() || !name.isWellFormed())
      return wrong.map((name) => ({ path: [name], message: "Expected a name of the allowed form" }))
    })
  )

/** The configuration of an agent. Omitted settings are as in a new agent. */
export const AgentConfiguration = Schema.Struct({
  /** Its previous name. */
  renamedFrom: optional(AgentName),
  ...settings,
  /** By name. If present, sources that it does not name are deleted, except uploads. If omitted, all stay. */
  sources: optional(namedRecord(ConfiguredSource, Schema.is(Schema.typeSchema(SourceName)), maxParts)),
  /** Tools with an address, by name. If present, tools that it does not name are deleted. If omitted, all stay. */
  remoteTools: optional(namedRecord(ConfiguredTool, Schema.is(ToolName), maxTools)),
  /**
   * All test cases of the agent. If present, others are deleted, except those made from turns. If omitted, all stay.
   */
  cases: optional(Schema.Array(TestCaseFields).pipe(Schema.maxItems(maxTestCases))),
  /** Omitted settings are as in a new widget. If the widget is omitted, it stays as it is. */
  widget: optional(PatchWidget),
  /** By `channel:account`. If present, channels that it does not name are deleted. If omitted, all stay. */
  channels: optional(namedRecord(ConfiguredChannel, Schema.is(ChannelName), maxParts))
})
export type AgentConfiguration = typeof AgentConfiguration.Type

const maxAgents = 200
const isName = Schema.is(Schema.typeSchema(AgentName))

/** Agents by name. Agents that it does not name stay as they are. Unknown fields are refused. */
export const Configuration = Schema.Struct({
  /** Address of the file's schema, for editors. */
  $schema: optional(Schema.String.pipe(Schema.maxLength(2_048))),
  agents: Schema.Record({ key: Schema.String, value: AgentConfiguration }).pipe(
    Schema.filter((agents) => {
      const names = Object.keys(agents)
      if (names.length > maxAgents) return `Expected at most ${maxAgents} agents`
      const wrong = names.filter((name) => !isName(name) || name !== name.trim() || !name.isWellFormed())
      return wrong.map((name) => ({ path: [name], message: "Expected a name of 1 to 200 characters" }))
    })
  )
}).annotations({ parseOptions: { onExcessProperty: "error" } })
export type Configuration = typeof Configuration.Type

export const FieldChange = Schema.Struct({
  /** Path as in the file: `retrieval.topK`, `sources.Handbook`. Values that may contain a secret are not shown. */
  field: Schema.String,
  before: Schema.Unknown,
  after: Schema.Unknown
})
export type FieldChange = typeof FieldChange.Type

export const AgentChange = Schema.Struct({
  action: Schema.Literal("create", "update", "delete"),
  agent: Schema.String,
  /** Null for an agent that does not exist yet. */
  id: Schema.NullOr(AgentId),
  fields: Schema.Array(FieldChange),
  /** The consequence for people who talk with the agent now. */
  meaning: Schema.String
})
export type AgentChange = typeof AgentChange.Type

export const Plan = Schema.Struct({
  changes: Schema.Array(AgentChange),
  /** Revision of the current state. Applying a plan with it is refused if the agents have changed since. */
  revision: Schema.String
})
export type Plan = typeof Plan.Type

/** Body of `POST /api/manage/v1/apply`. */
export const ApplyRequest = Schema.Struct({
  config: Configuration,
  /** Only returns what would change. */
  dryRun: optional(Schema.Boolean),
  /** Deletes the agents that the file does not name. */
  prune: optional(Schema.Boolean),
  /** Deletes the agents that the file names, and leaves all others as they are. */
  destroy: optional(Schema.Boolean),
  /** Publishes also versions that miss an agent's threshold for publishing. */
  force: optional(Schema.Boolean),
  /** Revision of the plan that is applied. */
  revision: optional(Schema.String.pipe(Schema.maxLength(100)))
})
export type ApplyRequest = typeof ApplyRequest.Type
