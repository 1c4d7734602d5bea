/** A test chat with an agent. It survives a change of page, and continues after a reload, also during a reply. */
import { Chat } from "@ai-sdk/react"
import { DefaultChatTransport, type UIMessage } from "ai"
import type { ChatTurnResult } from "../../../../domain/chat/ChatTurn.ts"
import type { OneAgent } from "../../../../http/hosted/agents/AgentsApi.ts"
import type { ToolPage } from "../../../../http/hosted/agents/ToolsApi.ts"
import { call, failureOf } from "../../api/Client.ts"
import { type Message as Stored, recentMessages } from "../../api/Conversations.ts"
import type { Citation } from "../../components/CitationChip.tsx"
import { failureIn, type RunEvent } from "../../components/Trace.tsx"
import { type Tried, TurnForm } from "./TurnForm.ts"

type Result = Pick<typeof ChatTurnResult.Encoded, "reply" | "conversationId"> & {
  readonly citations: ReadonlyArray<Citation>
}

interface Sent {
  /** Names of the attached files. */
  readonly files: ReadonlyArray<string>
}

type DataParts = {
  readonly "agent-run-event": RunEvent
  readonly done: { readonly result: Result }
}

export type Message = UIMessage<Sent, DataParts>

export const textOf = ({ parts }: Message): string =>
  parts.map((part) => (part.type === "text" ? part.text : "")).join("")

/** Whether the reply is complete. */
export const isDone = ({ parts }: Message): boolean => parts.some(({ type }) => type === "data-done")

/** The citations of the settled reply, or those received so far. */
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

/** The last turn, while it has no answer. */
interface Pending {
  readonly runId: string
  readonly text: string
  readonly files: ReadonlyArray<string>
}

/** The stored state of the chat in this window. */
interface Kept {
  readonly conversationId?: string
  readonly pending?: Pending
  /** The tried version of the agent. */
  readonly version?: number | undefined
}

/** State of the current turn. */
interface Progress {
  readonly events: ReadonlyArray<RunEvent>
  /** The connection was lost and is being restored. */
  readonly isLost: boolean
  /** The user stopped it. */
  readonly isStopped: boolean
}

const nothingYet: Progress = { events: [], isLost: false, isStopped: false }

/** Maximum number of messages restored after a reload. */
const messageLimit = 100

const hasNoTools = async (agentId: string): Promise<boolean> => {
  const [agent, page] = await Promise.all([
    call<typeof OneAgent.Encoded>("GET", `/api/agents/${agentId}`),
    call<typeof ToolPage.Encoded>("GET", `/api/agents/${agentId}/tools`, { query: { limit: 1 } })
  ])
  return agent.agent.tools.length === 0 && page.tools.length === 0
}

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

/** `stored` without the messages that the resumed turn `runId` will send again. */
const without = (stored: ReadonlyArray<Stored>, runId: string | undefined): ReadonlyArray<Stored> => {
  const place = stored.findIndex((message) => message.runId === runId)
  if (runId === undefined || place < 0) return stored
  return stored.slice(0, stored[place]?.role === "assistant" ? Math.max(0, place - 1) : place)
}

/** Polling intervals in milliseconds while the server is unavailable: at first, and later. */
const firstWaitMs = 400
const maxWaitMs = 3_000

const delay = (milliseconds: number) => new Promise((resolve) => window.setTimeout(resolve, milliseconds))

/** Maximum number of consecutive polls of a turn without a result. */
const maxMisses = 5

const isUp = () =>
  fetch("/readyz").then(
    ({ ok }) => ok,
    () => false
  )

export class Talk {
  /** The AI SDK's chat with our own transport. */
  readonly chat: Chat<Message>
  private readonly turn: TurnForm
  private readonly storageKey: string
  private kept: Kept = {}
  private now = nothingYet
  private isRecovering = false
  /** Number of consecutive polls of the turn without a result. */
  private misses = 0
  /** The turn of each of the user's messages. */
  private readonly runs = new Map<string, string>()
  /** Events of the turns, as far as this window has received them. */
  private readonly told = new Map<string, ReadonlyArray<RunEvent>>()
  private readonly listeners = new Set<() => void>()

