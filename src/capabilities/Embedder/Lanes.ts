/** One thing at a time, what is urgent first. */
import * as Effect from "effect/Effect"

export type Lane = "urgent" | "patient"

type Waiter = () => void

/**
 * A turn for whoever asks, urgent ones before patient ones, each lane in order of arrival. At most `limit` wait in a lane:
 * past it `refused` is raised. Interruption leaves the line.
 */
export const makeLanes = <E>(limit: number, refused: () => E) => {
  const lanes: Record<Lane, Set<Waiter>> = { urgent: new Set(), patient: new Set() }
  let busy = false

  const take = (lane: Lane): Effect.Effect<void, E> =>
    Effect.async((resume) => {
      const line = lanes[lane]
      if (!busy) {
        busy = true
        return resume(Effect.void)
      }
      if (line.size >= limit) return resume(Effect.failSync(refused))
      const waiter = () => resume(Effect.void)
      line.add(waiter)
      return Effect.sync(() => {
        // Already called: the turn came together with the interruption and goes to the next.
        if (!line.delete(waiter)) give()
      })
    })

  const give = () => {
    for (const line of [lanes.urgent, lanes.patient]) {
      for (const waiter of line) {
        line.delete(waiter)
        return waiter()
      }
    }
    busy = false
  }

  /** Runs `effect` when its turn comes. */
  return <A, E2, R>(lane: Lane, effect: Effect.Effect<A, E2, R>): Effect.Effect<A, E | E2, R> =>
    Effect.uninterruptibleMask((restore) =>
      Effect.zipRight(restore(take(lane)), Effect.ensuring(restore(effect), Effect.sync(give)))
    )
}
