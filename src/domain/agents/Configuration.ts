/** The agents of a tenant as one file: what it says, and what would change to make them so. */
import * as Schema from "effect/Schema"
import { AgentId } from "../Ids.ts"
import { ChannelName, ConfiguredChannel } from "../channels/ChannelConfiguration.ts"
import { ConfiguredSource, SourceName } from "../knowledge/Source.ts"
import { CreateAgent } from "./Agent.ts"
import { maxTestCases, TestCaseFields } from "./TestCase.ts"
import { ConfiguredTool, maxTools, ToolName } from "./Tool.ts"
import { PatchWidget } from "./Widget.ts"

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

const { name: AgentName, ...settings } = CreateAgent.fields

/** Sources, tools with an address and channels of all agents together: what one file may hold. */
export const maxParts = 1_000

/** Values by name. Each name is one that `isName` accepts, without spaces around it. */
const named = <A, I>(value: Schema.Schema<A, I>, isName: (name: string) => boolean, maxNames: number) =>
  Schema.Record({ key: Schema.String, value }).pipe(
    Schema.filter((values) => {
      const names = Object.keys(values)
      if (names.length > maxNames) return `Expected at most ${maxNames} entries`
      const wrong = names.filter((name) => !isName(name) || name !== name.trim() || !name.isWellFormed())
      return wrong.map((name) => ({ path: [name], message: "Expected a name of the allowed form" }))
    })
  )

/** All that can be said of an agent; a setting that is left out is as in an agent that was just made. */
export const AgentConfiguration = Schema.Struct({
  /** The name that it has had until now. */
  renamedFrom: optional(AgentName),
  ...settings,
  /** By name. Where it stands, the sources that it does not name go, but for uploads; left out, all stay as they are. */
  sources: optional(named(ConfiguredSource, Schema.is(Schema.typeSchema(SourceName)), maxParts)),
  /** Tools with an address, by name. Where it stands, those that it does not name go; left out, all stay as they are. */
  remoteTools: optional(named(ConfiguredTool, Schema.is(ToolName), maxTools)),
  /** All test cases of the agent: others are removed, except those from turns. When absent, all stay as they are. */
  cases: optional(Schema.Array(TestCaseFields).pipe(Schema.maxItems(maxTestCases))),
  /** A setting that is left out is as in a widget that was just made. When absent, the widget stays as it is. */
  widget: optional(PatchWidget),
  /** By `channel:account`. Where it stands, those that it does not name go; left out, all stay as they are. */
  channels: optional(named(ConfiguredChannel, Schema.is(ChannelName), maxParts))
})
export type AgentConfiguration = typeof AgentConfiguration.Type

const maxAgents = 200
const isName = Schema.is(Schema.typeSchema(AgentName))

/** Agents by name; those that it does not name are left alone. A field that is unknown is refused. */
export const Configuration = Schema.Struct({
  /** Of the file's schema, for editors. */
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
  /** As in the file: `retrieval.topK`, `sources.Handbook`. Values that may hold a secret are not shown. */
  field: Schema.String,
  before: Schema.Unknown,
  after: Schema.Unknown
})
export type FieldChange = typeof FieldChange.Type

export const AgentChange = Schema.Struct({
  action: Schema.Literal("create", "update", "delete"),
  agent: Schema.String,
  /** Null for one that is not there yet. */
  id: Schema.NullOr(AgentId),
  fields: Schema.Array(FieldChange),
  /** The consequence for people who talk with the agent now. */
  meaning: Schema.String
})
export type AgentChange = typeof AgentChange.Type

export const Plan = Schema.Struct({
  changes: Schema.Array(AgentChange),
  /** Of what there is: a plan that is applied with it is refused once something else has changed the agents. */
  revision: Schema.String
})
export type Plan = typeof Plan.Type

/** Body of `POST /api/manage/v1/apply`. */
export const ApplyRequest = Schema.Struct({
  config: Configuration,
  /** Only say what would change. */
  dryRun: optional(Schema.Boolean),
  /** Delete the agents that the file does not name. */
  prune: optional(Schema.Boolean),
  /** Delete the agents that the file names, and leave all others alone. */
  destroy: optional(Schema.Boolean),
  /** Publish also what does not reach what an agent asks of what is published. */
  force: optional(Schema.Boolean),
  /** Of the plan that is applied. */
  revision: optional(Schema.String.pipe(Schema.maxLength(100)))
})
export type ApplyRequest = typeof ApplyRequest.Type
