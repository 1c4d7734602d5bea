import * as Effect from "effect/Effect"
import { yieldToEventLoop } from "./YieldToEventLoop.ts"

/** Steps between two pauses: about a millisecond of comparisons. */
const stepsPerPause = 500_000

/**
 * Work whose amount a caller decides on, counted in steps while it is done. What may be done grows with what the caller has
 * sent, so that the work never grows faster than that.
 */
export class WorkBudget {
  #left = 0
  #sincePause = 0

  /** Allows so many steps more. */
  allow(steps: number): void {
    this.#left += steps
  }

  /** Counts steps that were done. */
  spend(steps: number): void {
    this.#left -= steps
    this.#sincePause += steps
  }

  /** True once more was done than allowed. */
  get isSpent(): boolean {
    return this.#left < 0
  }

  /** True when {@link rest} has something to do: long loops ask, since an effect for each turn costs more than the turn. */
  get isDue(): boolean {
    return this.#sincePause >= stepsPerPause
  }

  /** Lets events be handled, when much was done since the last time. */
  readonly rest: Effect.Effect<void> = Effect.suspend(() => {
    if (!this.isDue) return Effect.void
    this.#sincePause = 0
    return yieldToEventLoop
  })
}
