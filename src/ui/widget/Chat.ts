/** The conversation of a page: its messages, the current turn, and its state. */
import { type Client, type Message, type Outgoing, Refusal, type Turn } from "./Client.ts"
import { type Draft, withReturned } from "./Draft.ts"
import { loadMarkdown, type Markdown } from "./Markdown.ts"
import { Memory, type Pending } from "./Memory.ts"
import { beforePending, isSettled, ofPending } from "./Pending.ts"
import { Repeater } from "./Repeater.ts"
import { receive } from "./Reply.ts"
import type { Settings } from "./Settings.ts"
import { connect } from "./Socket.ts"
import { refusalIn, textsFor } from "./Texts.ts"
import { Transcript } from "./Transcript.ts"
import { Typing } from "./Typing.ts"
import { empty, type View } from "./View.ts"

interface Look {
  readonly reached: boolean
  readonly messages: ReadonlyArray<Message>
  readonly turn: Turn | null
}

const nothingSaid = { files: [], reply: "", citations: [] }

/**
 * Polling interval in milliseconds for a reply whose stream was lost, and the time after which a message that is not
 * stored is given up, although a turn is running.
 */
const pollIntervalMs = 2_000
const maxSendMs = 180_000
/** Pause in milliseconds before another attempt to begin the session; at most eight seconds. */
const startPause = (failures: number) =>
  Math.min(pollIntervalMs * 2 ** failures, 8_000) * (0.5 + Math.random() / 2)
const maxLoadAttempts = 3
/** Number of successful polls without the message, after which it counts as not arrived. */
const maxMissedPolls = 2

export class Chat {
  texts
  settings: Settings
  readonly client: Client
  /** Outlives the composer, which is gone while the panel is closed. */
  draft: Draft = { text: "", files: [] }
  private view: View = empty
  private readonly memory
  private readonly listeners = new Set<() => void>()
  private sessionId: string | null = null
  private readonly transcript
  /** The conversation that the visitor left for a new one. */
  private left: string | null = null
  /** Result of the last poll; `reached` is false when the service did not answer. */
  private found: Look = { reached: false, messages: [], turn: null }
  private missed = 0
  /** Why the last hand-over seemed to fail. It may have reached the service. */
  private handoffProblem: string | null = null
  /** Files of the live message. */
  private sentFiles: ReadonlyArray<File> = []
  /** Messages that were retried automatically. */
  private readonly repeated = new Set<string>()
  private starting: Promise<void> | null = null
  /** Attempts to begin the session. */
  private failures = 0
  private loading: Promise<Markdown | null> | null = null
  private readonly looks = new Repeater((settled) =>
    this.look(settled).catch((failure: unknown) => {
      this.found = { ...this.found, reached: false }
      if (this.forget(failure)) return this.view.live === null ? undefined : this.giveBack(this.texts.wrong)
      // The socket's next frame, or the next poll, will update it.
      if (settled) this.unsure(this.texts.lost)
    })
  )
  private disconnect: (() => void) | null = null
  private looking: ReturnType<typeof setTimeout> | undefined
  private restarting: ReturnType<typeof setTimeout> | undefined
  private readonly typing
  private readonly leaving = new AbortController()

  constructor(settings: Settings, client: Client, memory: string | null) {
    this.settings = settings
    this.texts = textsFor(settings.language)
    this.client = client
    this.transcript = new Transcript(client)
    this.memory = new Memory(memory)
    this.typing = new Typing(client, (typing) => this.set({ typing }))
  }

  /** Applies other settings, for the preview. */
  show(settings: Settings): void {
    this.settings = settings
    this.texts = textsFor(settings.language)
    this.set({})
  }

  get now(): View {
    return this.view
  }

  get session(): string | null {
    return this.sessionId
  }

  /** True if an earlier conversation may have new messages. */
  get known(): boolean {
    return this.memory.sessionId !== undefined
  }

  listen(listener: () => void): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  /** Begins or continues the session, once. Retries automatically while the service is unavailable. */
  start(): Promise<void> {
    this.starting ??= this.begin().catch((failure: unknown) => {
      this.starting = null
      this.set({ problem: this.reason(failure) })
      const isAway = !(failure instanceof Refusal) || failure.status >= 500
      if (!isAway || this.leaving.signal.aborted) return
      clearTimeout(this.restarting)
      this.restarting = setTimeout(() => void this.start(), startPause(this.failures))
      this.failures += 1
    })
    return this.starting
  }

