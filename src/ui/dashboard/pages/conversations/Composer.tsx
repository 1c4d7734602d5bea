/** The team's message form, and its unsent messages. */
import { useQuery, useQueryClient } from "@tanstack/react-query"
import { useEffect, useRef, useState, useSyncExternalStore } from "react"
import { sendMessage, type State } from "../../api/Conversations.ts"
import { addNote, inboxItems, reportTyping } from "../../api/Inbox.ts"
import { Button } from "../../components/Button.tsx"
import { MessageForm } from "../../components/replies/MessageForm.tsx"
import { useShortcuts } from "../../window/useShortcuts.ts"
import { useLeaveWarning } from "../../forms/useLeaveWarning.ts"
import { everywhere } from "../../text/everywhere.ts"
import { texts, useText } from "../../text/Language.tsx"
import { useReason } from "../../text/useReason.ts"
import { CannedReplies } from "./CannedReplies.tsx"
import css from "./Composer.module.css"

const words = texts(
  {
    mode: "What is written",
    reply: "Reply",
    note: "Note",
    noteOn: (customer: string) => `Note on ${customer}`,
    notePlaceholder: "Write to your team",
    noteHelp: "Only your team sees it: neither the customer nor the agent does.",
    replyTo: (customer: string) => `Reply to ${customer}`,
    placeholder: "Write to the customer",
    takes: "Sending a message takes the conversation over from the agent.",
    sending: "Sending …",
    unsent: "Not sent",
    discard: "Discard"
  },
  {
    mode: "Was geschrieben wird",
    reply: "Antwort",
    note: "Notiz",
    noteOn: (customer: string) => `Notiz zu ${customer}`,
    notePlaceholder: "Dem Team schreiben",
    noteHelp: "Nur Ihr Team sieht sie: weder der Kunde noch der Agent.",
    replyTo: (customer: string) => `Antwort an ${customer}`,
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
  /** Why it was not sent; null while it is being sent. */
  readonly problem: string | null
  /** Only for the team. */
  readonly isNote: boolean
}

/** Messages of one conversation that are being sent. They survive a change of page, but not of the window. */
class Outbox {
  private drafts: ReadonlyArray<Draft> = []
  private count = 0
  /** They are sent one after the other, to keep their order. */
  private turn: Promise<void> = Promise.resolve()
  private readonly listeners = new Set<() => void>()

  readonly now = (): ReadonlyArray<Draft> => this.drafts

  readonly listen = (listener: () => void): (() => void) => {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  readonly discard = (key: number): void => this.set(this.drafts.filter((draft) => draft.key !== key))

  /** `deliver` returns an error message, or null if it was sent. */
  send(draft: Pick<Draft, "content" | "files" | "isNote">, deliver: () => Promise<string | null>): void {
    this.count += 1
    const key = this.count
    this.set([...this.drafts, { ...draft, key, problem: null }])
    this.turn = this.turn.then(async () => {
      const problem = await deliver()
      if (problem === null) return this.discard(key)
      this.set(this.drafts.map((one) => (one.key === key ? { ...one, problem } : one)))
    })
  }

  private set(drafts: ReadonlyArray<Draft>): void {
    this.drafts = drafts
    for (const listener of this.listeners) listener()
  }
}

const outboxes = new Map<string, Outbox>()

const outboxOf = (userId: string, id: string): Outbox => {
  const key = `${userId} ${id}`
  const outbox = outboxes.get(key) ?? new Outbox()
  outboxes.set(key, outbox)
  return outbox
}

export const useDrafts = (userId: string, id: string) => {
  const reason = useReason()
  const queries = useQueryClient()
  const outbox = outboxOf(userId, id)
  const drafts = useSyncExternalStore(outbox.listen, outbox.now)
  useLeaveWarning(drafts.length > 0)

  /** Null once it has arrived, else why it has not. */
  const deliver = async (
    content: string,
    files: ReadonlyArray<File>,
    isNote: boolean
  ): Promise<string | null> => {
    try {
      await (isNote ? addNote(id, content) : sendMessage(id, content, files))
    } catch (problem) {
      return reason(problem).sentence
    }
    await queries.invalidateQueries({ queryKey: ["conversations"] }).catch(() => undefined)
    return null
  }
  const send = (content: string, files: ReadonlyArray<File>, isNote = false) =>
    outbox.send({ content, files, isNote }, () => deliver(content, files, isNote))
  const note = (content: string) => send(content, [], true)
  const retry = ({ content, files, isNote, key }: Draft) => {
    outbox.discard(key)
    send(content, files, isNote)
  }
  return { drafts, send, note, retry, discard: outbox.discard }
}

type Drafts = ReturnType<typeof useDrafts>

/** Unsent messages after sent ones. */
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
            <Button onClick={() => retry(draft)}>{common.retry}</Button>
            <Button kind="quiet" onClick={() => discard(draft.key)}>
              {t.discard}
            </Button>
          </span>
        </div>
      )}
    </div>
  ))
}

