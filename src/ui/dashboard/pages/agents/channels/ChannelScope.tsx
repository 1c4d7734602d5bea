/** The sources that the agent uses for answers on a channel. */
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { type Channel, channels, setReadableSources } from "../../../api/Channels.ts"
import { isOutdated } from "../../../api/Client.ts"
import { Button } from "../../../components/Button.tsx"
import { Actions } from "../../../components/Dialog.tsx"
import { Form } from "../../../forms/Form.tsx"
import { useIssues } from "../../../forms/useIssues.ts"
import { commonTexts } from "../../../text/commonTexts.ts"
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
  const common = useText(commonTexts)
  const queries = useQueryClient()
  const [value, setValue] = useState(() => scopeFieldsOf(channel.sourceScope))
  const refresh = () => queries.invalidateQueries({ queryKey: channels(agentId).queryKey })
  const save = useMutation({
    mutationFn: () => setReadableSources(channel, scopeOrNull(value)),
    onSuccess: async () => {
      await refresh()
      onClose()
    },
    // The list is read again, so that the next attempt is based on the current version.
    onError: (problem) => (isOutdated(problem) ? refresh() : undefined)
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
      <Actions>
        <Button onClick={onClose}>{common.cancel}</Button>
        <Button kind="primary" type="submit" busy={save.isPending}>
          {common.save}
        </Button>
      </Actions>
    </Form>
  )
}