  /** The Markdown renderer, if the first attempt loads it; later attempts put it into the view. */
  load(tried = 0): Promise<Markdown | null> {
    if (tried === 0 && this.loading !== null) return this.loading
    const loading = loadMarkdown(this.client.base, tried)
    this.loading ??= loading
    void loading.then((markdown) => {
      if (this.leaving.signal.aborted) return
      if (markdown !== null) this.set({ markdown })
      else if (tried < maxLoadAttempts)
        setTimeout(() => void this.load(tried + 1), pollIntervalMs * (tried + 1))
    })
    return loading
  }

  async identify(externalEndUserId: string): Promise<void> {
    await this.start()
    if (this.sessionId === null) throw new Error("The chat service cannot be reached.")
    await this.client.identify(this.sessionId, externalEndUserId)
  }

  /** Sends a message. It is never sent a second time by itself. */
  async send(message: string, files: ReadonlyArray<File>): Promise<void> {
    if (this.view.live !== null) return
    await this.start()
    // Another message may have come first while the session began.
    if (this.sessionId === null || this.view.live !== null) return this.putBack(message, files)
    this.sentFiles = files
    const after = this.view.messages.at(-1)?.id ?? null
    this.keep({ message, after, at: Date.now() })
    this.set({
      live: { ...nothingSaid, message, files: files.map(({ name }) => name), phase: "streaming" },
      problem: null,
      failed: null
    })
    await this.deliver({ message, files, retryOf: null })
  }

  /** Requests an answer to a stored message without one. */
  async askAgain(id: string, problem: string | null = null): Promise<void> {
    const asked = this.view.messages.find((message) => message.id === id)
    if (asked === undefined || this.view.live !== null) return
    this.keep({ message: asked.content, after: id, at: Date.now(), again: id })
    this.set({ live: { ...nothingSaid, message: null, phase: "streaming" }, problem, failed: null })
    await this.deliver({ message: asked.content, files: [], retryOf: id })
  }

  async handoff(): Promise<void> {
    await this.start()
    if (this.sessionId === null) return
    this.set({ problem: null })
    try {
      await this.client.handoff(this.sessionId)
      await this.refresh()
      if (!this.found.reached) this.readLater()
    } catch (failure) {
      this.forget(failure)
      this.handoffProblem = this.reason(failure)
      this.set({ problem: this.handoffProblem })
    }
  }

  /** The visitor is typing: notifies the team, if a team member answers. */
  visitorTypes(): void {
    const { state } = this.view
    if (this.sessionId === null || state === "AI_ACTIVE" || state === "CLOSED") return
    this.typing.report(this.sessionId)
  }

  /** After a closed conversation the next message begins another. */
  again(): void {
    this.left = this.transcript.conversationId
    this.set({ messages: [], state: "AI_ACTIVE", problem: null, failed: null })
  }

  end(): void {
    this.leaving.abort()
    this.memory.leave()
    this.disconnect?.()
    clearTimeout(this.looking)
    clearTimeout(this.restarting)
    this.typing.end()
    this.listeners.clear()
  }

  private set(change: Partial<View>): void {
    this.view = { ...this.view, ...change }
    for (const listener of this.listeners) listener()
  }

  /** Stores the message being sent, if any. */
  private keep(pending?: Pending): void {
    this.missed = 0
    if (pending === undefined || this.sessionId === null) this.memory.clear()
    else this.memory.keep(pending, this.sessionId)
  }

