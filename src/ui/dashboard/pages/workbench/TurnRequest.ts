/** The request for the next turn: JSON, or a form with files. */
import type { TrialSettings } from "../../../../domain/agents/Agent.ts"
import type { HostedTurnRequest } from "../../../../domain/chat/Widget.ts"

/** The version that answers, and unsaved settings that replace its own. */
export interface Trial {
  /** Undefined for the published one. */
  readonly version?: number | undefined
  /** Undefined if no setting is replaced. */
  readonly draft?: typeof TrialSettings.Encoded | undefined
}

interface UserMessage {
  readonly text: string
  readonly files: ReadonlyArray<File>
  /** The run that the turn replaces. */
  readonly replaces: string | undefined
}

export class TurnRequest {
  readonly agentId: string
  /** Undefined to begin a new conversation. */
  conversationId: string | undefined = undefined
  trial: Trial = {}
  private message: UserMessage = { text: "", files: [], replaces: undefined }

  constructor(agentId: string) {
    this.agentId = agentId
  }

  setMessage(message: UserMessage): void {
    this.message = message
  }

  /** The text and the names of the files. */
  get question(): { readonly text: string; readonly files: ReadonlyArray<string> } {
    return { text: this.message.text, files: this.message.files.map(({ name }) => name) }
  }

  toRequestInit(): RequestInit {
    const { files, replaces, text } = this.message
    const { draft, version } = this.trial
    const position =
      replaces === undefined
        ? this.conversationId === undefined
          ? {}
          : { conversationId: this.conversationId }
        : { replaces }
    const fields = {
      agentId: this.agentId,
      message: text,
      ...position,
      ...(version === undefined ? {} : { version }),
      ...(draft === undefined ? {} : { draft })
    } satisfies typeof HostedTurnRequest.Encoded
    if (files.length === 0) {
      return { body: JSON.stringify(fields), headers: { "content-type": "application/json" } }
    }
    const body = new FormData()
    for (const [name, value] of Object.entries(fields)) {
      body.set(name, typeof value === "object" ? JSON.stringify(value) : String(value))
    }
    for (const file of files) body.append("files", file)
    // The browser sets the boundary.
    return { body, headers: {} }
  }
}
