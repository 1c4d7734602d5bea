/** The subscribers of this process. */
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type { ConversationId } from "../../domain/Ids.ts"
import type { Signal } from "../Realtime.ts"

/** Maximum number of signals that wait for one slow reader. The oldest are dropped first. */
const maxWaitingSignals = 64

export const make = () => {
  const readers = new Map<ConversationId, Set<Queue.Queue<Signal>>>()

  const deliver = (signal: Signal) =>
    Effect.forEach(readers.get(signal.conversationId) ?? [], (queue) => Queue.offer(queue, signal), {
      discard: true
    })

  /** Makes every subscriber check the database. */
  const signalAll = Effect.suspend(() =>
    Effect.forEach(
      [...readers.keys()],
      (conversationId) => deliver({ _tag: "Changed", conversationId, runId: null }),
      { discard: true }
    )
  )

  const remove = (conversationId: ConversationId, queue: Queue.Queue<Signal>) =>
    Effect.suspend(() => {
      const known = readers.get(conversationId)
      known?.delete(queue)
      if (known?.size === 0) readers.delete(conversationId)
      return Queue.shutdown(queue)
    })

  const subscribe = (conversationId: ConversationId) =>
    Effect.acquireRelease(
      Effect.tap(Queue.sliding<Signal>(maxWaitingSignals), (queue) => {
        const known = readers.get(conversationId) ?? new Set()
        readers.set(conversationId, known.add(queue))
      }),
      (queue) => remove(conversationId, queue)
    )

  return { deliver, signalAll, subscribe } as const
}
