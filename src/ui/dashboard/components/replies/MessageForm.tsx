/** A form for a message with files. Enter sends it, Shift and Enter insert a line break. */
import { Paperclip } from "lucide-react"
import {
  type FormEvent,
  type KeyboardEvent,
  type ReactNode,
  type RefObject,
  useId,
  useRef,
  useState
} from "react"
import { acceptedTypes, isTooLong, maxAttachments } from "../../../MessageLimits.ts"
import { isComposing, pastedFiles } from "../../../inputEvents.ts"
import { isAttachable } from "../../api/Conversations.ts"
import { useDraft } from "../../forms/useDraft.ts"
import { texts, useText } from "../../text/Language.tsx"
import { Button } from "../Button.tsx"
import css from "./MessageForm.module.css"

const words = texts(
  {
    send: "Send",
    snippets: "Canned replies",
    attach: "Attach files",
    attached: "Attached files",
    remove: (name: string) => `Remove ${name}`,
    refused: (name: string) =>
      `${name} cannot be sent: JPEG, PNG, WebP and GIF up to 10 MB, PDF up to 25 MB.`,
    tooMany: "A message takes at most ten files.",
    tooLong: "The message is too long. It may have 32,000 characters."
  },
  {
    send: "Senden",
    snippets: "Textbausteine",
    attach: "Dateien anhängen",
    attached: "Angehängte Dateien",
    remove: (name: string) => `${name} entfernen`,
    refused: (name: string) =>
      `${name} lässt sich nicht senden: JPEG, PNG, WebP und GIF bis 10 MB, PDF bis 25 MB.`,
    tooMany: "Eine Nachricht fasst höchstens zehn Dateien.",
    tooLong: "Die Nachricht ist zu lang. Sie darf 32.000 Zeichen haben."
  }
)

const emptyForm = { text: "" }

interface FilesProps {
  readonly files: ReadonlyArray<File>
  readonly onRemove: (file: File) => void
}

const Files = ({ files, onRemove }: FilesProps) => {
  const t = useText(words)
  return files.length === 0 ? null : (
    <ul className={css["files"]} aria-label={t.attached}>
      {files.map((file, index) => (
        <li key={`${index} ${file.name}`}>
          {file.name}
          <Button kind="quiet" aria-label={t.remove(file.name)} onClick={() => onRemove(file)}>
            ×
          </Button>
        </li>
      ))}
    </ul>
  )
}

/** A text that is inserted by typing `/` and its name. */
export interface Snippet {
  readonly name: string
  readonly text: string
}

/** Maximum number of suggested snippets. */
const maxSnippets = 6

/** A `/name` directly before the caret. */
const snippetPattern = /(?:^|\s)\/([\p{L}\p{N}_-]*)$/u

interface SnippetListProps {
  readonly id: string
  readonly snippets: ReadonlyArray<Snippet>
  readonly active: number
  readonly onChoose: (snippet: Snippet) => void
}

const SnippetList = ({ active, id, onChoose, snippets }: SnippetListProps) => {
  const t = useText(words)
  return (
    <ul id={id} role="listbox" aria-label={t.snippets} className={css["offered"]}>
      {snippets.map((snippet, index) => (
        <li
          key={snippet.name}
          id={`${id}-${index}`}
          role="option"
          aria-selected={index === active}
          // Keeps the focus in the field.
          onPointerDown={(event) => {
            event.preventDefault()
            onChoose(snippet)
          }}
        >
          <strong>/{snippet.name}</strong> <span>{snippet.text}</span>
        </li>
      ))}
    </ul>
  )
}

export interface MessageFormProps {
  /** The name of this draft in the list of unsent drafts. */
  readonly draft: { readonly name: string; readonly title: string }
  /** Label of the field. */
  readonly label: string
  readonly placeholder: string
  /** A note above the send button. */
  readonly note?: string
  /** Whether files may be attached; true by default. */
  readonly allowsFiles?: boolean
  /** Whether files may be sent without a text. */
  readonly allowsEmptyText?: boolean
  /** The label of the send button; "Send" by default. */
  readonly action?: string
  /** Shown instead of the send button while sending is not possible. */
  readonly busy?: ReactNode
  readonly onSend: (message: string, files: ReadonlyArray<File>) => void
  /** Texts that are suggested after a `/`. */
  readonly snippets?: ReadonlyArray<Snippet>
  /** The field, for callers that focus it. */
  readonly field?: RefObject<HTMLTextAreaElement | null>
  /** Called with each change of the text. */
  readonly onTextChange?: () => void
  /** Further controls, before the send button. */
  readonly children?: ReactNode
}

