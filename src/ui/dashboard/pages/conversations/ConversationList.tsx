/** The list of the inbox: its filters, and its rows, of which only the visible ones are rendered. */
import { useVirtualizer } from "@tanstack/react-virtual"
import { memo, useCallback, useEffect, useMemo, useRef } from "react"
import { Link, useLocation } from "wouter"
import { type Conversation, isChannel } from "../../api/Conversations.ts"
import type { Filter, Label } from "../../api/Inbox.ts"
import { Avatar } from "../../components/Avatar.tsx"
import { Badge } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { LoadMore } from "../../components/LoadMore.tsx"
import { Empty, Unloaded } from "../../components/Page.tsx"
import { Skeleton } from "../../components/feedback/Skeleton.tsx"
import { useShortcuts } from "../../window/useShortcuts.ts"
import { useSpoken } from "../../components/replies/Prose.tsx"
import { useFormat } from "../../text/Format.ts"
import { texts, useText } from "../../text/Language.tsx"
import { useFailure } from "../../text/useFailure.ts"
import css from "./ConversationList.module.css"
import { useInbox } from "./useInbox.ts"
import { tones, useCustomer, useHandoffReason, words as shared } from "./words.ts"

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

interface LineProps {
  readonly row: Conversation
  readonly address: string
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

const Line = memo(({ address, isCurrent, labels, row }: LineProps) => {
  const t = useText(words)
  const names = useText(shared)
  const { moment, since } = useFormat()
  const why = useFailure()
  const reasonOf = useHandoffReason()
  const name = useCustomer()(row)
  const spoken = useSpoken(row.preview ?? "")
  const { failure } = row
  const { helpful, unhelpful } = row.ratings
  const isAnswered = row.preview !== null && row.preview !== row.question
  const assignee = row.assignee?.email?.split("@")[0]
  const reason = row.state === "HUMAN_REQUESTED" ? reasonOf(row.handoffReason) : null
  return (
    <Link
      href={address}
      className={css["line"] ?? ""}
      aria-current={isCurrent ? "true" : undefined}
      data-unread={row.unread ? "" : undefined}
    >
      <span className={css["avatar"]}>
        <Avatar name={name} />
      </span>
      <span className={css["who"]}>
        <span className={css["name"]}>{name}</span>
        <span className={css["channel"]}>{isChannel(row.channel) ? names[row.channel] : row.channel}</span>
      </span>
      <time className={css["time"]} dateTime={row.updatedAt} title={moment(row.updatedAt)}>
        {since(row.updatedAt, t.now)}
      </time>
      <span className={css["question"]}>{row.question ?? (spoken === "" ? t.silent : spoken)}</span>
      {row.unread ? (
        <span className={css["dot"]}>
          <span className="visually-hidden">{t.unread}</span>
        </span>
      ) : null}
      <span className={css["reply"]}>
        {failure !== null ? (
          <span className={css["failure"]}>{why(failure)}</span>
        ) : reason !== null ? (
          <span className={css["reason"]}>{reason}</span>
        ) : isAnswered && row.question !== null ? (
          spoken
        ) : null}
      </span>
      {hasBadges(row, labels) ? (
        <span className={css["badges"]}>
          {failure === null ? null : <Badge tone="bad">{names.failed}</Badge>}
          {row.state === "AI_ACTIVE" ? null : <Badge tone={tones[row.state]}>{names[row.state]}</Badge>}
          {assignee === undefined ? null : <span className={css["assignee"]}>{assignee}</span>}
          {labels
            .filter(({ id }) => row.labelIds.includes(id))
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

/** Heights in rem of a title above rows, of a row, and of one with badges: smaller where there is a pointer. */
const heights = () => {
  const isCoarse = window.matchMedia("(pointer: coarse)").matches
  return isCoarse ? { title: 2.5, row: 5.25, badged: 6.75 } : { title: 2.25, row: 4.875, badged: 6.25 }
}

/** Pixels of one rem. */
const rem = () => parseFloat(getComputedStyle(document.documentElement).fontSize)

interface ListProps {
  readonly filter: Filter
  readonly search: string
  readonly current: string | null
  readonly labels: ReadonlyArray<Label>
  /** Nothing is shown while what stands above the list is loading: it would move. */
  readonly isHeld: boolean
  readonly onClear: () => void
}

export const ConversationList = ({ current, filter, isHeld, labels, onClear, search }: ListProps) => {
  const t = useText(words)
  const { first, more, older, query, rows } = useInbox(filter)
  const frame = useRef<HTMLDivElement>(null)
  const items: ReadonlyArray<string | Conversation> = useMemo(
    () =>
      first.length === 0 ? rows : [t.waiting, ...first, ...(rows.length === 0 ? [] : [t.others, ...rows])],
    [first, rows, t]
  )
  const px = useMemo(rem, [])
  const sizes = useMemo(heights, [])
  const virtual = useVirtualizer({
    count: items.length,
    getScrollElement: () => frame.current,
    estimateSize: (index) => {
      const item = items[index]
      if (item === undefined || typeof item === "string") return sizes.title * px
      return (hasBadges(item, labels) ? sizes.badged : sizes.row) * px
    },
    // With another function all rows are measured again.
    getItemKey: useCallback(
      (index: number) => {
        const item = items[index]
        return item === undefined || typeof item === "string" ? `title ${index}` : item.id
      },
      [items]
    ),
    overscan: 8
  })
  const shown = virtual.getVirtualItems()
  const last = shown.at(-1)?.index ?? 0
  useEffect(() => {
    if (more !== null && last >= items.length - 10) more()
  }, [more, last, items.length])

  const [, navigate] = useLocation()
  const move = (by: 1 | -1) => {
    const ids = [...first, ...rows].map(({ id }) => id)
    const at = current === null ? -1 : ids.indexOf(current)
    const id = ids[at === -1 ? 0 : at + by]
    if (id === undefined) return
    navigate(`/conversations/${id}${search}`)
    virtual.scrollToIndex(items.findIndex((item) => typeof item !== "string" && item.id === id))
  }
  useShortcuts({ j: () => move(1), k: () => move(-1) })

  const isFiltered = Object.keys(filter).length > 0
  if (isHeld) return null
  if (query.data === undefined) {
    return query.isPending ? <Skeleton rows={6} person /> : <Unloaded query={query} />
  }
  if (items.length === 0) {
    return isFiltered ? (
      <Empty title={t.noMatch} action={<Button onClick={onClear}>{t.clear}</Button>}>
        {t.noMatchLead}
      </Empty>
    ) : (
      <Empty title={t.empty}>{t.emptyLead}</Empty>
    )
  }
  return (
    <div ref={frame} className={css["frame"]} tabIndex={-1}>
      <ul className={css["lines"]} aria-label={t.all} style={{ height: virtual.getTotalSize() }}>
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
              <Line
                row={item}
                address={`/conversations/${item.id}${search}`}
                labels={labels}
                isCurrent={item.id === current}
              />
            </li>
          )
        })}
      </ul>
      {!older.isError ? null : older.data === undefined ? (
        <Unloaded query={older} />
      ) : (
        <LoadMore query={older} />
      )}
    </div>
  )
}
