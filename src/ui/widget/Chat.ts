/** The chat of a page: its session, what the visitor does, and what becomes of the messages that are sent. */
import { isTooLong } from "../MessageLimits.ts"
import { type Client, type Message, type Outgoing, Refusal } from "./Client.ts"
import { Conversation, pollIntervalMs } from "./Conversation.ts"
import { type Draft, prependToDraft } from "./Draft.ts"
import { addFiles } from "./Files.ts"
import { type Markdown, MarkdownLoader } from "./Markdown.ts"
import { messagesBeforePending, messagesFromPending } from "./Pending.ts"
import { receiveReply } from "./Reply.ts"
import type { Settings } from "./Settings.ts"
import { refusalText, textsFor } from "./Texts.ts"
import { empty, type View } from "./View.ts"
import { type PendingMessage, WidgetStorage } from "./WidgetStorage.ts"

const emptyReply = { files: [], reply: "", citations: [] }

/** Time after which a message that is not stored counts as not arrived, although a turn is running. */
const maxSendMs = 180_000
/** Pause before the next attempt to begin the session, with jitter. */
const startPauseMs = (startFailures: number) =>
  Math.min(pollIntervalMs * 2 ** startFailures, 8_000) * (0.5 + Math.random() / 2)
/** Successful polls without the message after which it counts as not arrived. */
const maxMissedPolls = 2

export class Chat {
  texts
  settings: Settings
  readonly client: Client
  /** Kept here because the composer is unmounted while the panel is closed. */
  draft: Draft = { text: "", files: [] }
  private currentView: View = empty
  sessionId: string | null = null
  readonly storage
  readonly ended = new AbortController()
  private readonly listeners = new Set<() => void>()
  /** The page's id for the visitor. */
  private externalEndUserId
  private missedPolls = 0
  /** Files of the live message. */
  private sentFiles: ReadonlyArray<File> = []
  /** Ids of the messages that were retried automatically. */
  private readonly retried = new Set<string>()
  private starting: Promise<void> | null = null
  /** Failed attempts to begin the session. */
  private startFailures = 0
  private readonly markdown
  private readonly conversation
  private startTimer: ReturnType<typeof setTimeout> | undefined

  constructor(settings: Settings, client: Client, storageName: string | null) {
    this.settings = settings
    this.texts = textsFor(settings.language)
    this.client = client
    this.externalEndUserId = settings.externalEndUserId
    this.markdown = new MarkdownLoader(client.base)
    this.storage = new WidgetStorage(storageName)
    this.conversation = new Conversation(this, (failure, replaceLive) => {
      if (this.forgetUnknownSession(failure))
        return this.currentView.live === null ? undefined : this.giveUp(this.texts.wrong)
      // The socket's next frame, or the next poll, will update it.
      if (replaceLive) this.pollOutcome(this.texts.lost)
    })
  }

  /** Applies other settings, for the preview. */
  show(settings: Settings): void {
    this.settings = settings
    this.texts = textsFor(settings.language)
    this.set({})
  }

  get view(): View {
    return this.currentView
  }

  /** True if an earlier conversation may have new messages. */
  get hasStoredSession(): boolean {
    return this.storage.sessionId !== undefined
  }

  listen(listener: () => void): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  /** Begins or continues the session, once. Retries automatically while the service is unavailable. */
  start(): Promise<void> {
    this.starting ??= this.beginSession().catch((failure: unknown) => {
      this.starting = null
      this.set({ problem: this.errorText(failure) })
      const isUnavailable = !(failure instanceof Refusal) || failure.status >= 500
      if (!isUnavailable || this.ended.signal.aborted) return
      clearTimeout(this.startTimer)
      this.startTimer = setTimeout(() => void this.start(), startPauseMs(this.startFailures))
      this.startFailures += 1
    })
    return this.starting
  }

  /** Loads the Markdown renderer into the view. Resolves to null if the first attempt fails. */
  load(): Promise<Markdown | null> {
    return this.markdown.load((markdown) => this.set({ markdown }), this.ended.signal)
  }

  /** Names the visitor. If the session belongs to another one, it is left and another begins. */
  async identify(externalEndUserId: string): Promise<void> {
    const sessionId = await this.requireSession()
    try {
      await this.client.identify(sessionId, externalEndUserId)
      this.externalEndUserId = externalEndUserId
    } catch (failure) {
      if (!(failure instanceof Refusal) || failure.status !== 409) throw failure
      this.leaveSession(sessionId)
      this.externalEndUserId = externalEndUserId
      await this.requireSession()
    }
  }

  /** Adds files to the draft, if they can be sent. */
  addFiles(newFiles: ReadonlyArray<File>): void {
    const { files, problem } = addFiles(this.draft.files, newFiles, this.texts)
    this.draft = { ...this.draft, files }
    this.set({ draftProblem: problem })
  }

