/** A message of a test chat. */
import type { Message as StoredMessage } from "../../api/Conversations.ts"
import type { Citation } from "../../components/replies/CitationChip.tsx"

export interface Message {
  readonly id: string
  readonly role: "user" | "assistant"
  readonly text: string
  /** Names of the attached files. */
  readonly files: ReadonlyArray<string>
  /** Of the settled reply, or those received so far. */
  readonly citations: ReadonlyArray<Citation>
  /** Whether the reply is complete. */
  readonly isDone: boolean
}

/** A message of the user. */
export const userMessage = (id: string, text: string, files: ReadonlyArray<string>): Message => ({
  id,
  role: "user",
  text,
  files,
  citations: [],
  isDone: true
})

/** A stored message as it is displayed. */
export const toMessage = ({ attachments, citations, content, id, role }: StoredMessage): Message =>
  role === "user"
    ? userMessage(
        id,
        content,
        attachments.map(({ name }) => name)
      )
    : { id, role, text: content, files: [], citations, isDone: true }

/** `stored` without the messages that the resumed turn `runId` will send again. */
export const withoutTurn = (
  stored: ReadonlyArray<StoredMessage>,
  runId: string | undefined
): ReadonlyArray<StoredMessage> => {
  const index = stored.findIndex((message) => message.runId === runId)
  if (runId === undefined || index < 0) return stored
  return stored.slice(0, stored[index]?.role === "assistant" ? Math.max(0, index - 1) : index)
}
