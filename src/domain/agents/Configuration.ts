/** The agents of a tenant as one file: what it says, and what would change to make them so. */
import * as Schema from "effect/Schema"
import { AgentId } from "../Ids.ts"
import { CreateAgent } from "./Agent.ts"

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

const { name: AgentName, ...settings } = CreateAgent.fields

/** All that can be said of an agent; what is left out is as in an agent that was just made. */
export const AgentConfiguration = Schema.Struct({
  /** The name that it has had until now. */
  renamedFrom: optional(AgentName),
  ...settings
})
export type AgentConfiguration = typeof AgentConfiguration.Type

const maxAgents = 200
const isName = Schema.is(Schema.typeSchema(AgentName))

/** Agents by name; those that it does not name are left alone. A field that is unknown is refused. */
export const Configuration = Schema.Struct({
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
  /** As in the file: `retrieval.topK`. */
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
  /** What it means for people who talk with the agent now. */
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
  /** Of the plan that is applied. */
  revision: optional(Schema.String.pipe(Schema.maxLength(100)))
})
export type ApplyRequest = typeof ApplyRequest.Type
