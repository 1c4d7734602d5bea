/** What is said with an agent while it is tried: it outlives the page that shows it, until the window is left. */
import { Chat } from "@ai-sdk/react"
import { DefaultChatTransport, type UIMessage } from "ai"
import { failureOf } from "../../api/Client.ts"
import type { Citation } from "../../components/CitationChip.tsx"
import type { RunEvent } from "../../components/Trace.tsx"
import { TurnForm } from "./TurnForm.ts"

interface Result {
  readonly reply: string
  readonly conversationId?: string
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

export const resultOf = ({ parts }: Message): Result | undefined => {
  const done = parts.find((part) => part.type === "data-done")
  return done?.data.result
}

export class Talk {
  /** The chat of the AI SDK, on our own stream. */
  readonly chat: Chat<Message>
  private readonly turn: TurnForm
  private told: ReadonlyArray<RunEvent> = []
  private readonly listeners = new Set<() => void>()

  constructor(agentId: string) {
    this.turn = new TurnForm(agentId)
    this.chat = new Chat<Message>({
      transport: new DefaultChatTransport<Message>({
        api: "/api/v1/chat/stream",
        fetch: async (address, request) => {
          const response = await fetch(address, { ...request, ...this.turn.request() })
          if (!response.ok) throw await failureOf(response)
          return response
        }
      }),
      onData: (part) => {
        if (part.type === "data-agent-run-event") this.tell([...this.told, part.data])
        if (part.type === "data-done") this.turn.conversationId = part.data.result.conversationId
      }
    })
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

  /** What is said next begins another conversation. */
  clear(): void {
    void this.chat.stop()
    this.turn.conversationId = undefined
    this.chat.messages = []
    this.chat.clearError()
    this.tell([])
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
  const talk = talks.get(key) ?? new Talk(agentId)
  talks.set(key, talk)
  return talk
}
