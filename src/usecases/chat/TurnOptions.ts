/** Options of a turn that its surface sets, apart from the request. */
import type * as Prompt from "@effect/ai/Prompt"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { TrialSettings } from "../../domain/agents/Agent.ts"
import type { StoredAttachment } from "../../domain/channels/Attachment.ts"
import type { ConversationNotActive, TurnFailed } from "../../domain/Errors.ts"
import type { ClientChat } from "../../domain/chat/UiChat.ts"
import type { EndUserId, MessageId } from "../../domain/Ids.ts"
import type { HistoryMessage, StartedTurn } from "../../store/chat/Turns.ts"

export type { HistoryMessage }

/** Files of the user's message, in the artifact store. */
export interface Files {
  readonly stored: ReadonlyArray<StoredAttachment>
  /** The contents in the form that the model takes. They stay in memory until the scope closes. */
  readonly load: Effect.Effect<ReadonlyArray<Prompt.FilePart>, TurnFailed, Scope.Scope>
  /** Run when the turn has ended. After that only the conversation, if there is one, keeps the files. */
  readonly release: Effect.Effect<void>
}

export const noFiles: Files = { stored: [], load: Effect.succeed([]), release: Effect.void }

export interface TurnOptions {
  readonly files: Files
  /** The end user that the surface knows, also when the turn names a conversation. */
  readonly endUserId?: EndUserId
  /** The id for the user's message. */
  readonly userMessageId?: MessageId
  /**
   * The user's message is already stored. It is answered if it is the conversation's last and no turn is answering it.
   */
  readonly retryOf?: MessageId
  /** The client's own name for the conversation, which begins with its first message. */
  readonly chat?: ClientChat
  /** History of a turn without a stored conversation, oldest first. */
  readonly history?: ReadonlyArray<HistoryMessage>
  /** The agent version to try. Without it the conversation's version is used. */
  readonly version?: number
  /** Settings for this turn only, in place of those of its version. */
  readonly draft?: TrialSettings
  /** Runs before the turn's first rows, in their transaction: a refused turn undoes it. */
  readonly prepare?: Effect.Effect<void, ConversationNotActive>
}

export const noTurnOptions: TurnOptions = { files: noFiles }

/** `admission` with the settings of `draft` in place of those of the agent's version. */
export const withDraft = <A extends StartedTurn>(admission: A, draft: TrialSettings | undefined): A => {
  if (draft === undefined) return admission
  const { grounding: { mode, ...grounding } = {}, retrieval, style, tools, ...given } = draft
  return {
    ...admission,
    ...given,
    ...retrieval,
    ...grounding,
    ...style,
    ...(mode === undefined ? {} : { groundingMode: mode }),
    ...(tools === undefined ? {} : { sourceTools: tools })
  }
}
