/** The form of a question to the agent. */
import { Button } from "../../components/Button.tsx"
import { MessageForm, type MessageFormProps } from "../../components/replies/MessageForm.tsx"
import { texts, useText } from "../../text/Language.tsx"

const words = texts(
  { ask: "Message", placeholder: "Ask the agent something", stop: "Stop" },
  { ask: "Nachricht", placeholder: "Den Agenten etwas fragen", stop: "Anhalten" }
)

interface Props {
  readonly draft: MessageFormProps["draft"]
  readonly busy: boolean
  readonly onSend: (message: string, files: ReadonlyArray<File>) => void
  readonly onStop: () => void
}

export const AskForm = ({ busy, draft, onSend, onStop }: Props) => {
  const t = useText(words)
  return (
    <MessageForm
      draft={draft}
      label={t.ask}
      placeholder={t.placeholder}
      busy={busy ? <Button onClick={onStop}>{t.stop}</Button> : undefined}
      onSend={onSend}
    />
  )
}
