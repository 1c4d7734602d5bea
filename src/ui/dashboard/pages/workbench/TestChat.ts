/** A test chat with an agent. It survives a change of page, and continues after a reload, also during a reply. */
import type { ChatTurnResult } from "../../../../domain/chat/ChatTurn.ts"
import type { StreamPart } from "../../../../domain/chat/StreamPart.ts"
import type { OneAgent } from "../../../../http/hosted/agents/AgentsApi.ts"
import type { ToolPage } from "../../../../http/hosted/agents/ToolsApi.ts"
import { readParts, sourceOf } from "../../../EventStream.ts"
import { call, failureOf } from "../../api/Client.ts"
import { loadFiles, recentMessages } from "../../api/Conversations.ts"
import { failureIn, type RunEvent } from "../../components/replies/Trace.tsx"
import { type Message, userMessage, toMessage, withoutTurn } from "./ChatMessage.ts"
import { type Trial, TurnRequest } from "./TurnRequest.ts"

/** The last turn, while it has no answer. */
interface PendingTurn {
  readonly runId: string
  readonly text: string
  readonly files: ReadonlyArray<string>
}

/** The stored state of the chat in this window. */
interface SavedChat {
  readonly conversationId?: string
  readonly pending?: PendingTurn
  /** The version of the agent that is being tried. */
  readonly version?: number | undefined
}

/** Null if nothing is stored. */
const readSavedChat = (key: string): SavedChat | null => {
  try {
    return JSON.parse(sessionStorage.getItem(key) ?? "null")
  } catch {
    return null
  }
}

/** The messages, and the state of the current turn. */
export interface ChatView {
  readonly messages: ReadonlyArray<Message>
  /** A reply is awaited or received. */
  readonly isAnswering: boolean
  /** Why the last turn got no answer; null if it did. */
  readonly error: Error | null
  readonly events: ReadonlyArray<RunEvent>
  /** The connection was lost and is being restored. */
  readonly isLost: boolean
  /** The user stopped it. */
  readonly isStopped: boolean
}

const noResult = { error: null, events: [], isLost: false, isStopped: false } as const
const emptyView: ChatView = { messages: [], isAnswering: false, ...noResult }

/** Milliseconds between two renderings of a streaming reply. */
const renderIntervalMs = 50

/** True if the turn failed on the server. Any other error means that the stream was interrupted. */
export const isTurnFailure = (error: Error | null): boolean =>
  error?.message === "TURN_FAILED" || error?.message === "RUNTIME_TIMEOUT"

/** Maximum number of messages restored after a reload. */
const maxRestoredMessages = 100

const hasNoTools = async (agentId: string): Promise<boolean> => {
  const [agent, page] = await Promise.all([
    call<typeof OneAgent.Encoded>("GET", `/api/agents/${agentId}`),
    call<typeof ToolPage.Encoded>("GET", `/api/agents/${agentId}/tools`, { query: { limit: 1 } })
  ])
  return agent.agent.tools.length === 0 && page.tools.length === 0
}

/** Interval between two polls while the server is unavailable: it doubles from the minimum to the maximum. */
const minPollMs = 400
const maxPollMs = 3_000

const sleep = (milliseconds: number) => new Promise((resolve) => window.setTimeout(resolve, milliseconds))

/** Maximum number of consecutive polls of a turn without a result. */
const maxEmptyPolls = 5

const isServerReady = () =>
  fetch("/readyz").then(
    ({ ok }) => ok,
    () => false
  )

export class TestChat {
  private readonly request: TurnRequest
  private readonly storageKey: string
  private saved: SavedChat = {}
  private view = emptyView
  private isRecovering = false
  /** Number of consecutive polls of the turn without a result. */
  private emptyPolls = 0
  /** Number of messages that this window has created. It makes their ids unique. */
  private createdMessages = 0
  /** Stops reading the current stream. */
  private streamAbort = new AbortController()
  private renderTimer: number | undefined
  /** The run id of each of the user's messages. */
  private readonly runByMessage = new Map<string, string>()
  /** Loads the files of each of the user's messages. */
  private readonly filesByMessage = new Map<string, () => Promise<ReadonlyArray<File>>>()
  /** The events that this window has received of each run. */
  private readonly eventsByRun = new Map<string, ReadonlyArray<RunEvent>>()
  private readonly listeners = new Set<() => void>()

  constructor(agentId: string, storageKey: string) {
    this.request = new TurnRequest(agentId)
    this.storageKey = storageKey
    void this.restore()
  }

  readonly getView = (): ChatView => this.view

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  /** The run id of the user's message `id`; null if no turn has begun. */
  runIdOf(id: string): string | null {
    return this.runByMessage.get(id) ?? null
  }

  /** The events that this window has received of a run. */
  eventsOf(runId: string): ReadonlyArray<RunEvent> {
    return this.eventsByRun.get(runId) ?? []
  }

