/** The state of the chat that is rendered, and which of its errors no longer apply. */
import type { ConversationState } from "../../domain/conversations/Conversation.ts"
import type { Message, Session } from "./Client.ts"
import type { Source } from "../EventStream.ts"
import type { Markdown } from "./Markdown.ts"
import type { Texts } from "./Texts.ts"

/** A message that was sent and is not part of the stored conversation yet. */
export interface Live {
  /** Null if a stored message is answered again. */
  readonly message: string | null
  readonly files: ReadonlyArray<string>
  readonly reply: string
  readonly citations: ReadonlyArray<Source>
  /** `unconfirmed`: the connection broke before the server confirmed the message. */
  readonly phase: "streaming" | "unconfirmed"
}

export interface View {
  readonly agent: Session["agent"] | null
  /** Null until it is loaded, and on pages whose content security policy blocks it. */
  readonly markdown: Markdown | null
  readonly messages: ReadonlyArray<Message>
  readonly live: Live | null
  readonly state: typeof ConversationState.Encoded
  readonly typing: boolean
  readonly problem: string | null
  /** Why the draft cannot be sent, or files were not added to it. */
  readonly draftProblem: string | null
  /** Id of the visitor's last message if it has no answer and can be retried. */
  readonly failedMessageId: string | null
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
  draftProblem: null,
  failedMessageId: null,
  ready: false
}

/**
 * The changes that clear errors of a broken connection, the error `outdated`, and those of a message that now has an
 * answer among `messages`.
 */
export const withoutOldErrors = (
  { failedMessageId, problem }: View,
  { lost, repeating, running, unreachable }: Texts,
  outdated: string | null,
  messages: ReadonlyArray<Message>
): Partial<View> => {
  const isOutdated = [lost, repeating, running, unreachable, outdated].some((text) => text === problem)
  const isAnswered = failedMessageId !== null && messages.at(-1)?.id !== failedMessageId
  return {
    ...(isOutdated || isAnswered ? { problem: null } : {}),
    ...(isAnswered ? { failedMessageId: null } : {})
  }
}
