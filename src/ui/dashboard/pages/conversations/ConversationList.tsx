/** The list of conversations. Only the visible rows are rendered. */
import { useVirtualizer } from "@tanstack/react-virtual"
import { memo, useCallback, useEffect, useMemo, useRef } from "react"
import { Link, useLocation } from "wouter"
import { type Conversation, isChannel } from "../../api/Conversations.ts"
import type { Filter, Label } from "../../api/Inbox.ts"
import { Avatar } from "../../components/Avatar.tsx"
import { Badge } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { LoadMore } from "../../components/LoadMore.tsx"
import { Empty, LoadError } from "../../components/Page.tsx"
import { Skeleton } from "../../components/feedback/Skeleton.tsx"
import { useShortcuts } from "../../window/useShortcuts.ts"
import { useSpoken } from "../../components/replies/Prose.tsx"
import { useFormat } from "../../text/Format.ts"
import { texts, useText } from "../../text/Language.tsx"
import { useFailure } from "../../text/useFailure.ts"
import css from "./ConversationList.module.css"
import { useInbox } from "./useInbox.ts"
import { tones, useCustomer, useHandoffReason, words as sharedWords } from "./words.ts"

const words = texts(
  {
    waiting: "Waiting for a human",
    others: "Everyone else",
    all: "All conversations",
    empty: "Nobody has written yet",
    emptyLead: "Conversations of the API, the widget and messaging channels appear here as they begin.",
    noMatch: "No conversation is like that",
    noMatchLead: "Choose other filters.",
    clear: "Clear filters",
    unread: "Unread",
    now: "now",
    silent: "Nothing written yet"
  },
  {
    waiting: "Wartet auf einen Menschen",
    others: "Alle anderen",
    all: "Alle Gespräche",
    empty: "Noch hat niemand geschrieben",
    emptyLead: "Gespräche über API, Widget und Nachrichtenkanäle erscheinen hier, sobald sie beginnen.",
    noMatch: "So ein Gespräch gibt es nicht",
    noMatchLead: "Bitte andere Filter wählen.",
    clear: "Filter aufheben",
    unread: "Ungelesen",
    now: "jetzt",
    silent: "Noch nichts geschrieben"
  }
)

interface RowProps {
  readonly conversation: Conversation
  readonly href: string
  readonly labels: ReadonlyArray<Label>
  readonly isCurrent: boolean
}

/** Whether a conversation has badges. */
const hasBadges = (
  { assignee, failure, labelIds, ratings, state }: Conversation,
  labels: ReadonlyArray<Label>
): boolean =>
  failure !== null ||
  state !== "AI_ACTIVE" ||
  assignee !== null ||
  ratings.helpful + ratings.unhelpful > 0 ||
  labels.some(({ id }) => labelIds.includes(id))

const ConversationRow = memo(({ href, isCurrent, labels, conversation }: RowProps) => {
  const t = useText(words)
  const names = useText(sharedWords)
  const { moment, since } = useFormat()
  const failureText = useFailure()
  const reasonOf = useHandoffReason()
  const name = useCustomer()(conversation)
  const spoken = useSpoken(conversation.preview ?? "")
  const { failure } = conversation
  const { helpful, unhelpful } = conversation.ratings
  const isAnswered = conversation.preview !== null && conversation.preview !== conversation.question
  const assignee = conversation.assignee?.email?.split("@")[0]
  const reason = conversation.state === "HUMAN_REQUESTED" ? reasonOf(conversation.handoffReason) : null
  return (
    <Link
      href={href}
      className={css["line"] ?? ""}
      aria-current={isCurrent ? "true" : undefined}
      data-unread={conversation.unread ? "" : undefined}
    >
      <span className={css["avatar"]}>
        <Avatar name={name} />
      </span>
      <span className={css["who"]}>
        <span className={css["name"]} dir="auto">
          {name}
        </span>
        <span className={css["channel"]}>
          {isChannel(conversation.channel) ? names[conversation.channel] : conversation.channel}
        </span>
      </span>
      <time className={css["time"]} dateTime={conversation.updatedAt} title={moment(conversation.updatedAt)}>
        {since(conversation.updatedAt, t.now)}
      </time>
      <span className={css["question"]} dir="auto">
        {conversation.question ?? (spoken === "" ? t.silent : spoken)}
      </span>
      {conversation.unread ? (
        <span className={css["dot"]}>
          <span className="visually-hidden">{t.unread}</span>
        </span>
      ) : null}
      <span className={css["reply"]} dir="auto">
        {failure !== null ? (
          <span className={css["failure"]}>{failureText(failure)}</span>
        ) : reason !== null ? (
          <span className={css["reason"]}>{reason}</span>
        ) : isAnswered && conversation.question !== null ? (
          spoken
        ) : null}
      </span>
      {hasBadges(conversation, labels) ? (
        <span className={css["badges"]}>
          {failure === null ? null : <Badge tone="bad">{names.failed}</Badge>}
          {conversation.state === "AI_ACTIVE" ? null : (
            <Badge tone={tones[conversation.state]}>{names[conversation.state]}</Badge>
          )}
          {assignee === undefined ? null : <span className={css["assignee"]}>{assignee}</span>}
          {labels
            .filter(({ id }) => conversation.labelIds.includes(id))
            .slice(0, 2)
            .map(({ id, name: label, tone }) => (
              <Badge key={id} tone={tone}>
                {label}
              </Badge>
            ))}
          {unhelpful === 0 ? null : <Badge tone="warn">{names.unhelpful(unhelpful)}</Badge>}
          {helpful === 0 ? null : <Badge tone="neutral">{names.helpful(helpful)}</Badge>}
        </span>
      ) : null}
    </Link>
  )
})

