/** The conversation of a page: what was said, what is being said, and in which state it is. */
import { type Client, clientOf, type Message, Refusal, type Session } from "./Client.ts"
import { read, type Result } from "./EventStream.ts"
import { Repeater } from "./Repeater.ts"
import type { Settings } from "./Settings.ts"
import { connect } from "./Socket.ts"
import { textsFor } from "./Texts.ts"

/** A message on its way, until the conversation as it is stored shows what became of it. */
export interface Live {
  readonly message: string
  readonly files: ReadonlyArray<string>
  readonly reply: string
  /** `unsure`: the line broke, and nobody knows yet whether the message arrived. */
  readonly phase: "streaming" | "unsure"
}

export interface View {
  readonly agent: Session["agent"] | null
  readonly messages: ReadonlyArray<Message>
  readonly live: Live | null
  readonly state: string
  readonly typing: boolean
  readonly problem: string | null
  /** Text that was not accepted, to be sent again by its writer. */
  readonly draft: string | null
  readonly ready: boolean
}

const empty: View = {
  agent: null,
  messages: [],
  live: null,
  state: "AI_ACTIVE",
  typing: false,
  problem: null,
  draft: null,
  ready: false
}

/** Milliseconds between looks for a reply whose stream was lost, and until it is given up. */
const lookEvery = 2_000
const giveUpAfter = 180_000
const typingFor = 6_000

/** What survives a reload; a page that may store nothing does without. */
interface Kept {
  readonly sessionId?: string
  readonly pending?: { readonly message: string; readonly after: string | null; readonly at: number }
}

const memoryOf = (name: string) => {
  let fallback: Kept = {}
  return {
    get: (): Kept => {
      try {
        const kept: Kept | null = JSON.parse(localStorage.getItem(name) ?? "{}")
        return kept ?? {}
      } catch {
        return fallback
      }
    },
    set: (kept: Kept) => {
      fallback = kept
      try {
        localStorage.setItem(name, JSON.stringify(kept))
      } catch {
        // Kept in memory alone.
      }
    }
  }
}

export class Chat {
  readonly texts
  readonly client: Client
  private view: View = empty
  private readonly settings: Settings
  private readonly memory
  private readonly listeners = new Set<() => void>()
  private sessionId: string | null = null
  private conversationId: string | null = null
  /** The conversation that the person has left behind for a new one. */
  private left: string | null = null
  private whole: ReadonlyArray<Message> = []
  private cursor: string | null = null
  private starting: Promise<void> | null = null
  private readonly looks = new Repeater((settled) =>
    this.look(settled).catch(() => {
      // The socket's next news, or the next look, will tell.
      if (settled) this.unsure()
    })
  )
  private disconnect: (() => void) | null = null
  private looking: ReturnType<typeof setTimeout> | undefined
  private typing: ReturnType<typeof setTimeout> | undefined
  private readonly leaving = new AbortController()

  constructor(settings: Settings) {
    this.settings = settings
    this.texts = textsFor(settings.language)
    this.client = clientOf(settings)
    this.memory = memoryOf(`spoke.widget.${settings.base}.${settings.key}`)
  }

  get now(): View {
    return this.view
  }

  get session(): string | null {
    return this.sessionId
  }

  /** True when a conversation of before may have news. */
  get known(): boolean {
    return this.memory.get().sessionId !== undefined
  }

  listen(listener: () => void): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  /** Begins or continues the session, once. */
  start(): Promise<void> {
    this.starting ??= this.begin().catch((failure: unknown) => {
      this.starting = null
      this.set({ problem: this.reason(failure) })
    })
    return this.starting
  }

  async identify(externalEndUserId: string): Promise<void> {
    await this.start()
    if (this.sessionId !== null) await this.client.identify(this.sessionId, externalEndUserId)
  }