  /** Sends the draft, if it is not empty and not too long. */
  sendDraft(): void {
    const { files, text } = this.draft
    const message = text.trim()
    if (message === "" || this.currentView.live !== null) return
    if (isTooLong(message)) return this.set({ draftProblem: this.texts.long })
    this.draft = { text: "", files: [] }
    this.set({ draftProblem: null })
    void this.send(message, files)
  }

  /** Sends a message. It is never sent again automatically. */
  async send(message: string, files: ReadonlyArray<File>): Promise<void> {
    if (this.currentView.live !== null) return
    this.sentFiles = files
    this.set({
      live: { ...emptyReply, message, files: files.map(({ name }) => name), phase: "streaming" },
      problem: null,
      failedMessageId: null
    })
    await this.start()
    if (this.sessionId === null) {
      this.set({ live: null })
      return this.returnToDraft(message, files)
    }
    const after = this.currentView.messages.at(-1)?.id ?? null
    this.storePending({ message, after, at: Date.now() })
    await this.deliver({ message, files, retryOf: null })
  }

  /** Requests an answer to a stored message without one. */
  async askAgain(id: string, problem: string | null = null): Promise<void> {
    const askedMessage = this.currentView.messages.find((message) => message.id === id)
    if (askedMessage === undefined || this.currentView.live !== null) return
    this.storePending({ message: askedMessage.content, after: id, at: Date.now(), again: id })
    this.set({ live: { ...emptyReply, message: null, phase: "streaming" }, problem, failedMessageId: null })
    await this.deliver({ message: askedMessage.content, files: [], retryOf: id })
  }

  async handoff(): Promise<void> {
    await this.start()
    if (this.sessionId !== null) await this.conversation.handoff(this.sessionId)
  }

  /** Reports to the team that the visitor is typing, unless the agent answers. */
  visitorTypes(): void {
    const { state } = this.currentView
    if (this.sessionId === null || state === "AI_ACTIVE" || state === "CLOSED") return
    this.conversation.typing.report(this.sessionId)
  }

  /** Leaves the closed conversation. The next message begins another. */
  startNewConversation(): void {
    this.conversation.leave()
    this.set({ messages: [], state: "AI_ACTIVE", problem: null, failedMessageId: null })
  }

  end(): void {
    this.ended.abort()
    this.storage.abandonPending()
    this.conversation.end()
    clearTimeout(this.startTimer)
    this.listeners.clear()
  }

  private async requireSession(): Promise<string> {
    await this.start()
    if (this.sessionId === null) throw new Error("The chat service cannot be reached.")
    return this.sessionId
  }

  /** Shows nothing more of the session. The next start begins another. */
  private leaveSession(sessionId: string): void {
    this.conversation.reset()
    this.storePending()
    this.storage.forgetSession(sessionId)
    this.sessionId = null
    this.starting = null
    this.draft = { text: "", files: [] }
    const { agent, markdown } = this.currentView
    this.set({ ...empty, agent, markdown })
  }

  set(change: Partial<View>): void {
    this.currentView = { ...this.currentView, ...change }
    for (const listener of this.listeners) listener()
  }

  /** Stores the message being sent, if any. */
  storePending(pending?: PendingMessage): void {
    this.missedPolls = 0
    if (pending === undefined || this.sessionId === null) this.storage.clearPending()
    else this.storage.storePending(pending, this.sessionId)
  }

  private async beginSession(): Promise<void> {
    const { externalEndUserId } = this
    const endUser = externalEndUserId === null ? {} : { externalEndUserId }
    const { sessionId } = this.storage
    const session = await this.client
      .init({ ...(sessionId === undefined ? {} : { sessionId }), ...endUser })
      .catch((failure: unknown) => {
        // The session has ended or belongs to another person: begin a new one.
        const hasEnded = failure instanceof Refusal && (failure.status === 404 || failure.status === 409)
        if (sessionId === undefined || !hasEnded) throw failure
        return this.client.init(endUser)
      })
    this.sessionId = session.sessionId
    this.storage.storeSession(session.sessionId)
    if (session.sessionId !== sessionId) this.storePending()
    // A message that is already being sent is not replaced by a recovered one.
    const mayRecover = this.currentView.live === null && !this.ended.signal.aborted
    const recovered = mayRecover ? await this.storage.recoverPending(session.sessionId) : undefined
    if (this.ended.signal.aborted) return this.storage.abandonPending()
    if (recovered !== undefined) {
      const message = recovered.again === undefined ? recovered.message : null
      this.set({ live: { ...emptyReply, message, phase: "unconfirmed" } })
    }
    this.set({ agent: session.agent })
    await this.conversation.refresh()
    const { messages, reached } = this.conversation.lastPoll
    if (!reached) throw new Error("The conversation cannot be read.")
    const isUnconfirmed = this.currentView.live?.phase === "unconfirmed"
    const { pending } = this.storage
    this.set({
      ready: true,
      problem: null,
      // A message that waits for the session is not pending yet, and all stored messages are earlier.
      messages: pending === undefined ? messages : messagesBeforePending(pending, messages)
    })
    if (this.currentView.live === null) this.offerRetry()
    else if (isUnconfirmed) this.pollOutcome(this.texts.lost)
  }

