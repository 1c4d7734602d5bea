/** The messages of a conversation: the newest at the bottom and in sight, older ones on demand. */
import { Fragment, memo, type ReactNode, useLayoutEffect, useMemo, useRef } from "react"
import type { Message } from "../../api/Conversations.ts"
import type { Entry as Happened } from "../../api/Inbox.ts"
import { Button } from "../../components/Button.tsx"
import { useSpoken } from "../../components/replies/Prose.tsx"
import { useStickToEnd } from "../../components/replies/useStickToEnd.ts"
import { texts, useText } from "../../text/Language.tsx"
import { Entry } from "./Entry.tsx"
import css from "./Messages.module.css"
import { Said } from "./MessageItem.tsx"

const words = texts(
  {
    messages: "Messages",
    older: "Older messages",
    agent: "The agent is writing …",
    customer: (who: string) => `${who} is writing …`,
    team: "The team is writing …",
    trace: "Trace",
    empty: "Nothing has been said yet."
  },
  {
    messages: "Nachrichten",
    older: "Ältere Nachrichten",
    agent: "Der Agent schreibt …",
    customer: (who: string) => `${who} schreibt …`,
    team: "Das Team schreibt …",
    trace: "Ablauf",
    empty: "Noch wurde nichts gesagt."
  }
)

interface OneProps {
  readonly conversationId: string
  readonly message: Message
  readonly customer: string
  readonly agent: string
  readonly isChosen: boolean
  readonly onTrace: ((runId: string | null) => void) | null
}

/** A message, with the button for its trace. Others are not rendered again when one is added or changes. */
const One = memo(({ agent, conversationId, customer, isChosen, message, onTrace }: OneProps) => {
  const t = useText(words)
  const { runId } = message
  return (
    <Said
      conversationId={conversationId}
      message={message}
      names={{ customer, agent }}
      aside={
        runId === null || onTrace === null ? null : (
          <button
            type="button"
            className={css["trace"]}
            aria-pressed={isChosen}
            onClick={() => onTrace(isChosen ? null : runId)}
          >
            {t.trace}
          </button>
        )
      }
    />
  )
})

interface Props {
  readonly conversationId: string
  /** Oldest first. */
  readonly messages: ReadonlyArray<Message>
  /** Events between the messages, oldest first. */
  readonly entries: ReadonlyArray<Happened>
  /** Names of the customer and the agent. */
  readonly names: { readonly customer: string; readonly agent: string }
  /** The id of the reader. */
  readonly userId: string
  readonly typing: "agent" | "customer" | "team" | null
  /** The run whose trace is shown. */
  readonly chosen: string | null
  /** Null if this user may not read traces. */
  readonly onTrace: ((runId: string | null) => void) | null
  /** Null when there are none. */
  readonly older: (() => void) | null
  readonly loading: boolean
  /** The id of the reader's last message. */
  readonly own: number | undefined
  /** After the last message. */
  readonly children: ReactNode
}

export const Messages = ({
  conversationId,
  children,
  chosen,
  entries,
  loading,
  messages,
  names,
  older,
  onTrace,
  own,
  typing,
  userId
}: Props) => {
  const t = useText(words)
  const { frame, hold, onScroll } = useStickToEnd(own)
  /** Distance from the bottom, kept when older messages are added above. */
  const kept = useRef<number | null>(null)
  const first = messages[0]?.id
  const spoken = useSpoken(messages.at(-1)?.content ?? "")

  useLayoutEffect(() => {
    const box = frame.current
    if (box === null || kept.current === null) return
    box.scrollTop = box.scrollHeight - kept.current
    kept.current = null
  }, [first])

  const before = messages[0]?.position ?? Infinity
  const places = useMemo(() => {
    const found = new Map<number, Array<Happened>>()
    for (const entry of entries) found.set(entry.position, [...(found.get(entry.position) ?? []), entry])
    return found
  }, [entries])
  const after = (position: number) =>
    (places.get(position) ?? []).map((entry) => (
      <Entry key={entry.id} conversationId={conversationId} entry={entry} userId={userId} />
    ))

  const loadOlder = () => {
    const box = frame.current
    if (box !== null) kept.current = box.scrollHeight - box.scrollTop
    hold()
    older?.()
  }
  return (
    <>
      <div
        ref={frame}
        className={css["messages"]}
        role="log"
        aria-live="off"
        aria-label={t.messages}
        tabIndex={0}
        onScroll={onScroll}
      >
        {older === null ? null : (
          <div className={css["older"]}>
            <Button busy={loading} onClick={loadOlder}>
              {t.older}
            </Button>
          </div>
        )}
        {messages.length === 0 && entries.length === 0 ? <p>{t.empty}</p> : null}
        {entries
          .filter(({ position }) => position < before)
          .map((entry) => (
            <Entry key={entry.id} conversationId={conversationId} entry={entry} userId={userId} />
          ))}
        {messages.map((message) => (
          <Fragment key={message.id}>
            <One
              conversationId={conversationId}
              message={message}
              customer={names.customer}
              agent={names.agent}
              isChosen={message.runId !== null && message.runId === chosen}
              onTrace={onTrace}
            />
            {after(message.position)}
          </Fragment>
        ))}
        {children}
      </div>
      <p role="status" className={typing !== null ? css["typing"] : "visually-hidden"}>
        {typing === null ? spoken : typing === "customer" ? t.customer(names.customer) : t[typing]}
      </p>
    </>
  )
}
