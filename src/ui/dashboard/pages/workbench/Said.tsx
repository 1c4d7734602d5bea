/** One message of a test chat, with its actions. */
import { Check, Copy, Pencil, RotateCcw } from "lucide-react"
import { type KeyboardEvent, useEffect, useRef, useState } from "react"
import { Button } from "../../components/Button.tsx"
import { CitationChip } from "../../components/replies/CitationChip.tsx"
import { Prose } from "../../components/replies/Prose.tsx"
import { SaveCase } from "../../components/replies/SaveCase.tsx"
import { useCopied } from "../../components/useCopied.ts"
import { everywhere } from "../../text/everywhere.ts"
import { texts, useText } from "../../text/Language.tsx"
import css from "./Chat.module.css"
import type { Message } from "./TalkMessage.ts"

const words = texts(
  {
    you: "You",
    retry: "Ask again",
    edit: "Edit and resend",
    edited: "The question in other words",
    resend: "Send again",
    evidence: "Evidence"
  },
  {
    you: "Sie",
    retry: "Noch einmal fragen",
    edit: "Bearbeiten und neu senden",
    edited: "Die Frage in anderen Worten",
    resend: "Neu senden",
    evidence: "Belege"
  }
)

const icon = { "aria-hidden": true, size: 15, strokeWidth: 1.75 } as const

const CopyMarkdown = ({ text }: { readonly text: string }) => {
  const t = useText(everywhere)
  const [copied, copy] = useCopied()
  return (
    <>
      <Button kind="quiet" onClick={() => copy(text)}>
        {copied ? <Check {...icon} /> : <Copy {...icon} />}
        {copied ? t.copied : t.copy}
      </Button>
      <span role="status" className="visually-hidden">
        {copied ? t.copied : ""}
      </span>
    </>
  )
}

interface EditProps {
  readonly text: string
  readonly onSend: (text: string) => void
  readonly onCancel: () => void
}

const Edit = ({ onCancel, onSend, text }: EditProps) => {
  const t = useText(words)
  const common = useText(everywhere)
  const [value, setValue] = useState(text)
  const field = useRef<HTMLTextAreaElement>(null)
  useEffect(() => {
    field.current?.focus()
    field.current?.setSelectionRange(text.length, text.length)
  }, [text])
  const send = () => {
    if (value.trim() !== "") onSend(value.trim())
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape") onCancel()
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return
    event.preventDefault()
    send()
  }
  return (
    <div className={css["edit"]}>
      <textarea
        ref={field}
        aria-label={t.edited}
        rows={3}
        maxLength={32_000}
        value={value}
        onChange={({ target }) => setValue(target.value)}
        onKeyDown={onKeyDown}
      />
      <div className={css["editActions"]}>
        <Button onClick={onCancel}>{common.cancel}</Button>
        <Button kind="primary" onClick={send}>
          {t.resend}
        </Button>
      </div>
    </div>
  )
}

interface QuestionProps {
  readonly message: Message
  /** Null while nothing can be asked again. */
  readonly onAgain: ((text: string) => void) | null
}

export const Question = ({ message, onAgain }: QuestionProps) => {
  const t = useText(words)
  const [isEditing, setEditing] = useState(false)
  const { files, text } = message
  return (
    <article className={css["own"]} aria-label={t.you}>
      {isEditing && onAgain !== null ? (
        <Edit
          text={text}
          onCancel={() => setEditing(false)}
          onSend={(edited) => {
            setEditing(false)
            onAgain(edited)
          }}
        />
      ) : (
        <p className={css["bubble"]}>{text}</p>
      )}
      {files.length === 0 ? null : <span className={css["soft"]}>{files.join(", ")}</span>}
      {/* Files are not at hand any more. */}
      {onAgain === null || isEditing || files.length > 0 ? null : (
        <div className={css["actions"]}>
          <Button kind="quiet" icon aria-label={t.edit} onClick={() => setEditing(true)}>
            <Pencil {...icon} />
          </Button>
        </div>
      )}
    </article>
  )
}

interface ReplyProps {
  readonly message: Message
  readonly name: string
  readonly agentId: string
  /** Of its turn; null if unknown. */
  readonly runId: string | null
  /** More is to come. */
  readonly streaming: boolean
  readonly mayChange: boolean
  readonly isShown: boolean
  /** Null while nothing can be asked again. */
  readonly onAgain: (() => void) | null
  /** Null if there is no evidence pane. */
  readonly onShow: ((index: number | null) => void) | null
}

export const Reply = ({
  agentId,
  isShown,
  mayChange,
  message,
  name,
  onAgain,
  onShow,
  runId,
  streaming
}: ReplyProps) => {
  const t = useText(words)
  const { citations, isDone, text } = message
  return (
    <article className={css["reply"]} aria-label={name} data-shown={isShown ? "" : undefined}>
      <span className={css["author"]}>{name}</span>
      <Prose
        text={text}
        streaming={streaming}
        citation={(index) => {
          const citation = citations.find((one) => one.index === index)
          return citation === undefined ? null : (
            <CitationChip citation={citation} {...(onShow === null ? {} : { onShow })} />
          )
        }}
      />
      {streaming || text === "" ? null : (
        <div className={css["actions"]}>
          <CopyMarkdown text={text} />
          {onAgain === null ? null : (
            <Button kind="quiet" onClick={onAgain}>
              <RotateCcw {...icon} />
              {t.retry}
            </Button>
          )}
          {onShow === null || isShown ? null : (
            <Button kind="quiet" onClick={() => onShow(null)}>
              {t.evidence}
            </Button>
          )}
          {runId === null || !mayChange || !isDone ? null : (
            <SaveCase key={runId} agentId={agentId} runId={runId} />
          )}
        </div>
      )}
    </article>
  )
}
