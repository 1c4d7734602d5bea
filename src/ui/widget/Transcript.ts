/** The stored conversation of the session, polled. Complete pages of messages are read once. */
import type { Client, Message, Turn } from "./Client.ts"
import type { View } from "./View.ts"

export interface LoadedConversation {
  readonly conversationId: string
  readonly state: View["state"]
  readonly messages: ReadonlyArray<Message>
  readonly turn: Turn | null
}

export class Transcript {
  /** The conversation that was last read. */
  conversationId: string | null = null
  private readonly client: Client
  private whole: ReadonlyArray<Message> = []
  private cursor: string | null = null

  constructor(client: Client) {
    this.client = client
  }

  /** Null while there is no conversation except the one that was `left`. */
  async read(sessionId: string, left: string | null): Promise<LoadedConversation | null> {
    const { conversation, turn } = await this.client.place(sessionId)
    if (conversation === null || conversation.id === left) return null
    if (conversation.id !== this.conversationId) this.begin(conversation.id)
    const messages = await this.messages(sessionId)
    return { conversationId: conversation.id, state: conversation.state, messages, turn }
  }

  private begin(conversationId: string): void {
    this.conversationId = conversationId
    this.whole = []
    this.cursor = null
  }

  private async messages(sessionId: string): Promise<ReadonlyArray<Message>> {
    for (;;) {
      const { messages, nextCursor } = await this.client.messages(sessionId, this.cursor)
      if (nextCursor === null) return [...this.whole, ...messages]
      this.whole = [...this.whole, ...messages]
      this.cursor = nextCursor
    }
  }
}