  private async begin(): Promise<void> {
    const { externalEndUserId } = this.settings
    const who = externalEndUserId === null ? {} : { externalEndUserId }
    const { sessionId } = this.memory
    const session = await this.client
      .init({ ...(sessionId === undefined ? {} : { sessionId }), ...who })
      .catch((failure: unknown) => {
        // The session has ended or belongs to another person: begin a new one.
        const over = failure instanceof Refusal && (failure.status === 404 || failure.status === 409)
        if (sessionId === undefined || !over) throw failure
        return this.client.init(who)
      })
    this.sessionId = session.sessionId
    this.memory.begin(session.sessionId)
    if (session.sessionId !== sessionId) this.keep()
    // A message that is being sent since an earlier attempt to begin goes on.
    const isFree = this.view.live === null && !this.leaving.signal.aborted
    const underway = isFree ? await this.memory.recover(session.sessionId) : undefined
    if (this.leaving.signal.aborted) return this.memory.leave()
    if (underway !== undefined) {
      const message = underway.again === undefined ? underway.message : null
      this.set({ live: { ...nothingSaid, message, phase: "unsure" } })
    }
    this.set({ agent: session.agent })
    await this.refresh()
    if (!this.found.reached) throw new Error("The conversation cannot be read.")
    const isUnsure = this.view.live?.phase === "unsure"
    const earlier = isUnsure ? { messages: beforePending(this.memory.pending, this.found.messages) } : {}
    this.set({ ready: true, problem: null, ...earlier })
    if (this.view.live === null) this.offer()
    else if (isUnsure) this.unsure(this.texts.lost)
  }

  /**
   * True if the service does not know the session any more, because its person was erased or has not written for long.
   * The next message begins another one.
   */
  private forget(failure: unknown): boolean {
    if (!(failure instanceof Refusal) || failure.code !== "NOT_FOUND") return false
    this.disconnect?.()
    if (this.sessionId !== null) this.memory.forget(this.sessionId)
    this.sessionId = null
    this.starting = null
    return true
  }

  private async deliver(outgoing: Outgoing): Promise<void> {
    if (this.sessionId === null) return
    try {
      await this.follow(await this.client.send(this.sessionId, outgoing, this.leaving.signal))
    } catch (failure) {
      if (this.leaving.signal.aborted) return
      if (failure instanceof Refusal) return this.refused(failure, outgoing)
      this.unsure(this.texts.lost)
    }
  }

  private async follow(body: ReadableStream<Uint8Array>): Promise<void> {
    const outcome = await receive(body, (received) => {
      if (this.view.live !== null) this.set({ live: { ...this.view.live, ...received } })
    })
    // The stored messages replace the displayed ones in one step.
    await this.refresh(true)
    if (outcome === "failed") this.set({ problem: this.texts.failed })
    this.offer()
  }

  private refused(failure: Refusal, { files, message, retryOf }: Outgoing): void {
    if (retryOf === null) this.forget(failure)
    this.keep()
    // A stored message that cannot be retried has been answered by a human, or will be.
    const isAnswered = retryOf !== null && failure.status === 409
    const failed = retryOf === null || isAnswered ? {} : { failed: retryOf }
    this.set({ live: null, problem: isAnswered ? null : this.reason(failure), ...failed })
    return retryOf === null ? this.putBack(message, files) : void this.refresh(true)
  }

  /** The connection broke: polls until the outcome of the message is known. */
  private unsure(problem: string): void {
    const { live } = this.view
    if (live === null || this.leaving.signal.aborted) return
    this.set({ live: { ...live, phase: "unsure" }, problem })
    clearTimeout(this.looking)
    this.looking = setTimeout(() => void this.refresh().then(() => this.resolve()), pollIntervalMs)
  }

  /** Answered (then nothing is live any more), being answered, lost with the server, or never arrived. */
  private resolve(): void {
    const { reached, turn } = this.found
    const { pending } = this.memory
    // The outcome came by another way, and the next message may be on its way since.
    if (this.view.live?.phase !== "unsure") return
    if (!reached) return this.unsure(this.texts.unreachable)
    if (pending === undefined) return this.giveBack(this.texts.unanswered)
    const [mine] = ofPending(pending, this.found.messages)
    if (turn?.status === "running") {
      this.missed = 0
      if (mine !== undefined || Date.now() - pending.at < maxSendMs) return this.unsure(this.texts.running)
      return this.giveBack(this.texts.unanswered)
    }
    if (mine !== undefined) return this.unanswered(mine)
    this.missed += 1
    if (this.missed < maxMissedPolls) return this.unsure(this.texts.lost)
    this.giveBack(this.texts.notArrived)
  }

