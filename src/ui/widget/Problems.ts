/** Clears errors that no longer apply. */
import type { Message } from "./Client.ts"
import type { Texts } from "./Texts.ts"
import type { View } from "./View.ts"

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
