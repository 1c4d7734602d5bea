/** Pages of a conversation's messages. A poll reads the newest page, and older ones after a while. */
import type { RecentMessages } from "../../../../http/hosted/conversations/InboxViewApi.ts"

type Recent = typeof RecentMessages.Encoded

export interface ThreadPage extends Recent {
  /** When an older page was read, in milliseconds since the epoch. Absent for the newest page. */
  readonly readAt?: number
}

/** Messages of one page. */
export const threadPageSize = 50

/** Age at which an older page is read again, because messages may change, for example their rating. */
const maxAgeMs = 60_000

/**
 * The page before the message `before`, assembled from `pages`, which are ordered from the newest. It may span two of
 * them, because new messages have arrived since. Null if a part of it was not read or is too old.
 */
const cachedPage = (pages: ReadonlyArray<ThreadPage>, before: string, now: number): ThreadPage | null => {
  const [newest] = pages
  const all = pages.toReversed().flatMap((page) => page.messages)
  const end = all.findIndex(({ id }) => id === before)
  const start = Math.max(end - threadPageSize, 0)
  const messages = end < 0 ? [] : all.slice(start, end)
  const isComplete = messages.length === threadPageSize || pages.at(-1)?.hasMore === false
  const [first, last] = [messages[0], messages.at(-1)]
  if (newest === undefined || first === undefined || last === undefined || !isComplete) return null
  const hasMore = start > 0 || pages.at(-1)?.hasMore === true
  const readAt = Math.min(
    ...pages
      .filter((page) =>
        page.messages.some(({ position }) => position >= first.position && position <= last.position)
      )
      .map((page) => page.readAt ?? now)
  )
  if (now - readAt >= maxAgeMs) return null
  return {
    conversation: newest.conversation,
    messages,
    entries: pages
      .toReversed()
      .flatMap((page) => page.entries)
      .filter(({ position }) => (!hasMore || position >= first.position) && position <= last.position),
    hasMore,
    readAt
  }
}

/** The `before` of the next older page; null after the last one. */
export const nextPageCursor = ({ hasMore, messages }: ThreadPage): string | null =>
  hasMore ? (messages[0]?.id ?? null) : null

/** The page before the message `before`, from `cached` or else from `fetchPage`. The newest page is always fetched. */
export const readPage = async (
  cached: ReadonlyArray<ThreadPage>,
  before: string | null,
  fetchPage: () => Promise<Recent>
): Promise<ThreadPage> => {
  if (before === null) return fetchPage()
  const readAt = Date.now()
  return cachedPage(cached, before, readAt) ?? { ...(await fetchPage()), readAt }
}

/** Marks the older pages as expired, so that all pages are read again. */
export const expireOlderPages = (pages: ReadonlyArray<ThreadPage>): Array<ThreadPage> =>
  pages.map((page, index) => (index === 0 ? page : { ...page, readAt: 0 }))
