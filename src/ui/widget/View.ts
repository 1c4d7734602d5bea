/** State of the chat that is shown. */
import type { ConversationState } from "../../domain/conversations/Conversation.ts"
import type { Message, Session } from "./Client.ts"
import type { Source } from "../EventStream.ts"
import type { Markdown } from "./Markdown.ts"

/** A message that was sent and is not part of the stored conversation yet. */
export interface Live {
  /** Null for another answer to a stored message, which is among the messages. */
  readonly message: string | null
  readonly files: ReadonlyArray<string>
  readonly reply: string
  readonly citations: ReadonlyArray<Source>
  /** `unsure`: the connection broke before the server confirmed the message. */
  readonly phase: "streaming" | "unsure"
}

export interface View {
  readonly agent: Session["agent"] | null
  /** Null until it is loaded, and where the page's content policy blocks it. */
  readonly markdown: Markdown | null
  readonly messages: ReadonlyArray<Message>
  readonly live: Live | null
  readonly state: typeof ConversationState.Encoded
  readonly typing: boolean
  readonly problem: string | null
  /** The person's last message, when it has no answer and another one can be requested. */
  readonly failed: string | null
  readonly ready: boolean
}

export const empty: View = {
  agent: null,
  markdown: null,
  messages: [],
  live: null,
  state: "AI_ACTIVE",
  typing: false,
  problem: null,
  failed: null,
  ready: false
}
