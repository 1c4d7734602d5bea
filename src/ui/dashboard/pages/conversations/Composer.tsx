/** Where the team writes, and what of it has not arrived yet. */
import { useQueryClient } from "@tanstack/react-query"
import { type FormEvent, type KeyboardEvent, useRef, useState } from "react"
import { ApiError } from "../../api/Client.ts"
import { say, type State } from "../../api/Conversations.ts"
import { Button } from "../../components/Button.tsx"
import { everywhere } from "../../text/everywhere.ts"
import { texts, useText } from "../../text/Language.tsx"
import css from "./Composer.module.css"

const words = texts(
  {
    reply: "Reply",
    placeholder: "Write to the customer",
    takes: "Sending a message takes the conversation over from the agent.",
    send: "Send",
    sending: "Sending …",
    unsent: "Not sent",
    discard: "Discard"
  },
  {
    reply: "Antwort",
    placeholder: "Dem Kunden schreiben",
    takes: "Wer eine Nachricht sendet, übernimmt das Gespräch vom Agenten.",
    send: "Senden",
    sending: "Wird gesendet …",
    unsent: "Nicht gesendet",
    discard: "Verwerfen"
  }
)

interface Draft {
  readonly key: number
  readonly content: string
  /** Why it was not sent; null while it is under way. */
  readonly problem: string | null
}

/** Messages of one conversation on their way. They go one after the other, so that they arrive as they were written. */
export const useDrafts = (id: string) => {
  const common = useText(everywhere)
  const queries = useQueryClient()
  const [drafts, setDrafts] = useState<ReadonlyArray<Draft>>([])
  const count = useRef(0)
  const turn = useRef<Promise<void>>(Promise.resolve())

  const discard = (key: number) => setDrafts((before) => before.filter((draft) => draft.key !== key))
  const deliver = async (key: number, content: string) => {
    try {
      await say(id, content)
    } catch (problem) {
      const why = problem instanceof ApiError ? problem.message : common.unreachable
      setDrafts((before) => before.map((draft) => (draft.key === key ? { ...draft, problem: why } : draft)))
      return
    }
    await queries.invalidateQueries({ queryKey: ["conversations"] }).catch(() => undefined)
    discard(key)
  }
  const send = (content: string) => {
    const key = (count.current += 1)
    setDrafts((before) => [...before, { key, content, problem: null }])
    turn.current = turn.current.then(() => deliver(key, content))
  }
  const retry = ({ content, key }: Draft) => {
    discard(key)
    send(content)
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
      <p className={css["plain"]}>{draft.content}</p>
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
  const submit = () => {
    const content = text.trim()
    if (content === "") return
    setText("")
    send(content)
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
        aria-label={t.reply}
        placeholder={t.placeholder}
        rows={2}
        maxLength={32_000}
        value={text}
        onChange={({ target }) => setText(target.value)}
        onKeyDown={onKeyDown}
      />
      <div className={css["foot"]}>
        <span className={css["soft"]}>{state === "HUMAN_ACTIVE" ? "" : t.takes}</span>
        <Button kind="primary" type="submit">
          {t.send}
        </Button>
      </div>
    </form>
  )
}