  /** The message arrived, but the turn ended without an answer. */
  private unanswered({ id }: Message): void {
    const { messages, turn } = this.found
    this.keep()
    this.set({ messages, live: null, typing: false, problem: this.texts.failed })
    if (turn?.status !== "lost" || turn.messageId !== id || this.repeated.has(id)) return this.offer()
    this.repeated.add(id)
    void this.askAgain(id, this.texts.repeating)
  }

  private giveBack(problem: string): void {
    this.keep()
    const message = this.view.live?.message ?? null
    const { messages, reached } = this.found
    this.set({ live: null, problem, ...(reached ? { messages } : {}) })
    if (message !== null) this.putBack(message, this.sentFiles)
  }

  /** Puts a message that was not accepted into the composer, before what was written meanwhile. */
  private putBack(message: string, files: ReadonlyArray<File>): void {
    this.draft = withReturned(message, files, this.draft)
    this.set({})
  }

  /** Shows that the last message has no answer, and offers a retry. */
  private offer(): void {
    const last = this.view.messages.at(-1)
    const { turn } = this.found
    const isFailed = turn?.status === "failed" || turn?.status === "lost"
    if (last === undefined || !isFailed || turn.messageId !== last.id) return
    this.set({ failed: last.id, problem: this.texts.failed })
  }

  /** Reads state and messages. With `settled`, the stored messages replace the live ones. */
  private refresh(settled = false): Promise<void> {
    return this.looks.ask(settled)
  }

  private async look(settled: boolean): Promise<void> {
    if (this.sessionId === null || this.leaving.signal.aborted) return
    const before = this.transcript.conversationId
    const read = await this.transcript.read(this.sessionId, this.left)
    if (this.leaving.signal.aborted) return
    // The visitor may have left it meanwhile.
    const found = read?.conversationId === this.left ? null : read
    this.found = { reached: true, messages: found?.messages ?? [], turn: found?.turn ?? null }
    if (found === null) return settled ? this.set({ live: null }) : undefined
    if (found.conversationId !== before) this.watch()
    const { messages, state } = found
    const shown = settled || isSettled(this.view.live, this.memory.pending, messages, state)
    if (shown && this.view.live !== null) this.keep()
    // While a reply streams, stored messages are not shown, so that nothing appears twice.
    this.set({
      state,
      ...(shown ? { messages, live: null, typing: false, ...this.without(messages, state) } : {})
    })
  }

  /** Clears the error of a broken connection once the failed message has an answer. */
  private without(messages: ReadonlyArray<Message>, state: View["state"]): Partial<View> {
    const { lost, repeating, running, unreachable } = this.texts
    const asked = state === "AI_ACTIVE" ? null : this.handoffProblem
    const isOver = [lost, repeating, running, unreachable, asked].some((text) => text === this.view.problem)
    const isAnswered = this.view.failed !== null && messages.at(-1)?.id !== this.view.failed
    return { ...(isOver || isAnswered ? { problem: null } : {}), ...(isAnswered ? { failed: null } : {}) }
  }

  private watch(): void {
    this.disconnect?.()
    this.disconnect = connect(
      async () => {
        if (this.sessionId === null) return null
        const { realtimeToken, realtimeUrl } = await this.client
          .place(this.sessionId)
          .catch((failure: unknown) => {
            this.forget(failure)
            throw failure
          })
        const lastMessageId = this.view.messages.at(-1)?.id ?? "none"
        return realtimeToken === null ? null : { token: realtimeToken, url: realtimeUrl, lastMessageId }
      },
      (frame) => {
        if (frame.type === "message.created") void this.refresh()
        if (frame.type === "conversation.updated" && frame.state !== this.view.state) {
          void this.refresh()
        }
        if (frame.type === "typing") this.typing.show()
      }
    )
  }

  /** Reads the state again until the service answers. */
  private readLater(): void {
    if (this.leaving.signal.aborted || this.view.live !== null) return
    this.set({ problem: this.texts.lost })
    clearTimeout(this.looking)
    this.looking = setTimeout(
      () => void this.refresh().then(() => (this.found.reached ? undefined : this.readLater())),
      pollIntervalMs
    )
  }

  private reason(failure: unknown): string {
    return failure instanceof Refusal ? refusalIn(this.texts, failure) : this.texts.offline
  }
}
