/** Where a message is written, with the files that go along: Enter sends, Shift and Enter begins a line. */
import { type FormEvent, type KeyboardEvent, type ReactNode, useRef, useState } from "react"
import { attachable, isAttachable, maxAttachments } from "../api/Conversations.ts"
import { useDraft } from "../forms/useDraft.ts"
import { texts, useText } from "../text/Language.tsx"
import { Button } from "./Button.tsx"
import css from "./MessageForm.module.css"

const words = texts(
  {
    send: "Send",
    attach: "Attach files",
    attached: "Attached files",
    remove: (name: string) => `Remove ${name}`,
    refused: (name: string) =>
      `${name} cannot be sent: JPEG, PNG, WebP and GIF up to 10 MB, PDF up to 25 MB.`,
    tooMany: "A message takes at most ten files."
  },
  {
    send: "Senden",
    attach: "Dateien anhängen",
    attached: "Angehängte Dateien",
    remove: (name: string) => `${name} entfernen`,
    refused: (name: string) =>
      `${name} lässt sich nicht senden: JPEG, PNG, WebP und GIF bis 10 MB, PDF bis 25 MB.`,
    tooMany: "Eine Nachricht fasst höchstens zehn Dateien."
  }
)

const nothing = { text: "" }

interface FilesProps {
  readonly files: ReadonlyArray<File>
  readonly onRemove: (file: File) => void
}

const Files = ({ files, onRemove }: FilesProps) => {
  const t = useText(words)
  return files.length === 0 ? null : (
    <ul className={css["files"]} aria-label={t.attached}>
      {files.map((file, place) => (
        <li key={`${place} ${file.name}`}>
          {file.name}
          <Button kind="quiet" aria-label={t.remove(file.name)} onPress={() => onRemove(file)}>
            ×
          </Button>
        </li>
      ))}
    </ul>
  )
}

export interface MessageFormProps {
  /** The name of this draft in the list of drafts that were not sent. */
  readonly draft: { readonly name: string; readonly title: string }
  /** Of the field. */
  readonly label: string
  readonly placeholder: string
  /** What is to be known before it is sent. */
  readonly note?: string
  /** Whether files may go along; they may by default. */
  readonly attaching?: boolean
  /** Whether files may go without a word. */
  readonly wordless?: boolean
  /** In place of the way to send, while there is none: what is written stays. */
  readonly busy?: ReactNode
  readonly onSend: (message: string, files: ReadonlyArray<File>) => void
  /** Further choices, before the way to send. */
  readonly children?: ReactNode
}

export const MessageForm = ({
  attaching = true,
  busy,
  children,
  draft: { name, title },
  label,
  note,
  onSend,
  placeholder,
  wordless = false
}: MessageFormProps) => {
  const t = useText(words)
  const draft = useDraft({ name, title, stored: nothing })
  const { text } = draft.value
  const [files, setFiles] = useState<ReadonlyArray<File>>([])
  const [problem, setProblem] = useState("")
  const picker = useRef<HTMLInputElement>(null)
  const field = useRef<HTMLTextAreaElement>(null)

  const add = (more: ReadonlyArray<File>) => {
    const bad = more.find((file) => !isAttachable(file))
    const all = [...files, ...more.filter(isAttachable)]
    setFiles(all.slice(0, maxAttachments))
    setProblem(bad === undefined ? (all.length > maxAttachments ? t.tooMany : "") : t.refused(bad.name))
  }
  const remove = (file: File) => {
    setFiles(files.filter((other) => other !== file))
    setProblem("")
    field.current?.focus()
  }
  const send = () => {
    const message = text.trim()
    const empty = message === "" && !(wordless && files.length > 0)
    if (empty || busy !== undefined) return
    draft.discard()
    setFiles([])
    setProblem("")
    onSend(message, files)
    field.current?.focus()
  }
  const onSubmit = (event: FormEvent) => {
    event.preventDefault()
    send()
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return
    event.preventDefault()
    send()
  }
  return (
    <form className={css["form"]} onSubmit={onSubmit}>
      <textarea
        ref={field}
        aria-label={label}
        placeholder={placeholder}
        rows={2}
        maxLength={32_000}
        value={text}
        onChange={({ target }) => draft.change({ text: target.value })}
        onKeyDown={onKeyDown}
        onPaste={(event) => {
          const pasted = [...event.clipboardData.files]
          if (pasted.length === 0 || !attaching) return
          event.preventDefault()
          add(pasted)
        }}
      />
      <Files files={files} onRemove={remove} />
      <p role="alert" className={css["problem"]} hidden={problem === ""}>
        {problem}
      </p>
      <div className={css["foot"]}>
        <span className={css["note"]}>{note}</span>
        <span className={css["choices"]}>
          <input
            ref={picker}
            type="file"
            multiple
            hidden
            accept={attachable}
            onChange={({ currentTarget }) => {
              add([...(currentTarget.files ?? [])])
              currentTarget.value = ""
            }}
          />
          {attaching ? <Button onPress={() => picker.current?.click()}>{t.attach}</Button> : null}
          {children}
          {busy ?? (
            <Button kind="primary" type="submit">
              {t.send}
            </Button>
          )}
        </span>
      </div>
    </form>
  )
}
