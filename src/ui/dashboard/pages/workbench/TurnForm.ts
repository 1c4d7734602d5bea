/** The request for the next turn: JSON, or a form with files. */
import type { TrialSettings } from "../../../../domain/agents/Agent.ts"
import type { HostedTurnRequest } from "../../../../domain/chat/Widget.ts"

/** The answering version, and settings that replace its own. */
export interface TriedSettings {
  /** Undefined for the published one. */
  readonly version?: number | undefined
  /** Undefined if nothing differs from the version. */
  readonly draft?: typeof TrialSettings.Encoded | undefined
}

interface Next {
  readonly text: string
  readonly files: ReadonlyArray<File>
  /** The run that the turn replaces. */
  readonly replaces: string | undefined
}

export class TurnForm {
  readonly agentId: string
  /** Of the previous turn; undefined begins a conversation. */
  conversationId: string | undefined = undefined
  tried: TriedSettings = {}
  private turn: Next = { text: "", files: [], replaces: undefined }

  constructor(agentId: string) {
    this.agentId = agentId
  }

  next(turn: Next): void {
    this.turn = turn
  }

  /** The request. */
  get current(): { readonly text: string; readonly files: ReadonlyArray<string> } {
    return { text: this.turn.text, files: this.turn.files.map(({ name }) => name) }
  }

  request(): RequestInit {
    const { files, replaces, text } = this.turn
    const { draft, version } = this.tried
    const place =
      replaces === undefined
        ? this.conversationId === undefined
          ? {}
          : { conversationId: this.conversationId }
        : { replaces }
    const fields = {
      agentId: this.agentId,
      message: text,
      ...place,
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
