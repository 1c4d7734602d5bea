/** The settings of an agent in a configuration file, and how they differ from the stored ones. */
import type { Agent, CreateAgent } from "../../domain/agents/Agent.ts"
import type { AgentConfiguration, FieldChange } from "../../domain/agents/Configuration.ts"
import { canonical, changedMembers } from "../../domain/Json.ts"
import { defaultSettings } from "./Agents.ts"

export type ConfiguredAgent = Omit<CreateAgent, "name">

export const configuredAgentOf = ({
  renamedFrom: _,
  sources: __,
  remoteTools: ___,
  cases: ____,
  widget: _____,
  channels: ______,
  ...configured
}: AgentConfiguration): ConfiguredAgent => configured

/** The settings of a file field by field, with defaults for those that it leaves out. */
const fieldsOf = (configured: ConfiguredAgent): Readonly<Record<string, unknown>> => {
  const {
    contextTokens,
    greeting,
    instructions,
    length,
    masking,
    maxSearches,
    minScore,
    mode,
    model,
    streamReasoning,
    tone,
    tools,
    topK,
    unsupported
  } = defaultSettings({ name: "", ...configured })
  return {
    instructions,
    model,
    greeting,
    "retrieval.topK": topK,
    "retrieval.minScore": minScore,
    tools,
    "grounding.mode": mode,
    "grounding.unsupported": unsupported,
    "grounding.contextTokens": contextTokens,
    "grounding.maxSearches": maxSearches,
    "style.length": length,
    "style.tone": tone,
    masking,
    streamReasoning
  }
}

export const configuredSettingsOf = ({ greeting, model, ...agent }: Agent): ConfiguredAgent => {
  const { grounding, instructions, masking, retrieval, streamReasoning, style, tools } = agent
  return {
    instructions,
    retrieval,
    tools,
    grounding,
    style,
    masking,
    streamReasoning,
    ...(model === null ? {} : { model }),
    ...(greeting === null ? {} : { greeting })
  }
}

export const changedFields = (
  before: ConfiguredAgent,
  after: ConfiguredAgent
): ReadonlyArray<FieldChange> => {
  const old = fieldsOf(before)
  return Object.entries(fieldsOf(after)).flatMap(([field, value]) =>
    canonical(old[field]) === canonical(value) ? [] : [{ field, before: old[field], after: value }]
  )
}

/** The settings in file form, without those that equal the defaults. */
export const toFileForm = (agent: Agent): AgentConfiguration => {
  const {
    greeting,
    instructions,
    masking: _,
    model,
    streamReasoning: ___,
    tools,
    topK,
    minScore,
    length,
    tone,
    ...grounding
  } = defaultSettings({ name: "" })
  const { name: __, ...defaultGrounding } = { ...grounding }
  const retrieval = changedMembers(agent.retrieval, { topK, minScore })
  const kept = changedMembers(agent.grounding, defaultGrounding)
  const style = changedMembers(agent.style, { length, tone })
  return {
    ...(agent.instructions === instructions ? {} : { instructions: agent.instructions }),
    ...(agent.model === null || agent.model === model ? {} : { model: agent.model }),
    ...(agent.greeting === null || agent.greeting === greeting ? {} : { greeting: agent.greeting }),
    ...(Object.keys(retrieval).length === 0 ? {} : { retrieval }),
    ...(canonical(agent.tools) === canonical(tools) ? {} : { tools: agent.tools }),
    ...(Object.keys(kept).length === 0 ? {} : { grounding: kept }),
    ...(Object.keys(style).length === 0 ? {} : { style }),
    ...(agent.masking === null ? {} : { masking: agent.masking }),
    ...(agent.streamReasoning ? { streamReasoning: true } : {})
  }
}
