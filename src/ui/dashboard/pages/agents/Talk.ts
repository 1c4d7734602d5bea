/**
 * What is said with an agent while it is tried: it outlives the page that shows it, and a window that is loaded again goes on
 * with it, in the middle of an answer too.
 */
import { Chat } from "@ai-sdk/react"
import { DefaultChatTransport, type UIMessage } from "ai"
import type { ChatTurnResult } from "../../../../domain/chat/ChatTurn.ts"
import { failureOf } from "../../api/Client.ts"
import { type Message as Stored, recentMessages } from "../../api/Conversations.ts"
import type { Citation } from "../../components/CitationChip.tsx"
import type { RunEvent } from "../../components/Trace.tsx"
import { TurnForm } from "./TurnForm.ts"

type Result = Pick<typeof ChatTurnResult.Encoded, "reply" | "conversationId"> & {
  readonly citations: ReadonlyArray<Citation>
}

interface Sent {
  /** Names of the files that went along. */
  readonly files: ReadonlyArray<string>
}

type DataParts = {
  readonly "agent-run-event": RunEvent
  readonly done: { readonly result: Result }
}

export type Message = UIMessage<Sent, DataParts>

export const textOf = ({ parts }: Message): string =>
  parts.map((part) => (part.type === "text" ? part.text : "")).join("")

/** Those of the settled reply, or those that have come so far. */
export const citationsOf = ({ parts }: Message): ReadonlyArray<Citation> => {
  const done = parts.find((part) => part.type === "data-done")
  if (done !== undefined) return done.data.result.citations
  return parts.flatMap((part) => {
    if (part.type !== "source-url" && part.type !== "source-document") return []
    const index = part.providerMetadata?.["spoke"]?.["index"]
    if (typeof index !== "number") return []
    return [{ index, title: part.title ?? "", url: part.type === "source-url" ? part.url : "" }]
  })
}

/** The turn that was last begun and has no answer yet. */
interface Pending {
  readonly runId: string
  readonly text: string
  readonly files: ReadonlyArray<string>
}

/** What this window keeps of the talk. */
interface Kept {
  readonly conversationId?: string
  readonly pending?: Pending
  /** The agent's version that is tried. */
  readonly version?: number
}

/** Messages of a talk that are shown again. */
const messageLimit = 100

const own = (id: string, text: string, files: ReadonlyArray<string>): Message => ({
  id,
  role: "user",
  metadata: { files },
  parts: [{ type: "text", text }]
})

const shown = ({ attachments, citations, content, id, role }: Stored): Message =>
  role === "user"
    ? own(
        id,
        content,
        attachments.map(({ name }) => name)
      )
    : {
        id,
        role,
        parts: [
          { type: "text", text: content },
          { type: "data-done", data: { result: { reply: content, citations } } }
        ]
      }

/** `stored` without what the turn `runId` is about to tell again. */
const without = (stored: ReadonlyArray<Stored>, runId: string | undefined): ReadonlyArray<Stored> => {
  const place = stored.findIndex((message) => message.runId === runId)
  if (runId === undefined || place < 0) return stored
  return stored.slice(0, stored[place]?.role === "assistant" ? Math.max(0, place - 1) : place)
}

export class Talk {
  /** The chat of the AI SDK, on our own stream. */
  readonly chat: Chat<Message>
  private readonly turn: TurnForm
  private readonly storageKey: string
  private kept: Kept = {}
  private told: ReadonlyArray<RunEvent> = []
  private readonly listeners = new Set<() => void>()

  constructor(userId: string, agentId: string) {
    this.turn = new TurnForm(agentId)
    this.storageKey = `spoke.try.${userId}.${agentId}`
    this.chat = new Chat<Message>({
      transport: new DefaultChatTransport<Message>({
        api: "/api/v1/chat/stream",
        fetch: (address, request) =>
          request?.method === "GET" ? fetch(address, request) : this.ask(address, request),
        prepareReconnectToStreamRequest: () => ({
          api: `/api/v1/chat/stream/${this.kept.pending?.runId ?? ""}?agentId=${agentId}`
        })
      }),
      onData: (part) => {
        if (part.type === "data-agent-run-event") this.tell([...this.told, part.data])
        if (part.type === "data-done") this.answered(part.data.result)
      }
    })
    void this.restore()
  }

  /** The events of the turn at hand. */
  readonly events = (): ReadonlyArray<RunEvent> => this.told

  readonly listen = (listener: () => void): (() => void) => {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  send(text: string, files: ReadonlyArray<File>): void {
    this.tell([])
    this.turn.next(text, files)
    void this.chat.sendMessage({ text, metadata: { files: files.map(({ name }) => name) } })
  }

  /** The version that is tried; undefined for the one that answers customers. */
  get version(): number | undefined {
    return this.turn.version
  }

  /** From now on `version` is tried, in another conversation. */
  tryVersion(version: number | undefined): void {
    if (version === this.turn.version) return
    this.turn.version = version
    this.clear()
  }

  /** What is said next begins another conversation. */
  clear(): void {
    void this.chat.stop()
    this.turn.conversationId = undefined
    this.chat.messages = []
    this.chat.clearError()
    this.keep({})
    this.tell([])
  }

  private async ask(address: RequestInfo | URL, request: RequestInit | undefined): Promise<Response> {
    const response = await fetch(address, { ...request, ...this.turn.request() })
    if (!response.ok) throw await failureOf(response)
    const runId = response.headers.get("x-run-id")
    const { files, text } = this.turn.current
    if (runId !== null) this.keep({ ...this.kept, pending: { runId, text, files } })
    return response
  }

  private answered({ conversationId }: Result): void {
    this.turn.conversationId = conversationId
    this.keep(conversationId === undefined ? {} : { conversationId })
  }

  private keep(kept: Kept): void {
    this.kept = kept
    const { version } = this.turn
    try {
      sessionStorage.setItem(this.storageKey, JSON.stringify({ ...kept, version }))
    } catch {
      // Kept as long as the window is.
    }
  }

  /** What was said before the window was loaded again, and the answer that was being written. */
  private async restore(): Promise<void> {
    const kept: Kept | null = JSON.parse(sessionStorage.getItem(this.storageKey) ?? "null")
    if (kept === null) return
    const { conversationId, pending, version } = kept
    this.turn.version = version
    const stored =
      conversationId === undefined ? [] : await recentMessages(conversationId, messageLimit).catch(() => null)
    // It is gone, or a new conversation was begun meanwhile.
    if (stored === null || this.chat.messages.length > 0) return
    this.kept = kept
    this.turn.conversationId = conversationId
    const messages = without(stored, pending?.runId).map(shown)
    if (pending === undefined) {
      this.chat.messages = messages
      return
    }
    this.chat.messages = [...messages, own(pending.runId, pending.text, pending.files)]
    await this.chat.resumeStream()
  }

  private tell(events: ReadonlyArray<RunEvent>): void {
    this.told = events
    for (const listener of this.listeners) listener()
  }
}

const talks = new Map<string, Talk>()

/** The talk of this user with this agent. */
export const talkOf = (userId: string, agentId: string): Talk => {
  const key = `${userId} ${agentId}`
  const talk = talks.get(key) ?? new Talk(userId, agentId)
  talks.set(key, talk)
  return talk
}