  /**
   * Forgets the session and returns true if the service no longer knows it, because the end user was erased or was
   * inactive for long. The next message begins another session.
   */
  forgetUnknownSession(failure: unknown): boolean {
    if (!(failure instanceof Refusal) || failure.code !== "NOT_FOUND") return false
    this.conversation.disconnect()
    if (this.sessionId !== null) this.storage.forgetSession(this.sessionId)
    this.sessionId = null
    this.starting = null
    return true
  }

  private async deliver(outgoing: Outgoing): Promise<void> {
    if (this.sessionId === null) return
    try {
      await this.followReply(await this.client.send(this.sessionId, outgoing, this.ended.signal))
    } catch (failure) {
      if (this.ended.signal.aborted) return
      if (failure instanceof Refusal) return this.handleRefusal(failure, outgoing)
      this.pollOutcome(this.texts.lost)
    }
  }

  private async followReply(body: ReadableStream<Uint8Array>): Promise<void> {
    const outcome = await receiveReply(body, (received) => {
      if (this.currentView.live !== null) this.set({ live: { ...this.currentView.live, ...received } })
    })
    // The stored messages replace the displayed ones in one step.
    await this.conversation.refresh(true)
    if (outcome === "failed") this.set({ problem: this.texts.failed })
    this.offerRetry()
  }

  private handleRefusal(failure: Refusal, { files, message, retryOf }: Outgoing): void {
    if (retryOf === null) this.forgetUnknownSession(failure)
    this.storePending()
    // A stored message that cannot be retried was answered by a human, or will be.
    const isAnswered = retryOf !== null && failure.status === 409
    const failed = retryOf === null || isAnswered ? {} : { failedMessageId: retryOf }
    this.set({ live: null, problem: isAnswered ? null : this.errorText(failure), ...failed })
    return retryOf === null ? this.returnToDraft(message, files) : void this.conversation.refresh(true)
  }

  /** The connection broke: polls until the outcome of the message is known. */
  private pollOutcome(problem: string): void {
    const { live } = this.currentView
    if (live === null || this.ended.signal.aborted) return
    this.set({ live: { ...live, phase: "unconfirmed" }, problem })
    this.conversation.refreshLater(() => this.resolveOutcome())
  }

  /** Decides from the last poll whether the message is being answered, has failed, or has not arrived. */
  private resolveOutcome(): void {
    const { messages, reached, turn } = this.conversation.lastPoll
    const { pending } = this.storage
    // A frame of the socket may have settled it meanwhile, and the next message may be live.
    if (this.currentView.live?.phase !== "unconfirmed") return
    if (!reached) return this.pollOutcome(this.texts.unreachable)
    if (pending === undefined) return this.giveUp(this.texts.unanswered)
    const [message] = messagesFromPending(pending, messages)
    if (turn?.status === "running") {
      this.missedPolls = 0
      if (message !== undefined || Date.now() - pending.at < maxSendMs)
        return this.pollOutcome(this.texts.running)
      return this.giveUp(this.texts.unanswered)
    }
    if (message !== undefined) return this.handleUnanswered(message)
    this.missedPolls += 1
    if (this.missedPolls < maxMissedPolls) return this.pollOutcome(this.texts.lost)
    this.giveUp(this.texts.notArrived)
  }

  /** The message arrived, but the turn ended without an answer. */
  private handleUnanswered({ id }: Message): void {
    const { messages, turn } = this.conversation.lastPoll
    this.storePending()
    this.set({ messages, live: null, typing: false, problem: this.texts.failed })
    if (turn?.status !== "lost" || turn.messageId !== id || this.retried.has(id)) return this.offerRetry()
    this.retried.add(id)
    void this.askAgain(id, this.texts.repeating)
  }

  private giveUp(problem: string): void {
    this.storePending()
    const message = this.currentView.live?.message ?? null
    const { messages, reached } = this.conversation.lastPoll
    this.set({ live: null, problem, ...(reached ? { messages } : {}) })
    if (message !== null) this.returnToDraft(message, this.sentFiles)
  }

  /** Puts a message that was not accepted back into the draft, before the text that was typed meanwhile. */
  private returnToDraft(message: string, files: ReadonlyArray<File>): void {
    this.draft = prependToDraft(message, files, this.draft)
    this.set({})
  }

  /** Offers a retry if the last message has no answer. */
  private offerRetry(): void {
    const last = this.currentView.messages.at(-1)
    const { turn } = this.conversation.lastPoll
    const isFailed = turn?.status === "failed" || turn?.status === "lost"
    if (last === undefined || !isFailed || turn.messageId !== last.id) return
    this.set({ failedMessageId: last.id, problem: this.texts.failed })
  }

  errorText(failure: unknown): string {
    if (!(failure instanceof Refusal)) return this.texts.offline
    const isExpired = failure.status === 401 && this.settings.visitorToken !== null
    return isExpired ? this.texts.expired : refusalText(this.texts, failure)
  }
}
