/** A test chat with an agent. It survives a change of page, and continues after a reload, also during a reply. */
import type { ChatTurnResult } from "../../../../domain/chat/ChatTurn.ts"
import type { StreamPart } from "../../../../domain/chat/StreamPart.ts"
import type { OneAgent } from "../../../../http/hosted/agents/AgentsApi.ts"
import type { ToolPage } from "../../../../http/hosted/agents/ToolsApi.ts"
import { readParts, sourceOf } from "../../../EventStream.ts"
import { call, failureOf } from "../../api/Client.ts"
import { recentMessages } from "../../api/Conversations.ts"
import { failureIn, type RunEvent } from "../../components/replies/Trace.tsx"
import { type Message, userMessage, toMessage, withoutTurn } from "./TalkMessage.ts"
import { type TriedSettings, TurnForm } from "./TurnForm.ts"

/** The last turn, while it has no answer. */
interface Pending {
  readonly runId: string
  readonly text: string
  readonly files: ReadonlyArray<string>
}

/** The stored state of the chat in this window. */
interface SavedChat {
  readonly conversationId?: string
  readonly pending?: Pending
  /** The tried version of the agent. */
  readonly version?: number | undefined
}

/** Null where the browser keeps none. */
const savedChat = (key: string): SavedChat | null => {
  try {
    return JSON.parse(sessionStorage.getItem(key) ?? "null")
  } catch {
    return null
  }
}

/** The messages, and the state of the current turn. */
export interface View {
  readonly messages: ReadonlyArray<Message>
  /** A reply is awaited or received. */
  readonly isOpen: boolean
  /** Why the last turn got no answer; null if it did. */
  readonly error: Error | null
  readonly events: ReadonlyArray<RunEvent>
  /** The connection was lost and is being restored. */
  readonly isLost: boolean
  /** The user stopped it. */
  readonly isStopped: boolean
}

const nothingYet = { error: null, events: [], isLost: false, isStopped: false } as const
const empty: View = { messages: [], isOpen: false, ...nothingYet }

/** Milliseconds between two renderings of a streaming reply. */
const drawEveryMs = 50

/** The stream told why the turn failed: it was not cut off. */
const isTold = (error: Error | null) =>
  error?.message === "TURN_FAILED" || error?.message === "RUNTIME_TIMEOUT"

/** Maximum number of messages restored after a reload. */
const messageLimit = 100

