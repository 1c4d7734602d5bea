import * as Effect from "effect/Effect"
import { yieldToEventLoop } from "./YieldToEventLoop.ts"

/** Steps between two yields: about a millisecond of comparisons. */
const stepsPerYield = 500_000

/**
 * Limits work whose amount a caller determines. The work is counted in steps. The budget grows with the size of the
 * caller's input, so the work is at most linear in it.
 */
export class WorkBudget {
  #left = 0
  #sinceYield = 0

  /** Adds `steps` to the budget. */
  allow(steps: number): void {
    this.#left += steps
  }

  /** Counts completed steps. */
  spend(steps: number): void {
    this.#left -= steps
    this.#sinceYield += steps
  }

  /** True once more steps were counted than allowed. */
  get isSpent(): boolean {
    return this.#left < 0
  }

  /**
   * True when {@link yieldIfDue} would yield. Long loops check this first, because running an effect for each iteration
   * costs more than the iteration.
   */
  get isYieldDue(): boolean {
    return this.#sinceYield >= stepsPerYield
  }

  /** Yields to the event loop if enough work was done since the last time. */
  readonly yieldIfDue: Effect.Effect<void> = Effect.suspend(() => {
    if (!this.isYieldDue) return Effect.void
    this.#sinceYield = 0
    return yieldToEventLoop
  })
}
