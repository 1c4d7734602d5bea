/** What of the chat is shown. */
import type { ConversationState } from "../../domain/conversations/Conversation.ts"
import type { Message, Session } from "./Client.ts"
import type { Source } from "./EventStream.ts"
import type { Markdown } from "./Markdown.ts"

/** A message on its way, until the conversation as it is stored shows what became of it. */
export interface Live {
  /** Null where a stored message is answered again: it stands among the messages. */
  readonly message: string | null
  readonly files: ReadonlyArray<string>
  readonly reply: string
  readonly citations: ReadonlyArray<Source>
  /** `unsure`: the connection broke, and it is not known yet whether the message arrived. */
  readonly phase: "streaming" | "unsure"
}

export interface View {
  readonly agent: Session["agent"] | null
  /** Null until it has come, and where the page does not let it in. */
  readonly markdown: Markdown | null
  readonly messages: ReadonlyArray<Message>
  readonly live: Live | null
  readonly state: typeof ConversationState.Encoded
  readonly typing: boolean
  readonly problem: string | null
  /** The person's last message, where it got no answer and may be answered again. */
  readonly failed: string | null
  /** Text that was not accepted, to be sent again by its writer. */
  readonly draft: string | null
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
  draft: null,
  ready: false
}
