/** Conversations of all channels: their messages, state, files and traces. */
import { type InfiniteData, infiniteQueryOptions, queryOptions } from "@tanstack/react-query"
import type { RunTrace } from "../../../domain/chat/AgentRun.ts"
import { sizeLimits } from "../../MessageLimits.ts"
import type { ConversationState } from "../../../domain/conversations/Conversation.ts"
import type { InboxMessage, MessageFeedback } from "../../../domain/conversations/InboxView.ts"
import type {
  InboxConversation,
  RecentMessages,
  SocketAccess
} from "../../../http/hosted/conversations/InboxViewApi.ts"
import type { MessageBody } from "../../../http/hosted/conversations/TakeoverApi.ts"
import { call, failureOf, firstPage } from "./Client.ts"
import { membersOf } from "./membersOf.ts"
import { readTrace, tracePageSize } from "./conversations/TracePages.ts"
import { nextPageCursor, readPage, type ThreadPage, threadPageSize } from "./conversations/ThreadPage.ts"

export type State = typeof ConversationState.Encoded
/** In the order in which they are shown: conversations that wait for a human come first. */
export const states = membersOf<State>({
  HUMAN_REQUESTED: true,
  HUMAN_ACTIVE: true,
  AI_ACTIVE: true,
  CLOSED: true
})
export const channels = [
  "api",
  "widget",
  "whatsapp",
  "messenger",
  "telegram",
  "slack",
  "email",
  "test"
] as const
type Channel = (typeof channels)[number]
/** The service may have custom channels, which have only their own name. */
export const isChannel = (name: string): name is Channel => channels.some((one) => one === name)

export type Conversation = typeof InboxConversation.Encoded
export type Message = typeof InboxMessage.Encoded
export type Feedback = typeof MessageFeedback.Encoded

const refetchIntervalMs = 5_000

const hasPendingDelivery = (page: typeof RecentMessages.Encoded | undefined) =>
  page?.messages.some(({ delivery }) => delivery?.status === "pending") === true

/**
 * Pages from the newest to the oldest, each with its oldest message first. A poll reads the newest page, and others
 * when their copies are old. `live` is true while the socket reports new messages.
 */
export const conversation = (id: string, live: boolean) =>
  infiniteQueryOptions({
    queryKey: ["conversations", "one", id],
    queryFn: ({ client, pageParam, queryKey, signal }) =>
      readPage(client.getQueryData<InfiniteData<ThreadPage>>(queryKey)?.pages ?? [], pageParam, () =>
        call<typeof RecentMessages.Encoded>("GET", `/api/conversations/${id}/recent`, {
          query: { limit: threadPageSize, before: pageParam },
          signal
        })
      ),
    initialPageParam: firstPage(),
    getNextPageParam: nextPageCursor,
    // The socket does not report the delivery state of a message.
    refetchInterval: ({ state: { data } }) =>
      live && !hasPendingDelivery(data?.pages[0]) ? 30_000 : refetchIntervalMs
  })

/** The last messages, read once. */
export const recentMessages = (id: string, limit: number) =>
  call<typeof RecentMessages.Encoded>("GET", `/api/conversations/${id}/recent`, { query: { limit } }).then(
    ({ messages }) => messages
  )

export const changeState = (id: string, action: "takeover" | "release" | "close") =>
  call("POST", `/api/conversations/${id}/${action}`)

const formOf = (content: string, files: ReadonlyArray<File>) => {
  const form = new FormData()
  if (content !== "") form.append("content", content)
  for (const file of files) form.append("files", file)
  return form
}

/** A key for each message that is written. `crypto.randomUUID` needs HTTPS. */
export const newIdempotencyKey = (): string => crypto.getRandomValues(new Uint32Array(4)).join("-")

export const sendMessage = (
  id: string,
  content: string,
  files: ReadonlyArray<File>,
  idempotencyKey: string
) =>
  call<unknown, typeof MessageBody.Encoded>("POST", `/api/conversations/${id}/messages`, {
    body: files.length === 0 ? { content } : formOf(content, files),
    idempotencyKey
  })

/** Whether the service accepts the file. */
export const isAttachable = ({ size, type }: File) => size <= (sizeLimits[type] ?? -1)

/** Address and token of a conversation's socket, valid for one hour. */
export const socketAccess = (id: string, signal: AbortSignal) =>
  call<typeof SocketAccess.Encoded>("POST", `/api/conversations/${id}/realtime`, { signal })

/** The whole trace of a run. It is read once, because the audit trail records each access. */
export const trace = (runId: string) =>
  queryOptions({
    queryKey: ["runs", runId],
    queryFn: ({ signal }) =>
      readTrace((cursor) =>
        call<typeof RunTrace.Encoded>("GET", `/api/agent-runs/${runId}`, {
          query: { limit: tracePageSize, cursor },
          signal
        })
      ),
    staleTime: Infinity
  })

/** The address of a file of the conversation. */
export const attachmentAddress = (id: string, artifact: string) =>
  `/api/conversations/${id}/attachments/${artifact}`

/** The files of a message of the conversation. */
export const loadFiles = (id: string, attachments: Message["attachments"]): Promise<ReadonlyArray<File>> =>
  Promise.all(
    attachments.map(async ({ artifact, mimeType, name }) => {
      const response = await fetch(attachmentAddress(id, artifact), { credentials: "same-origin" })
      if (!response.ok) throw await failureOf(response)
      return new File([await response.blob()], name, { type: mimeType })
    })
  )