  send(text: string, files: ReadonlyArray<File>, replaces?: string): void {
    const { pending: _, ...saved } = this.saved
    this.saved = saved
    this.request.setMessage({ text, files, replaces })
    const question = userMessage(
      this.newId(),
      text,
      files.map(({ name }) => name)
    )
    this.filesByMessage.set(question.id, () => Promise.resolve(files))
    this.update({ ...noResult, messages: [...this.view.messages, question] })
    void this.readStream((signal) => this.openStream(question.id, signal))
  }

  /** False if the files of the message cannot be loaded: after a reload, before they are stored with the reply. */
  canSendAgain({ files, id }: Message): boolean {
    return files.length === 0 || this.filesByMessage.has(id)
  }

  /** Sends `text` and the same files in place of the user's message `id`, and removes later messages. */
  async sendAgain(id: string, text: string): Promise<void> {
    this.update({ isAnswering: true })
    const files = await (this.filesByMessage.get(id)?.() ?? Promise.resolve([])).catch((problem: unknown) => {
      this.update({ error: problem instanceof Error ? problem : new Error(String(problem)) })
      return null
    })
    const index = this.view.messages.findIndex((message) => message.id === id)
    if (files === null || index < 0) return this.update({ isAnswering: false })
    this.update({ messages: this.view.messages.slice(0, index) })
    this.send(text, files, this.runByMessage.get(id))
  }

  /** Stops the turn. The text so far becomes the reply. */
  async stop(): Promise<void> {
    const runId = this.saved.pending?.runId
    this.update({ isStopped: true, isLost: false })
    const ended = runId === undefined ? false : await this.requestStop(runId)
    if (!ended) this.streamAbort.abort()
  }

  /** The tried version; undefined for the published one. */
  get version(): number | undefined {
    return this.request.trial.version
  }

  /** Sets the version and the settings that answer the next message. */
  setTrial(trial: Trial): void {
    this.request.trial = trial
  }

  /** Switches to `version`, in a new conversation. */
  tryVersion(version: number | undefined): void {
    if (version === this.version) return
    this.request.trial = { version }
    this.clear()
  }

  /** The next message begins a new conversation. */
  clear(): void {
    this.streamAbort.abort()
    this.request.conversationId = undefined
    this.runByMessage.clear()
    this.filesByMessage.clear()
    this.save({})
    this.update(emptyView)
  }

  private newId(): string {
    this.createdMessages += 1
    return `made-${this.createdMessages}`
  }

  private streamUrl(runId: string): string {
    return `/api/v1/chat/stream/${runId}?agentId=${this.request.agentId}`
  }

  private requestStop(runId: string): Promise<boolean> {
    return call("POST", `/api/v1/chat/stream/${runId}/stop`, {
      query: { agentId: this.request.agentId }
    }).then(
      () => true,
      () => false
    )
  }

  /** Starts a turn that answers the message `questionId`, and opens its stream. */
  private async openStream(questionId: string, signal: AbortSignal): Promise<Response> {
    const response = await fetch("/api/v1/chat/stream", {
      method: "POST",
      credentials: "same-origin",
      signal,
      ...this.request.toRequestInit()
    })
    if (!response.ok) throw await failureOf(response)
    const runId = response.headers.get("x-run-id")
    if (runId !== null) {
      this.runByMessage.set(questionId, runId)
      this.save({ ...this.saved, pending: { runId, ...this.request.question } })
    }
    return response
  }

  /** Shows the parts of the stream until it ends. If it was cut off, waits for the server and resumes it. */
  private async readStream(open: (signal: AbortSignal) => Promise<Response>): Promise<void> {
    this.streamAbort.abort()
    const streamAbort = new AbortController()
    this.streamAbort = streamAbort
    this.update({ isAnswering: true, error: null })
    const failure = await open(streamAbort.signal)
      .then(({ body }) =>
        body === null
          ? undefined
          : readParts(body, (part) => {
              if (!streamAbort.signal.aborted) this.handlePart(part)
            })
      )
      .then(
        () => null,
        (problem: unknown) => (problem instanceof Error ? problem : new Error(String(problem)))
      )
    if (streamAbort.signal.aborted) {
      if (this.streamAbort === streamAbort) this.update({ isAnswering: false })
      return
    }
    this.update({ isAnswering: false, ...(failure === null ? {} : { error: failure }) })
    if (!this.isRecovering && this.isCutOff()) await this.recover()
  }

  private handlePart(part: StreamPart): void {
    if (part.type === "text-delta") this.updateReply(({ text }) => ({ text: text + part.delta }))
    else if (part.type === "data-agent-run-event") {
      const events = [...this.view.events, part.data]
      this.eventsByRun.set(part.data.runId, events)
      this.update({ events })
    } else if (part.type === "data-done") this.completeReply(part.data.result)
    else if (part.type === "error") this.update({ error: new Error(part.errorText) })
    else {
      const source = sourceOf(part)
      if (source !== null) this.updateReply(({ citations }) => ({ citations: [...citations, source] }))
    }
  }

