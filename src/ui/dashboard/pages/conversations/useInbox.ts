/** The rows of the inbox: first those that wait for a human, then by last activity. Only the first page is polled. */
import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query"
import { useEffect, useMemo } from "react"
import type { Conversation } from "../../api/Conversations.ts"
import { type Filter, inboxHead, inboxQuery, pageSize } from "../../api/Inbox.ts"

const noConversations: ReadonlyArray<Conversation> = []

/** Appends older pages to the head. A conversation that is as new as the head but not in it has left the list. */
const joinPages = (
  recent: ReadonlyArray<Conversation>,
  olderPages: ReadonlyArray<Conversation>
): ReadonlyArray<Conversation> => {
  const oldestRecent = recent.at(-1)
  // A head that is shorter than a page is the whole list, so there are no older ones.
  if (oldestRecent === undefined || recent.length < pageSize) return recent
  const recentIds = new Set(recent.map(({ id }) => id))
  return [
    ...recent,
    ...olderPages.filter(({ id, updatedAt }) => updatedAt <= oldestRecent.updatedAt && !recentIds.has(id))
  ]
}

export const useInbox = (filter: Filter) => {
  const queries = useQueryClient()
  const pagesQuery = useInfiniteQuery(inboxQuery(filter))
  const headQuery = useQuery(inboxHead(filter))
  /** Only the list of all conversations shows waiting ones first. */
  const showsWaitingFirst =
    filter.state === undefined && filter.q === undefined && filter.unread === undefined
  const waitingQuery = useQuery({
    ...inboxHead({ ...filter, state: "HUMAN_REQUESTED" }),
    enabled: showsWaitingFirst
  })

  const loaded = useMemo(
    () => pagesQuery.data?.pages.flatMap((page) => page.conversations) ?? noConversations,
    [pagesQuery.data]
  )
  const recent = headQuery.data ?? noConversations
  const oldestRecent = recent.at(-1)
  // All of the head is newer than the pages, so conversations between the two may be missing.
  const hasGap =
    oldestRecent !== undefined &&
    recent.length === pageSize &&
    (loaded[0]?.updatedAt ?? "~") < oldestRecent.updatedAt
  useEffect(() => {
    if (hasGap) void queries.resetQueries({ queryKey: inboxQuery(filter).queryKey })
  }, [hasGap, queries, filter])

  const waiting = showsWaitingFirst ? (waitingQuery.data ?? noConversations) : noConversations
  const others = useMemo(() => {
    const waitingIds = new Set(waiting.map(({ id }) => id))
    return (headQuery.data === undefined ? loaded : joinPages(recent, loaded)).filter(
      ({ id }) => !waitingIds.has(id)
    )
  }, [waiting, headQuery.data, loaded, recent])

  const { error, isFetching, isPending, refetch } = headQuery
  return {
    waiting,
    others,
    query: { data: isPending ? undefined : others, error, isFetching, isPending, refetch },
    /** The pages after the head. After an error, the next page is requested again only when the user asks for it. */
    olderPages: pagesQuery,
    loadMore:
      pagesQuery.hasNextPage && !pagesQuery.isFetchingNextPage && !pagesQuery.isFetchNextPageError
        ? () => void pagesQuery.fetchNextPage()
        : null
  }
}
