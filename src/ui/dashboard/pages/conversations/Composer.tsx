/** Where the team writes, and what of it has not arrived yet. */
import { useQueryClient } from "@tanstack/react-query"
import { type FormEvent, type KeyboardEvent, useRef, useState } from "react"
import { attachable, isAttachable, mostAttachments, say, type State } from "../../api/Conversations.ts"
import { Button } from "../../components/Button.tsx"
import { everywhere } from "../../text/everywhere.ts"
import { texts, useText } from "../../text/Language.tsx"
import { useReason } from "../../text/useReason.ts"
import css from "./Composer.module.css"

const words = texts(
  {
    reply: "Reply",
    placeholder: "Write to the customer",
    takes: "Sending a message takes the conversation over from the agent.",
    send: "Send",
    sending: "Sending …",
    unsent: "Not sent",
    discard: "Discard",
    attach: "Attach files",
    attached: "Attached files",
    remove: (name: string) => `Remove ${name}`,
    refused: (name: string) =>
      `${name} cannot be sent: JPEG, PNG, WebP and GIF up to 10 MB, PDF up to 25 MB.`,
    tooMany: "A message takes at most ten files."
  },
  {
    reply: "Antwort",
    placeholder: "Dem Kunden schreiben",
    takes: "Wer eine Nachricht sendet, übernimmt das Gespräch vom Agenten.",
    send: "Senden",
    sending: "Wird gesendet …",
    unsent: "Nicht gesendet",
    discard: "Verwerfen",
    attach: "Dateien anhängen",
    attached: "Angehängte Dateien",
    remove: (name: string) => `${name} entfernen`,
    refused: (name: string) =>
      `${name} lässt sich nicht senden: JPEG, PNG, WebP und GIF bis 10 MB, PDF bis 25 MB.`,
    tooMany: "Eine Nachricht fasst höchstens zehn Dateien."
  }
)

interface Draft {
  readonly key: number
  readonly content: string
  readonly files: ReadonlyArray<File>
  /** Why it was not sent; null while it is under way. */
  readonly problem: string | null
}

/** Messages of one conversation on their way. They go one after the other, so that they arrive as they were written. */
export const useDrafts = (id: string) => {
  const reason = useReason()
  const queries = useQueryClient()
  const [drafts, setDrafts] = useState<ReadonlyArray<Draft>>([])
  const count = useRef(0)
  const turn = useRef<Promise<void>>(Promise.resolve())

  const discard = (key: number) => setDrafts((before) => before.filter((draft) => draft.key !== key))
  const deliver = async (key: number, content: string, files: ReadonlyArray<File>) => {
    try {
      await say(id, content, files)
    } catch (problem) {
      const why = reason(problem).sentence
      setDrafts((before) => before.map((draft) => (draft.key === key ? { ...draft, problem: why } : draft)))
      return
    }
    await queries.invalidateQueries({ queryKey: ["conversations"] }).catch(() => undefined)
    discard(key)
  }
  const send = (content: string, files: ReadonlyArray<File>) => {
    const key = (count.current += 1)
    setDrafts((before) => [...before, { key, content, files, problem: null }])
    turn.current = turn.current.then(() => deliver(key, content, files))
  }
  const retry = ({ content, files, key }: Draft) => {
    discard(key)
    send(content, files)
  }
  return { drafts, send, retry, discard }
}

type Drafts = ReturnType<typeof useDrafts>

/** The messages that have not arrived, after those that have. */
export const Underway = ({ discard, drafts, retry }: Drafts) => {
  const t = useText(words)
  const common = useText(everywhere)
  return drafts.map((draft) => (
    <div key={draft.key} className={css["draft"]}>
      {draft.content === "" ? null : <p className={css["plain"]}>{draft.content}</p>}
      {draft.files.length === 0 ? null : (
        <span className={css["soft"]}>{draft.files.map(({ name }) => name).join(", ")}</span>
      )}
      {draft.problem === null ? (
        <span className={css["soft"]}>{t.sending}</span>
      ) : (
        <div role="alert" className={css["unsent"]}>
          <strong>{t.unsent}</strong>
          <span>{draft.problem}</span>
          <span className={css["choices"]}>
            <Button onPress={() => retry(draft)}>{common.retry}</Button>
            <Button kind="quiet" onPress={() => discard(draft.key)}>
              {t.discard}
            </Button>
          </span>
        </div>
      )}
    </div>
  ))
}

export const Composer = ({ send, state }: Pick<Drafts, "send"> & { readonly state: State }) => {
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
  const remove = (file: File) => {
    setFiles(files.filter((other) => other !== file))
    setProblem("")
    field.current?.focus()
  }
  const submit = () => {
    const content = text.trim()
    if (content === "" && files.length === 0) return
    setText("")
    setFiles([])
    setProblem("")
    send(content, files)
  }
  const onSubmit = (event: FormEvent) => {
    event.preventDefault()
    submit()
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return
    event.preventDefault()
    submit()
  }
  return (
    <form className={css["form"]} onSubmit={onSubmit}>
      <textarea
        ref={field}
        aria-label={t.reply}
        placeholder={t.placeholder}
        rows={2}
        maxLength={32_000}
        value={text}
        onChange={({ target }) => setText(target.value)}
        onKeyDown={onKeyDown}
        onPaste={(event) => {
          const pasted = [...event.clipboardData.files]
          if (pasted.length === 0) return
          event.preventDefault()
          add(pasted)
        }}
      />
      {files.length === 0 ? null : (
        <ul className={css["files"]} aria-label={t.attached}>
          {files.map((file, place) => (
            <li key={`${place} ${file.name}`}>
              {file.name}
              <Button kind="quiet" aria-label={t.remove(file.name)} onPress={() => remove(file)}>
                ×
              </Button>
            </li>
          ))}
        </ul>
      )}
      <p role="alert" className={css["problem"]} hidden={problem === ""}>
        {problem}
      </p>
      <div className={css["foot"]}>
        <span className={css["soft"]}>{state === "HUMAN_ACTIVE" ? "" : t.takes}</span>
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
          <Button onPress={() => picker.current?.click()}>{t.attach}</Button>
          <Button kind="primary" type="submit">
            {t.send}
          </Button>
        </span>
      </div>
    </form>
  )
}
