/** The next turn as the hosted stream takes it: JSON, or a form when files go with it. */
import type { HostedTurnRequest } from "../../../../domain/chat/Widget.ts"

export class TurnForm {
  readonly agentId: string
  /** Of the turn before; undefined begins a conversation. */
  conversationId: string | undefined = undefined
  /** The version that is tried; undefined for the one that answers customers. */
  version: number | undefined = undefined
  private message = ""
  private files: ReadonlyArray<File> = []

  constructor(agentId: string) {
    this.agentId = agentId
  }

  next(message: string, files: ReadonlyArray<File>): void {
    this.message = message
    this.files = files
  }

  /** What is sent. */
  get current(): { readonly text: string; readonly files: ReadonlyArray<string> } {
    return { text: this.message, files: this.files.map(({ name }) => name) }
  }

  request(): RequestInit {
    const fields = {
      agentId: this.agentId,
      message: this.message,
      ...(this.conversationId === undefined ? {} : { conversationId: this.conversationId }),
      ...(this.version === undefined ? {} : { version: this.version })
    } satisfies typeof HostedTurnRequest.Encoded
    if (this.files.length === 0) {
      return { body: JSON.stringify(fields), headers: { "content-type": "application/json" } }
    }
    const body = new FormData()
    for (const [name, value] of Object.entries(fields)) body.set(name, String(value))
    for (const file of this.files) body.append("files", file)
    // The boundary is the browser's to name.
    return { body, headers: {} }
  }
}
