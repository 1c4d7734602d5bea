/** The messages of a conversation. It opens at the newest one, and loads older ones on demand. */
import { Fragment, memo, type ReactNode, useLayoutEffect, useMemo, useRef } from "react"
import type { Message } from "../../api/Conversations.ts"
import type { Entry as ThreadEntry } from "../../api/Inbox.ts"
import { Button } from "../../components/Button.tsx"
import { useSpoken } from "../../components/replies/Prose.tsx"
import { useStickToEnd } from "../../components/replies/useStickToEnd.ts"
import { texts, useText } from "../../text/Language.tsx"
import { Entry } from "./Entry.tsx"
import css from "./Messages.module.css"
import { MessageItem } from "./MessageItem.tsx"

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

interface MessageRowProps {
  readonly conversationId: string
  readonly message: Message
  readonly customer: string
  readonly agent: string
  readonly isTraced: boolean
  readonly onTrace: ((runId: string | null) => void) | null
}

/** A message, with the button for its trace. Memoized, so that other messages are not rendered again. */
const MessageRow = memo(
  ({ agent, conversationId, customer, isTraced, message, onTrace }: MessageRowProps) => {
    const t = useText(words)
    const { runId } = message
    return (
      <MessageItem
        conversationId={conversationId}
        message={message}
        names={{ customer, agent }}
        aside={
          runId === null || onTrace === null ? null : (
            <button
              type="button"
              className={css["trace"]}
              aria-pressed={isTraced}
              onClick={() => onTrace(isTraced ? null : runId)}
            >
              {t.trace}
            </button>
          )
        }
      />
    )
  }
)

interface Props {
  readonly conversationId: string
  /** Oldest first. */
  readonly messages: ReadonlyArray<Message>
  /** Events between the messages, oldest first. */
  readonly entries: ReadonlyArray<ThreadEntry>
  /** Names of the customer and the agent. */
  readonly names: { readonly customer: string; readonly agent: string }
  /** The id of the reader. */
  readonly userId: string
  readonly typing: "agent" | "customer" | "team" | null
  /** The run whose trace is shown. */
  readonly tracedRunId: string | null
  /** Null if this user may not read traces. */
  readonly onTrace: ((runId: string | null) => void) | null
  /** Null if there are no older messages. */
  readonly onLoadOlder: (() => void) | null
  readonly isLoadingOlder: boolean
  /** The id of the reader's last message. */
  readonly lastOwnKey: number | undefined
  /** Content after the last message. */
  readonly children: ReactNode
}

export const Messages = ({
  conversationId,
  children,
  tracedRunId,
  entries,
  isLoadingOlder,
  messages,
  names,
  onLoadOlder,
  onTrace,
  lastOwnKey,
  typing,
  userId
}: Props) => {
  const t = useText(words)
  const { frame, hold, onScroll } = useStickToEnd({ ownMessageId: lastOwnKey })
  /** Distance from the bottom, kept when older messages are added above. */
  const distanceFromEnd = useRef<number | null>(null)
  const first = messages[0]?.id
  const spoken = useSpoken(messages.at(-1)?.content ?? "")

  useLayoutEffect(() => {
    const box = frame.current
    if (box === null || distanceFromEnd.current === null) return
    box.scrollTop = box.scrollHeight - distanceFromEnd.current
    distanceFromEnd.current = null
  }, [first])

  const firstPosition = messages[0]?.position ?? Infinity
  const entriesByPosition = useMemo(() => {
    const byPosition = new Map<number, Array<ThreadEntry>>()
    for (const entry of entries)
      byPosition.set(entry.position, [...(byPosition.get(entry.position) ?? []), entry])
    return byPosition
  }, [entries])
  const entriesAt = (position: number) =>
    (entriesByPosition.get(position) ?? []).map((entry) => (
      <Entry key={entry.id} conversationId={conversationId} entry={entry} userId={userId} />
    ))

  const loadOlder = () => {
    const box = frame.current
    if (box !== null) distanceFromEnd.current = box.scrollHeight - box.scrollTop
    hold()
    onLoadOlder?.()
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
        {onLoadOlder === null ? null : (
          <div className={css["older"]}>
            <Button busy={isLoadingOlder} onClick={loadOlder}>
              {t.older}
            </Button>
          </div>
        )}
        {messages.length === 0 && entries.length === 0 ? <p>{t.empty}</p> : null}
        {entries
          .filter(({ position }) => position < firstPosition)
          .map((entry) => (
            <Entry key={entry.id} conversationId={conversationId} entry={entry} userId={userId} />
          ))}
        {messages.map((message) => (
          <Fragment key={message.id}>
            <MessageRow
              conversationId={conversationId}
              message={message}
              customer={names.customer}
              agent={names.agent}
              isTraced={message.runId !== null && message.runId === tracedRunId}
              onTrace={onTrace}
            />
            {entriesAt(message.position)}
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
