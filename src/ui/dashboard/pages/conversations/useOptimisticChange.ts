/** Changes of a conversation that are shown before the service has confirmed them. */
import { useQueryClient } from "@tanstack/react-query"
import { useRef } from "react"
import type { Conversation } from "../../api/Conversations.ts"
import { patchConversation } from "../../api/Inbox.ts"
import { toast } from "../../components/feedback/Toast.tsx"
import { useReason } from "../../text/useReason.ts"

/**
 * Shows `after` at once, and `before` again if the service refuses the change. Changes are sent one after the other, so
 * that the last one counts. The conversation is read again after the last of them.
 */
export const useOptimisticChange = (conversation: Conversation) => {
  const queries = useQueryClient()
  const reason = useReason()
  const queryKey = ["conversations", "one", conversation.id]
  const lastChange = useRef(Promise.resolve())
  const pendingCount = useRef(0)
  return async (
    after: Partial<Conversation>,
    before: Partial<Conversation>,
    change: () => Promise<unknown>
  ): Promise<boolean> => {
    pendingCount.current += 1
    // A response that was requested before the change would show the old state.
    await queries.cancelQueries({ queryKey })
    patchConversation(queries, conversation.id, after)
    const sent = lastChange.current.then(change)
    lastChange.current = sent.then(
      () => undefined,
      () => undefined
    )
    try {
      await sent
      return true
    } catch (problem) {
      if (pendingCount.current === 1) patchConversation(queries, conversation.id, before)
      toast(reason(problem).sentence)
      return false
    } finally {
      pendingCount.current -= 1
      if (pendingCount.current === 0) await queries.invalidateQueries({ queryKey })
    }
  }
}
