/** Pages of a conversation's messages, of which only the newest is read at each poll. */
import type { RecentMessages } from "../../../../http/hosted/conversations/InboxViewApi.ts"

type Recent = typeof RecentMessages.Encoded

export interface ThreadPage extends Recent {
  /** When an older page was read. The newest is read at each poll. */
  readonly readAt?: number
}

/** Messages of one page. */
export const threadPageSize = 50

/** Age in milliseconds at which an older page is read again, for what has changed in it, such as a rating. */
const maxAgeMs = 60_000

/**
 * The page before the message `before`, made of `pages`, which were read from the newest back. The newest messages have
 * moved since then, so that it may begin and end within pages. Null if a part of it was not read, or is too old.
 */
const keptPage = (pages: ReadonlyArray<ThreadPage>, before: string, now: number): ThreadPage | null => {
  const [newest] = pages
  const messages = pages.toReversed().flatMap((page) => page.messages)
  const end = messages.findIndex(({ id }) => id === before)
  const start = Math.max(end - threadPageSize, 0)
  const kept = end < 0 ? [] : messages.slice(start, end)
  const isWhole = kept.length === threadPageSize || pages.at(-1)?.hasMore === false
  const [first, last] = [kept[0], kept.at(-1)]
  if (newest === undefined || first === undefined || last === undefined || !isWhole) return null
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
    messages: kept,
    entries: pages
      .toReversed()
      .flatMap((page) => page.entries)
      .filter(({ position }) => (!hasMore || position >= first.position) && position <= last.position),
    hasMore,
    readAt
  }
}

/** The message before which the page after `page` ends; null if it is the last. */
export const nextBefore = ({ hasMore, messages }: ThreadPage): string | null =>
  hasMore ? (messages[0]?.id ?? null) : null

/** The page before the message `before`, or the newest: of `known`, else as `ask` answers. */
export const readPage = async (
  known: ReadonlyArray<ThreadPage>,
  before: string | null,
  ask: () => Promise<Recent>
): Promise<ThreadPage> => {
  if (before === null) return ask()
  const readAt = Date.now()
  return keptPage(known, before, readAt) ?? { ...(await ask()), readAt }
}

/** The pages without their ages, so that all of them are read again. */
export const withoutAges = (pages: ReadonlyArray<ThreadPage>): Array<ThreadPage> =>
  pages.map((page, at) => (at === 0 ? page : { ...page, readAt: 0 }))
