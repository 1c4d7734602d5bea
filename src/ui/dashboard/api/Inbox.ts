/** The team's inbox: its list, the unread count, and changes of conversations other than replies. */
import {
  type InfiniteData,
  infiniteQueryOptions,
  type QueryClient,
  queryOptions
} from "@tanstack/react-query"
import type {
  AssigneeFields,
  CannedReply as DeclaredReply,
  CannedReplyFields,
  Entry as DeclaredEntry,
  InboxFilter,
  Label as DeclaredLabel,
  LabelFields,
  LabelsFields,
  NoteFields,
  ReadFields,
  SavedView as DeclaredView,
  SavedViewFields,
  Teammate as DeclaredTeammate
} from "../../../domain/conversations/Inbox.ts"
import type { AllItems, OneLabel } from "../../../http/hosted/conversations/InboxItemsApi.ts"
import type { InboxPage } from "../../../http/hosted/conversations/InboxViewApi.ts"
import type { OneEntry, OnePerson, UnreadCount } from "../../../http/hosted/conversations/InboxWorkApi.ts"
import { call, firstPage } from "./Client.ts"
import type { Conversation } from "./Conversations.ts"
import { expireOlderPages, type ThreadPage } from "./conversations/ThreadPage.ts"

export type Filter = typeof InboxFilter.Encoded
export type Entry = typeof DeclaredEntry.Encoded
export type Label = typeof DeclaredLabel.Encoded
export type View = typeof DeclaredView.Encoded
export type Reply = typeof DeclaredReply.Encoded
export type Teammate = typeof DeclaredTeammate.Encoded
type Pages = InfiniteData<typeof InboxPage.Encoded>
type Thread = InfiniteData<ThreadPage>

/** Polling intervals of the list's head and of the unread count. */
const headIntervalMs = 5_000
const countIntervalMs = 15_000
/** Conversations of one page. */
export const pageSize = 50

const fetchPage = (filter: Filter, cursor: string | null, limit: number, signal: AbortSignal) =>
  call<typeof InboxPage.Encoded>("GET", "/api/inbox", { query: { ...filter, limit, cursor }, signal })

/** The pages of the list, by last activity. They are read once, because changes appear in the head. */
export const inboxQuery = (filter: Filter) =>
  infiniteQueryOptions({
    queryKey: ["inbox", "pages", filter],
    queryFn: ({ pageParam, signal }) => fetchPage(filter, pageParam, pageSize, signal),
    initialPageParam: firstPage(),
    getNextPageParam: ({ nextCursor }) => nextCursor,
    staleTime: Infinity
  })

/** The head of the list: the conversations with the latest activity, polled. */
export const inboxHead = (filter: Filter) =>
  queryOptions({
    queryKey: ["conversations", "head", filter],
    queryFn: ({ signal }) =>
      fetchPage(filter, null, pageSize, signal).then(({ conversations }) => conversations),
    refetchInterval: headIntervalMs
  })

export const unreadCount = queryOptions({
  queryKey: ["conversations", "unread"],
  queryFn: ({ signal }) =>
    call<typeof UnreadCount.Encoded>("GET", "/api/inbox/unread", { signal }).then(({ unread }) => unread),
  refetchInterval: countIntervalMs,
  // Notifications are shown while the page is hidden.
  refetchIntervalInBackground: true
})

/** Updates a conversation optimistically in the cached lists and threads. */
export const patchConversation = (queries: QueryClient, id: string, change: Partial<Conversation>): void => {
  const patched = (row: Conversation) => (row.id === id ? { ...row, ...change } : row)
  queries.setQueriesData<Pages>({ queryKey: ["inbox", "pages"] }, (data) =>
    data === undefined
      ? undefined
      : {
          ...data,
          pages: data.pages.map((one) => ({ ...one, conversations: one.conversations.map(patched) }))
        }
  )
  queries.setQueriesData<ReadonlyArray<Conversation>>({ queryKey: ["conversations", "head"] }, (rows) =>
    rows?.map(patched)
  )
  queries.setQueriesData<Thread>({ queryKey: ["conversations", "one", id] }, (data) =>
    data === undefined
      ? undefined
      : { ...data, pages: data.pages.map((one) => ({ ...one, conversation: patched(one.conversation) })) }
  )
}

/** Fetches all displayed messages of the conversation again, after a change of an older one. */
export const refetchThread = (queries: QueryClient, id: string): Promise<void> => {
  const queryKey = ["conversations", "one", id]
  queries.setQueryData<Thread>(queryKey, (data) =>
    data === undefined ? undefined : { ...data, pages: expireOlderPages(data.pages) }
  )
  return queries.invalidateQueries({ queryKey })
}

/** Marks everything up to the message as read. */
export const markRead = (id: string, messageId: string) =>
  call<unknown, typeof ReadFields.Encoded>("POST", `/api/conversations/${id}/read`, { body: { messageId } })

export const markAllRead = () => call("POST", "/api/inbox/read")

export const assign = (id: string, userId: string | null) =>
  call<unknown, typeof AssigneeFields.Encoded>("PUT", `/api/conversations/${id}/assignee`, {
    body: { userId }
  })

export const setLabels = (id: string, labelIds: ReadonlyArray<string>) =>
  call<unknown, typeof LabelsFields.Encoded>("PUT", `/api/conversations/${id}/labels`, { body: { labelIds } })

export const addNote = (id: string, content: string, idempotencyKey: string) =>
  call<typeof OneEntry.Encoded, typeof NoteFields.Encoded>("POST", `/api/conversations/${id}/notes`, {
    body: { content },
    idempotencyKey
  })

export const removeNote = (id: string, noteId: string) =>
  call("DELETE", `/api/conversations/${id}/notes/${noteId}`)

/** Shows the customer that the team is typing. */
export const reportTyping = (id: string) => call("POST", `/api/conversations/${id}/typing`)

export const person = (id: string) =>
  queryOptions({
    queryKey: ["conversations", "person", id],
    queryFn: ({ signal }) =>
      call<typeof OnePerson.Encoded>("GET", `/api/conversations/${id}/person`, { signal }).then(
        ({ person }) => person
      ),
    staleTime: 30_000
  })

/** Labels, saved views and canned replies. */
export const inboxItems = queryOptions({
  queryKey: ["inbox", "items"],
  queryFn: ({ signal }) => call<typeof AllItems.Encoded>("GET", "/api/inbox/items", { signal }),
  staleTime: 30_000
})

export const addLabel = (name: string, tone: Label["tone"]) =>
  call<typeof OneLabel.Encoded, typeof LabelFields.Encoded>("POST", "/api/inbox/labels", {
    body: { name, tone }
  })

export const addView = (name: string, filter: Filter) =>
  call<unknown, typeof SavedViewFields.Encoded>("POST", "/api/inbox/views", { body: { name, filter } })

export const removeView = (id: string) => call("DELETE", `/api/inbox/views/${id}`)

export const addReply = (shortcut: string, content: string) =>
  call<unknown, typeof CannedReplyFields.Encoded>("POST", "/api/inbox/replies", {
    body: { shortcut, content }
  })

export const removeReply = (id: string) => call("DELETE", `/api/inbox/replies/${id}`)
