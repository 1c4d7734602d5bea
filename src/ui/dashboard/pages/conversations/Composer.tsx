/** The form for replies and notes of the team, and the messages that are not sent yet. */
import { useQuery, useQueryClient } from "@tanstack/react-query"
import { useEffect, useRef, useState, useSyncExternalStore } from "react"
import { newIdempotencyKey, sendMessage, type State } from "../../api/Conversations.ts"
import { addNote, inboxItems, reportTyping } from "../../api/Inbox.ts"
import { Button } from "../../components/Button.tsx"
import { MessageForm } from "../../components/replies/MessageForm.tsx"
import { useShortcuts } from "../../window/useShortcuts.ts"
import { useLeaveWarning } from "../../forms/useLeaveWarning.ts"
import { commonTexts } from "../../text/commonTexts.ts"
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
    addNote: "Add note",
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
    addNote: "Notiz hinzufügen",
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

interface UnsentMessage {
  readonly key: number
  readonly content: string
  readonly files: ReadonlyArray<File>
  /** Why it was not sent; null while it is being sent. */
  readonly problem: string | null
  /** A note is for the team only. */
  readonly isNote: boolean
  /** Sent with each try, so that nothing is sent twice. */
  readonly idempotencyKey: string
}

type NewMessage = Omit<UnsentMessage, "key" | "problem">

/** Messages of one conversation that have not been sent yet. They survive a change of page, but not a reload. */
class UnsentMessages {
  private messages: ReadonlyArray<UnsentMessage> = []
  private lastKey = 0
  /** The delivery of the last message. Each waits for the one before, so that they keep their order. */
  private lastDelivery: Promise<void> = Promise.resolve()
  private readonly listeners = new Set<() => void>()

  readonly getMessages = (): ReadonlyArray<UnsentMessage> => this.messages

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  readonly discard = (key: number): void =>
    this.update(this.messages.filter((message) => message.key !== key))

  /** `deliver` returns an error message, or null if it was sent. */
  send(message: NewMessage, deliver: () => Promise<string | null>): void {
    this.lastKey += 1
    const key = this.lastKey
    this.update([...this.messages, { ...message, key, problem: null }])
    this.lastDelivery = this.lastDelivery.then(async () => {
      const problem = await deliver()
      if (problem === null) return this.discard(key)
      this.update(this.messages.map((one) => (one.key === key ? { ...one, problem } : one)))
    })
  }

  private update(messages: ReadonlyArray<UnsentMessage>): void {
    this.messages = messages
    for (const listener of this.listeners) listener()
  }
}

const unsentByConversation = new Map<string, UnsentMessages>()

const unsentMessagesOf = (userId: string, id: string): UnsentMessages => {
  const key = `${userId} ${id}`
  const unsent = unsentByConversation.get(key) ?? new UnsentMessages()
  unsentByConversation.set(key, unsent)
  return unsent
}

export const useUnsentMessages = (userId: string, id: string) => {
  const reason = useReason()
  const queries = useQueryClient()
  const unsent = unsentMessagesOf(userId, id)
  const messages = useSyncExternalStore(unsent.subscribe, unsent.getMessages)
  useLeaveWarning(messages.length > 0)

  /** Sends one message. Returns null, or an error message. */
  const deliver = async ({ content, files, idempotencyKey, isNote }: NewMessage): Promise<string | null> => {
    try {
      await (isNote ? addNote(id, content, idempotencyKey) : sendMessage(id, content, files, idempotencyKey))
    } catch (problem) {
      return reason(problem).sentence
    }
    await queries.invalidateQueries({ queryKey: ["conversations"] }).catch(() => undefined)
    return null
  }
  const add = (message: NewMessage) => unsent.send(message, () => deliver(message))
  const send = (content: string, files: ReadonlyArray<File>, isNote = false) =>
    add({ content, files, isNote, idempotencyKey: newIdempotencyKey() })
  const note = (content: string) => send(content, [], true)
  const retry = ({ key, problem: _, ...message }: UnsentMessage) => {
    unsent.discard(key)
    add(message)
  }
  return { messages, send, note, retry, discard: unsent.discard }
}

type Unsent = ReturnType<typeof useUnsentMessages>

/** The unsent messages, shown after the sent ones. */
export const UnsentList = ({ discard, messages, retry }: Unsent) => {
  const t = useText(words)
  const common = useText(commonTexts)
  return messages.map((message) => (
    <div key={message.key} className={css["draft"]}>
      {message.content === "" ? null : <p className={css["plain"]}>{message.content}</p>}
      {message.files.length === 0 ? null : (
        <span className={css["soft"]}>{message.files.map(({ name }) => name).join(", ")}</span>
      )}
      {message.problem === null ? (
        <span className={css["soft"]}>{t.sending}</span>
      ) : (
        <div role="alert" className={css["unsent"]}>
          <strong>{t.unsent}</strong>
          <span>{message.problem}</span>
          <span className={css["choices"]}>
            <Button onClick={() => retry(message)}>{common.retry}</Button>
            <Button kind="quiet" onClick={() => discard(message.key)}>
              {t.discard}
            </Button>
          </span>
        </div>
      )}
    </div>
  ))
}

/** Minimum interval of typing notifications to the customer, in milliseconds. */
const typingIntervalMs = 3_000

interface ComposerProps extends Pick<Unsent, "send" | "note"> {
  readonly id: string
  readonly customer: string
  /** The customer's name; null if unknown. */
  readonly customerName: string | null
  readonly state: State
}

export const Composer = ({ customer, id, customerName, note, send, state }: ComposerProps) => {
  const t = useText(words)
  const [mode, setMode] = useState<"reply" | "note">("reply")
  // In a closed conversation the team can still write notes.
  const isNote = mode === "note" || state === "CLOSED"
  const field = useRef<HTMLTextAreaElement>(null)
  const [focusRequests, setFocusRequests] = useState(0)
  // The field of the other mode exists only after it is rendered.
  useEffect(() => {
    if (focusRequests > 0) field.current?.focus()
  }, [focusRequests])
  const openMode = (next: "reply" | "note") => {
    setMode(next)
    setFocusRequests(focusRequests + 1)
  }
  useShortcuts({ r: () => openMode("reply"), n: () => openMode("note") })
  const typingSentAt = useRef(0)
  const sendTyping = () => {
    const now = Date.now()
    // While the agent answers, the customer is not shown that the team is typing.
    if (state === "AI_ACTIVE" || now - typingSentAt.current < typingIntervalMs) return
    typingSentAt.current = now
    reportTyping(id).catch(() => undefined)
  }
  const { data: items } = useQuery(inboxItems)
  const snippets = (items?.replies ?? []).map(({ content, shortcut }) => ({
    name: shortcut,
    // A function, because a name may contain replacement patterns such as "$&".
    text: content.replaceAll("{{name}}", () => customerName ?? "").replaceAll(/[ \t]+(?=[,.!?;:]|$)/gm, "")
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
          action={t.addNote}
          allowsFiles={false}
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
          allowsEmptyText
          field={field}
          snippets={snippets}
          onTextChange={sendTyping}
          onSend={send}
        >
          <CannedReplies />
        </MessageForm>
      )}
    </div>
  )
}
