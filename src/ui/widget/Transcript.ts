/** Reads the stored conversation of the session. Complete pages of messages are read once. */
import type { Client, Message, Turn } from "./Client.ts"
import type { View } from "./View.ts"

export interface LoadedConversation {
  readonly conversationId: string
  readonly state: View["state"]
  readonly messages: ReadonlyArray<Message>
  readonly turn: Turn | null
}

export class Transcript {
  /** Id of the conversation that was read last. */
  conversationId: string | null = null
  private readonly client: Client
  private completePages: ReadonlyArray<Message> = []
  private cursor: string | null = null

  constructor(client: Client) {
    this.client = client
  }

  /** Null if there is no conversation, or only the one that the visitor has left. */
  async read(sessionId: string, leftConversationId: string | null): Promise<LoadedConversation | null> {
    const { conversation, turn } = await this.client.conversation(sessionId)
    if (conversation === null || conversation.id === leftConversationId) return null
    if (conversation.id !== this.conversationId) this.reset(conversation.id)
    const messages = await this.loadMessages(sessionId)
    return { conversationId: conversation.id, state: conversation.state, messages, turn }
  }

  private reset(conversationId: string): void {
    this.conversationId = conversationId
    this.completePages = []
    this.cursor = null
  }

  private async loadMessages(sessionId: string): Promise<ReadonlyArray<Message>> {
    for (;;) {
      const { messages, nextCursor } = await this.client.messages(sessionId, this.cursor)
      if (nextCursor === null) return [...this.completePages, ...messages]
      this.completePages = [...this.completePages, ...messages]
      this.cursor = nextCursor
    }
  }
}
