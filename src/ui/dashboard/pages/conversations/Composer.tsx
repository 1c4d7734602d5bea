/** Where the team writes, and what of it has not arrived yet. */
import { useQueryClient } from "@tanstack/react-query"
import { useRef, useState } from "react"
import { say, type State } from "../../api/Conversations.ts"
import { Button } from "../../components/Button.tsx"
import { MessageForm } from "../../components/MessageForm.tsx"
import { everywhere } from "../../text/everywhere.ts"
import { texts, useText } from "../../text/Language.tsx"
import { useReason } from "../../text/useReason.ts"
import css from "./Composer.module.css"

const words = texts(
  {
    reply: "Reply",
    placeholder: "Write to the customer",
    takes: "Sending a message takes the conversation over from the agent.",
    sending: "Sending …",
    unsent: "Not sent",
    discard: "Discard"
  },
  {
    reply: "Antwort",
    placeholder: "Dem Kunden schreiben",
    takes: "Wer eine Nachricht sendet, übernimmt das Gespräch vom Agenten.",
    sending: "Wird gesendet …",
    unsent: "Nicht gesendet",
    discard: "Verwerfen"
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
  return (
    <div className={css["write"]}>
      <MessageForm
        label={t.reply}
        placeholder={t.placeholder}
        note={state === "HUMAN_ACTIVE" ? "" : t.takes}
        wordless
        onSend={send}
      />
    </div>
  )
}
