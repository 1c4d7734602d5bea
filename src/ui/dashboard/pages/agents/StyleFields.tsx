/** The fields for how an agent answers: its model, and the length and tone of its replies. */
import { useQuery } from "@tanstack/react-query"
import { useState } from "react"
import { models } from "../../api/Agents.ts"
import { Select, TextField } from "../../components/Field.tsx"
import { ConflictingValue } from "../../forms/DraftNotes.tsx"
import { texts, useText } from "../../text/Language.tsx"
import { useSettingsWords } from "./settingsWords.ts"
import type { AgentForm } from "./useAgentForm.ts"

const words = texts(
  {
    standard: (model: string) => `Default: ${model}`,
    other: "Another model …",
    otherName: "Name of the model"
  },
  {
    standard: (model: string) => `Standard: ${model}`,
    other: "Ein anderes Modell …",
    otherName: "Name des Modells"
  }
)

/** Keys of the choices that are no names of models. */
const standardKey = " standard"
const otherKey = " other"

interface Props {
  readonly form: AgentForm
  readonly readOnly: boolean
}

interface ModelProps extends Props {
  readonly help?: string
}

/** The known models in a list; the name of another one is typed. */
export const ModelField = ({ form: { draft, errorOf }, help, readOnly }: ModelProps) => {
  const t = useText(words)
  const s = useSettingsWords()
  const { change, value } = draft
  const { data = { default: "", models: [] } } = useQuery(models)
  const [isTyping, setTyping] = useState(false)
  const isKnown = value.model === "" || data.models.includes(value.model)
  const isOther = isTyping || (!isKnown && data.models.length > 0)
  return (
    <>
      <Select
        label={s.model}
        {...(help === undefined ? {} : { help })}
        options={[
          [standardKey, t.standard(data.default)],
          ...data.models.map((name) => [name, name] as const),
          [otherKey, t.other]
        ]}
        disabled={readOnly}
        value={isOther ? otherKey : value.model === "" ? standardKey : value.model}
        onChange={(key) => {
          setTyping(key === otherKey)
          if (key !== otherKey) change({ model: key === standardKey ? "" : key })
        }}
      />
      {isOther ? (
        <TextField
          label={t.otherName}
          readOnly={readOnly}
          value={value.model}
          onChange={(model) => change({ model })}
          error={errorOf("model")}
        />
      ) : null}
      <ConflictingValue draft={draft} name="model" />
    </>
  )
}

export const StyleFields = ({ form: { draft }, readOnly }: Props) => {
  const s = useSettingsWords()
  const { change, value } = draft
  return (
    <>
      <Select
        label={s.length}
        options={[
          ["default", s.default],
          ["short", s.short],
          ["detailed", s.detailed]
        ]}
        disabled={readOnly}
        value={value.length}
        onChange={(length) => change({ length })}
      />
      <ConflictingValue draft={draft} name="length" />
      <Select
        label={s.tone}
        options={[
          ["default", s.default],
          ["friendly", s.friendly],
          ["formal", s.formal],
          ["casual", s.casual]
        ]}
        disabled={readOnly}
        value={value.tone}
        onChange={(tone) => change({ tone })}
      />
      <ConflictingValue draft={draft} name="tone" />
    </>
  )
}
