/** Form state of an agent's settings: one draft for every page that edits or tries them. */
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import type { TrialSettings } from "../../../../domain/agents/Agent.ts"
import { type Agent, agent as agentQuery, patchAgent } from "../../api/Agents.ts"
import { isOutdated } from "../../api/Client.ts"
import { useDraft } from "../../forms/useDraft.ts"
import { useIssues } from "../../forms/useIssues.ts"
import { isSame } from "../../forms/merge.ts"
import { texts, useText } from "../../text/Language.tsx"
import { parseNumber } from "../../text/parseNumber.ts"
import { maskingFieldsOf, maskingOf } from "./MaskingFields.tsx"

const words = texts(
  { title: (name: string) => `Settings of ${name}` },
  { title: (name: string) => `Einstellungen von ${name}` }
)

/** Null for an empty field. Text that is not a number becomes -1, which the server refuses: JSON has no NaN. */
const numberOrNull = (text: string) => {
  if (text.trim() === "") return null
  const number = parseNumber(text)
  return Number.isFinite(number) ? number : -1
}

const settingsOf = ({
  greeting,
  grounding: { contextTokens, maxSearches, mode, unsupported },
  instructions,
  model,
  name,
  retrieval: { minScore, topK },
  streamReasoning,
  style: { length, tone }
}: Agent) => ({
  name,
  instructions,
  greeting: greeting ?? "",
  model: model ?? "",
  topK: String(topK),
  minScore: minScore === null ? "" : String(minScore),
  contextTokens: String(contextTokens),
  maxSearches: String(maxSearches),
  mode,
  unsupported,
  length,
  tone,
  streamReasoning
})

/** The values of the fields, as typed. */
const fieldsOf = (agent: Agent) => ({
  ...settingsOf(agent),
  ...maskingFieldsOf(agent)
})

/** Paths of the validation issues that the form shows at fields. */
const settingPaths = [
  "name",
  "instructions",
  "greeting",
  "model",
  "retrieval.topK",
  "retrieval.minScore",
  "grounding.contextTokens",
  "grounding.maxSearches",
  "masking.patterns",
  "masking.tools",
  "note"
] as const

type Settings = ReturnType<typeof fieldsOf>

const groundingOf = ({ contextTokens, maxSearches, mode, unsupported }: Settings) => ({
  mode,
  unsupported,
  contextTokens: Number(contextTokens),
  maxSearches: Number(maxSearches)
})

const retrievalOf = ({ minScore, topK }: Settings) => ({
  topK: Number(topK),
  minScore: numberOrNull(minScore)
})

const styleOf = ({ length, tone }: Settings) => ({ length, tone })

const modelOf = ({ model }: Settings) => (model.trim() === "" ? null : model)

/** The typed settings that differ from those of `agent`, for a test turn; undefined if none does. */
const trialSettingsOf = (agent: Agent, typed: Settings): typeof TrialSettings.Encoded | undefined => {
  const stored = fieldsOf(agent)
  const differs = (...names: ReadonlyArray<keyof Settings>) =>
    names.some((name) => !isSame(typed[name], stored[name]))
  const trialSettings = {
    ...(differs("instructions") ? { instructions: typed.instructions } : {}),
    ...(differs("model") ? { model: modelOf(typed) } : {}),
    ...(differs("topK", "minScore") ? { retrieval: retrievalOf(typed) } : {}),
    ...(differs("mode", "unsupported", "contextTokens", "maxSearches")
      ? { grounding: groundingOf(typed) }
      : {}),
    ...(differs("length", "tone") ? { style: styleOf(typed) } : {})
  }
  return Object.keys(trialSettings).length === 0 ? undefined : trialSettings
}

/** `shownFields` are the fields at which the page shows validation issues. */
export const useAgentForm = (
  agent: Agent,
  shownFields: ReadonlyArray<(typeof settingPaths)[number]> = settingPaths
) => {
  const t = useText(words)
  const queries = useQueryClient()
  const draft = useDraft({
    name: `agent.${agent.id}`,
    title: t.title(agent.name),
    stored: fieldsOf(agent)
  })
  const { value } = draft
  const [note, setNote] = useState("")
  const save = useMutation({
    mutationFn: (publish: boolean) =>
      patchAgent(agent.id, agent.version, {
        publish,
        from: agent.publishedVersion,
        ...(note.trim() === "" ? {} : { note }),
        name: value.name,
        instructions: value.instructions,
        greeting: value.greeting === "" ? null : value.greeting,
        model: modelOf(value),
        retrieval: retrievalOf(value),
        grounding: groundingOf(value),
        style: styleOf(value),
        masking: maskingOf(value),
        streamReasoning: value.streamReasoning
      }),
    onMutate: () => value,
    onSuccess: ({ agent: saved }, publish, sent) => {
      if (publish) draft.saved(sent)
      // The input is stored in the new draft version. The form shows the published version again.
      else if (isSame(sent, value)) draft.discard()
      setNote("")
      queries.setQueryData(agentQuery(agent.id).queryKey, saved)
      return queries.invalidateQueries({ queryKey: ["agents"] })
    },
    onError: (problem) =>
      isOutdated(problem)
        ? queries.invalidateQueries({ queryKey: agentQuery(agent.id).queryKey, exact: true })
        : undefined
  })
  const { errorOf, general } = useIssues(save.error, shownFields)
  return { draft, errorOf, general, note, save, setNote, trialSettings: trialSettingsOf(agent, value) }
}

export type AgentForm = ReturnType<typeof useAgentForm>
