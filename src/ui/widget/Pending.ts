/** Finds out from the stored messages whether a message under way was received. */
import type { Message } from "./Client.ts"
import type { Pending } from "./Memory.ts"
import type { View } from "./View.ts"

/** The stored message and the messages after it; empty when it is not stored. */
export const ofPending = (
  { after, again, message }: Pending,
  messages: ReadonlyArray<Message>
): ReadonlyArray<Message> => {
  const repeated = messages.findIndex(({ id }) => id === again)
  if (again !== undefined) return repeated < 0 ? [] : messages.slice(repeated)
  const fresh = messages.slice(messages.findIndex(({ id }) => id === after) + 1)
  const mine = fresh.findIndex(
    // A browser sends the lines of a form with CR LF.
    ({ content, role }) => role === "user" && content.replaceAll("\r\n", "\n") === message.trim()
  )
  return mine < 0 ? [] : fresh.slice(mine)
}

/** The stored messages before it. */
export const beforePending = (pending: Pending | undefined, messages: ReadonlyArray<Message>) =>
  messages.slice(0, messages.findIndex(({ id }) => id === pending?.after) + 1)

/** True when the stored messages may replace the live ones. */
export const isSettled = (
  live: View["live"],
  pending: Pending | undefined,
  messages: ReadonlyArray<Message>,
  state: View["state"]
): boolean => {
  if (live === null) return true
  if (live.phase === "streaming" || pending === undefined) return false
  const [mine, ...others] = ofPending(pending, messages)
  return mine !== undefined && (others.length > 0 || state !== "AI_ACTIVE")
}
