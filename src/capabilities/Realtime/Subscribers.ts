/** The subscribers of this process, and the signals that wait for other processes. */
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type { ConversationId } from "../../domain/Ids.ts"
import type { Signal } from "../Realtime.ts"

/** Maximum number of signals that wait for one slow reader. The oldest are dropped first. */
const maxWaitingSignals = 64
/** Maximum number of signals that wait to be sent. The oldest are dropped first. */
const maxUnsentSignals = 4_096
/** Maximum number of signals that are sent at once. */
const maxBatchSize = 100

export const make = () => {
  const subscribers = new Map<ConversationId, Set<Queue.Queue<Signal>>>()

  const deliver = (signal: Signal) =>
    Effect.forEach(subscribers.get(signal.conversationId) ?? [], (queue) => Queue.offer(queue, signal), {
      discard: true
    })

  /** Makes every subscriber check the database. */
  const signalAll = Effect.suspend(() =>
    Effect.forEach(
      [...subscribers.keys()],
      (conversationId) => deliver({ _tag: "Changed", conversationId, runId: null }),
      { discard: true }
    )
  )

  const remove = (conversationId: ConversationId, queue: Queue.Queue<Signal>) =>
    Effect.suspend(() => {
      const queues = subscribers.get(conversationId)
      queues?.delete(queue)
      if (queues?.size === 0) subscribers.delete(conversationId)
      return Queue.shutdown(queue)
    })

  const subscribe = (conversationId: ConversationId) =>
    Effect.acquireRelease(
      Effect.tap(Queue.sliding<Signal>(maxWaitingSignals), (queue) => {
        const queues = subscribers.get(conversationId) ?? new Set()
        subscribers.set(conversationId, queues.add(queue))
      }),
      (queue) => remove(conversationId, queue)
    )

  /**
   * Publishes signals: to the subscribers of this process at once, and to other processes by `send` in the background,
   * in batches, until the scope closes.
   */
  const makePublish = (send: (signals: ReadonlyArray<Signal>) => Effect.Effect<unknown, unknown>) =>
    Effect.gen(function* () {
      const outgoing = yield* Queue.sliding<Signal>(maxUnsentSignals)
      yield* Queue.takeBetween(outgoing, 1, maxBatchSize).pipe(
        Effect.flatMap((signals) => send(Chunk.toReadonlyArray(signals))),
        Effect.catchAllCause((cause) => Effect.logWarning("Other processes could not be notified", cause)),
        Effect.forever,
        Effect.forkScoped
      )
      return (signal: Signal) =>
        Effect.zipRight(deliver(signal), Effect.asVoid(Queue.offer(outgoing, signal)))
    })

  return { deliver, makePublish, signalAll, subscribe } as const
}