  /** Changes the reply that is being received. The first change creates it. */
  private updateReply(change: (reply: Message) => Partial<Message>): void {
    const { messages } = this.view
    const last = messages.at(-1)
    const reply: Message =
      last?.role === "assistant"
        ? last
        : { ...userMessage(this.newId(), "", []), role: "assistant", isDone: false }
    const others = reply === last ? messages.slice(0, -1) : messages
    this.view = { ...this.view, messages: [...others, { ...reply, ...change(reply) }] }
    this.renderTimer ??= window.setTimeout(() => this.update({}), renderIntervalMs)
  }

  private completeReply({ citations, conversationId, reply }: typeof ChatTurnResult.Encoded): void {
    this.request.conversationId = conversationId
    this.save(conversationId === undefined ? {} : { conversationId })
    this.updateReply(({ text }) => ({ text: text === "" ? reply : text, citations, isDone: true }))
  }

  private save(saved: SavedChat): void {
    this.saved = { ...saved, version: this.version }
    try {
      sessionStorage.setItem(this.storageKey, JSON.stringify(this.saved))
    } catch {
      // Kept until the window is closed.
    }
  }

  /** Messages from before a reload, and the interrupted reply. */
  private async restore(): Promise<void> {
    const saved = readSavedChat(this.storageKey)
    if (saved === null) return
    const { conversationId, pending, version } = saved
    this.request.trial = { version }
    const stored =
      conversationId === undefined
        ? []
        : await recentMessages(conversationId, maxRestoredMessages).catch(() => null)
    // It no longer exists, or a new conversation has begun.
    if (stored === null || this.view.messages.length > 0) return
    this.saved = saved
    this.request.conversationId = conversationId
    stored.forEach(({ attachments, id, role, runId }, index) => {
      if (conversationId !== undefined && attachments.length > 0)
        this.filesByMessage.set(id, () => loadFiles(conversationId, attachments))
      const answeredBy = runId ?? stored[index + 1]?.runId ?? null
      if (role === "user" && answeredBy !== null) this.runByMessage.set(id, answeredBy)
    })
    const messages = withoutTurn(stored, pending?.runId).map(toMessage)
    if (pending === undefined) {
      this.update({ messages })
      return
    }
    this.runByMessage.set(pending.runId, pending.runId)
    this.update({ messages: [...messages, userMessage(pending.runId, pending.text, pending.files)] })
    await this.resume()
  }

  /** True when the turn's stream has ended without a result. */
  private isCutOff(): boolean {
    return this.saved.pending !== undefined && !isTurnFailure(this.view.error)
  }

  /** True if the turn ended because its server stopped, and the agent has no tool that may have acted. */
  private async canAskAgain(): Promise<boolean> {
    const last = this.view.events.at(-1)
    if (last === undefined || failureIn(last)?.code !== "PROCESS_STOPPED") return false
    return hasNoTools(this.request.agentId).catch(() => false)
  }

  /** Reads the stream of the current turn from its start. If the server has lost the turn, asks the question again. */
  private async resume(): Promise<void> {
    const { pending } = this.saved
    if (pending === undefined) return
    this.isRecovering = true
    const { messages } = this.view
    this.update({
      events: [],
      error: null,
      messages: messages.at(-1)?.role === "assistant" ? messages.slice(0, -1) : messages
    })
    await this.readStream(async (signal) => {
      const response = await fetch(this.streamUrl(pending.runId), { credentials: "same-origin", signal })
      if (!response.ok) throw await failureOf(response)
      return response
    })
    this.isRecovering = false
    if (this.saved.pending?.runId !== pending.runId) return
    this.emptyPolls = this.view.events.length === 0 ? this.emptyPolls + 1 : 0
    const question = this.view.messages.findLast(({ role }) => role === "user")
    if (question !== undefined && this.canSendAgain(question) && (await this.canAskAgain())) {
      await this.sendAgain(question.id, pending.text)
    } else if (this.isCutOff() && this.emptyPolls < maxEmptyPolls) await this.recover()
  }

  /** Waits until the server is ready, and resumes the turn. */
  private async recover(): Promise<void> {
    const runId = this.saved.pending?.runId
    this.update({ isLost: true })
    for (let waitMs = minPollMs; ; waitMs = Math.min(waitMs * 2, maxPollMs)) {
      await sleep(waitMs)
      if (this.saved.pending?.runId !== runId || this.view.isStopped) return this.update({ isLost: false })
      if (await isServerReady()) break
    }
    this.update({ isLost: false })
    await this.resume()
  }

  private update(change: Partial<ChatView>): void {
    window.clearTimeout(this.renderTimer)
    this.renderTimer = undefined
    this.view = { ...this.view, ...change }
    for (const listener of this.listeners) listener()
  }
}

const chats = new Map<string, TestChat>()

/** The test chat of this user with this agent; `side` if two are next to each other. */
export const testChatOf = (userId: string, agentId: string, side?: "left" | "right"): TestChat => {
  const key = `spoke.try.${userId}.${agentId}${side === undefined ? "" : `.${side}`}`
  const chat = chats.get(key) ?? new TestChat(agentId, key)
  chats.set(key, chat)
  return chat
}
