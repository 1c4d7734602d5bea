/** The stored conversation of the session: polls it, follows its socket, and updates the view. */
import type { Client, Message, Turn } from "./Client.ts"
import { canReplaceLive } from "./Pending.ts"
import { Poller } from "./Poller.ts"
import { connect } from "./Socket.ts"
import type { Texts } from "./Texts.ts"
import { Transcript } from "./Transcript.ts"
import { Typing } from "./Typing.ts"
import { type View, withoutOldErrors } from "./View.ts"
import type { WidgetStorage } from "./WidgetStorage.ts"

interface PollResult {
  readonly reached: boolean
  readonly messages: ReadonlyArray<Message>
  readonly turn: Turn | null
}

/** The chat, as far as its conversation needs it. */
interface Chat {
  readonly client: Client
  readonly texts: Texts
  readonly view: View
  readonly sessionId: string | null
  readonly storage: WidgetStorage
  readonly ended: AbortController
  readonly set: (change: Partial<View>) => void
  readonly storePending: () => void
  readonly forgetUnknownSession: (failure: unknown) => boolean
  readonly errorText: (failure: unknown) => string
}

/** Polling interval while an answer of the service is missing. */
export const pollIntervalMs = 2_000

export class Conversation {
  /** Result of the last poll. `reached` is false if the service did not answer. */
  lastPoll: PollResult = { reached: false, messages: [], turn: null }
  readonly typing
  private readonly chat: Chat
  private transcript
  /** The conversation that the visitor left for a new one. */
  private leftConversationId: string | null = null
  /** The error of the last handoff request. The request may have reached the service nevertheless. */
  private handoffProblem: string | null = null
  private readonly poller: Poller
  private closeSocket: (() => void) | null = null
  private pollTimer: ReturnType<typeof setTimeout> | undefined

  /** `onFailure` is called if a poll fails. `replaceLive` is true if the live messages were to be replaced. */
  constructor(chat: Chat, onFailure: (failure: unknown, replaceLive: boolean) => void) {
    this.chat = chat
    this.transcript = new Transcript(chat.client)
    this.typing = new Typing(chat.client, (typing) => chat.set({ typing }))
    this.poller = new Poller((replaceLive) =>
      this.poll(replaceLive).catch((failure: unknown) => {
        this.lastPoll = { ...this.lastPoll, reached: false }
        onFailure(failure, replaceLive)
      })
    )
  }

  /** Polls state and messages. With `replaceLive`, the stored messages replace the live ones. */
  refresh(replaceLive = false): Promise<void> {
    return this.poller.request(replaceLive)
  }

  /** Polls after an interval, and calls `then`. Replaces an earlier call. */
  refreshLater(then: () => void): void {
    clearTimeout(this.pollTimer)
    this.pollTimer = setTimeout(() => void this.refresh().then(then), pollIntervalMs)
  }

  /** Requests a human. */
  async handoff(sessionId: string): Promise<void> {
    const { chat } = this
    chat.set({ problem: null })
    try {
      await chat.client.handoff(sessionId)
      await this.refresh()
      if (!this.lastPoll.reached) this.pollUntilReached()
    } catch (failure) {
      chat.forgetUnknownSession(failure)
      this.handoffProblem = chat.errorText(failure)
      chat.set({ problem: this.handoffProblem })
    }
  }

  /** Shows nothing more of this conversation. The next message begins another. */
  leave(): void {
    this.leftConversationId = this.transcript.conversationId
  }

  /** Follows the conversation no longer. */
  disconnect(): void {
    this.closeSocket?.()
  }

  /** For another session. */
  reset(): void {
    this.disconnect()
    clearTimeout(this.pollTimer)
    this.leftConversationId = null
    this.transcript = new Transcript(this.chat.client)
  }

  end(): void {
    this.disconnect()
    clearTimeout(this.pollTimer)
    this.typing.end()
  }

  private async poll(replaceLive: boolean): Promise<void> {
    const { chat } = this
    const { sessionId } = chat
    if (sessionId === null || chat.ended.signal.aborted) return
    const previousId = this.transcript.conversationId
    const loaded = await this.transcript.read(sessionId, this.leftConversationId)
    if (chat.ended.signal.aborted || chat.sessionId !== sessionId) return
    // The visitor may have left the conversation meanwhile.
    const found = loaded?.conversationId === this.leftConversationId ? null : loaded
    this.lastPoll = { reached: true, messages: found?.messages ?? [], turn: found?.turn ?? null }
    if (found === null) return replaceLive ? chat.set({ live: null }) : undefined
    if (found.conversationId !== previousId) this.connectSocket()
    const { messages, state } = found
    const outdated = state === "AI_ACTIVE" ? null : this.handoffProblem
    const replacesLive = replaceLive || canReplaceLive(chat.view.live, chat.storage.pending, messages, state)
    if (replacesLive && chat.view.live !== null) chat.storePending()
    // While a reply streams, stored messages are not shown, so that nothing appears twice.
    chat.set({
      state,
      ...(replacesLive
        ? {
            messages,
            live: null,
            typing: false,
            ...withoutOldErrors(chat.view, chat.texts, outdated, messages)
          }
        : {})
    })
  }

  private connectSocket(): void {
    const { chat } = this
    this.disconnect()
    this.closeSocket = connect(
      async () => {
        if (chat.sessionId === null) return null
        const { realtimeToken, realtimeUrl } = await chat.client
          .conversation(chat.sessionId)
          .catch((failure: unknown) => {
            chat.forgetUnknownSession(failure)
            throw failure
          })
        const lastMessageId = chat.view.messages.at(-1)?.id ?? "none"
        return realtimeToken === null ? null : { token: realtimeToken, url: realtimeUrl, lastMessageId }
      },
      (frame) => {
        if (frame.type === "message.created") void this.refresh()
        if (frame.type === "conversation.updated" && frame.state !== chat.view.state) void this.refresh()
        if (frame.type === "typing") this.typing.show()
      }
    )
  }

  /** Polls until the service answers. */
  private pollUntilReached(): void {
    if (this.chat.ended.signal.aborted || this.chat.view.live !== null) return
    this.chat.set({ problem: this.chat.texts.lost })
    this.refreshLater(() => (this.lastPoll.reached ? undefined : this.pollUntilReached()))
  }
}
