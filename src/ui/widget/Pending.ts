/** Finds a message that is being sent among the stored messages. */
import type { Message } from "./Client.ts"
import type { PendingMessage } from "./WidgetStorage.ts"
import type { View } from "./View.ts"

/** The pending message as it was stored, and the messages after it. Empty if it was not stored. */
export const messagesFromPending = (
  { after, again, message }: PendingMessage,
  messages: ReadonlyArray<Message>
): ReadonlyArray<Message> => {
  const retried = messages.findIndex(({ id }) => id === again)
  if (again !== undefined) return retried < 0 ? [] : messages.slice(retried)
  const newMessages = messages.slice(messages.findIndex(({ id }) => id === after) + 1)
  const index = newMessages.findIndex(
    // Browsers send line breaks in a form as CR LF.
    ({ content, role }) => role === "user" && content.replaceAll("\r\n", "\n") === message.trim()
  )
  return index < 0 ? [] : newMessages.slice(index)
}

/** The stored messages before the pending one. */
export const messagesBeforePending = ({ after }: PendingMessage, messages: ReadonlyArray<Message>) =>
  messages.slice(0, messages.findIndex(({ id }) => id === after) + 1)

/** True if the stored messages may replace the live ones. */
export const canReplaceLive = (
  live: View["live"],
  pending: PendingMessage | undefined,
  messages: ReadonlyArray<Message>,
  state: View["state"]
): boolean => {
  if (live === null) return true
  if (live.phase === "streaming" || pending === undefined) return false
  const [pendingMessage, ...later] = messagesFromPending(pending, messages)
  return pendingMessage !== undefined && (later.length > 0 || state !== "AI_ACTIVE")
}