  /** Sends a message. It is never sent a second time by itself. */
  async send(message: string, files: ReadonlyArray<File>): Promise<void> {
    if (this.view.live !== null) return
    await this.start()
    if (this.sessionId === null) return this.set({ draft: message })
    const after = this.view.messages.at(-1)?.id ?? null
    this.keep({ sessionId: this.sessionId, pending: { message, after, at: Date.now() } })
    this.set({
      live: { message, files: files.map(({ name }) => name), reply: "", phase: "streaming" },
      problem: null,
      draft: null
    })
    try {
      const body = await this.client.send(this.sessionId, message, files, this.leaving.signal)
      await this.follow(body)
    } catch (failure) {
      if (this.leaving.signal.aborted) return
      if (failure instanceof Refusal) return this.refused(failure, message)
      this.unsure()
    }
  }

  async handoff(): Promise<void> {
    await this.start()
    if (this.sessionId === null) return
    try {
      await this.client.handoff(this.sessionId)
      await this.refresh()
    } catch (failure) {
      this.set({ problem: this.reason(failure) })
    }
  }

  /** After a conversation that has ended: what is said next begins another. */
  again(): void {
    this.left = this.conversationId
    this.whole = []
    this.cursor = null
    this.set({ messages: [], state: "AI_ACTIVE", problem: null })
  }

  end(): void {
    this.leaving.abort()
    this.disconnect?.()
    clearTimeout(this.looking)
    clearTimeout(this.typing)
    this.listeners.clear()
  }

  private set(change: Partial<View>): void {
    this.view = { ...this.view, ...change }
    for (const listener of this.listeners) listener()
  }

  private keep(kept: Kept): void {
    this.memory.set(kept)
  }

  private async begin(): Promise<void> {
    const { externalEndUserId } = this.settings
    const who = externalEndUserId === null ? {} : { externalEndUserId }
    const { pending, sessionId } = this.memory.get()
    const session = await this.client
      .init({ ...(sessionId === undefined ? {} : { sessionId }), ...who })
      .catch((failure: unknown) => {
        // An ended session, or another person's: begin anew.
        const over = failure instanceof Refusal && (failure.status === 404 || failure.status === 409)
        if (sessionId === undefined || !over) throw failure
        return this.client.init(who)
      })
    this.sessionId = session.sessionId
    const goesOn = session.sessionId === sessionId
    this.keep({ sessionId: session.sessionId, ...(goesOn && pending !== undefined ? { pending } : {}) })
    if (goesOn && pending !== undefined) {
      this.set({ live: { message: pending.message, files: [], reply: "", phase: "unsure" } })
    }
    this.set({ agent: session.agent })
    await this.refresh()
    this.set({ ready: true, problem: null })
    if (this.view.live !== null) this.unsure()
  }

  private async follow(body: ReadableStream<Uint8Array>): Promise<void> {
    const seen: { result: Result | null; failed: boolean } = { result: null, failed: false }
    await read(body, (part) => {
      const { live } = this.view
      if (part.type === "text-delta" && live !== null) {
        this.set({ live: { ...live, reply: live.reply + (part.delta ?? "") } })
      }
      if (part.type === "error") seen.failed = true
      if (part.type === "data-done") seen.result = part.data?.result ?? null
    })
    if (seen.result === null && !seen.failed) throw new Error("The stream ended before its result.")
    this.keep(this.sessionId === null ? {} : { sessionId: this.sessionId })
    // What is stored takes the place of what was shown, in one step.
    await this.refresh(true)
    if (seen.failed) this.set({ problem: this.texts.failed })
  }

  private refused(failure: Refusal, message: string): void {
    this.keep(this.sessionId === null ? {} : { sessionId: this.sessionId })
    this.set({ live: null, draft: message, problem: this.reason(failure) })
  }

