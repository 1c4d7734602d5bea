/** The rows of the list: those that wait for a human first, then by last activity. Only their head is polled. */
import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query"
import { useEffect, useMemo } from "react"
import type { Conversation } from "../../api/Conversations.ts"
import { type Filter, inboxHead, inboxQuery, pageSize } from "../../api/Inbox.ts"

const noConversations: ReadonlyArray<Conversation> = []

/** Older pages behind the head as it is now. What is as new as the head and not in it has left the list. */
const joinedPages = (
  recent: ReadonlyArray<Conversation>,
  older: ReadonlyArray<Conversation>
): ReadonlyArray<Conversation> => {
  const last = recent.at(-1)
  // A head that is shorter than a page is the whole list.
  if (last === undefined || recent.length < pageSize) return recent
  const here = new Set(recent.map(({ id }) => id))
  return [...recent, ...older.filter(({ id, updatedAt }) => updatedAt <= last.updatedAt && !here.has(id))]
}

export const useInbox = (filter: Filter) => {
  const queries = useQueryClient()
  const pages = useInfiniteQuery(inboxQuery(filter))
  const newest = useQuery(inboxHead(filter))
  /** The list of all shows waiting customers first; other lists keep the requested order. */
  const isWhole = filter.state === undefined && filter.q === undefined && filter.unread === undefined
  const waiting = useQuery({ ...inboxHead({ ...filter, state: "HUMAN_REQUESTED" }), enabled: isWhole })

  const read = useMemo(
    () => pages.data?.pages.flatMap((page) => page.conversations) ?? noConversations,
    [pages.data]
  )
  const recent = newest.data ?? noConversations
  const last = recent.at(-1)
  // So much has happened since the pages were read that conversations may lie between the two.
  const isTorn =
    last !== undefined && recent.length === pageSize && (read[0]?.updatedAt ?? "~") < last.updatedAt
  useEffect(() => {
    if (isTorn) void queries.resetQueries({ queryKey: inboxQuery(filter).queryKey })
  }, [isTorn, queries, filter])

  const first = isWhole ? (waiting.data ?? noConversations) : noConversations
  const rows = useMemo(() => {
    const above = new Set(first.map(({ id }) => id))
    return (newest.data === undefined ? read : joinedPages(recent, read)).filter(({ id }) => !above.has(id))
  }, [first, newest.data, read, recent])

  const { error, isFetching, isPending, refetch } = newest
  return {
    first,
    rows,
    query: { data: isPending ? undefined : rows, error, isFetching, isPending, refetch },
    /** The pages behind the head. A refused one is not requested again at each render, but when the reader asks. */
    older: pages,
    more:
      pages.hasNextPage && !pages.isFetchingNextPage && !pages.isFetchNextPageError
        ? () => void pages.fetchNextPage()
        : null
  }
}
