/** The sources that the agent uses for answers on a channel. */
import { useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { type Channel, channels, setReadableSources } from "../../../api/Channels.ts"
import { DialogActions } from "../../../forms/DialogActions.tsx"
import { Form } from "../../../forms/Form.tsx"
import { useSaveAndClose } from "../../../forms/useSaveAndClose.ts"
import { useIssues } from "../../../forms/useIssues.ts"
import { texts, useText } from "../../../text/Language.tsx"
import {
  ScopeFields,
  scopeFieldsOf,
  scopeOrNull,
  scopePaths,
  useScopeText,
  useScopeTitle
} from "../ScopeFields.tsx"

const words = texts(
  {
    help: "Separated by commas. Answers use sources with at least one of them, and those without labels.",
    all: "all, also with labels"
  },
  {
    help: "Durch Kommas getrennt. Antworten nutzen Quellen mit mindestens einem davon und solche ohne Etikett.",
    all: "alle, auch mit Etikett"
  }
)

/** Says which sources a channel reads, unless they are those without labels. */
export const useScopeNote = () => {
  const t = useText(words)
  const title = useScopeTitle()
  const scopeText = useScopeText()
  return ({ sourceScope }: Channel): string | null => {
    if (sourceScope === null) return `${title}: ${t.all}`
    const { labels = [], sourceIds } = sourceScope
    return labels.length === 0 && sourceIds === undefined ? null : scopeText(sourceScope)
  }
}

interface Props {
  readonly agentId: string
  readonly channel: Channel
  readonly onClose: () => void
}

export const ScopeForm = ({ agentId, channel, onClose }: Props) => {
  const t = useText(words)
  const queries = useQueryClient()
  const [value, setValue] = useState(() => scopeFieldsOf(channel.sourceScope))
  const save = useSaveAndClose({
    save: () => setReadableSources(channel, scopeOrNull(value)),
    refresh: () => queries.invalidateQueries({ queryKey: channels(agentId).queryKey }),
    onClose
  })
  const { errorOf, general } = useIssues(save.error, scopePaths)
  return (
    <Form onSubmit={() => save.mutate()} problem={general}>
      <ScopeFields
        agentId={agentId}
        help={t.help}
        value={value}
        onChange={(changes) => setValue((before) => ({ ...before, ...changes }))}
        errorOf={errorOf}
      />
      <DialogActions busy={save.isPending} onClose={onClose} />
    </Form>
  )
}