  /** The line broke: looks for the reply until it is there, and leaves the rest to the person. */
  private unsure(): void {
    const { live } = this.view
    if (live === null) return
    this.set({ live: { ...live, phase: "unsure" }, problem: this.texts.lost })
    clearTimeout(this.looking)
    this.looking = setTimeout(() => {
      void this.refresh().then(() => {
        if (this.view.live === null) return
        const { pending } = this.memory.get()
        if (pending !== undefined && Date.now() - pending.at < giveUpAfter) return this.unsure()
        this.keep(this.sessionId === null ? {} : { sessionId: this.sessionId })
        this.set({ live: null, draft: live.message, problem: this.texts.unanswered })
      })
    }, lookEvery)
  }

  /** Reads state and messages; `settled` when what is stored shall take the place of what is live. */
  private refresh(settled = false): Promise<void> {
    return this.looks.ask(settled)
  }

  private async look(settled: boolean): Promise<void> {
    if (this.sessionId === null) return
    const { conversation } = await this.client.place(this.sessionId)
    if (conversation === null || conversation.id === this.left) {
      return settled ? this.set({ live: null }) : undefined
    }
    if (conversation.id !== this.conversationId) {
      this.conversationId = conversation.id
      this.whole = []
      this.cursor = null
      this.watch()
    }
    const messages = await this.read(this.sessionId)
    const shown = this.settledBy(messages, settled)
    // While a reply streams, what is stored waits for its end: nothing is shown twice.
    this.set({ state: conversation.state, ...(shown ? { messages, live: null, typing: false } : {}) })
    if (shown && this.view.problem === this.texts.lost) this.set({ problem: null })
  }

  /** Every message; whole pages are read once. */
  private async read(sessionId: string): Promise<ReadonlyArray<Message>> {
    for (;;) {
      const { messages, nextCursor } = await this.client.messages(sessionId, this.cursor)
      if (nextCursor === null) return [...this.whole, ...messages]
      this.whole = [...this.whole, ...messages]
      this.cursor = nextCursor
    }
  }

  /** True when `messages` may be shown instead of what is live. */
  private settledBy(messages: ReadonlyArray<Message>, settled: boolean): boolean {
    const { live } = this.view
    if (live === null || settled) return true
    if (live.phase === "streaming") return false
    const after = this.memory.get().pending?.after ?? null
    const fresh = messages.slice(messages.findIndex(({ id }) => id === after) + 1)
    const mine = fresh.findIndex(({ content, role }) => role === "user" && content === live.message.trim())
    const answered = mine >= 0 && (fresh.length > mine + 1 || this.view.state !== "AI_ACTIVE")
    if (answered) this.keep(this.sessionId === null ? {} : { sessionId: this.sessionId })
    return answered
  }

  private watch(): void {
    this.disconnect?.()
    this.disconnect = connect(
      async () => {
        if (this.sessionId === null) return null
        const { realtimeToken, realtimeUrl } = await this.client.place(this.sessionId)
        const lastMessageId = this.view.messages.at(-1)?.id ?? "none"
        return realtimeToken === null ? null : { token: realtimeToken, url: realtimeUrl, lastMessageId }
      },
      ({ state, type }) => {
        if (type === "message.created") void this.refresh()
        if (type === "conversation.updated" && state !== undefined && state !== this.view.state) {
          void this.refresh()
        }
        if (type === "typing") this.types()
      }
    )
  }

  private types(): void {
    clearTimeout(this.typing)
    this.set({ typing: true })
    this.typing = setTimeout(() => this.set({ typing: false }), typingFor)
  }

  private reason(failure: unknown): string {
    if (!(failure instanceof Refusal)) return this.texts.offline
    const { code, status } = failure
    if (code === "TURN_LIMIT_EXCEEDED") return this.texts.quota
    if (code === "UNSUPPORTED_ATTACHMENT_TYPE") return this.texts.fileUnread
    if (status === 401) return this.texts.denied
    if (status === 403) return this.texts.blocked
    if (status === 413) return this.texts.long
    if (status === 429 || status === 503) return this.texts.busy
    return this.texts.wrong
  }
}