/** Heights in rem of a title, of a row, and of a row with badges. Touch screens have larger ones. */
const rowHeights = () => {
  const isCoarse = window.matchMedia("(pointer: coarse)").matches
  return isCoarse ? { title: 2.5, row: 5.25, badged: 6.75 } : { title: 2.25, row: 4.875, badged: 6.25 }
}

/** Pixels of one rem. */
const pixelsPerRem = () => parseFloat(getComputedStyle(document.documentElement).fontSize)

interface ListProps {
  readonly filter: Filter
  readonly search: string
  readonly current: string | null
  readonly labels: ReadonlyArray<Label>
  /** Shows a placeholder while the content above the list loads, so that the list does not move. */
  readonly isWaiting: boolean
  readonly onClear: () => void
}

export const ConversationList = ({ current, filter, isWaiting, labels, onClear, search }: ListProps) => {
  const t = useText(words)
  const { waiting, loadMore, olderPages, query, others } = useInbox(filter)
  const frame = useRef<HTMLDivElement>(null)
  const items: ReadonlyArray<string | Conversation> = useMemo(
    () =>
      waiting.length === 0
        ? others
        : [t.waiting, ...waiting, ...(others.length === 0 ? [] : [t.others, ...others])],
    [waiting, others, t]
  )
  const remPixels = useMemo(pixelsPerRem, [])
  const sizes = useMemo(rowHeights, [])
  const virtualizer = useVirtualizer({
    count: items.length,
    getScrollElement: () => frame.current,
    estimateSize: (index) => {
      const item = items[index]
      if (item === undefined || typeof item === "string") return sizes.title * remPixels
      return (hasBadges(item, labels) ? sizes.badged : sizes.row) * remPixels
    },
    // The function is memoized, because a new one makes the virtualizer measure all rows again.
    getItemKey: useCallback(
      (index: number) => {
        const item = items[index]
        return item === undefined || typeof item === "string" ? `title ${index}` : item.id
      },
      [items]
    ),
    overscan: 8
  })
  const shown = virtualizer.getVirtualItems()
  const last = shown.at(-1)?.index ?? 0
  useEffect(() => {
    if (loadMore !== null && last >= items.length - 10) loadMore()
  }, [loadMore, last, items.length])

  const [, navigate] = useLocation()
  const moveBy = (step: 1 | -1) => {
    const ids = [...waiting, ...others].map(({ id }) => id)
    const index = current === null ? -1 : ids.indexOf(current)
    const id = ids[index === -1 ? 0 : index + step]
    if (id === undefined) return
    navigate(`/conversations/${id}${search}`)
    virtualizer.scrollToIndex(items.findIndex((item) => typeof item !== "string" && item.id === id))
  }
  useShortcuts({ j: () => moveBy(1), k: () => moveBy(-1) })

  const isFiltered = Object.keys(filter).length > 0
  // A placeholder of its own: the same one would move when the content above it appears.
  if (isWaiting) return <Skeleton key="waiting" rows={6} person />
  if (query.data === undefined) {
    return query.isPending ? <Skeleton rows={6} person /> : <LoadError query={query} />
  }
  if (items.length === 0) {
    return isFiltered ? (
      <Empty title={t.noMatch} lead={t.noMatchLead} action={<Button onClick={onClear}>{t.clear}</Button>} />
    ) : (
      <Empty title={t.empty} lead={t.emptyLead} />
    )
  }
  return (
    <div ref={frame} className={css["frame"]} tabIndex={-1}>
      <ul className={css["lines"]} aria-label={t.all} style={{ height: virtualizer.getTotalSize() }}>
        {shown.map(({ index, key, size, start }) => {
          const item = items[index]
          if (item === undefined) return null
          const style = { height: size, transform: `translateY(${start}px)` }
          return typeof item === "string" ? (
            <li key={key} className={css["title"]} style={style}>
              {item}
            </li>
          ) : (
            <li key={key} className={css["item"]} style={style}>
              <ConversationRow
                conversation={item}
                href={`/conversations/${item.id}${search}`}
                labels={labels}
                isCurrent={item.id === current}
              />
            </li>
          )
        })}
      </ul>
      {!olderPages.isError ? null : olderPages.data === undefined ? (
        <LoadError query={olderPages} />
      ) : (
        <LoadMore query={olderPages} />
      )}
    </div>
  )
}
