/** Where a question to the agent is written. */
import { Button } from "../../components/Button.tsx"
import { MessageForm, type MessageFormProps } from "../../components/MessageForm.tsx"
import { texts, useText } from "../../text/Language.tsx"

const words = texts(
  { ask: "Message", placeholder: "Ask the agent something", stop: "Stop", fresh: "New conversation" },
  {
    ask: "Nachricht",
    placeholder: "Den Agenten etwas fragen",
    stop: "Anhalten",
    fresh: "Neues Gespräch"
  }
)

interface Props {
  readonly draft: MessageFormProps["draft"]
  readonly busy: boolean
  readonly onSend: (message: string, files: ReadonlyArray<File>) => void
  readonly onStop: () => void
  /** Null where there is no conversation to leave behind. */
  readonly onFresh: (() => void) | null
}

export const TryItForm = ({ busy, draft, onFresh, onSend, onStop }: Props) => {
  const t = useText(words)
  return (
    <MessageForm
      draft={draft}
      label={t.ask}
      placeholder={t.placeholder}
      busy={busy ? <Button onPress={onStop}>{t.stop}</Button> : undefined}
      onSend={onSend}
    >
      {onFresh === null ? null : (
        <Button kind="quiet" onPress={onFresh}>
          {t.fresh}
        </Button>
      )}
    </MessageForm>
  )
}
