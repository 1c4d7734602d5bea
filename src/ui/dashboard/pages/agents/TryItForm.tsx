/** Where a question to the agent is written, with the files that go along. */
import { type FormEvent, type KeyboardEvent, useRef, useState } from "react"
import { attachable, isAttachable, mostAttachments } from "../../api/Conversations.ts"
import { Button } from "../../components/Button.tsx"
import { texts, useText } from "../../text/Language.tsx"
import css from "./TryIt.module.css"

const words = texts(
  {
    ask: "Message",
    placeholder: "Ask the agent something",
    send: "Send",
    stop: "Stop",
    fresh: "New conversation",
    attach: "Attach files",
    attached: "Attached files",
    remove: (name: string) => `Remove ${name}`,
    refused: (name: string) =>
      `${name} cannot be sent: JPEG, PNG, WebP and GIF up to 10 MB, PDF up to 25 MB.`,
    tooMany: "A message takes at most ten files."
  },
  {
    ask: "Nachricht",
    placeholder: "Den Agenten etwas fragen",
    send: "Senden",
    stop: "Anhalten",
    fresh: "Neues Gespräch",
    attach: "Dateien anhängen",
    attached: "Angehängte Dateien",
    remove: (name: string) => `${name} entfernen`,
    refused: (name: string) =>
      `${name} lässt sich nicht senden: JPEG, PNG, WebP und GIF bis 10 MB, PDF bis 25 MB.`,
    tooMany: "Eine Nachricht fasst höchstens zehn Dateien."
  }
)

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

interface Props {
  readonly busy: boolean
  readonly onSend: (message: string, files: ReadonlyArray<File>) => void
  readonly onStop: () => void
  /** Null where there is no conversation to leave behind. */
  readonly onFresh: (() => void) | null
}

export const TryItForm = ({ busy, onFresh, onSend, onStop }: Props) => {
  const t = useText(words)
  const [text, setText] = useState("")
  const [files, setFiles] = useState<ReadonlyArray<File>>([])
  const [problem, setProblem] = useState("")
  const picker = useRef<HTMLInputElement>(null)
  const field = useRef<HTMLTextAreaElement>(null)

  const add = (more: ReadonlyArray<File>) => {
    const bad = more.find((file) => !isAttachable(file))
    const all = [...files, ...more.filter(isAttachable)]
    setFiles(all.slice(0, mostAttachments))
    setProblem(bad === undefined ? (all.length > mostAttachments ? t.tooMany : "") : t.refused(bad.name))
  }
  const send = () => {
    const message = text.trim()
    if (message === "" || busy) return
    setText("")
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
        aria-label={t.ask}
        placeholder={t.placeholder}
        rows={2}
        maxLength={32_000}
        value={text}
        onChange={({ target }) => setText(target.value)}
        onKeyDown={onKeyDown}
      />
      <Files
        files={files}
        onRemove={(file) => {
          setFiles(files.filter((other) => other !== file))
          setProblem("")
          field.current?.focus()
        }}
      />
      <p role="alert" className={css["problem"]} hidden={problem === ""}>
        {problem}
      </p>
      <div className={css["actions"]}>
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
        <Button onPress={() => picker.current?.click()}>{t.attach}</Button>
        <span className={css["choices"]}>
          {onFresh === null ? null : (
            <Button kind="quiet" onPress={onFresh}>
              {t.fresh}
            </Button>
          )}
          {busy ? (
            <Button onPress={onStop}>{t.stop}</Button>
          ) : (
            <Button kind="primary" type="submit">
              {t.send}
            </Button>
          )}
        </span>
      </div>
    </form>
  )
}
