/** The messages of a test chat, a question of the user or a reply, with their actions. */
import { Check, Copy, Pencil, RotateCcw } from "lucide-react"
import { type KeyboardEvent, useEffect, useRef, useState } from "react"
import { isComposing } from "../../../inputEvents.ts"
import { Button } from "../../components/Button.tsx"
import { CitationChip } from "../../components/replies/CitationChip.tsx"
import { Prose } from "../../components/replies/Prose.tsx"
import { SaveTestCase } from "../../components/replies/SaveTestCase.tsx"
import { useCopy } from "../../components/useCopy.ts"
import { commonTexts } from "../../text/commonTexts.ts"
import { texts, useText } from "../../text/Language.tsx"
import css from "./Chat.module.css"
import type { Message } from "./ChatMessage.ts"

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
  const t = useText(commonTexts)
  const [copied, copy] = useCopy()
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

interface EditQuestionProps {
  readonly text: string
  readonly onSend: (text: string) => void
  readonly onCancel: () => void
}

const EditQuestion = ({ onCancel, onSend, text }: EditQuestionProps) => {
  const t = useText(words)
  const common = useText(commonTexts)
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
    if (isComposing(event.nativeEvent)) return
    if (event.key === "Escape") onCancel()
    if (event.key !== "Enter" || event.shiftKey) return
    event.preventDefault()
    send()
  }
  return (
    <div className={css["edit"]}>
      <textarea
        ref={field}
        dir="auto"
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
  /** Null while the question cannot be asked again. */
  readonly onAskAgain: ((text: string) => void) | null
}

export const Question = ({ message, onAskAgain }: QuestionProps) => {
  const t = useText(words)
  const [isEditing, setEditing] = useState(false)
  const { files, text } = message
  return (
    <article className={css["own"]} aria-label={t.you}>
      {isEditing && onAskAgain !== null ? (
        <EditQuestion
          text={text}
          onCancel={() => setEditing(false)}
          onSend={(edited) => {
            setEditing(false)
            onAskAgain(edited)
          }}
        />
      ) : (
        <p className={css["bubble"]} dir="auto">
          {text}
        </p>
      )}
      {files.length === 0 ? null : <span className={css["soft"]}>{files.join(", ")}</span>}
      {onAskAgain === null || isEditing ? null : (
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
  /** The run of the reply; null if unknown. */
  readonly runId: string | null
  /** True while the reply is being received. */
  readonly streaming: boolean
  readonly mayChange: boolean
  readonly isEvidenceShown: boolean
  /** Null while the question cannot be asked again. */
  readonly onAskAgain: (() => void) | null
  /** Null if there is no evidence pane. */
  readonly onShowEvidence: ((index: number | null) => void) | null
}

export const Reply = ({
  agentId,
  isEvidenceShown,
  mayChange,
  message,
  name,
  onAskAgain,
  onShowEvidence,
  runId,
  streaming
}: ReplyProps) => {
  const t = useText(words)
  const { citations, isDone, text } = message
  return (
    <article className={css["reply"]} aria-label={name} data-shown={isEvidenceShown ? "" : undefined}>
      <span className={css["author"]}>{name}</span>
      <Prose
        text={text}
        streaming={streaming}
        citation={(index) => {
          const citation = citations.find((one) => one.index === index)
          return citation === undefined ? null : (
            <CitationChip
              citation={citation}
              {...(onShowEvidence === null ? {} : { onShow: onShowEvidence })}
            />
          )
        }}
      />
      {streaming || text === "" ? null : (
        <div className={css["actions"]}>
          <CopyMarkdown text={text} />
          {onAskAgain === null ? null : (
            <Button kind="quiet" onClick={onAskAgain}>
              <RotateCcw {...icon} />
              {t.retry}
            </Button>
          )}
          {onShowEvidence === null || isEvidenceShown ? null : (
            <Button kind="quiet" onClick={() => onShowEvidence(null)}>
              {t.evidence}
            </Button>
          )}
          {runId === null || !mayChange || !isDone ? null : (
            <SaveTestCase key={runId} agentId={agentId} runId={runId} />
          )}
        </div>
      )}
    </article>
  )
}