/** Interval of typing notifications to the customer, in milliseconds. */
const tellEveryMs = 3_000

interface ComposerProps extends Pick<Drafts, "send" | "note"> {
  readonly id: string
  readonly customer: string
  /** The customer's name; null where it is unknown. */
  readonly known: string | null
  readonly state: State
}

export const Composer = ({ customer, id, known, note, send, state }: ComposerProps) => {
  const t = useText(words)
  const [mode, setMode] = useState<"reply" | "note">("reply")
  // In a closed conversation the team can still write notes.
  const isNote = mode === "note" || state === "CLOSED"
  const field = useRef<HTMLTextAreaElement>(null)
  const [asked, setAsked] = useState(0)
  // The field of the other mode is there only after it is drawn.
  useEffect(() => {
    if (asked > 0) field.current?.focus()
  }, [asked])
  const write = (next: "reply" | "note") => {
    setMode(next)
    setAsked(asked + 1)
  }
  useShortcuts({ r: () => write("reply"), n: () => write("note") })
  const toldAt = useRef(0)
  const tell = () => {
    const now = Date.now()
    // While the agent answers, the customer is not shown that the team is typing.
    if (state === "AI_ACTIVE" || now - toldAt.current < tellEveryMs) return
    toldAt.current = now
    reportTyping(id).catch(() => undefined)
  }
  const { data: items } = useQuery(inboxItems)
  const snippets = (items?.replies ?? []).map(({ content, shortcut }) => ({
    name: shortcut,
    // A name such as "$&" is no pattern.
    text: content.replaceAll("{{name}}", () => known ?? "").replaceAll(/[ \t]+(?=[,.!?;:]|$)/gm, "")
  }))
  return (
    <div className={`${css["write"]} ${isNote ? css["private"] : ""}`}>
      <div role="group" aria-label={t.mode} className={css["modes"]}>
        {state === "CLOSED" ? null : (
          <button type="button" aria-pressed={!isNote} onClick={() => setMode("reply")}>
            {t.reply}
          </button>
        )}
        <button type="button" aria-pressed={isNote} onClick={() => setMode("note")}>
          {t.note}
        </button>
      </div>
      {isNote ? (
        <MessageForm
          key="note"
          draft={{ name: `note.${id}`, title: t.noteOn(customer) }}
          label={t.note}
          placeholder={t.notePlaceholder}
          note={t.noteHelp}
          attaching={false}
          field={field}
          onSend={note}
        />
      ) : (
        <MessageForm
          key="reply"
          draft={{ name: `reply.${id}`, title: t.replyTo(customer) }}
          label={t.reply}
          placeholder={t.placeholder}
          note={state === "HUMAN_ACTIVE" ? "" : t.takes}
          wordless
          field={field}
          snippets={snippets}
          onWrite={tell}
          onSend={send}
        >
          <CannedReplies />
        </MessageForm>
      )}
    </div>
  )
}
