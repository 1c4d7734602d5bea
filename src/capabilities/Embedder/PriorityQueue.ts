/** Runs one effect at a time, urgent ones first. Owners within a priority take turns. */
import * as Effect from "effect/Effect"
import * as FiberRef from "effect/FiberRef"
import { currentOwner } from "../../concurrency/CurrentOwner.ts"
import { FairQueue } from "../../concurrency/FairQueue.ts"

export type Priority = "urgent" | "background"

interface Waiting {
  readonly begin: () => void
  readonly refuse: () => void
}

/**
 * A queue with priorities. At most `maxWaiting` callers wait per priority. Beyond that, the owner with the most waiting
 * callers is `refused`. Interruption leaves the queue.
 */
export const makePriorityQueue = <E>(maxWaiting: number, refused: () => E) => {
  const queues: Record<Priority, FairQueue<Waiting>> = {
    urgent: new FairQueue(maxWaiting),
    background: new FairQueue(maxWaiting)
  }
  let busy = false

  const waitForTurn = (priority: Priority, owner: string): Effect.Effect<void, E> =>
    Effect.async((resume) => {
      const queue = queues[priority]
      if (!busy) {
        busy = true
        return resume(Effect.void)
      }
      let hasBegun = false
      const added = queue.add(owner, {
        begin: () => {
          hasBegun = true
          resume(Effect.void)
        },
        refuse: () => resume(Effect.failSync(refused))
      })
      added?.displaced?.item.refuse()
      if (added === null) return resume(Effect.failSync(refused))
      return Effect.sync(() => {
        // Its turn came at the same time as the interruption. The next caller gets it.
        if (!queue.delete(added.waiter) && hasBegun) startNext()
      })
    })

  const startNext = () => {
    const next = queues.urgent.shift() ?? queues.background.shift()
    if (next === null) busy = false
    else next.item.begin()
  }

  /** Runs `effect` when its turn comes. */
  return <A, E2, R>(priority: Priority, effect: Effect.Effect<A, E2, R>): Effect.Effect<A, E | E2, R> =>
    Effect.flatMap(FiberRef.get(currentOwner), (owner) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.zipRight(
          restore(waitForTurn(priority, owner)),
          Effect.ensuring(restore(effect), Effect.sync(startNext))
        )
      )
    )
}
