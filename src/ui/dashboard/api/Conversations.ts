/** Conversations of every channel: read as they go on, and answered by people. */
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query"
import type { RunEvent } from "../components/Trace.tsx"
import type { RunFailure } from "../text/useFailure.ts"
import type { Citation } from "../components/CitationChip.tsx"
import { call, firstPage } from "./Client.ts"

export const states = ["HUMAN_REQUESTED", "HUMAN_ACTIVE", "AI_ACTIVE", "CLOSED"] as const
export type State = (typeof states)[number]
/** `test`: what the team says to try an agent, which is listed only where it is asked for. */
export const channels = ["api", "widget", "whatsapp", "messenger", "test"] as const
export type Channel = (typeof channels)[number]

export interface Conversation {
  readonly id: string
  readonly agentId: string
  readonly endUserId: string
  readonly messageCount: number
  readonly createdAt: string
  readonly updatedAt: string
  readonly state: State
  readonly channel: Channel
  readonly handoffReason: string | null
  readonly customer: string | null
  readonly preview: string | null
  /** Why the last message got no answer. */
  readonly failure: RunFailure | null
  /** How many replies the customer found helpful, and how many not. */
  readonly ratings: { readonly helpful: number; readonly unhelpful: number }
}

interface Delivery {
  readonly status: "pending" | "sent" | "delivered" | "read" | "failed" | "cancelled"
  /** Why it was not delivered. */
  readonly reason: string | null
}

export interface Feedback {
  readonly rating: 1 | -1
  readonly comment: string | null
  readonly at: string
}

interface Attachment {
  readonly artifact: string
  readonly name: string
  readonly mimeType: string
  readonly size: number
}

export interface Message {
  readonly id: string
  readonly role: "user" | "assistant"
  readonly content: string
  readonly createdAt: string
  readonly author: "agent" | "human" | "system" | null
  readonly citations: ReadonlyArray<Citation>
  readonly attachments: ReadonlyArray<Attachment>
  /** Null where no channel carries the message. */
  readonly delivery: Delivery | null
  /** What the customer thinks of it. */
  readonly feedback: Feedback | null
  /** The run that wrote it, or that failed to answer it. */
  readonly runId: string | null
  /** Why it got no answer. */
  readonly failure: RunFailure | null
}

interface ListPage {
  readonly conversations: ReadonlyArray<Conversation>
  readonly nextCursor: string | null
}

export interface Filter {
  readonly agentId?: string | undefined
  readonly state?: State | undefined
  readonly channel?: Channel | undefined
}

/** How often a list is looked at anew, in milliseconds. */
const soon = 5_000

export const conversations = ({ agentId, channel, state }: Filter) =>
  infiniteQueryOptions({
    queryKey: ["conversations", "list", agentId, channel, state],
    queryFn: ({ pageParam, signal }) =>
      call<ListPage>("GET", "/api/inbox", {
        query: { limit: 30, cursor: pageParam, agentId, channel, state },
        signal
      }),
    initialPageParam: firstPage(),
    getNextPageParam: ({ nextCursor }) => nextCursor,
    refetchInterval: soon
  })

interface Recent {
  readonly conversation: Conversation
  readonly messages: ReadonlyArray<Message>
  readonly hasMore: boolean
}

const isUnderway = (page: Recent | undefined) =>
  page?.messages.some(({ delivery }) => delivery?.status === "pending") === true

/** Pages from the newest back; each oldest message first. `live` while the socket tells what is new. */
export const conversation = (id: string, live: boolean) =>
  infiniteQueryOptions({
    queryKey: ["conversations", "one", id],
    queryFn: ({ pageParam, signal }) =>
      call<Recent>("GET", `/api/conversations/${id}/recent`, {
        query: { limit: 30, before: pageParam },
        signal
      }),
    initialPageParam: firstPage(),
    getNextPageParam: ({ hasMore, messages }) => (hasMore ? (messages[0]?.id ?? null) : null),
    // No frame of the socket tells how far a message has come.
    refetchInterval: ({ state: { data } }) => (live && !isUnderway(data?.pages[0]) ? 30_000 : soon)
  })

/** The last messages, once. */
export const recentMessages = (id: string, limit: number) =>
  call<Recent>("GET", `/api/conversations/${id}/recent`, { query: { limit } }).then(
    ({ messages }) => messages
  )

export const act = (id: string, deed: "takeover" | "release" | "close") =>
  call("POST", `/api/conversations/${id}/${deed}`)

const formOf = (content: string, files: ReadonlyArray<File>) => {
  const form = new FormData()
  if (content !== "") form.append("content", content)
  for (const file of files) form.append("files", file)
  return form
}

export const say = (id: string, content: string, files: ReadonlyArray<File>) =>
  call("POST", `/api/conversations/${id}/messages`, {
    body: files.length === 0 ? { content } : formOf(content, files)
  })

/** Types of the files that may be attached, and how many. */
export const attachable = "image/jpeg,image/png,image/webp,image/gif,application/pdf"
export const mostAttachments = 10

const MiB = 1_048_576

/** Whether the service would take the file. */
export const isAttachable = ({ size, type }: File) =>
  attachable.split(",").includes(type) && size <= (type === "application/pdf" ? 25 : 10) * MiB

interface Access {
  readonly realtimeToken: string
  readonly realtimeUrl: string
}

/** What opens the socket of a conversation, for one hour. */
export const realtime = (id: string, signal: AbortSignal) =>
  call<Access>("POST", `/api/conversations/${id}/realtime`, { signal })

interface RunTrace {
  readonly events: ReadonlyArray<RunEvent>
}

/** Each reading is in the audit trail, so it is read once. */
export const trace = (runId: string) =>
  queryOptions({
    queryKey: ["runs", runId],
    queryFn: ({ signal }) =>
      call<RunTrace>("GET", `/api/agent-runs/${runId}`, { query: { limit: 100 }, signal }),
    staleTime: Infinity
  })

/** Where a file of the conversation is. */
export const attachmentAddress = (id: string, artifact: string) =>
  `/api/conversations/${id}/attachments/${artifact}`