export const MessageForm = ({
  action,
  allowsFiles = true,
  busy,
  children,
  draft: { name, title },
  field: givenField,
  label,
  note,
  onSend,
  onTextChange,
  placeholder,
  snippets = [],
  allowsEmptyText = false
}: MessageFormProps) => {
  const t = useText(words)
  const draft = useDraft({ name, title, stored: emptyForm })
  const { text } = draft.value
  const [files, setFiles] = useState<ReadonlyArray<File>>([])
  const [problem, setProblem] = useState("")
  const picker = useRef<HTMLInputElement>(null)
  const ownField = useRef<HTMLTextAreaElement>(null)
  const field = givenField ?? ownField
  const listId = useId()
  const [caret, setCaret] = useState(0)
  const [active, setActive] = useState(0)
  const [dismissed, setDismissed] = useState("")
  const typedName = snippets.length === 0 ? undefined : snippetPattern.exec(text.slice(0, caret))?.[1]
  const matchingSnippets =
    typedName === undefined || dismissed === text
      ? []
      : snippets
          .filter((one) => one.name.toLowerCase().startsWith(typedName.toLowerCase()))
          .slice(0, maxSnippets)
  const activeIndex = Math.min(active, Math.max(0, matchingSnippets.length - 1))
  const insert = (snippet: Snippet) => {
    const before = text.slice(0, caret - (typedName?.length ?? 0) - 1) + snippet.text
    draft.change({ text: before + text.slice(caret) })
    setCaret(before.length)
    setActive(0)
    field.current?.focus()
  }

  const add = (newFiles: ReadonlyArray<File>) => {
    const refusedFile = newFiles.find((file) => !isAttachable(file))
    const allFiles = [...files, ...newFiles.filter(isAttachable)]
    setFiles(allFiles.slice(0, maxAttachments))
    setProblem(
      refusedFile === undefined
        ? allFiles.length > maxAttachments
          ? t.tooMany
          : ""
        : t.refused(refusedFile.name)
    )
  }
  const remove = (file: File) => {
    setFiles(files.filter((other) => other !== file))
    setProblem("")
    field.current?.focus()
  }
  const send = () => {
    const message = text.trim()
    const isEmpty = message === "" && !(allowsEmptyText && files.length > 0)
    if (isEmpty || busy !== undefined) return
    if (isTooLong(message)) return setProblem(t.tooLong)
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
    const snippet = matchingSnippets[activeIndex]
    if (snippet !== undefined && !isComposing(event.nativeEvent)) {
      const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0
      if (step !== 0) setActive((activeIndex + step + matchingSnippets.length) % matchingSnippets.length)
      else if (event.key === "Escape") setDismissed(text)
      else if (event.key === "Tab" || (event.key === "Enter" && !event.shiftKey)) insert(snippet)
      else return
      event.preventDefault()
      return
    }
    if (event.key !== "Enter" || event.shiftKey || isComposing(event.nativeEvent)) return
    event.preventDefault()
    send()
  }
  return (
    <form className={css["form"]} onSubmit={onSubmit}>
      {matchingSnippets.length === 0 ? null : (
        <SnippetList id={listId} snippets={matchingSnippets} active={activeIndex} onChoose={insert} />
      )}
      <textarea
        ref={field}
        dir="auto"
        aria-label={label}
        placeholder={placeholder}
        rows={2}
        value={text}
        {...(matchingSnippets.length === 0
          ? {}
          : {
              "aria-autocomplete": "list",
              "aria-haspopup": "listbox",
              "aria-controls": listId,
              "aria-activedescendant": `${listId}-${activeIndex}`
            })}
        onSelect={({ currentTarget }) => setCaret(currentTarget.selectionStart)}
        onChange={({ target }) => {
          draft.change({ text: target.value })
          if (problem === t.tooLong) setProblem("")
          setCaret(target.selectionStart)
          onTextChange?.()
        }}
        onKeyDown={onKeyDown}
        onPaste={(event) => {
          const pasted = pastedFiles(event.clipboardData)
          if (pasted.length === 0 || !allowsFiles) return
          event.preventDefault()
          add(pasted)
        }}
      />
      <Files files={files} onRemove={remove} />
      <p role="alert" className={css["problem"]} hidden={problem === ""}>
        {problem}
      </p>
      <div className={css["foot"]}>
        <span className={css["tools"]}>
          <input
            ref={picker}
            type="file"
            multiple
            hidden
            accept={acceptedTypes}
            onChange={({ currentTarget }) => {
              add([...(currentTarget.files ?? [])])
              currentTarget.value = ""
            }}
          />
          {allowsFiles ? (
            <Button kind="quiet" icon aria-label={t.attach} onClick={() => picker.current?.click()}>
              <Paperclip aria-hidden size={16} strokeWidth={1.75} />
            </Button>
          ) : null}
          {children}
        </span>
        <span className={css["note"]}>{note}</span>
        <span>
          {busy ?? (
            <Button kind="primary" type="submit">
              {action ?? t.send}
            </Button>
          )}
        </span>
      </div>
    </form>
  )
}