const hasNoTools = async (agentId: string): Promise<boolean> => {
  const [agent, page] = await Promise.all([
    call<typeof OneAgent.Encoded>("GET", `/api/agents/${agentId}`),
    call<typeof ToolPage.Encoded>("GET", `/api/agents/${agentId}/tools`, { query: { limit: 1 } })
  ])
  return agent.agent.tools.length === 0 && page.tools.length === 0
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
  private readonly turn: TurnForm
  private readonly storageKey: string
  private kept: SavedChat = {}
  private view = empty
  private isRecovering = false
  /** Number of consecutive polls of the turn without a result. */
  private misses = 0
  /** Messages that this window has made. */
  private made = 0
  /** Leaves the stream that is read. */
  private leaving = new AbortController()
  private drawing: number | undefined
  /** The turn of each of the user's messages. */
  private readonly runs = new Map<string, string>()
  /** Events of the turns, as far as this window has received them. */
  private readonly told = new Map<string, ReadonlyArray<RunEvent>>()
  private readonly listeners = new Set<() => void>()

  constructor(agentId: string, storageKey: string) {
    this.turn = new TurnForm(agentId)
    this.storageKey = storageKey
    void this.restore()
  }

  readonly now = (): View => this.view

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
    const { pending: _, ...kept } = this.kept
    this.kept = kept
    this.turn.next({ text, files, replaces })
    const question = userMessage(
      this.newId(),
      text,
      files.map(({ name }) => name)
    )
    this.set({ ...nothingYet, messages: [...this.view.messages, question] })
    void this.follow((signal) => this.ask(question.id, signal))
  }

  /** Sends `text` in place of the user's message `id`, and removes later messages. */
  sendAgain(id: string, text: string): void {
    const place = this.view.messages.findIndex((message) => message.id === id)
    if (place < 0) return
    this.set({ messages: this.view.messages.slice(0, place) })
    this.send(text, [], this.runs.get(id))
  }

  /** Stops the turn. The text so far becomes the reply. */
  async stop(): Promise<void> {
    const runId = this.kept.pending?.runId
    this.set({ isStopped: true, isLost: false })
    const ended = runId === undefined ? false : await this.end(runId)
    if (!ended) this.leaving.abort()
  }

  /** The tried version; undefined for the published one. */
  get version(): number | undefined {
    return this.turn.tried.version
  }

  /** Used from the next message on. */
  tries(tried: TriedSettings): void {
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
    this.leaving.abort()
    this.turn.conversationId = undefined
    this.runs.clear()
    this.keep({})
    this.set(empty)
  }

  private newId(): string {
    this.made += 1
    return `made-${this.made}`
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

  /** The stream of a new turn, which answers the message `asked`. */
  private async ask(asked: string, signal: AbortSignal): Promise<Response> {
    const response = await fetch("/api/v1/chat/stream", {
      method: "POST",
      credentials: "same-origin",
      signal,
      ...this.turn.request()
    })
    if (!response.ok) throw await failureOf(response)
    const runId = response.headers.get("x-run-id")
    if (runId !== null) {
      this.runs.set(asked, runId)
      this.keep({ ...this.kept, pending: { runId, ...this.turn.current } })
    }
    return response
  }

  /** Shows what the stream brings until it ends, and waits for the rest if it was cut off. */
  private async follow(open: (signal: AbortSignal) => Promise<Response>): Promise<void> {
    this.leaving.abort()
    const leaving = new AbortController()
    this.leaving = leaving
    this.set({ isOpen: true, error: null })
    const failure = await open(leaving.signal)
      .then(({ body }) =>
        body === null
          ? undefined
          : readParts(body, (part) => {
              if (!leaving.signal.aborted) this.take(part)
            })
      )
      .then(
        () => null,
        (problem: unknown) => (problem instanceof Error ? problem : new Error(String(problem)))
      )
    if (leaving.signal.aborted) {
      if (this.leaving === leaving) this.set({ isOpen: false })
      return
    }
    this.set({ isOpen: false, ...(failure === null ? {} : { error: failure }) })
    if (!this.isRecovering && this.isCutOff()) await this.recover()
  }

  private take(part: StreamPart): void {
    if (part.type === "text-delta") this.reply(({ text }) => ({ text: text + part.delta }))
    else if (part.type === "data-agent-run-event") {
      const events = [...this.view.events, part.data]
      this.told.set(part.data.runId, events)
      this.set({ events })
    } else if (part.type === "data-done") this.answered(part.data.result)
    else if (part.type === "error") this.set({ error: new Error(part.errorText) })
    else {
      const source = sourceOf(part)
      if (source !== null) this.reply(({ citations }) => ({ citations: [...citations, source] }))
    }
  }

  /** Changes the reply that is being received; the first change makes it. */
  private reply(change: (reply: Message) => Partial<Message>): void {
    const { messages } = this.view
    const last = messages.at(-1)
    const reply: Message =
      last?.role === "assistant"
        ? last
        : { ...userMessage(this.newId(), "", []), role: "assistant", isDone: false }
    const others = reply === last ? messages.slice(0, -1) : messages
    this.view = { ...this.view, messages: [...others, { ...reply, ...change(reply) }] }
    this.drawing ??= window.setTimeout(() => this.set({}), drawEveryMs)
  }

  private answered({ citations, conversationId, reply }: typeof ChatTurnResult.Encoded): void {
    this.turn.conversationId = conversationId
    this.keep(conversationId === undefined ? {} : { conversationId })
    this.reply(({ text }) => ({ text: text === "" ? reply : text, citations, isDone: true }))
  }

  private keep(kept: SavedChat): void {
    this.kept = { ...kept, version: this.version }
    try {
      sessionStorage.setItem(this.storageKey, JSON.stringify(this.kept))
    } catch {
      // Kept until the window is closed.
    }
  }

  /** Messages from before a reload, and the interrupted reply. */
  private async restore(): Promise<void> {
    const kept = savedChat(this.storageKey)
    if (kept === null) return
    const { conversationId, pending, version } = kept
    this.turn.tried = { version }
    const stored =
      conversationId === undefined ? [] : await recentMessages(conversationId, messageLimit).catch(() => null)
    // It no longer exists, or a new conversation has begun.
    if (stored === null || this.view.messages.length > 0) return
    this.kept = kept
    this.turn.conversationId = conversationId
    stored.forEach(({ id, role, runId }, place) => {
      const turn = runId ?? stored[place + 1]?.runId ?? null
      if (role === "user" && turn !== null) this.runs.set(id, turn)
    })
    const messages = withoutTurn(stored, pending?.runId).map(toMessage)
    if (pending === undefined) {
      this.set({ messages })
      return
    }
    this.runs.set(pending.runId, pending.runId)
    this.set({ messages: [...messages, userMessage(pending.runId, pending.text, pending.files)] })
    await this.resume()
  }

  /** True when the turn's stream has ended without a result. */
  private isCutOff(): boolean {
    return this.kept.pending !== undefined && !isTold(this.view.error)
  }

  /** True when the turn ended with its server, and no tool can have acted. */
  private async isLostUnheard(): Promise<boolean> {
    const last = this.view.events.at(-1)
    if (last === undefined || failureIn(last)?.code !== "PROCESS_STOPPED") return false
    return hasNoTools(this.turn.agentId).catch(() => false)
  }

  /** The stream of the current turn from its start. If its server has lost the turn, the question is asked again. */
  private async resume(): Promise<void> {
    const { pending } = this.kept
    if (pending === undefined) return
    this.isRecovering = true
    const { messages } = this.view
    this.set({
      events: [],
      error: null,
      messages: messages.at(-1)?.role === "assistant" ? messages.slice(0, -1) : messages
    })
    await this.follow(async (signal) => {
      const response = await fetch(this.addressOf(pending.runId), { credentials: "same-origin", signal })
      if (!response.ok) throw await failureOf(response)
      return response
    })
    this.isRecovering = false
    if (this.kept.pending?.runId !== pending.runId) return
    this.misses = this.view.events.length === 0 ? this.misses + 1 : 0
    const asked = this.view.messages.findLast(({ role }) => role === "user")
    if (asked !== undefined && pending.files.length === 0 && (await this.isLostUnheard())) {
      this.sendAgain(asked.id, pending.text)
    } else if (this.isCutOff() && this.misses < maxMisses) await this.recover()
  }

  /** Waits for the server and continues at the turn's current state. */
  private async recover(): Promise<void> {
    const runId = this.kept.pending?.runId
    this.set({ isLost: true })
    for (let wait = firstWaitMs; ; wait = Math.min(wait * 2, maxWaitMs)) {
      await delay(wait)
      if (this.kept.pending?.runId !== runId || this.view.isStopped) return this.set({ isLost: false })
      if (await isUp()) break
    }
    this.set({ isLost: false })
    await this.resume()
  }

  private set(change: Partial<View>): void {
    window.clearTimeout(this.drawing)
    this.drawing = undefined
    this.view = { ...this.view, ...change }
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