  constructor(agentId: string, storageKey: string) {
    this.turn = new TurnForm(agentId)
    this.storageKey = storageKey
    this.chat = new Chat<Message>({
      transport: new DefaultChatTransport<Message>({
        api: "/api/v1/chat/stream",
        fetch: (address, request) =>
          request?.method === "GET" ? fetch(address, request) : this.ask(address, request),
        prepareReconnectToStreamRequest: () => ({ api: this.addressOf(this.kept.pending?.runId ?? "") })
      }),
      onData: (part) => {
        if (part.type === "data-agent-run-event") {
          const events = [...this.now.events, part.data]
          this.told.set(part.data.runId, events)
          this.tell({ events })
        }
        if (part.type === "data-done") this.answered(part.data.result)
      },
      onFinish: ({ isAbort }) => {
        if (!isAbort && !this.isRecovering && this.isCutOff()) void this.recover()
      }
    })
    void this.restore()
  }

  readonly progress = (): Progress => this.now

  readonly listen = (listener: () => void): (() => void) => {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  /** The turn of the user's message `id`; null if none has begun. */
  runOf(id: string): string | null {
    return this.runs.get(id) ?? null
  }

  /** Events of a turn, as far as this window has received them. */
  eventsIn(runId: string): ReadonlyArray<RunEvent> {
    return this.told.get(runId) ?? []
  }

  send(text: string, files: ReadonlyArray<File>, replaces?: string): void {
    this.tell(nothingYet)
    const { pending: _, ...kept } = this.kept
    this.kept = kept
    this.turn.next({ text, files, replaces })
    void this.chat.sendMessage({ text, metadata: { files: files.map(({ name }) => name) } })
  }

  /** Sends `text` in place of the user's message `id`, and removes later messages. */
  sendAgain(id: string, text: string): void {
    const place = this.chat.messages.findIndex((message) => message.id === id)
    if (place < 0) return
    this.chat.messages = this.chat.messages.slice(0, place)
    this.send(text, [], this.runs.get(id))
  }

  /** Stops the turn. The text so far becomes the reply. */
  async stop(): Promise<void> {
    const runId = this.kept.pending?.runId
    this.tell({ isStopped: true, isLost: false })
    const ended = runId === undefined ? false : await this.end(runId)
    if (!ended) await this.chat.stop()
  }

  /** The tried version; undefined for the published one. */
  get version(): number | undefined {
    return this.turn.tried.version
  }

  /** Used from the next message on. */
  tries(tried: Tried): void {
    this.turn.tried = tried
  }

  /** Switches to `version`, in a new conversation. */
  tryVersion(version: number | undefined): void {
    if (version === this.version) return
    this.turn.tried = { version }
    this.clear()
  }

  /** The next message begins a new conversation. */
  clear(): void {
    void this.chat.stop()
    this.turn.conversationId = undefined
    this.chat.messages = []
    this.chat.clearError()
    this.runs.clear()
    this.keep({})
    this.tell(nothingYet)
  }

  private addressOf(runId: string): string {
    return `/api/v1/chat/stream/${runId}?agentId=${this.turn.agentId}`
  }

  private end(runId: string): Promise<boolean> {
    return call("POST", `/api/v1/chat/stream/${runId}/stop`, { query: { agentId: this.turn.agentId } }).then(
      () => true,
      () => false
    )
  }

  private async ask(address: RequestInfo | URL, request: RequestInit | undefined): Promise<Response> {
    const asked = this.chat.messages.at(-1)?.id ?? ""
    const response = await fetch(address, { ...request, ...this.turn.request() })
    if (!response.ok) throw await failureOf(response)
    const runId = response.headers.get("x-run-id")
    if (runId !== null) {
      this.runs.set(asked, runId)
      this.keep({ ...this.kept, pending: { runId, ...this.turn.current } })
    }
    return response
  }

  private answered({ conversationId }: Result): void {
    this.turn.conversationId = conversationId
    this.keep(conversationId === undefined ? {} : { conversationId })
  }

  private keep(kept: Kept): void {
    this.kept = { ...kept, version: this.version }
    try {
      sessionStorage.setItem(this.storageKey, JSON.stringify(this.kept))
    } catch {
      // Kept until the window is closed.
    }
  }

  /** Messages from before a reload, and the interrupted reply. */
  private async restore(): Promise<void> {
    const kept: Kept | null = JSON.parse(sessionStorage.getItem(this.storageKey) ?? "null")
    if (kept === null) return
    const { conversationId, pending, version } = kept
    this.turn.tried = { version }
    const stored =
      conversationId === undefined ? [] : await recentMessages(conversationId, messageLimit).catch(() => null)
    // It no longer exists, or a new conversation has begun.
    if (stored === null || this.chat.messages.length > 0) return
    this.kept = kept
    this.turn.conversationId = conversationId
    stored.forEach(({ id, role, runId }, place) => {
      const turn = runId ?? stored[place + 1]?.runId ?? null
      if (role === "user" && turn !== null) this.runs.set(id, turn)
    })
    const messages = without(stored, pending?.runId).map(shown)
    if (pending === undefined) {
      this.chat.messages = messages
      return
    }
    this.runs.set(pending.runId, pending.runId)
    this.chat.messages = [...messages, own(pending.runId, pending.text, pending.files)]
    await this.resume()
  }

  /** True when the turn's stream has ended without a result. */
  private isCutOff(): boolean {
    const { error } = this.chat
    return (
      this.kept.pending !== undefined &&
      error?.message !== "TURN_FAILED" &&
      error?.message !== "RUNTIME_TIMEOUT"
    )
  }

  /** True when the turn ended with its server, and no tool can have acted. */
  private async isLostUnheard(): Promise<boolean> {
    const last = this.now.events.at(-1)
    if (last === undefined || failureIn(last)?.code !== "PROCESS_STOPPED") return false
    return hasNoTools(this.turn.agentId).catch(() => false)
  }

  /** The stream of the current turn from its start. If its server has lost the turn, the question is asked again. */
  private async resume(): Promise<void> {
    const { pending } = this.kept
    if (pending === undefined) return
    this.isRecovering = true
    if (this.chat.messages.at(-1)?.role === "assistant") this.chat.messages = this.chat.messages.slice(0, -1)
    this.tell({ events: [] })
    this.chat.clearError()
    await this.chat.resumeStream()
    this.isRecovering = false
    if (this.kept.pending?.runId !== pending.runId) return
    this.misses = this.now.events.length === 0 ? this.misses + 1 : 0
    const asked = this.chat.messages.findLast(({ role }) => role === "user")
    if (asked !== undefined && pending.files.length === 0 && (await this.isLostUnheard())) {
      this.chat.clearError()
      this.sendAgain(asked.id, pending.text)
    } else if (this.isCutOff() && this.misses < maxMisses) await this.recover()
  }

  /** Waits for the server and continues at the turn's current state. */
  private async recover(): Promise<void> {
    const runId = this.kept.pending?.runId
    this.tell({ isLost: true })
    for (let wait = firstWaitMs; ; wait = Math.min(wait * 2, maxWaitMs)) {
      await delay(wait)
      if (this.kept.pending?.runId !== runId || this.now.isStopped) return this.tell({ isLost: false })
      if (await isUp()) break
    }
    this.tell({ isLost: false })
    await this.resume()
  }

  private tell(progress: Partial<Progress>): void {
    this.now = { ...this.now, ...progress }
    for (const listener of this.listeners) listener()
  }
}

const talks = new Map<string, Talk>()

/** The test chat of this user with this agent; `side` if two are next to each other. */
export const talkOf = (userId: string, agentId: string, side?: "left" | "right"): Talk => {
  const key = `spoke.try.${userId}.${agentId}${side === undefined ? "" : `.${side}`}`
  const talk = talks.get(key) ?? new Talk(agentId, key)
  talks.set(key, talk)
  return talk
}
