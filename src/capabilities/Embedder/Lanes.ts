/** One thing at a time, what is urgent first, and the owners of each lane in turns. */
import * as Effect from "effect/Effect"
import * as FiberRef from "effect/FiberRef"
import { currentOwner } from "../../concurrency/CurrentOwner.ts"
import { FairQueue } from "../../concurrency/FairQueue.ts"

export type Lane = "urgent" | "patient"

interface Waiting {
  readonly begin: () => void
  readonly refuse: () => void
}

/**
 * A turn for each caller, urgent ones before the others. At most `maxWaiting` wait in a lane: past it the owner with the
 * most of them is `refused`. Interruption leaves the line.
 */
export const makeLanes = <E>(maxWaiting: number, refused: () => E) => {
  const lanes: Record<Lane, FairQueue<Waiting>> = {
    urgent: new FairQueue(maxWaiting),
    patient: new FairQueue(maxWaiting)
  }
  let busy = false

  const take = (lane: Lane, owner: string): Effect.Effect<void, E> =>
    Effect.async((resume) => {
      const line = lanes[lane]
      if (!busy) {
        busy = true
        return resume(Effect.void)
      }
      let begun = false
      const added = line.add(owner, {
        begin: () => {
          begun = true
          resume(Effect.void)
        },
        refuse: () => resume(Effect.failSync(refused))
      })
      added?.displaced?.item.refuse()
      if (added === null) return resume(Effect.failSync(refused))
      return Effect.sync(() => {
        // Already begun: the turn came together with the interruption and goes to the next.
        if (!line.delete(added.waiter) && begun) give()
      })
    })

  const give = () => {
    const next = lanes.urgent.shift() ?? lanes.patient.shift()
    if (next === null) busy = false
    else next.item.begin()
  }

  /** Runs `effect` when its turn comes. */
  return <A, E2, R>(lane: Lane, effect: Effect.Effect<A, E2, R>): Effect.Effect<A, E | E2, R> =>
    Effect.flatMap(FiberRef.get(currentOwner), (owner) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.zipRight(restore(take(lane, owner)), Effect.ensuring(restore(effect), Effect.sync(give)))
      )
    )
}
